"""The pytest plugin in a user's project: what a green test needs, and what each kind of disorder is told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from arm_client import testing
from tests.limits import PATIENCE_S

pytest_plugins = ["pytester"]

IMAGE = Path(__file__).parent / "images" / "ops.py"
HEAD = """
import ctypes, gc, os
import numpy as np
import pytest
import arm_client as hb
"""


@pytest.fixture
def project(pytester: pytest.Pytester, board_home: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A small project of a user's: an image next to its tests; at the end nothing of it must run."""
    monkeypatch.setenv("HBRT_HOME", str(board_home))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    (pytester.path / "ops.py").write_text(IMAGE.read_text(encoding="utf-8"), encoding="utf-8")
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    return pytester


def run(
    project: pytest.Pytester, *sources: str, options: Sequence[str] = (), is_found: bool = False
) -> pytest.RunResult:
    """Run files of tests; unless pytest is to find the plugin itself, with it alone: others' are half a run's time."""
    project.makepyfile(**{f"test_{at}": HEAD + source for at, source in enumerate(sources)})
    with pytest.MonkeyPatch.context() as patch:
        if not is_found:
            patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
            options = [*options, "-p", "arm_client.testing"]
        result = project.runpytest_subprocess("-p", "no:cacheprovider", *options, timeout=PATIENCE_S)
    assert not list(Path(os.environ["HBRT_HOME"]).iterdir()), "a board was left behind"
    return result


MARKERS = """
@pytest.mark.dsp_board("ops.py", cores=1)
def test_by_place(dsp_board):
    assert 0x1001 in dsp_board.ops()

@pytest.mark.dsp_board(core=1)
def test_unknown(dsp_board):
    pass

@pytest.mark.dsp_board("ops.py", image="ops.py")
def test_twice(dsp_board):
    pass

@pytest.mark.dsp_board("ops.py", 2)
def test_too_many(dsp_board):
    pass
"""
STARTS = """
@pytest.mark.dsp_board(image="missing.py")
def test_image(dsp_board):
    pass

@pytest.mark.dsp_board(cores=99)
def test_cores(dsp_board):
    pass

@pytest.mark.dsp_board(image="bad.py")
def test_bad(dsp_board):
    pass

def test_good(dsp_board):
    dsp_board.ping()
"""
KEPT = """
PIDS = []

@pytest.mark.parametrize("repeat", range(5))
def test_same(dsp_board, repeat):
    PIDS.append(dsp_board.session.link.daemon_pid)
    assert len(set(PIDS)) == 1

def test_disorder(dsp_board):
    PIDS.append(dsp_board.session.link.daemon_pid)
    assert hb.hbSysAllocMem(hb.hbSysMem(), 64) == 0

def test_not_after_disorder(dsp_board):
    assert dsp_board.session.link.daemon_pid not in PIDS
    assert dsp_board.status()["memory"]["blocks"] == 0

@pytest.mark.dsp_board(cores=1)
def test_not_with_other_settings(dsp_board):
    assert dsp_board.session.link.daemon_pid not in PIDS

def test_fails(dsp_board):
    array = dsp_board.empty(4)
    assert array.sum() == 1
"""
SAYS = """
@pytest.mark.dsp_board("says.py", cores=1)
@pytest.mark.parametrize("row", [3, 4])
def test_row(dsp_board, row):
    block = dsp_board.alloc(4)
    block.view()[0] = row
    dsp_board.call(0x1000, block)
    assert row == 3
"""
ON_SELF = """
class TestMine:
    @pytest.fixture(autouse=True)
    def set_up(self, dsp_board):
        self.x = dsp_board.from_array(np.ones(3))
        yield
        assert self.x.sum() == 3

    def test_of_a_fixture(self):
        assert self.x.sum() == 3

class TestOther:
    def teardown_method(self):
        assert self.buffer.size_bytes == 100

    def test_of_its_own(self, dsp_board):
        self.buffer = dsp_board.alloc(100)
        self.x = dsp_board.empty(4)
        self.part = self.x[1:]
"""
DEAD = """
import os, signal

def test_kills_the_daemon(dsp_board):
    os.kill(dsp_board.session.link.daemon_pid, signal.SIGKILL)
    with pytest.raises(hb.HbrtError):
        while True:
            dsp_board.ping()

def test_kills_a_core(dsp_board):
    os.kill(dsp_board.status()["cores"][0]["pid"], signal.SIGKILL)
    while not dsp_board.status()["cores"][0]["crashes"]:
        pass

def test_next(dsp_board):
    dsp_board.ping()
    assert dsp_board.status()["cores"][0]["crashes"] == 0
"""
INI = """
def test_ini(dsp_board):
    assert 0x1000 in dsp_board.ops()

@pytest.mark.dsp_board(image="other.py")
def test_marker(dsp_board):
    assert 0x1000 not in dsp_board.ops()
    assert 0x2000 in dsp_board.ops()
"""
SPEAKING = """
from dsp_server import *

def speak(input, output, tm):
    print("row", input[0])
    return 0

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, speak)
    hb_dsp_start()
"""


