"""``hbrt start`` and ``hbrt stop``: states, what is left, who is at fault."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from hbrt.board.files import daemon_pid
from hbrt.board.paths import BoardPaths
from hbrt.control.ask import Daemon
from hbrt.errors import RefusedError
from hbrt.protocol import control
from tests.limits import PATIENCE_S
from tests.waiting import await_end

if TYPE_CHECKING:
    from tests.shared import Shell

RUNNING = ["attach.sock", "control.sock", "image-1.py", "image-2.py", "lock", "log"]
IMAGE = """
from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

def nothing(input, output, tm):
    return 0

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, nothing, 250)
    hb_dsp_start()
"""


def children_of(daemon: int) -> list[psutil.Process]:
    return psutil.Process(daemon).children(recursive=True)


def test_start_returns_when_the_board_is_running_and_stop_when_it_is_gone(shell: Shell) -> None:
    said = shell.good("start", "--cores", 3, "--ddr", "64M")
    daemon = shell.pid()
    assert said == f"Board default is running: 3 cores, 64.0 MiB of DDR, daemon process {daemon}.\n"
    assert shell.files() == RUNNING
    children = children_of(daemon)
    assert len(children) == 4  # the cores, and the fork server
    assert os.getsid(daemon) != os.getsid(0)

    assert shell.good("stop") == (
        "Board default is offline. Removed: attach.sock, control.sock, image-1.py, image-2.py, lock.\n"
    )
    await_end(daemon)
    assert not [child for child in children if child.is_running()]
    assert shell.files() == ["log"]


def test_start_and_stop_speak_json(shell: Shell) -> None:
    directory = str(shell.home / "default")
    started = shell.json("start")
    assert started == {
        "board": "default",
        "directory": directory,
        "state": "running",
        "pid": shell.pid(),
        "removed": [],
    }
    removed = ["attach.sock", "control.sock", "image-1.py", "image-2.py", "lock"]
    assert shell.json("stop") == {
        "board": "default",
        "directory": directory,
        "state": "offline",
        "removed": removed,
        "detached": [],
    }


def test_start_while_running_names_the_daemon_and_changes_nothing(shell: Shell) -> None:
    shell.good("start")
    daemon, children = shell.pid(), children_of(shell.pid())
    again = shell.hbrt("start", "--image", "/dev/null/x.py")
    assert again.returncode == 2
    again = shell.hbrt("start", "--cores", 1)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == (
        f"Error: Board default is already running: its daemon is process {daemon}. Nothing was changed; "
        "'hbrt restart' reloads its image, 'hbrt restart --image FILE' loads another; 'hbrt stop' stops it.\n"
    )
    assert shell.pid() == daemon
    assert children_of(daemon) == children
    assert shell.files() == RUNNING


def test_stop_while_offline_is_wrong_usage(shell: Shell) -> None:
    answer = shell.hbrt("stop")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == (
        f"Error: No board default in {shell.home} (no boards exist). Start one with 'hbrt start'.\n"
    )
    shell.good("start")
    shell.good("stop")
    answer = shell.hbrt("stop")
    assert answer.returncode == 2
    assert answer.stderr == "Error: Board default is offline. Start it with 'hbrt start'.\n"


def test_of_two_stops_at_once_neither_fails(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.good("start")
    real = Daemon.request

    def request(daemon: Daemon, verb: str, *arguments: Any, **named: Any) -> Any:
        assert shell.python("-m", "hbrt", "stop").returncode == 0  # somebody else's comes between
        return real(daemon, verb, *arguments, **named)

    monkeypatch.setattr(Daemon, "request", request)
    code, said = shell.refused("stop")
    assert code == 0
    assert said.startswith("Board default is offline. Removed: attach.sock, control.sock, ")


def test_boards_are_told_apart_by_name_or_directory(shell: Shell) -> None:
    shell.good("start", "--board", "left", "--cores", 1)
    shell.good("start", "--board", "./boards/right", "--cores", 2)
    assert len(shell.json("status", "--board", "left")["cores"]) == 1
    assert len(shell.json("status", "--board", shell.cwd / "boards/right")["cores"]) == 2
    unknown = shell.hbrt("status", "--board", "middle")
    assert unknown.returncode == 2
    assert unknown.stderr == (
        f"Error: No board middle in {shell.home} (existing boards: left). Start one with 'hbrt start --board middle'.\n"
    )
    shell.good("stop", "--board", "./boards/right")
    assert shell.json("status", "--board", "left")["state"] == "running"
    assert shell.hbrt("ops", "--board", "./boards/right").stderr == (
        f"Error: Board right is offline. Start it with 'hbrt start --board {shell.cwd}/boards/right'.\n"
    )


def test_the_environment_names_the_board_and_its_size(shell: Shell) -> None:
    shell.environment |= {"HBRT_BOARD": "mine", "HBRT_CORES": "1", "HBRT_DDR": "32M"}
    assert shell.good("start").startswith("Board mine is running: 1 core, 32.0 MiB of DDR")
    shell.good("stop")


def test_a_board_of_a_chip_without_a_dsp_has_memory_and_refuses_tasks_with_a_sentence(shell: Shell) -> None:
    refused = shell.hbrt("start", "--profile", "rk3588", "--cores", "2")
    assert refused.returncode == 2
    assert "2 DSP cores do not fit a board with the profile rk3588, which has 0" in refused.stderr
    assert shell.good("start", "--profile", "rk3588").startswith("Board default is running: 3 NPU cores, 2.0 GiB")
    try:
        shown = shell.good("status", "--wait-healthy")
        assert "hbrt/profiles/rk3588.toml: 3 NPU cores of 1000 MHz.\n" in shown
        assert shell.json("status")["profile"]["cores"] == [{"kind": "npu", "count": 3, "clock_mhz": 1000.0}]
        assert shell.json("ops") == []
        for mode in ("direct", "relay"):
            shell.environment["HB_DSP_RPC_MODE"] = mode
            said = shell.python("-c", NO_DSP)
            assert said.stdout == "0 -6000258 -6000258 0\n", said.stderr
            assert "This board has no DSP core: its profile only has cores for models" in said.stderr
        assert "This board has no DSP cores, as its profile has none." in shell.hbrt("restart").stderr
        assert "This board has no DSP cores, as its profile has none." in shell.hbrt("restart", "--core", "0").stderr
    finally:
        shell.good("stop")


def test_the_time_limit_of_ops_is_an_option(shell: Shell) -> None:
    image = Path(__file__).parents[1] / "watchdog_image.py"
    shell.good("start", "--image", image, "--cores", 1, "--watchdog", 150)
    hang = shell.python("-c", f"import arm_client; arm_client.connect().call(0x1004, timeout={PATIENCE_S})")
    assert "hang (command 0x1004) exceeded its time limit of 150 ms" in hang.stderr


NO_DSP = """
import sys
import arm_client as hb
mem, ctrl, task = hb.hbSysMem(), hb.hbDSPRpcCtrlParam(), hb.hbDSPTask_t()
hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
answers = [hb.hbSysAllocMem(mem, 4096)]
for ctrl.dspCoreId in (0, 1):
    answers.append(hb.hbDSPRpc(task, mem, mem, ctrl))
