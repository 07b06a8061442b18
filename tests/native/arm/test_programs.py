"""Programs in C and C++: what they print, what is said of their mistakes, how they end."""

import os
import re
import signal
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hbrt.native.files import library
from hbrt.status import Status
from hbrt.trace.timeline import MODELED
from tests.hbrt.trace.reader import read
from tests.limits import PATIENCE_S
from tests.native.arm.conftest import PROGRAMS, Compile, Run
from tests.shared import Shell
from tests.waiting import until

SLEEPING = Path(__file__).parents[1] / "mailbox" / "image.py"


def softmax(*values: float) -> list[float]:
    powers = np.exp(np.array(values) - max(values))
    return list(powers / powers.sum())


def rows_of(text: str) -> list[list[float]]:
    return [[float(one) for one in line.split()] for line in text.splitlines()]


@pytest.mark.parametrize("mode", ["direct", "relay"])
def test_the_sample_prints_the_row(compiled: Compile, run: Run, mode: str) -> None:
    answer = run(
        compiled("softmax.c", "-std=c11"), HB_DSP_RPC_MODE=mode, HBRT_CHECK="all", PYTHONHOME="/another/python"
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    assert np.allclose(rows_of(answer.stdout), [softmax(0, 1, 2, 3)], atol=2e-7)


def test_the_guides_program_prints_its_rows(compiled: Compile, run: Run) -> None:
    answer = run(compiled("guide.cc", "-std=c++17"))
    assert (answer.returncode, answer.stderr) == (0, "")
    expected = [softmax(0, 1, 2, 3), softmax(3, 2, 1, 0), softmax(-50, 0, 50, 50)]
    assert np.allclose(rows_of(answer.stdout), expected, atol=2e-7)


def test_null_and_nonsense_are_refused_in_every_argument(compiled: Compile, run: Run) -> None:
    answer = run(compiled("nulls.c"))
    assert (answer.returncode, answer.stdout) == (0, "0 taken\n")
    said = answer.stderr.splitlines()
    assert any(
        "nulls.c:28: hbSysAllocMem: The block passed to hbSysAllocMem is NULL; pass an hbSysMem" in line
        for line in said
    )
    assert any("[DNN] ERROR: packed is NULL" in line and "nulls.c:" in line for line in said)
    assert "Traceback" not in answer.stderr
    assert "leak" not in answer.stderr


def test_threads_call_at_once_and_callbacks_call_too(compiled: Compile, run: Run) -> None:
    answer = run(compiled("threads.c"))
    assert (answer.returncode, answer.stdout) == (0, "0 failures, 8 callbacks, 50 sentences\n"), answer.stderr
    assert answer.stderr.count("hbSysFlushMem") == len(answer.stderr.splitlines()) == 1  # told once per line


def test_the_threads_of_a_program_in_c_are_in_its_trace(compiled: Compile, shell: Shell, tmp_path: Path) -> None:
    ran = shell.hbrt("run", "--trace", tmp_path / "c.pftrace", compiled("threads.c"))
    assert "0 failures" in ran.stdout, ran
    trace = read(tmp_path / "c.pftrace")
    ops = {one.flows for one in trace.slices if one.name == "softmax" and MODELED not in one.track}
    submits = [one for one in trace.slices if one.name == "submit softmax"]
    waits = [one for one in trace.slices if one.name == "wait for softmax"]
    assert len(ops) == len(submits) == 50 * 3 + 2 * 8  # rows of threads, tasks with a callback, rows of callbacks
    assert {one.flows for one in submits} == ops
    assert len(waits) >= 50 * 3


def test_children_of_fork_have_what_they_make_and_the_parent_goes_on(compiled: Compile, run: Run) -> None:
    answer = run(compiled("forks.c"))
    assert (answer.returncode, answer.stdout) == (0, "0 bad\n"), answer.stderr
    assert answer.stderr.count("HB_DSP_FORKED") == len(answer.stderr.splitlines()) == 6


def test_a_thread_that_has_never_called_may_fork(compiled: Compile, run: Run) -> None:
    answer = run(compiled("forks.c"), "stranger")
    assert (answer.returncode, answer.stderr) == (0, "")


def test_a_cancel_of_a_thread_waits_for_the_end_of_its_call(compiled: Compile, run: Run) -> None:
    answer = run(compiled("cancelled.c"))
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "0 bad\n", "")


