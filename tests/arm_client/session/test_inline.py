"""A board whose core is this process: ops run in the caller's thread, where a debugger and an exception reach them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import arm_client as hb
from arm_client import connect, nn
from arm_client.client import Board, private_board
from arm_client.errors import OpFailedError
from dsp_server.waits.records import records_of
from dsp_server.waits.sentences import Chain, Verdict, chains, look_of
from hbrt.board.paths import BoardPaths
from hbrt.control.ask import ask
from hbrt.errors import BoardError, WrongUseError
from tests.limits import PATIENCE_S

IMAGE = """
import threading
import numpy as np
from dsp_server import HB_DSP_REGISTER_NN_ALL, hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start
from dsp_server import idma_copy_desc, idma_desc_done

THREADS = []
HOOKS = []

def hooked(input, output, tm):
    HOOKS.pop()()
    return 0

def double(input, output, tm):
    THREADS.append(threading.get_ident())
    values = np.frombuffer(input, np.float32)
    wanted = float(values[0])
    if wanted < 0:
        raise ValueError(f"{wanted} is negative")
    with tm.tile(len(input)) as tile:
        copy = idma_copy_desc(tile, input, len(input))
        while idma_desc_done(copy) != 1:
            pass
        np.frombuffer(output, np.float32)[:] = np.frombuffer(tile, np.float32) * 2
    return 0

def stop_here(input, output, tm):
    wanted = "seen by the debugger"
    breakpoint()
    return 0

def main():
    hb_dsp_env_init()
    HB_DSP_REGISTER_NN_ALL()
    hb_dsp_register_fn(0x1000, double, 0)
    hb_dsp_register_fn(0x1001, stop_here, 0)
    hb_dsp_register_fn(0x1002, hooked, 0)
    hb_dsp_start()
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inline") / "image.py"
    path.write_text(IMAGE)
    return path


def test_op_runs_in_the_thread_that_submits_it(image: Path) -> None:
    with private_board(image, inline=True) as board:
        assert board.ops()[0x1000] == "double"
        x = board.from_array(np.arange(4, dtype=np.float32))
        y = board.empty(4, np.float32)
        board.call(0x1000, x, y)
        assert y.tolist() == [0, 2, 4, 6]
        assert [threading.get_ident()] == sys.modules["hbrt_image"].THREADS
        for core in (0, 1, 2, 3):  # a program that names cores runs unchanged
            task = board.submit(0x1000, x, y, core=core)
            assert task.done()
            assert (task.core, task.cycles > 0) == (0, True)
        assert np.allclose(nn.softmax(board, np.zeros(4, np.float32)), 0.25)


def test_c_names_and_a_second_board_after_the_first(image: Path) -> None:
    for served in (image, None):
        with private_board(served, inline=True):
            row, out, block = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
            for mem in (row, out, block):
                assert hb.hbSysAllocMem(mem, 64) == 0
            row.array(np.float32)[:] = 1
            param = hb.hbDSPSoftmaxParam.from_buffer(block.view())
            param.data_size, param.input = 64, row.phyAddr
            ctrl, task = hb.hbDSPRpcCtrlParam(), hb.hbDSPTask_t()
            hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
            ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_NN_SOFTMAX
            assert hb.hbDSPRpc(task, block, out, ctrl) == hb.hbDSPWaitTaskDone(task, 0) == 0
            assert np.allclose(out.array(np.float32), 1 / 16)
            assert hb.hbDSPReleaseTask(task) == 0
            del param
            for mem in (row, out, block):
                assert hb.hbSysFreeMem(mem) == 0


def test_exception_of_an_op_has_the_frames_of_the_op(image: Path) -> None:
    with private_board(image, inline=True) as board:
        x = board.from_array(np.full(4, -1, np.float32))
        with pytest.raises(OpFailedError, match=r"-1\.0 is negative") as caught:
            board.call(0x1000, x, board.empty_like(x))
        trace = caught.value.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        assert trace is not None
        assert trace.tb_frame.f_locals["wanted"] == -1
        del trace, caught


