"""What a program or an op starts by exec has no descriptor of the board: neither its memory nor a doorbell."""

from __future__ import annotations

import os
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

from arm_client.client import Board
from tests.limits import PATIENCE_S
from tests.nursery import run_program
from tests.remote_relay import KeptRelays, kept_relays  # noqa: F401 - a fixture

LIST = """
    import os, subprocess
    def inherited():
        raw = subprocess.run(["sh", "-c", "for fd in /proc/$$/fd/*; do readlink $fd; done"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, close_fds=False, check=False).stdout.decode()
        return sorted(raw.split())
"""
PROGRAM = """
    import numpy as np
    from arm_client import connect
    with connect() as board:
        board.call(0x1000, bytes(8), board.empty(8, np.uint8))
        print(*inherited())
"""
IMAGE = """
    from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start
    def op(input, output, tm):
        seen = inherited()
        if len(seen) != 3:
            raise OSError(*seen)
        return 0
    def main():
        hb_dsp_env_init()
        hb_dsp_register_fn(0x1000, op)
        hb_dsp_start()
"""


@pytest.fixture
def board(dsp_board_factory: Any, tmp_path: Path) -> Any:
    image = tmp_path / "lists.py"
    image.write_text(textwrap.dedent(LIST) + textwrap.dedent(IMAGE))
    with dsp_board_factory(image=image, fresh=True) as made:
        yield made


@pytest.mark.parametrize("mode", ["direct", pytest.param("relay", marks=pytest.mark.long), "tcp"])
def test_nothing_of_the_board_is_inherited(
    board: Board,
    kept_relays: KeptRelays,  # noqa: F811
    tmp_path: Path,
    mode: str,
) -> None:
    address = kept_relays.of(board.path).address if mode == "tcp" else str(board.path)
    program = tmp_path / "starts.py"
    program.write_text(textwrap.dedent(LIST) + textwrap.dedent(PROGRAM))
    answer = run_program(
        [program],
        PATIENCE_S,
        env={**os.environ, "HBRT_BOARD": address, "HB_DSP_RPC_MODE": "relay" if mode == "relay" else "direct"},
        stdin=subprocess.DEVNULL,
    )
    assert answer.returncode == 0, answer.stderr
    assert [one.partition(":")[0] for one in answer.stdout.split()] == ["/dev/null", "/dev/null", "pipe"]
