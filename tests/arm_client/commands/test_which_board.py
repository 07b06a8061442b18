"""Which image a verb's own board has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shared import Shell

IMAGE = """
from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start


def answer(input, output, tm):
    output[0] = 7
    return 0


def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, answer)
    hb_dsp_start()
"""
PROGRAM = """
from arm_client.client import connect

with connect() as board:
    assert board.call(0x1000, b"x", board.empty(1, "u1"))[0] == 7
"""


@pytest.mark.parametrize("source", ["board", "setting", "option"])
def test_an_estimate_has_the_image_of_the_option_the_running_board_or_the_setting(
    shell: Shell, tmp_path: Path, source: str
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(IMAGE)
    (tmp_path / "program.py").write_text(PROGRAM)
    option: tuple[str, ...] = ()
    if source == "setting":
        shell.environment["HBRT_IMAGE"] = str(mine)
    else:
        shell.good("start", *(("--image", mine) if source == "board" else ()))
        option = ("--image", str(mine)) if source == "option" else ()
    try:
        said = shell.good("estimate", tmp_path / "program.py", *option)
    finally:
        shell.hbrt("stop")
    assert said.startswith(f"Runs on a private board: profile j5, DSP image {mine}.\n")
    assert "0x1000" in said
