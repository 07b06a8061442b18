"""Models on the board's BPU cores: programs share them, by priority; a core that dies costs its task alone."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import psutil
import pytest
from onnx import TensorProto, helper, numpy_helper

from arm_client.accelerator.model_file import ModelFile
from hbrt.models.run.ort_session import thread_count
from tests.arm_client.dnn.nets import double, endless
from tests.limits import PATIENCE_S, full_disk
from tests.shared import Shell
from tests.waiting import until

WIDTH = 3620  # of a matrix of 50 MiB
PROGRAM = """
import sys, time
from pathlib import Path

import numpy as np
from arm_client import dnn

name, file, width, priority, times, cores = sys.argv[1:]
(model,) = dnn.load(file)
x = np.ones((1, int(width)), np.float32)
for at in range(int(times)):
    for core in range(int(cores)):
        model.forward(x, core_id=1 << core, priority=int(priority))
    Path(f"{name}-{at}").touch()
    while not Path(f"go-{name}-{at}").exists():
        time.sleep(0.01)
"""
KILLED = """
import json, os, signal, sys, time

import numpy as np
from arm_client import dnn
from arm_client.errors import HbrtError

(endless,) = dnn.load(sys.argv[1])
(double,) = dnn.load(sys.argv[2])
open("loaded", "w").close()
try:
    endless.forward(np.array(1 << 62), core_id=1)
except HbrtError as error:
    print(json.dumps([error.status_name, error.text]), flush=True)
(result,) = double.forward(np.ones((1, 4), np.float32), core_id=1)
print(json.dumps(np.asarray(result.buffer).tolist()))
"""
VALUES = """
import sys

import arm_client as hb
import numpy as np
from arm_client import dnn
from tests.arm_client.dnn.nets import Net, double, good

(nonzero,) = dnn.load(sys.argv[1])
for count in (3, 5000, 0, 40):  # the data decides the size: it outgrows the room, and shrinks
    x = np.zeros(6000, np.float32)
    x[:count] = 1
    (at,) = nonzero.forward(x)
    print(at.buffer.shape, at.buffer.sum())
net = Net(double((1, 4096)))
for tensor in (net.inputs[0], net.outputs[0]):
    good(hb.hbSysFreeMem(tensor.sysMem[0]))
    good(hb.hbSysAllocCachedMem(tensor.sysMem[0], tensor.properties.alignedByteSize))
x = net.inputs[0].sysMem[0]
for value, is_cleaned in ((1, True), (2, False)):
    x.array(np.float32)[:8] = value  # nobody writes the rest
    if is_cleaned:
        good(hb.hbSysFlushMem(x, hb.HB_SYS_MEM_CACHE_CLEAN))
    good(net.run())
    good(hb.hbSysFlushMem(net.outputs[0].sysMem[0], hb.HB_SYS_MEM_CACHE_INVALIDATE))
    print(net.read()[0, :8].tolist())
net.close()
"""
LOAD = """
import json, sys, threading
from collections import Counter
from pathlib import Path

import numpy as np
from arm_client import dnn
from arm_client.errors import HbrtError

(model,) = dnn.load(sys.argv[1])
ended = Counter()


def infer(core):
    while not Path("enough").exists():
        try:
            (y,) = model.forward(np.ones((1, 4), np.float32), core_id=core)
            ended["good" if np.all(y.buffer == 2) else "wrong"] += 1
        except HbrtError as error:
            ended[error.text] += 1
        Path(f"runs-{core}").write_text(str(ended["good"]))


