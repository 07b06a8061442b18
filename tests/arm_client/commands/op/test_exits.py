"""What ``hbrt op new`` writes leaves nothing behind, whichever way the op ends."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from arm_client.client import private_board
from arm_client.commands.op.kinds import ARRAYS, KINDS, NewOp
from arm_client.commands.op.new import write_op
from arm_client.errors import HbrtError
from hbrt.status import Status
from tests.shared import Shell

CMD = 0x1000
WIDE = 200_000
"""Bytes of a row that no tile holds."""


@pytest.mark.parametrize("way", ["numpy", "c"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_scaffold_leaves_nothing_on_any_exit(
    kind: str, way: str, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"op_{kind}_{way}"
    written = write_op(NewOp(name, CMD, way=way, kind=kind, dtype="uint8"), tmp_path)
    image = next(file for file in written if file.name.startswith(f"{name}_image"))
    if way == "c":
        image = tmp_path / f"{name}.so"
        shell.good("cc", "--dsp", "-o", image, tmp_path / f"{name}_image.c")
    monkeypatch.syspath_prepend(str(tmp_path))
    params = importlib.import_module(f"call_{name}").params
    shape = (4, 64) if kind in ARRAYS else (256,)
    with private_board(image, check="all") as board:

        def status_of(block: object, x_shape: tuple[int, ...], output_bytes: int) -> int:
            """Call with a parameter structure, or with its first bytes alone."""
            x, y = (board.from_array(np.zeros(one, np.uint8)) for one in (x_shape, output_bytes))
            given = np.frombuffer(bytes(params(x)), np.uint8)
            given = given[:4] if block == "short" else given
            if block == "nowhere":
                given = given.copy()
                given[:8] = 0
            try:
                board.call(CMD, board.from_array(given), y)
            except HbrtError as error:
                return int(error.status)
            return Status.HB_SYS_SUCCESS

        size = int(np.prod(shape))
        assert status_of("good", shape, size) == Status.HB_SYS_SUCCESS
        assert status_of("nowhere", shape, size) == Status.HB_ERR_MMAP_FAILED
        if way != "c":  # C reads what it is given
            assert status_of("short", shape, size) == Status.HB_DSP_INVALID_ARGUMENT
            if kind != "reduce":  # whose result is one element
                assert status_of("good", shape, 1) == Status.HB_DSP_INVALID_ARGUMENT
        if kind in ARRAYS:
            assert status_of("good", (1, WIDE), WIDE) == Status.HB_DSP_OUT_OF_TCM
        left = [one["text"] for one in board.status()["findings"] if one["kind"].endswith(("-left", "left-mapped"))]
    assert left == []
