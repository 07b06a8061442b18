"""Ops in C in a trace: their copies, waits and tiles are noted where they are done, in C."""

from __future__ import annotations

from pathlib import Path

from hbrt.samples_dir import samples_dir
from hbrt.trace.timeline import MODELED
from tests.hbrt.trace.reader import read
from tests.native.dsp.conftest import WARNINGS, Build
from tests.shared import Shell

PROGRAM = """
import numpy as np
from arm_client import connect, nn
with connect() as board:
    for _ in range(3):
        nn.softmax(board, np.zeros((1, 60_000), np.float32))
"""


def test_an_op_in_c_is_traced_as_one_in_python(shell: Shell, build: Build, tmp_path: Path) -> None:
    image = build(samples_dir() / "dsp" / "softmax_image.cc", *WARNINGS)
    (tmp_path / "program.py").write_text(PROGRAM)
    shell.environment["HBRT_IMAGE"] = str(image)
    ran = shell.hbrt("run", "--trace", tmp_path / "c.pftrace", tmp_path / "program.py")
    assert ran.returncode == 0, ran
    trace = read(tmp_path / "c.pftrace")
    ops = [one for one in trace.slices if one.name == "hb_dsp_softmax"]
    measured = [one for one in ops if MODELED not in one.track]
    waits = [one for one in trace.slices if one.name == "DMA wait" and MODELED not in one.track]
    copies = [one for one in trace.slices if one.name == "copy" and MODELED not in one.track]
    assert len(measured) == 3
    assert all(any(op.has(one) for op in measured) for one in (*waits, *copies))
    modeled = [one for one in ops if MODELED in one.track]
    inside = [one for one in trace.slices if MODELED in one.track and one.name in {"compute", "DMA wait"}]
    assert all(any(op.has(one) for op in modeled) for one in inside)
    moved = [one for one in trace.slices if MODELED in one.track and one.name == "copy"]
    computes = [one for one in inside if one.name == "compute"]
    assert len(moved) == len(copies)
    assert any(copy.meets(compute) for copy in moved for compute in computes)
    assert sum(one.facts["bytes"] for one in moved) >= 3 * 4 * 240_000  # three passes read the row, one writes it
    used = [value for name, values in trace.values.items() if "TCM bank 0, bytes" in name for _, value in values]
    assert (max(used) > 0, used[-1]) == (True, 0)