threads = [threading.Thread(target=infer, args=(core,)) for core in (1, 2, 0, 0)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(ended))
"""


@pytest.fixture
def board(shell: Shell) -> Iterator[Shell]:
    shell.environment["HBRT_BPU"] = "board"
    shell.good("start", "--cores", 1)
    yield shell
    shell.good("stop")


def core_of(shell: Shell, number: int) -> dict[str, Any]:
    found: dict[str, Any] = next(core for core in shell.status()["cores"] if core["core"] == number)
    return found


def matrix(file: Path, width: int) -> Path:
    weights = np.random.default_rng(0).normal(size=(width, width)).astype(np.float32)
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, width]) for name in "xy"]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        tensors[:1],
        tensors[1:],
        [numpy_helper.from_array(weights, "w")],
    )
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), file)
    return file


def test_a_models_file_goes_with_its_last_user(tmp_path: Path) -> None:
    data = double()
    first, second = ModelFile(tmp_path, data), ModelFile(tmp_path, data)
    assert first.path == second.path
    read = first.reader()
    first.close()
    assert second.path.read_bytes() == data
    second.close()
    second.close()
    assert not list(tmp_path.iterdir())
    assert read().SerializeToString() == read().SerializeToString() == data
    killed = ModelFile(tmp_path, data)
    os.close(killed._fd)  # as the kernel does for a program that is killed
    third = ModelFile(tmp_path, b"another")
    assert list(tmp_path.iterdir()) == [third.path]
    third.close()


def test_programs_share_the_cores_by_priority(board: Shell) -> None:
    """Two programs queue a run each for a core that stands still: the later one of a higher priority goes first."""
    (board.cwd / "double.onnx").write_bytes(double())
    assert len(board.status()["cores"]) == 1  # a board that runs no model has no process for them
    programs = {}
    for name, priority in (("low", 1), ("high", 2)):
        programs[name] = board.start("-c", PROGRAM, name, "double.onnx", 4, priority, 2, 1)
    until(lambda: all((board.cwd / f"{name}-0").exists() for name in programs), "the models do not load")
    assert [core["kind"] for core in board.status()["cores"]] == ["dsp", "bpu", "bpu"]
    assert "(-c), for double.onnx" in board.good("mem")
    assert "4, 2 for models" in board.good("status", "--clients")
    assert "1 BPU  running" in board.good("status", "--wait-healthy", "--timeout", PATIENCE_S)
    pid = core_of(board, 1)["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        for queued, name in enumerate(programs, 1):
            (board.cwd / f"go-{name}-0").touch()
            until(lambda queued=queued: board.status()["tasks"]["ready"] == queued, "the run is not queued")  # type: ignore[misc]
        assert (
            "Waiting longest: model double.onnx, priority 1, of client" in board.hbrt("status").stdout
        )  # a core is stopped
    finally:
        os.kill(pid, signal.SIGCONT)
    until(lambda: all((board.cwd / f"{name}-1").exists() for name in programs), "the runs do not end")
    last = board.json("tasks", "--last", 2)
    assert [task["priority"] for task in last] == [2, 1]
    assert [line.split()[3:5] for line in board.good("tasks", "--last", 2).splitlines()[1:]] == [
        ["model", "double.onnx"]
    ] * 2
    assert {task["core"] for task in last} == {1}
    for name in programs:
        (board.cwd / f"go-{name}-1").touch()
    assert [program.wait(PATIENCE_S) for program in programs.values()] == [0, 0]


def test_a_core_that_dies_costs_its_run_alone(board: Shell) -> None:
    """It is killed, or the model crashes onnxruntime, which ends its process by a signal."""
    (board.cwd / "endless.onnx").write_bytes(endless())
    (board.cwd / "double.onnx").write_bytes(double())
    for crashes, how in enumerate((signal.SIGKILL, signal.SIGSEGV), 1):
        (board.cwd / "loaded").unlink(missing_ok=True)
        program = board.start("-c", KILLED, "endless.onnx", "double.onnx")
        until((board.cwd / "loaded").exists, "the models do not load")
        until(lambda: board.status()["longest_running"], "the model does not run")
        os.kill(core_of(board, 1)["pid"], how)
        out, err = program.communicate(timeout=PATIENCE_S)
        failure, result = map(json.loads, out.splitlines())
        assert failure[0] == "HB_DNN_RUN_TASK_FAILED", err
        assert f"signal {how.value}" in failure[1]
        assert result == [[2, 2, 2, 2]]
        assert core_of(board, 1)["crashes"] == crashes


def test_a_disk_that_is_full_at_the_first_model_keeps_no_later_one_waiting(board: Shell) -> None:
    (board.cwd / "double.onnx").write_bytes(double())
    code = "from arm_client import dnn; dnn.load('double.onnx')"
    with full_disk(board.status()["pid"]):
        board.python("-c", code)
    ran = board.python("-c", code)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_number_of_threads_beyond_the_cpus_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert [thread_count(threads) for threads in (None, 0, 1, 4, 100_000, -1)] == [2, 2, 1, 4, 4, 1]


def test_a_program_that_ends_with_runs_nobody_waits_for_leaves_nothing(board: Shell) -> None:
    """What the model's runtime kept for them is no leak of the program's, which freed its own memory."""
    code = """
import arm_client as hb
from tests.arm_client.dnn.nets import Net, double

