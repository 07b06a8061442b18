"""Which lines of a log are for the program whose board it is."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, strategies as st

from hbrt.board.log_lines import ProgramLines, lines_for_program

LOG = b"""\
20:00:00 daemon Board x is running.
and more of that
20:00:00 relay The relay runs.
20:00:01 core0 main() runs
20:00:01 core1 0x1000 WARNING row 3
Traceback of it
20:00:02 daemon ERROR overrun: The block.
20:00:02 daemon WARNING shared-block: The program has said so.
20:00:02 daemon WARNING nothing: no kind of finding.
20:00:02 daemon WARNING leak: Allocated at a.py:3.
"""
SHOWN = """\
20:00:01 core0 main() runs
20:00:01 core1 0x1000 WARNING row 3
Traceback of it
20:00:02 daemon ERROR overrun: The block.
20:00:02 daemon WARNING leak: Allocated at a.py:3.
"""


def test_what_ops_say_and_what_is_found_is_shown() -> None:
    assert lines_for_program(LOG) == SHOWN
    assert lines_for_program(b"printed by C code before anything else") == "printed by C code before anything else\n"


@given(st.lists(st.integers(0, len(LOG)), max_size=8))
def test_it_makes_no_difference_in_which_pieces_a_log_comes(cuts: list[int]) -> None:
    lines, places = ProgramLines(), [0, *sorted(cuts), len(LOG)]
    pieces = [LOG[start:end] for start, end in pairwise(places)]
    assert b"".join(map(lines.take, pieces)).decode() == SHOWN
