"""Contexts on the NPU cores of a board: masks, batches, priorities; a core that dies costs its task."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import psutil
import pytest
from onnx import helper

from tests.arm_client.dnn.nets import endless
from tests.limits import PATIENCE_S
from tests.rknn_api import nets
from tests.rknn_api.capi.models import exported, model
from tests.shared import Shell
from tests.waiting import until

PROGRAM = """
import json, sys, time
from pathlib import Path

import numpy as np
import rknn_api as rk
from rknnlite.api import RKNNLite

def context(file, array, flag=0):
    made = rk.rknn_context()
    assert rk.rknn_init(made, file, 0, flag, None) == 0, rk.last_error()
    fmt, kind = rk.RKNN_TENSOR_NHWC, rk.RKNN_TENSOR_UINT8
    if array.ndim < 4:
        fmt, kind = rk.RKNN_TENSOR_UNDEFINED, rk.RKNN_TENSOR_INT64
    given = rk.rknn_input(index=0, buf=array.ctypes.data, size=array.nbytes, type=kind, fmt=fmt)
    assert rk.rknn_inputs_set(made, 1, [given]) == 0, rk.last_error()
    return made

images = np.arange(3 * 6 * 10 * 3, dtype=np.uint8).reshape(3, 6, 10, 3)
batch = context("batch.rknn", images, rk.RKNN_FLAG_PRIOR_LOW)
codes = []
for mask in (rk.RKNN_NPU_CORE_0, rk.RKNN_NPU_CORE_1, rk.RKNN_NPU_CORE_2, rk.RKNN_NPU_CORE_AUTO):
    codes += [rk.rknn_set_core_mask(batch, mask), rk.rknn_run(batch, None)]
lite = RKNNLite()
codes += [lite.load_rknn("batch.rknn"), lite.init_runtime(core_mask=RKNNLite.NPU_CORE_1)]
(first, second) = lite.inference([images])
print(json.dumps([codes, first.tolist()]), flush=True)
while not Path("go").exists():
    if len(sys.argv) > 1:
        sys.exit()
    time.sleep(0.01)
stuck = context("endless.rknn", np.array(1 << 62))
assert rk.rknn_set_core_mask(stuck, rk.RKNN_NPU_CORE_2) == 0
print("loaded", flush=True)
print(json.dumps([rk.rknn_run(stuck, None), rk.last_error()]), flush=True)
print(json.dumps(rk.rknn_set_core_mask(batch, rk.RKNN_NPU_CORE_2) or rk.rknn_run(batch, None)), flush=True)
"""

KILLED = """
exec(open("context.py").read())
stuck = context("endless.rknn", np.array(1 << 62))
assert rk.rknn_set_core_mask(stuck, rk.RKNN_NPU_CORE_0) == 0
print("loaded", flush=True)
rk.rknn_run(stuck, None)
"""
OTHER = """
exec(open("context.py").read())
other = context("batch.rknn", np.zeros((3, 6, 10, 3), np.uint8))
assert rk.rknn_set_core_mask(other, rk.RKNN_NPU_CORE_0) == 0
print("queues", flush=True)
print(rk.rknn_run(other, None), flush=True)
"""


WIDTH = 2000
HOLDS = """
import sys, threading
import numpy as np

if sys.argv[1] == "C names":
    import rknn_api as rk
    made, x = rk.rknn_context(), np.zeros((1, 2000), np.float32)
    assert rk.rknn_init(made, sys.argv[2], 0, 0, None) == 0, rk.last_error()
    kind, fmt = rk.RKNN_TENSOR_FLOAT32, rk.RKNN_TENSOR_UNDEFINED
    given = rk.rknn_input(index=0, buf=x.ctypes.data, size=x.nbytes, type=kind, fmt=fmt)
    assert rk.rknn_inputs_set(made, 1, [given]) == 0, rk.last_error()
    assert rk.rknn_run(made, None) == 0, rk.last_error()
else:
    from rknnlite.api import RKNNLite
    for _ in range(2):  # made ready twice: the model is read from where it is kept
        lite = lite if _ else RKNNLite()
        assert (_ or lite.load_rknn(sys.argv[2])) == (1 if _ else 0)
        assert lite.init_runtime() == 0
        assert lite.inference([np.zeros((1, 2000), np.float32)])[0].shape == (1, 2000)