@pytest.mark.long
def test_boards_arrays_and_what_ops_say_in_a_users_tests(project: pytest.Pytester) -> None:
    (project.path / "bad.py").write_text("def main():\n    return 1 / 0\n", encoding="utf-8")
    (project.path / "says.py").write_text(SPEAKING, encoding="utf-8")
    result = run(project, MARKERS, STARTS, KEPT, SAYS, ON_SELF, DEAD)
    result.assert_outcomes(passed=15, failed=3, errors=6)
    for wrong in ("core", "image", "2"):
        result.stdout.fnmatch_lines(
            [f"Unknown argument {wrong} of marker dsp_board; known: image, cores, ddr_bytes, fresh, check, inline*"]
        )
    result.stdout.fnmatch_lines(
        ["Board test-* did not start. The image *missing.py cannot be read: No such file or directory."]
    )
    result.stdout.no_fnmatch_line("During handling of the above exception, another exception occurred:")
    result.stdout.fnmatch_lines(["A board must have 0 to 8 cores, not 99."])
    result.stdout.fnmatch_lines(
        ["*Board test-* did not start.*", "*return 1 / 0*", "*ZeroDivisionError: division by zero*"]
    )
    result.stdout.no_fnmatch_line("*await_running*")
    told, _, _ = result.stdout.str().partition("short test summary")  # in CI the summary has it again
    assert told.count("not freed") == 1  # a test that failed is not told of its arrays
    result.stdout.fnmatch_lines(["*- DSP log -*", "??:??:?? core0 0x1000 row 4"])
    result.stdout.no_fnmatch_line("*row 3")