print(hb.last_error(), file=sys.stderr)
answers.append(hb.hbSysFreeMem(mem))
print(*answers)
"""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--board", "no name"], "'no name' is not a board name: use up to 64 letters, digits, '.', '_' and '-'."),
        (["--cores", "0"], "0 is not in the range 1<=x<=8"),
        (["--cores", "9"], "9 is not in the range 1<=x<=8"),
        (["--ddr", "much"], "Invalid size 'much': expected a number with K, M, G or T, as in 512M or 2G."),
        (["--image", "missing.py"], "File 'missing.py' does not exist."),
        (["--timeout", "0"], "0.0 is not in the range x>0"),
        (["--foreground", "--json"], "Use either --foreground or --json: the log is not JSON."),
        (
            ["--core", "0", "--cores", "2"],
            "--core starts one core of a running board; --cores is only for a new board.",
        ),
        (["--watchdog", "-1"], "Invalid value for '--watchdog': -1: must be 0 or more."),
        (["--core", "0", "--watchdog", "1"], "only for a new board."),
        (["--core", "0", "--reload"], "--core starts one core of a running board; --reload is only for a new board."),
    ],
)
def test_wrong_usage_is_told_before_anything_is_made(shell: Shell, arguments: list[str], sentence: str) -> None:
    code, said = shell.refused("start", *arguments)
    assert code == 2
    assert sentence in " ".join(said.split())
    assert list(shell.home.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (
            "HBRT_CORES",
            "99",
            "Invalid HBRT_CORES 99: must be 0 to 8. It sets: DSP cores of a board that is started without --cores;",
        ),
        (
            "HBRT_WATCHDOG_MS",
            "-1",
            "Invalid HBRT_WATCHDOG_MS -1: must be 0 or more. It sets: time limit of an op without a",
        ),
        ("HBRT_DDR", "12Q", "Invalid HBRT_DDR '12Q': expected a number with K, M, G or T, as in 512M or 2G."),
        # Its cores would trip over these:
        ("HBRT_SPIN_US", "much", "Invalid HBRT_SPIN_US 'much': must be an integer."),
        ("HBRT_FILL", "much", "Invalid HBRT_FILL 'much': must be zeros, pattern or random:SEED, as in random:7."),
    ],
)
def test_a_bad_setting_is_wrong_usage(shell: Shell, name: str, value: str, sentence: str) -> None:
    shell.environment[name] = value
    code, said = shell.refused("start")
    assert code == 2
    assert said.startswith(f"Error: {sentence}")


@pytest.mark.parametrize(
    ("limit_kib", "sentence"),
    [
        (
            1 << 20,
            "Cannot create a DDR of 2147483648 bytes on this machine: Cannot allocate memory; use less, with",
        ),
        (
            3 << 20,
            " cannot map the DDR: Cannot allocate memory. A memory limit ('ulimit -v') must leave room for all ",
        ),
    ],
)
def test_a_limit_of_memory_is_named(shell: Shell, limit_kib: int, sentence: str) -> None:
    """The daemon maps the DDR, and so does each core, which begins as a copy of the daemon."""
    command = f"ulimit -v {limit_kib}; exec {sys.executable} -m hbrt start --ddr 2G"
    answer = subprocess.run(
        ["sh", "-c", command], env=shell.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert answer.returncode != 0
    assert sentence in answer.stderr
    assert "Traceback" not in answer.stderr


def test_an_image_that_raises_fails_the_start_with_its_traceback(shell: Shell) -> None:
    image = shell.cwd / "broken.py"
    image.write_text("import math\nmath.no_such_thing\n")
    answer = shell.hbrt("start", "--image", image)
    assert (answer.returncode, answer.stdout) == (1, "")
    first, *rest = answer.stderr.splitlines()
    assert first.startswith(f"Error: Board default did not start. The image {image} did not load")
    assert rest[:2] == ["Traceback (most recent call last):", f'  File "{image}", line 2, in <module>']
    assert rest[-1] == "AttributeError: module 'math' has no attribute 'no_such_thing'"
    assert shell.files() == ["log"]
    assert daemon_pid(shell.paths()) is None


def test_an_image_that_loops_while_it_loads_is_given_up(shell: Shell) -> None:
    image = shell.cwd / "loop.py"
    pids = shell.cwd / "pids"
    image.write_text(f"import os\nopen({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\nwhile True:\n    pass\n")
    limit_s = 0.5
    while not pids.exists():  # on a busy machine a start may not come to the image in so short a time
        assert limit_s < PATIENCE_S
        answer = shell.hbrt("start", "--image", image, "--timeout", limit_s)
        assert answer.returncode == 124
        assert answer.stderr.startswith(f"Error: Board default did not start. The image {image} did not load")
        assert f"after {limit_s:g} s, so hbrt gave up" in answer.stderr
        limit_s *= 2
    for pid in pids.read_text().split():
        await_end(int(pid))
    assert shell.files() == ["log"]


def test_ctrl_c_while_an_image_loads_leaves_nothing(shell: Shell) -> None:
    image = shell.cwd / "loop.py"
    pids = shell.cwd / "pids"
    os.mkfifo(pids)
    image.write_text(
        f"import os\nos.write(os.open({str(pids)!r}, os.O_WRONLY), b'%d\\n' % os.getpid())\nwhile True:\n    pass\n"
    )
    starting = shell.start("-m", "hbrt", "start", "--image", image, "--cores", 1)
    with pids.open() as loading:
        core = int(loading.readline())
    daemon = psutil.Process(core).ppid()
    os.killpg(starting.pid, signal.SIGINT)
    _, errors = starting.communicate(timeout=PATIENCE_S)
    assert (starting.returncode, errors) == (130, "")
    await_end(core)
    await_end(daemon)
    assert shell.files() == ["log"]


def test_of_two_starts_at_once_exactly_one_wins(shell: Shell) -> None:
    both = [shell.start("-m", "hbrt", "start", "--cores", 1) for _ in range(2)]
    said = [process.communicate(timeout=PATIENCE_S) for process in both]
    codes = [process.returncode for process in both]
    assert sorted(codes) == [0, 2], said
    winner, loser = codes.index(0), codes.index(2)
    daemon = shell.pid()
    assert said[winner][0].endswith(f"daemon process {daemon}.\n")
    assert f"Board default is already running: its daemon is process {daemon}." in said[loser][1]
    assert shell.status()["state"] == "running"


def test_what_a_killed_daemon_left_is_found_and_removed(shell: Shell) -> None:
    shell.good("start")
    daemon = shell.pid()
    children = [child.pid for child in children_of(daemon)]
    os.kill(daemon, signal.SIGKILL)
    await_end(daemon)
    for child in children:
        await_end(child)
    assert shell.files() == RUNNING

    status = shell.status()
    assert (status["state"], status["pid"]) == ("crashed", None)
    assert status["left"] == ["attach.sock", "control.sock", "image-1.py", "image-2.py"]
    dead = (
        "The daemon of board default died and left its files. Start it again with 'hbrt start', or remove them "
        "with 'hbrt stop'."
    )
    assert shell.hbrt("status").stdout == f"{dead}\n"
    assert shell.hbrt("ops").stderr == f"Error: {dead}\n"

    removed, running = shell.good("start").splitlines()
    assert removed == "Removed the files of a dead daemon: attach.sock, control.sock, image-1.py, image-2.py."
    assert running.startswith("Board default is running")
    assert shell.files() == RUNNING
    assert "Removed a file left behind by an earlier daemon: attach.sock." in shell.good("log")


def test_stop_brings_a_crashed_board_to_offline(shell: Shell) -> None:
    shell.good("start")
    daemon = shell.pid()
    os.kill(daemon, signal.SIGKILL)
    await_end(daemon)
    assert (
        shell.good("stop")
        == "Board default is offline. Removed: attach.sock, control.sock, image-1.py, image-2.py, lock.\n"
    )
    assert shell.files() == ["log"]
    assert shell.status()["state"] == "offline"


def test_stop_gives_up_on_a_daemon_that_does_not_answer(shell: Shell) -> None:
    shell.good("start")
    daemon = shell.pid()
    os.kill(daemon, signal.SIGSTOP)
    answer = shell.hbrt("stop", "--timeout", 0.3)
    assert (answer.returncode, answer.stdout) == (124, "")
    assert answer.stderr == (
        f"Error: The daemon of board default (process {daemon}) did not answer 'status' in 0.3 s. "
        f"If it hangs, 'kill -9 {daemon}' ends it and its cores; after that, 'hbrt stop' removes its files.\n"
    )
    os.kill(daemon, signal.SIGCONT)
    shell.good("stop")


def test_a_board_of_another_version_says_which_process_to_end(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.good("start")
    monkeypatch.setattr(control, "VERSION", 1)
    with (
        Daemon(BoardPaths(shell.home / "default")) as daemon,
        pytest.raises(RefusedError, match=rf"version 2; this side speaks 1\. .* with 'kill {shell.pid()}', which ends"),
    ):
        daemon.request("stop")
    os.kill(daemon.pid, signal.SIGTERM)
    await_end(daemon.pid)
    assert shell.files() == ["log"]


def test_stop_names_the_programs_that_lose_their_board(shell: Shell) -> None:
    shell.good("start")
    attach = "from arm_client import connect\nboard = connect()\nprint(board.ping() > 0, flush=True)\ninput()\n"
    client = subprocess.Popen(
        [sys.executable, "-c", attach],
        env=shell.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert client.stdout is not None
        assert client.stdout.readline() == "True\n"
        assert shell.good("stop") == (
            "Board default is offline. Removed: attach.sock, control.sock, image-1.py, image-2.py, lock. Processes "
            f"that were attached: {client.pid} (-c); their calls return HB_DSP_BOARD_LOST.\n"
        )
    finally:
        client.communicate("\n", timeout=PATIENCE_S)


def test_one_core_can_be_stopped_and_started(shell: Shell) -> None:
    shell.good("start")
    assert shell.good("stop", "--core", 1) == "Core 1 of board default is offline.\n"
    assert [core["state"] for core in shell.status()["cores"]] == ["running", "offline"]
    again = shell.hbrt("stop", "--core", 1)
    assert (again.returncode, again.stderr) == (2, "Error: Core 1 is already offline; nothing was changed.\n")
    assert shell.json("start", "--core", 1) == {"board": "default", "core": 1, "state": "running"}
    assert [core["state"] for core in shell.status()["cores"]] == ["running", "running"]
    again = shell.hbrt("start", "--core", 1)
    assert (again.returncode, again.stderr) == (2, "Error: Core 1 is already running; nothing was changed.\n")
    missing = shell.hbrt("stop", "--core", 2)
    assert missing.returncode == 2
    assert missing.stderr == "Error: Core 2 is out of range: this board has cores 0 to 1.\n"
    assert shell.json("stop", "--core", 0)["state"] == "offline"
    assert shell.good("stop", "--core", 1)
    assert shell.status()["state"] == "offline"
    assert shell.good("start", "--core", 0) == "Core 0 of board default is running.\n"


def test_the_daemon_keeps_nothing_of_the_shell_that_started_it(shell: Shell, tmp_path: Path) -> None:
    """A pipe that the shell gave must end when ``hbrt start`` does, or ``hbrt start | cat`` would hang."""
    read, write = os.pipe()
    os.set_inheritable(write, True)
    process = subprocess.Popen(
        [sys.executable, "-m", "hbrt", "start"],
        env=shell.environment,
        cwd=tmp_path,
        stdout=write,
        stderr=write,
        pass_fds=[write],
    )
    os.close(write)
    with os.fdopen(read) as output:
        assert output.read().startswith("Board default is running")
    assert process.wait(20) == 0
    daemon = psutil.Process(shell.pid())
    assert daemon.terminal() is None
    kept = {str(Path(f"/proc/{daemon.pid}/fd/{fd}").readlink()) for fd in range(3)}
    assert kept == {"/dev/null", str(shell.home / "default" / "log")}