print("ready", flush=True)
threading.Event().wait()
"""


def endless_model(folder: Path) -> None:
    """Write endless.rknn."""
    (folder / "endless.onnx").write_bytes(endless())
    exported(folder / "endless.onnx", folder)


def until_endless_runs(shell: Shell, program: subprocess.Popen[str]) -> None:
    """Wait until the program's endless model runs: loading one is a task, too, of any core."""
    assert program.stdout is not None
    assert program.stdout.readline() == "loaded\n"
    until(lambda: shell.status()["longest_running"], "the model does not run")


def test_contexts_run_on_the_boards_npu_cores(shell: Shell) -> None:
    (shell.cwd / "batch.rknn").write_bytes(model("batch"))
    endless_model(shell.cwd)
    shell.good("start", "--profile", "rk3588")
    assert "start when a program first loads a model: 3 NPU cores of 1000 MHz." in shell.good("status")
    program = shell.start("-c", PROGRAM)
    assert program.stdout is not None
    codes, first = json.loads(program.stdout.readline())
    assert not any(codes)
    assert [core["kind"] for core in shell.status()["cores"]] == ["npu", "npu", "npu"]
    shown = shell.good("status")
    assert "2 NPU  running" in shown
    assert "Image" not in shown  # of no DSP core
    ran = [task for task in shell.json("tasks", "--last", 99) if task["output_bytes"] < 1 << 16]
    assert [task["core"] for task in ran[:9]] == [0] * 3 + [1] * 3 + [2] * 3  # three images by each mask
    assert {task["priority"] for task in ran[:12]} == {0}
    assert min(task["modeled_ns"] for task in ran[:12]) > 0
    assert {task["core"] for task in ran[12:15]} == {1}  # RKNNLite's
    assert [core["kind"] for core in shell.json("top", "--interval", 0.1)["cores"]] == ["npu", "npu", "npu"]

    (shell.cwd / "go").touch()
    until_endless_runs(shell, program)
    os.kill(next(core["pid"] for core in shell.status()["cores"] if core["core"] == 2), signal.SIGKILL)
    (code, text), after = (json.loads(program.stdout.readline()) for _ in range(2))
    assert code == -1  # RKNN_ERR_FAIL
    assert "signal 9" in text
    assert after == 0
    assert program.wait(PATIENCE_S) == 0
    assert [core["crashes"] for core in shell.status()["cores"]] == [0, 0, 1]
    shell.good("stop")

    shell.environment["HBRT_BPU"] = "inline"
    (shell.cwd / "go").unlink()
    inline = shell.python("-c", PROGRAM, "results alone")
    assert inline.returncode == 0, inline.stderr
    np.testing.assert_array_equal(json.loads(inline.stdout)[1], first)  # bit for bit


def test_a_killed_programs_model_leaves_its_core_to_the_others(shell: Shell) -> None:
    """Its run, which would never end, is ended at the next node; the core stays as it is."""
    (shell.cwd / "batch.rknn").write_bytes(model("batch"))
    (shell.cwd / "context.py").write_text(PROGRAM.partition("images =")[0])
    endless_model(shell.cwd)
    shell.good("start", "--profile", "rk3588")
    killed = shell.start("-c", KILLED)
    until_endless_runs(shell, killed)
    other = shell.start("-c", OTHER)
    assert other.stdout is not None
    assert other.stdout.readline() == "queues\n"
    killed.kill()
    assert other.wait(PATIENCE_S) == 0
    assert other.stdout.readline() == "0\n"
    assert [core["crashes"] for core in shell.status()["cores"]] == [0, 0, 0]
    killed.wait(PATIENCE_S)
    shell.good("stop")


@pytest.mark.long
def test_a_program_keeps_no_weights_beside_those_of_the_board(shell: Shell) -> None:
    """So that n programs with a model take about the memory of one."""
    held: dict[str, list[int]] = {"C names": [], "RKNNLite": []}
    shell.good("start", "--profile", "rk3588")
    for rank in (1, WIDTH):  # the same arrays, few weights and 32 MB
        weights = {"a": np.ones((WIDTH, rank), np.float32), "b": np.ones((rank, WIDTH), np.float32)}
        nodes = [helper.make_node("MatMul", ["x", "a"], ["h"]), helper.make_node("MatMul", ["h", "b"], ["y"])]
        exported(nets.saved(shell.cwd, nodes, {"x": [1, WIDTH]}, ["y"], weights), shell.cwd)
        for names, bytes_held in held.items():
            program = shell.start("-c", HOLDS, names, "net.rknn")
            assert program.stdout is not None
            assert program.stdout.readline() == "ready\n"
            bytes_held.append(psutil.Process(program.pid).memory_full_info().uss)
            program.kill()
            program.wait(PATIENCE_S)
    assert all(large - small < WIDTH * WIDTH * 8 / 4 for small, large in held.values()), held