def test_green(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
def test_default_image(dsp_board):
    assert dsp_board.ops()[0x400] == "softmax"
    dsp_board.ping()

@pytest.mark.dsp_board(image="ops.py", cores=1, ddr_bytes=1 << 20)
def test_own_image(dsp_board):
    out = dsp_board.empty(4, np.uint8)
    dsp_board.call(0x100A, b"\\1\\2\\3\\4", out)
    assert out.tolist() == [2, 3, 4, 5]
    assert dsp_board.core_count == 1
    assert dsp_board.status()["memory"]["size_bytes"] == 1 << 20

@pytest.fixture
def weights(dsp_board):
    return dsp_board.from_array(np.arange(8))

def test_a_fixture_of_arrays(weights, dsp_board):
    assert weights.sum() == 28
    dropped = dsp_board.submit(0)

def test_c_names_use_it(dsp_board):
    mem = hb.hbSysMem()
    assert hb.hbSysAllocMem(mem, 64) == 0
    assert dsp_board.live_bytes() == 64
    assert hb.hbSysFreeMem(mem) == 0

def test_several(dsp_board_factory, dsp_board):
    with dsp_board_factory(image="ops.py", cores=1) as one, dsp_board_factory(cores=1) as two:
        kept = one.empty(3)
        assert one.path != two.path != dsp_board.path
        assert 0x1000 in one.ops() and 0x1000 not in two.ops()

def test_skipped_with_an_array_in_hand(dsp_board):
    kept = dsp_board.empty(3)
    pytest.skip("no reason")

@pytest.mark.xfail(raises=ZeroDivisionError)
def test_expected_to_fail_with_an_array_in_hand(dsp_board):
    kept = dsp_board.empty(3)
    1 / 0

def test_expected_exception_with_an_array_in_hand(dsp_board):
    kept = dsp_board.empty(3)
    with pytest.raises(hb.HbrtError) as caught:
        dsp_board.call(0x1fff, kept, kept)

def test_closed_by_the_test(dsp_board):
    dsp_board.close()

@pytest.mark.dsp_board(fresh=True)
def test_fresh(dsp_board):
    assert dsp_board.status()["clients"][0]["id"] == 1
""",
        is_found=True,
    )
    result.assert_outcomes(passed=8, skipped=1, xfailed=1)


def test_a_flush_that_is_left_out_fails_no_test_and_meets_no_other(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HBRT_CACHE", "strict")
    result = run(
        project,
        """
PIDS = set()

@pytest.mark.dsp_board("ops.py", cores=1)
@pytest.mark.parametrize("repeat", range(2))
def test_leaves_it_out(dsp_board, repeat):
    assert dsp_board.status()["findings"] == []
    PIDS.add(dsp_board.session.link.daemon_pid)
    assert len(PIDS) == 1
    source = dsp_board.alloc(8, cached=True)
    source.view()[:1] = b"x"
    dsp_board.call(0x1000, source, dsp_board.alloc(8))
    assert [found["kind"] for found in dsp_board.status()["findings"]] == ["missing-clean"]
""",
    )
    result.assert_outcomes(passed=2)


DISORDER = {
    "leak": (
        """
    mem = hb.hbSysMem()
    assert hb.hbSysAllocMem(mem, 640) == 0
""",
        "- 640 bytes at 0x* were not freed, allocated at *.py:*",
    ),
    "kept_array": (
        """
    KEPT.append(dsp_board.empty(10))
""",
        "- 40 bytes at 0x* were not freed: an array or a buffer that is still referenced, for example by a module *",
    ),
    "task": (
        """
    task, ctrl = hb.hbDSPTask_t(), hb.hbDSPRpcCtrlParam()
    assert hb.hbDSPRpc(task, None, None, ctrl) == 0
    assert hb.hbDSPWaitTaskDone(task, 0) == 0
""",
        "- task 0x* was not released (hbDSPReleaseTask); it is DONE",
    ),
    "running_task": (
        """
    flags = dsp_board.empty(8, np.uint8)
    KEPT.append(dsp_board.submit(0x1001, flags))
    while not flags[0]:
        pass
    flags[1] = 0
    import threading
    threading.Timer(0.5, lambda view=np.asarray(flags): view.__setitem__(1, 1)).start()
""",
        "- task 0x* was not released (hbDSPReleaseTask); it is RUNNING",
    ),
    "overrun": (
        """
    mem = hb.hbSysMem()
    assert hb.hbSysAllocMem(mem, 100) == 0
    ctypes.memset(mem.virAddr, 0x55, 101)
    assert hb.hbSysFreeMem(mem) == 0
""",
        "- overrun: Buffer overrun: the first bad byte is at 0x*, 1 byte past the end of block 0x*+0x64 of client *",
    ),
    "overrun_into_the_guard": (
        """
    array = dsp_board.empty(1024, np.float32)
    ctypes.memset(array.ctypes.data + 4096 + 17, 0x55, 4)
""",
        "- overrun: *18 bytes past the end of block 0x*",
    ),
    "tcm": (
        """
    dsp_board.call(0x100C)
""",
        "- tcm-left: leave_tcm (command 0x100c) returned on core 0 without freeing TCM: 64 bytes at 0x* from *ops.py:*",
    ),
    "write_after_free": (
        """
    mem = hb.hbSysMem()
    assert hb.hbSysAllocMem(mem, 100) == 0
    assert hb.hbSysFreeMem(mem) == 0
    ddr = dsp_board.session.link.ddr
    os.pwrite(ddr.fd, b"U", ddr.offset_of(mem.phyAddr) + 10)  # as a pointer of another process may
""",
        "- write-after-free: A byte at 0x*00a was written while its memory was free. It was in the block *.",
    ),
}


def test_disorder_fails_its_test_with_a_sentence_and_no_other(project: pytest.Pytester) -> None:
    (project.path / "other.py").write_text(
        IMAGE.read_text(encoding="utf-8").replace("0x1000)", "0x2000)"), encoding="utf-8"
    )
    project.makeini("[pytest]\ndsp_image = ops.py\n")
    tests = "KEPT = []\npytestmark = pytest.mark.dsp_board(cores=1)\n"
    for name, (body, _) in DISORDER.items():
        tests += f"\ndef test_{name}(dsp_board):{body}\ndef test_after_{name}(dsp_board):\n    dsp_board.ping()\n"
    result = run(project, tests, INI)
    result.assert_outcomes(passed=len(DISORDER) + 2, failed=len(DISORDER))
    said = result.stdout.str()
    for name, (_, sentence) in DISORDER.items():
        report = said.partition(f"_ test_{name} _")[2].partition("\n____")[0]
        pytest.LineMatcher(report.splitlines()).fnmatch_lines(["The test leaked:", sentence])


def test_strict_markers_know_it(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess("--markers", "--strict-markers")
    result.stdout.fnmatch_lines(
        ["@pytest.mark.dsp_board(image=None, cores=None, ddr_bytes=None, fresh=False, check=None, inline=False*"]
    )


@pytest.mark.long
def test_with_xdist(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
@pytest.mark.parametrize("repeat", range(6))
@pytest.mark.dsp_board(image="ops.py", cores=1)
def test_many(dsp_board, repeat):
    out = dsp_board.empty(1, np.uint8)
    dsp_board.call(0x100A, bytes([repeat]), out)
    assert out[0] == repeat + 1
""",
        options=["-n", "2", "-p", "xdist"],
    )
    result.assert_outcomes(passed=6)