net = Net(double())
net.run()
tasks = [net.infer() for _ in range(3)]
for tensor in (net.inputs[0], net.outputs[0]):
    hb.hbSysFreeMem(tensor.sysMem[0])
"""
    ran = board.python("-c", code)
    assert (ran.returncode, ran.stderr) == (0, "")
    status = board.status()
    assert (status["findings"], status["tasks"]) == ([], {"ready": 0, "running": 0})


@pytest.mark.long
def test_a_core_that_is_killed_under_load_loses_its_running_task_alone(board: Shell) -> None:
    (board.cwd / "double.onnx").write_bytes(double())
    program = board.start("-c", LOAD, "double.onnx")
    until(lambda: all((board.cwd / f"runs-{core}").exists() for core in (0, 1, 2)), "the model does not run")
    for crashes in (1, 2, 3):
        os.kill(core_of(board, 1)["pid"], signal.SIGKILL)
        until(lambda: core_of(board, 1)["crashes"] == crashes, "the core does not die")  # noqa: B023
        until(lambda: core_of(board, 1)["health"] in {"ok", "busy"}, "the core does not restart")
        tasks = core_of(board, 1)["tasks"]
        until(lambda: core_of(board, 1)["tasks"] > tasks, "the core does not continue")  # noqa: B023
    (board.cwd / "enough").touch()
    out, err = program.communicate(timeout=PATIENCE_S)
    ended = json.loads(out)
    assert ended.pop("good") > 3, err
    assert sum(ended.values()) <= 3, ended
    assert all("signal 9" in text for text in ended), ended


def test_sizes_strict_mode_and_checks_on_a_core_are_those_of_an_inline_run(board: Shell) -> None:
    node = helper.make_node("NonZero", ["x"], ["y"])
    tensors = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"]),
        helper.make_tensor_value_info("y", TensorProto.INT64, [1, "k"]),
    ]
    graph = helper.make_graph([node], "g", tensors[:1], tensors[1:])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), board.cwd / "n.onnx")
    board.environment |= {"HBRT_CACHE": "strict", "HBRT_CHECK": "memory"}
    told = {}
    for where in ("inline", "board"):
        board.environment["HBRT_BPU"] = where
        ran = board.python("-c", VALUES, "n.onnx")
        assert ran.returncode == 0, ran.stderr
        told[where] = ran.stdout
    assert told["board"] == told["inline"]
    assert told["board"].splitlines() == [
        "(1, 3) 3",
        "(1, 5000) 12497500",
        "(1, 0) 0",
        "(1, 40) 780",
        str([2.0] * 8),
        str([2.0] * 8),  # what was not cleaned is not seen
    ]
    texts = [found["text"] for found in board.status()["findings"]]
    assert sum("did not clean" in text for text in texts) >= 1, texts
    assert any(text.startswith("model (command 0x1000) on core") and "nobody has written" in text for text in texts)


@pytest.mark.long
def test_programs_with_one_model_hold_it_once(board: Shell) -> None:
    """50 MB of weights: two more programs add less than a fifth of them. Takes its time: it makes and loads them."""
    matrix(board.cwd / "large.onnx", WIDTH)
    matrix(board.cwd / "small.onnx", 4)

    def held(file: str, width: int, count: int) -> int:
        """Bytes of all processes, programs and board, while so many programs have the model."""
        for mark in (*board.cwd.glob("p*-0"), *board.cwd.glob("go-p*")):
            mark.unlink()
        programs = [board.start("-c", PROGRAM, f"p{at}", file, width, 0, 1, 2) for at in range(count)]
        until(lambda: all((board.cwd / f"p{at}-0").exists() for at in range(count)), "the models do not run")
        daemon = psutil.Process(board.pid())
        processes = [daemon, *daemon.children(recursive=True), *(psutil.Process(one.pid) for one in programs)]
        bytes_held: int = sum(process.memory_full_info().pss for process in processes)
        for at in range(count):
            (board.cwd / f"go-p{at}-0").touch()
        assert [program.wait(PATIENCE_S) for program in programs] == [0] * count
        return bytes_held

    held("small.onnx", 4, 1)  # the cores start
    one = held("large.onnx", WIDTH, 1) - held("small.onnx", 4, 1)
    three = held("large.onnx", WIDTH, 3) - held("small.onnx", 4, 3)
    assert one > WIDTH * WIDTH * 4 * 0.9
    assert three < 1.2 * one, (one, three)
