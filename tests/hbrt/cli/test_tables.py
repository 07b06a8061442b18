"""What verbs print when nobody looks at a terminal, and what when somebody does."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from hbrt.cli.tables import Column, Time, cells_of, duration, plain_lines
from hbrt.settings import rounded
from tests.each import each
from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    from tests.shared import Shell

TABLE = """
from hbrt.cli.tables import Column, show_table
show_table((Column("NAME"), Column("BYTES", is_number=True)), [("x" * 300, 5), ("[bold]y", None)])
"""

STATUS = """
from hbrt.cli.tables import Column, number, show_table, state
columns = [number("CORE"), state("STATE"), number("TASKS"), Column("PROGRAM AND ITS USER")]
show_table(columns, [(0, "running", 0, "arm.py"), (1, "crashed", 0, "running")])
"""


def test_columns_stand_under_their_headings_numbers_to_the_right() -> None:
    lines = plain_lines((Column("NAME"), Column("N", is_number=True)), [["a", "1"], ["long", "100"]])
    assert lines == ["NAME    N", "a       1", "long  100"]


def test_a_table_without_rows_is_its_headings() -> None:
    assert plain_lines((Column("NAME"), Column("N")), []) == ["NAME  N"]


@each(
    "times_ns, texts",
    [
        ((870, 12), ["870 ns", "12 ns"]),
        ((4_360_000, 12_340, 0), ["4,360 µs", "12.3 µs", "0 µs"]),
        ((207e6, 500_000), ["207 ms", "0.500 ms"]),
        ((2_000_000, 40), ["2,000 µs", "0.040 µs"]),
        ((142e9, 300), ["142,000 ms", "0.00030 ms"]),
    ],
)
def test_times_of_a_table_have_one_unit(times_ns: tuple[float, ...], texts: list[str]) -> None:
    columns = [Column("A"), Column("TIME")]
    assert [row[1] for row in cells_of(columns, [("a", Time(one)) for one in times_ns])] == texts


@each(
    "value, text",
    [(4361.0, "4,360"), (1.6e7, "16,000,000"), (12.345, "12.3"), (0.01234, "0.0123"), (2.0, "2"), (0, "0")],
)
def test_a_number_has_no_exponent(value: float, text: str) -> None:
    assert rounded(value) == text


def test_a_piped_table_is_plain_and_whole(shell: Shell) -> None:
    shell.environment["COLUMNS"] = "40"
    answer = shell.python("-c", TABLE)
    heading, wide, second = answer.stdout.splitlines()
    assert heading.split() == ["NAME", "BYTES"]
    assert wide.split() == ["x" * 300, "5"]
    assert second.split() == ["[bold]y", "-"]


def on_terminal(shell: Shell, program: str, columns: int, **settings: str) -> str:
    """What a program shows on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    environment = {**shell.environment, "COLUMNS": str(columns), "TERM": "xterm", **settings}
    subprocess.run([sys.executable, "-c", program], env=environment, stdout=theirs, check=True, timeout=PATIENCE_S)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:
        pass  # a terminal whose other side is closed ends like that
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def test_a_table_on_a_terminal_fits_it(shell: Shell) -> None:
    shown = on_terminal(shell, TABLE, 40)
    assert "\x1b[" in shown
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert max(map(len, lines)) <= 40
    assert sum(line.count("x") for line in lines) == 300
    assert any("[bold]y" in line for line in lines)


def test_a_terminal_with_no_room_gets_whole_lines_not_columns_of_one_letter(shell: Shell) -> None:
    shown = on_terminal(shell, STATUS, 40)
    assert shown.splitlines() == [
        "CORE  STATE    TASKS  PROGRAM AND ITS USER",
        "   0  running      0  arm.py",
        "   1  crashed      0  running",
    ]


def test_a_terminal_shows_states_in_color_and_nothing_else(shell: Shell) -> None:
    shown = on_terminal(shell, STATUS, 80)
    assert shown.count("\x1b[32mrunning") == 1
    assert shown.count("\x1b[31mcrashed") == 1


def test_no_color_is_no_escape_sequence_at_all(shell: Shell) -> None:
    assert "\x1b" in on_terminal(shell, STATUS, 80)
    assert "\x1b" not in on_terminal(shell, STATUS, 80, NO_COLOR="1")


@each(
    "seconds, text",
    [
        (-0.1, "0.0 s"),
        (0.25, "0.2 s"),
        (42.4, "42 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (7500, "2 h 5 min"),
        (200_000, "2 d 7 h"),
    ],
)
def test_a_time_span_is_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text