def test_a_call_without_a_file_descriptor_has_a_sentence(compiled: Compile, run: Run) -> None:
    for left in (0, 2, 5, 12, 13, 14, 15):
        answer = run(compiled("crowded.c"), left)
        assert "Traceback" not in answer.stderr
        assert answer.returncode == 0, (left, answer.stdout, answer.stderr)
        if answer.stdout:
            assert re.match(r"-\d+ .*(file descriptor|Too many open files)", answer.stdout)


@pytest.mark.parametrize(("way", "code"), [("none", 0), ("thread", 5), ("twice", 0)])
def test_a_program_that_ends_well_is_told_nothing(compiled: Compile, run: Run, way: str, code: int) -> None:
    answer = run(compiled("ends.cc"), way, HBRT_CHECK="fail")
    assert (answer.returncode, answer.stderr) == (code, "")


@pytest.mark.parametrize("mode", ["direct", "relay"])
def test_memory_of_other_libraries_is_memory_of_the_board(compiled: Compile, run: Run, mode: str) -> None:
    answer = run(compiled("camera.c"), HB_DSP_RPC_MODE=mode)
    assert (answer.returncode, answer.stderr.count(": hbrt_register_fd: ")) == (0, 7), (answer.stdout, answer.stderr)
    expected = [softmax(0, 0, 0, 0), softmax(0, 1, 2, 3), softmax(0, 2, 4, 6)]
    assert np.allclose(rows_of(answer.stdout), expected, atol=6e-4)
    assert "leak" not in answer.stderr


SIGNALED = """
import ctypes, signal, sys
from arm_client.client import private_board
from hbrt.types import hbSysMem

class Raised(Exception):
    pass

def handler(*_):
    raise Raised

signal.signal(signal.SIGUSR1, handler)
library = ctypes.CDLL(sys.argv[1])
library.text_after_signal.restype = ctypes.c_char_p
with private_board():
    mem = hbSysMem()
    assert library.alloc_after_signal(0, ctypes.byref(mem), 16) == 0  # no signal
    print(library.alloc_after_signal(signal.SIGUSR1, ctypes.byref(mem), 16))
    print(library.text_after_signal(signal.SIGUSR1))
    print(library.alloc_after_signal(0, ctypes.byref(mem), 16))
"""


