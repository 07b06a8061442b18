"""What is watched in a program: chosen by the setting, by connect(), by a board; the cores read it in the mailbox."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from arm_client import connect
from arm_client.client import Board
from hbrt.ddr.layout import CLIENT_CHECKS
from hbrt.errors import WrongUseError
from hbrt.findings.checks import Check
from tests.shared import in_process


def checks_in_mailbox(board: Board) -> Check:
    link = board.session.link
    return Check(link.mailbox.map[link.ddr.layout.client(link.client_id) + CLIENT_CHECKS])


@pytest.mark.dsp_board(check="dma,memory")
def test_cores_see_what_is_watched(dsp_board: Board) -> None:
    assert checks_in_mailbox(dsp_board) == dsp_board.session.checks == Check.DMA | Check.MEMORY


def test_nothing_is_watched_by_default(dsp_board: Board) -> None:
    assert checks_in_mailbox(dsp_board) == Check(0)


def test_connect_refuses_checks_that_this_process_did_not_begin_with(dsp_board: Board) -> None:
    with pytest.raises(WrongUseError, match="without these checks"):
        connect(check="dma")
    assert dsp_board.session.users == 1


def test_program_under_hbrt_run_has_its_own_arguments_and_options(tmp_path: Path) -> None:
    program = tmp_path / "mine.py"
    program.write_text(
        "import os, sys\nprint(sys.argv[1:], *map(os.environ.get, ['HBRT_CHECK', 'HBRT_DMA_ORDER']))\nsys.exit(7)\n"
    )
    options = ["--check", "dma", "--dma-order", "relaxed:3"]
    command = [sys.executable, "-m", "hbrt", "run", *options, str(program), "a", "--mode", "x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "['a', '--mode', 'x'] dma,fail relaxed:3\n"
    assert done.returncode == 7


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--check", "dam", "Invalid checks 'dam': expected at least one of memory, coherence"),
        ("--dma-order", "relaxed:x", "'--dma-order': 'relaxed:x': must be strict or relaxed:SEED, as in relaxed:7."),
    ],
)
def test_a_value_that_a_check_cannot_have_is_refused_by_the_verb(
    tmp_path: Path, option: str, value: str, said: str
) -> None:
    program = tmp_path / "mine.py"
    program.write_text("")
    done = in_process("run", option, value, program)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())