def test_needs_pytest_alone_and_costs_next_to_nothing_without_a_board(project: pytest.Pytester) -> None:
    """As after ``pip install hbrt pytest``: none of the packages that our own tests use can be imported."""
    project.makepyfile(
        blocker="""
import sys
for name in ("hypothesis", "psutil", "xdist", "execnet", "pytest_timeout", "ruff", "mypy", "cv2", "numba", "onnx"):
    sys.modules[name] = None
"""
    )
    source = """
import sys

def test_before_a_board_nothing_was_loaded():
    assert "zmq" not in sys.modules
    assert "msgpack" not in sys.modules

def test_one(dsp_board):
    dsp_board.ping()
"""
    project.makepyfile(test_mine=HEAD + source)
    command = [sys.executable, "-m", "pytest", "-p", "blocker", "-p", "arm_client.testing", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(project.path)}
    ended = subprocess.run(
        command, cwd=project.path, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert "2 passed" in ended.stdout, ended.stdout + ended.stderr


def test_only_the_boards_that_were_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[object] = []
    monkeypatch.setattr(testing, "_start", lambda wanted: wanted)
    monkeypatch.setattr(testing, "_end", ended.append)
    pool: Any = testing._Pool()
    for wanted in (*range(4), 0, 4, 5):
        pool.release(wanted, pool.take(wanted, fresh=False), keep=True, has_found=False)
    assert ended == [1, 2]
    pool.close()
    assert sorted(ended, key=str) == list(range(6))
