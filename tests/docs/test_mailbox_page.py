"""docs/mailbox.md: its C program speaks to a real board."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.limits import PATIENCE_S
from tools.docs_blocks import blocks
from tools.docs_tables import REPOSITORY

if TYPE_CHECKING:
    from arm_client import Board

COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc or gcc) on PATH")
def test_the_c_program_of_the_page_pings_a_board(dsp_board: Board, tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "mailbox.md").read_text(encoding="utf-8")
    (program,) = (block.text for block in blocks(page) if block.language == "c")
    source, binary = tmp_path / "ping.c", tmp_path / "ping"
    source.write_text(program, encoding="utf-8")
    strict = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2"]
    subprocess.run([str(COMPILER), *strict, "-o", str(binary), str(source), "-pthread"], check=True, timeout=PATIENCE_S)
    for _ in range(5):  # with cores asleep and awake
        answer = subprocess.run(
            [str(binary), str(dsp_board.path / "attach.sock")],
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
            text=True,
        )
        assert re.fullmatch(r"state 4, core [01], result 0, \d+ ns\n", answer.stdout), answer.stderr