def test_a_call_that_a_signal_kept_from_beginning_is_no_success(compiled: Compile, board_home: Path) -> None:
    library = compiled("signaled.c", "-shared", "-fPIC")
    answer = subprocess.run(
        [sys.executable, "-c", SIGNALED, str(library)],
        env={**os.environ, "HBRT_HOME": str(board_home)},
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert answer.stdout == f"{int(Status.HB_SYS_NOT_RUNNING)}\nb''\n0\n", answer.stderr
    assert answer.stderr.count("Raised") >= 1


def test_a_limit_holds_and_is_said_as_it_was_given(compiled: Compile, run: Run) -> None:
    answer = run(compiled("limits.c"), HBRT_IMAGE=str(SLEEPING))
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == " \n1 The task did not finish within 1200 ms; it keeps running.\n"


def test_a_program_may_end_while_its_threads_call(compiled: Compile, run: Run) -> None:
    answer = run(compiled("ends.cc"), "busy")
    assert answer.returncode == 0, answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_leak_is_told_with_its_line_and_may_fail_the_program(compiled: Compile, run: Run) -> None:
    answer = run(compiled("ends.cc"), "leak", HBRT_CHECK="fail")
    assert answer.returncode == 1
    assert "1 block (4096 bytes) not freed. Allocated at" in answer.stderr
    assert "ends.cc:24" in answer.stderr


def test_the_hole_of_a_structure_is_told_once_with_both_lines(compiled: Compile, run: Run) -> None:
    answer = run(compiled("holes.c"), HBRT_CHECK="layout")
    assert answer.returncode == 0, answer.stderr
    (told,) = (line for line in answer.stderr.splitlines() if "hole:" in line)
    source = PROGRAMS / "holes.c"
    lines = [
        at for at, line in enumerate(source.read_text().splitlines(), 1) if "with a hole" in line or "typedef" in line
    ]
    assert (
        f"{source}:{lines[1]}: The parameter structure with_hole ({source}:{lines[0]}) has 4 bytes of padding" in told
    )
    assert "dsp-layout" not in answer.stderr


def test_without_debugging_information_a_line_is_an_address(compiled: Compile, run: Run) -> None:
    answer = run(compiled("ends.cc", "-g0"), "leak")
    assert "Allocated at ends-" in answer.stderr
    assert "+0x" in answer.stderr


@pytest.mark.parametrize(
    ("python", "sentence"),
    [
        ("/no/such/python3.11", "/no/such/python3.11 no longer exists: run 'hbrt cc'"),
        ("/bin/sh", "cannot load Python's shared library: install it"),
    ],
)
def test_a_program_whose_python_is_missing_says_so(compiled: Compile, run: Run, python: str, sentence: str) -> None:
    answer = run(compiled("softmax.c", "-std=c11"), HBRT_PYTHON=python)
    assert answer.returncode == 1
    assert f"hbrt: {sentence}" in answer.stderr


@pytest.mark.parametrize("locale", ["C.UTF-8", "C", "no_SUCH.UTF-8"])
def test_the_environment_may_have_any_path(compiled: Compile, run: Run, tmp_path: Path, locale: str) -> None:
    environment = tmp_path / "säge \u4e2d"
    name = f"python3.{sys.version_info.minor}"
    packages = environment / "lib" / name / "site-packages"
    packages.mkdir(parents=True)
    (environment / "bin").mkdir()
    (environment / "bin" / name).symlink_to(sys.executable)
    (environment / "pyvenv.cfg").write_text(f"home = {sys.base_prefix}/bin\n")
    (packages / "real.pth").write_text(f"{Path(__file__).parents[3]}\n{sysconfig.get_path('purelib')}\n")
    answer = run(compiled("softmax.c", "-std=c11"), HBRT_PYTHON=str(environment / "bin" / name), LC_ALL=locale)
    assert (answer.returncode, answer.stdout) == (0, "0.0320586 0.0871443 0.2368828 0.6439143\n"), answer.stderr


def test_a_python_that_cannot_be_reached_is_not_said_to_be_gone(compiled: Compile, run: Run, tmp_path: Path) -> None:
    loop = tmp_path / "python3"
    loop.symlink_to(loop)
    answer = run(compiled("softmax.c", "-std=c11"), HBRT_PYTHON=str(loop))
    assert f"cannot reach the Python of hbrt's environment, {loop}: Too many levels" in answer.stderr


def test_ctrl_c_ends_a_program_that_waits(compiled: Compile, board_home: Path) -> None:
    program = subprocess.Popen(
        [compiled("waits.c")],
        env={"HBRT_HOME": str(board_home), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - pytest may ignore it
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    program.send_signal(signal.SIGINT)
    _, said = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == -signal.SIGINT
    assert "Traceback" not in said


def kill_board_of(program: subprocess.Popen[Any]) -> None:
    """Kill the daemon of a program's private board."""
    for child in Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split():
        if "hbrt" in Path(f"/proc/{child}/cmdline").read_text():
            os.kill(int(child), signal.SIGKILL)


def test_a_board_that_is_killed_is_a_status(compiled: Compile, board_home: Path) -> None:
    """Not a SIGPIPE, which ends a program of C that does not ignore it."""
    with subprocess.Popen(
        [compiled("waits.c")],
        env={"HBRT_HOME": str(board_home), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        kill_board_of(program)
        out, said = program.communicate(timeout=PATIENCE_S)
    assert (program.returncode, out) == (3, "-6000273\n"), said
    assert "HB_DSP_BOARD_LOST" in said


@pytest.mark.parametrize("board", ["goes first", "stays"])
def test_a_program_ends_with_its_own_code_whoever_has_gone(compiled: Compile, board_home: Path, board: str) -> None:
    """What it leaves is said at its end: to a board that may be gone, and on a pipe that nobody reads."""
    read, write = os.pipe()
    with subprocess.Popen(
        [compiled("idle.c")],
        env={"HBRT_HOME": str(board_home), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=write,
        preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL),  # noqa: PLW1509 - Python ignores it
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        os.close(write)
        os.close(read)
        if board == "goes first":
            kill_board_of(program)
        program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 7


def test_sigpipe_stays_the_programs_own(compiled: Compile, board_home: Path) -> None:
    """A call to a board that is gone is no SIGPIPE; the program's own broken pipe is one, before and after."""
    with subprocess.Popen(
        [compiled("pipe.c")],
        env={"HBRT_HOME": str(board_home), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        kill_board_of(program)
        out, said = program.communicate(timeout=PATIENCE_S)
    assert (program.returncode, out) == (-signal.SIGPIPE, "-6000134 1\n"), said
    assert "HB_SYS_BOARD_LOST" in said


IN_PYTHON = """
    import ctypes, os, sys, threading
    library = ctypes.CDLL(sys.argv[1])
    import arm_client as hb

    a, b = hb.hbSysMem(), hb.hbSysMem()
    assert library.hbSysAllocMem(ctypes.byref(a), 100) == hb.hbSysAllocMem(b, 100) == 0
    assert hb.hbSysFreeMem(a) == library.hbSysFreeMem(ctypes.byref(b)) == 0
    assert library.hbSysFreeMem(ctypes.byref(b)) == hb.HB_SYS_NOT_ALLOCATED
    assert "Free a block once" in hb.last_error()
    thread = threading.Thread(target=lambda: library.hbSysAllocMem(ctypes.byref(a), 10))
    thread.start()
    thread.join()
    assert hb.hbSysFreeMem(a) == 0
    child = os.fork()
    if not child:
        assert library.hbSysAllocMem(ctypes.byref(a), 10) == library.hbSysFreeMem(ctypes.byref(a)) == 0
        sys.exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
"""


def test_a_python_program_may_load_the_library_beside_the_client(compiled: Compile, run: Run, tmp_path: Path) -> None:
    del compiled  # skips where nothing is built
    program = tmp_path / "both.py"
    program.write_text(textwrap.dedent(IN_PYTHON))
    answer = run(Path(sys.executable), program, library("libhbrt.so"))
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr.count("both.py:9: hbSysFreeMem") == len(answer.stderr.splitlines()) == 1


def line_in(program: str, part: str) -> str:
    """``file:line`` of the first line of a program that has a text."""
    lines = (PROGRAMS / program).read_text().splitlines()
    return f"{PROGRAMS / program}:{next(at for at, line in enumerate(lines, 1) if part in line)}"


def test_a_stale_read_in_c_is_named(compiled: Compile, run: Run) -> None:
    answer = run(compiled("stale.c", "-Wno-unused-parameter"), HBRT_CHECK="coherence")
    assert f"{line_in('stale.c', 'o[1]')} reads byte 4 of the cached block" in answer.stderr


def test_a_use_after_free_whose_sentence_nobody_reads_is_still_the_fault(compiled: Compile, board_home: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with subprocess.Popen(
        [compiled("stale.c", "-Wno-unused-parameter"), "past", "late"],
        env={"HBRT_HOME": str(board_home), "PATH": "/usr/bin:/bin", "HBRT_CHECK": "memory"},
        stdout=subprocess.DEVNULL,
        stderr=write,
    ) as program:
        os.close(write)
        assert program.wait(PATIENCE_S) == -signal.SIGSEGV


def test_a_use_after_free_in_c_is_named_with_its_lines(compiled: Compile, run: Run) -> None:
    answer = run(compiled("stale.c", "-Wno-unused-parameter"), "past", "late", HBRT_CHECK="memory", HBRT_BOARD="")
    assert answer.returncode == -signal.SIGSEGV
    assert f"use-after-free: {line_in('stale.c', 'input.virAddr)[0]')}: byte 0 of the block" in answer.stderr
    assert f"allocated at {line_in('row.h', 'hbSysAllocMem(&row->input')}" in answer.stderr
    assert f"was freed at {line_in('row.h', 'hbSysFreeMem(&row->input')}" in answer.stderr
    assert "2 bytes past the end of block" in answer.stderr


SLOW = """
    import time
    from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

    def slow(input, output, tm):
        time.sleep(1000)

    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, slow, 0)
    hb_dsp_start()
"""


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("slow.c", r"slow-\w+, at \S*row.h:{wait}\) waits for task"),
        (
            "locked.c",
            (
                r"its thread at \S*locked.c:{lock} waits for the mutex at 0x[0-9a-f]+, which thread \d+ holds, "
                r"which waits for task (\d+)"
            ),
        ),
    ],
)
def test_hbrt_why_names_the_lines_at_which_c_waits(
    compiled: Compile, shell: Shell, tmp_path: Path, source: str, said: str
) -> None:
    image = tmp_path / "slow_image.py"
    image.write_text(textwrap.dedent(SLOW))
    program = compiled(source)
    shell.good("start", "--image", image)
    lines = {"wait": line_in("row.h", "hbDSPWaitTaskDone"), "lock": line_in("locked.c", "waits here")}
    wanted = re.compile(said.format_map({name: line.rpartition(":")[2] for name, line in lines.items()}))
    with subprocess.Popen([program], env=shell.environment, stderr=subprocess.PIPE) as waiting:
        try:
            until(lambda: wanted.search(" ".join(shell.hbrt("why").stdout.split())), said)
        finally:
            shell.hbrt("stop")
        assert waiting.wait(PATIENCE_S) == 7


def test_an_answer_to_hbrt_why_that_comes_after_the_daemons_end_is_no_sigpipe(
    compiled: Compile, shell: Shell, tmp_path: Path
) -> None:
    image = tmp_path / "slow_image.py"
    image.write_text(textwrap.dedent(SLOW))
    program = compiled("locked.c")
    shell.good("start", "--image", image)
    with subprocess.Popen([program], env=shell.environment, stderr=subprocess.PIPE, text=True) as waiting:
        until(lambda: "waits for the mutex" in shell.hbrt("why").stdout)
        waiting.send_signal(signal.SIGSTOP)
        shell.hbrt("why")  # asks, and has no answer
        os.kill(shell.pid(), signal.SIGKILL)
        waiting.send_signal(signal.SIGCONT)
        _, said = waiting.communicate(timeout=PATIENCE_S)
    assert waiting.returncode == 7, said
    assert "HB_DSP_BOARD_LOST" in said


INTERRUPTED = """
    import ctypes, os, signal, sys
    library, libc = ctypes.CDLL(sys.argv[1]), ctypes.PyDLL(None)
    import arm_client as hb

    mem, task, control = hb.hbSysMem(), ctypes.c_void_p(), hb.hbDSPRpcCtrlParam()
    assert hb.hbSysAllocMem(mem, 8) == 0
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(control)
    control.rpcCmd = 0x1002
    call = ctypes.byref(task), ctypes.byref(mem), ctypes.byref(mem), ctypes.byref(control)
    assert library.hbDSPRpc(*call) == library.hbDSPWaitTaskDone(task, 0) == library.hbDSPReleaseTask(task) == 0
    assert hb.hbSysWriteMem(mem, bytes([200]), 1) == 0
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    assert library.hbDSPRpc(*call) == 0
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        library.hbDSPWaitTaskDone(task, int(sys.argv[2]))
    except KeyboardInterrupt:
        print(hb.hbDSPWaitTaskDone(hb.hbDSPTask_t(task.value), 1) == hb.HB_DSP_TIMEOUT)
    child = libc.fork()  # of C: Python does nothing about it
    if not child:
        os._exit(library.hbDSPRpc(*call) != hb.HB_DSP_FORKED)
    assert os.waitpid(child, 0)[1] == 0
    assert library.hbDSPWaitTaskDone(task, 0) == library.hbDSPReleaseTask(task) == hb.hbSysFreeMem(mem) == 0
"""


@pytest.mark.parametrize("limit_ms", [0, 60000])
def test_a_python_program_is_interrupted_while_c_waits(
    limit_ms: int, compiled: Compile, run: Run, tmp_path: Path
) -> None:
    del compiled  # skips where nothing is built
    program = tmp_path / "interrupted.py"
    program.write_text(textwrap.dedent(INTERRUPTED))
    answer = run(Path(sys.executable), program, library("libhbrt.so"), limit_ms, HBRT_IMAGE=str(SLEEPING))
    assert (answer.returncode, answer.stdout) == (0, "True\n"), answer.stderr


def test_affinity_to_cpus_that_the_host_lacks_has_no_effect_and_is_told_once(compiled: Compile, run: Run) -> None:
    answer = run(compiled("affinity.c", "-std=gnu11"))
    assert answer.stdout == "missing 0 \nmissing 0 \nnone -1 Invalid argument\nfirst 0 \n"
    said = (
        r"hbrt: warning: sched_setaffinity: none of the requested CPUs exists on this host, "
        r"which has \d+: no effect\.\n"
    )
    assert re.fullmatch(said, answer.stderr)