def test_cores_of_the_board_leave_its_tasks_alone(image: Path) -> None:
    """They rescan the slots with each heartbeat."""
    with private_board(image, inline=True) as board:
        x = board.from_array(np.zeros(4, np.float32))
        for _ in range(2000):
            board.call(0x1000, x, x)
        assert board.status()["cores"][0]["tasks"] == 0


def test_an_op_that_runs_is_shown_as_its_program_s_own(image: Path) -> None:
    with private_board(image, inline=True) as board:
        block = board.alloc(8)
        seen: list[Chain] = []
        counted: list[object] = []

        def look() -> None:
            now = look_of(records_of(ask(BoardPaths(board.path), "why")))
            seen.extend(chains(now, now))
            status = board.status()
            counted.append((status["tasks"], status["oldest_waiting"]))

        sys.modules["hbrt_image"].HOOKS.append(look)
        board.call(0x1002, block, block)
        assert counted == [({"ready": 0, "running": 1}, None)]
        (chain,) = seen
        assert chain.verdict is Verdict.WAITS
        assert f"(process {os.getpid()}, " in chain.text
        assert " runs task " in chain.text
        assert "itself, in the thread that called, for " in chain.text


@pytest.mark.dsp_board(inline=True)
def test_fixture_gives_one(dsp_board: Board) -> None:
    assert dsp_board.session.is_inline
    assert np.allclose(nn.softmax(dsp_board, np.zeros(4, np.float32)), 0.25)


def test_process_that_is_attached_already_is_told(dsp_board: Board) -> None:
    with pytest.raises(WrongUseError, match="whose cores serve it"):
        connect(inline=True)
    assert dsp_board.session.users == 1


def test_image_that_does_not_load_is_told_with_its_exception(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("def main():\n    raise RuntimeError('no')\n")
    with pytest.raises(BoardError, match="did not load: no") as caught, private_board(broken, inline=True):
        pass
    assert isinstance(caught.value.__cause__, RuntimeError)


def run(code: str, typed: str, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, *(command or ("-c", code))]
    return subprocess.run(
        arguments,
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env={**os.environ, **environment},
    )


CALL = "import arm_client as hb; board = hb.connect(); board.call(0x1001); print('continued')"


def test_breakpoint_in_an_op_is_a_debugger_in_this_terminal(image: Path) -> None:
    done = run(CALL, "p wanted\nc\n", HBRT_INLINE="1", HBRT_IMAGE=str(image))
    assert "'seen by the debugger'" in done.stdout
    assert done.stdout.endswith("continued\n")


def test_quitting_the_debugger_ends_the_program(image: Path) -> None:
    done = run(CALL, "q\n", HBRT_INLINE="1", HBRT_IMAGE=str(image))
    assert "continued" not in done.stdout
    assert "BdbQuit" in done.stderr


@pytest.mark.long
def test_pytest_with_pdb_stops_in_the_op(image: Path, tmp_path: Path) -> None:
    test = tmp_path / "test_mine.py"
    test.write_text(
        "import numpy as np, pytest\n"
        f"@pytest.mark.dsp_board(image={str(image)!r}, inline=True)\n"
        "def test_it(dsp_board):\n"
        "    x = dsp_board.from_array(np.full(4, -7, np.float32))\n"
        "    dsp_board.call(0x1000, x, x)\n"
    )
    plugins = ("-p", "no:cacheprovider", "-p", "arm_client.testing")  # others' are half a run's time
    command = ("-m", "pytest", "--pdb", *plugins, str(test))
    done = run("", "p wanted\nq\n", *command, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "-7.0" in done.stdout
    assert "def double(input, output, tm)" in done.stdout or "raise ValueError" in done.stdout


LEAVES = """
from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

def leave(input, output, tm):
    tm.allocate(64)
    return 0

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, leave, 0)
    hb_dsp_start()
"""


def test_what_an_op_leaves_is_a_finding_of_the_board(tmp_path: Path) -> None:
    image = tmp_path / "leaves.py"
    image.write_text(LEAVES)
    with private_board(image, inline=True) as board:
        board.call(0x1000)
        (found,) = board.status()["findings"]
        assert (found["kind"], found["places"][0]["site"]) == ("tcm-left", f"{image}:5")
