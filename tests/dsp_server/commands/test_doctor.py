"""``hbrt doctor``: what it finds, what it removes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dsp_server.commands.doctor import kernel
from dsp_server.commands.doctor.checks import EXTRAS, GUESTS, Level, extra, guest, package
from hbrt.ddr.claim_lock import ClaimLock
from tests.each import each
from tests.limits import PATIENCE_S
from tests.waiting import await_end

if TYPE_CHECKING:
    from tests.shared import Shell


def checks(shell: Shell, *arguments: str) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in shell.json("doctor", *arguments)}


def test_a_machine_that_runs_boards_passes(shell: Shell) -> None:
    found = checks(shell)
    needed = {"memfd", "eventfd", "pidfd", "claim lock", "board lock"}
    assert {"python", "machine", "CPUs", "memory", "disk"} | needed <= set(found)
    assert {check["level"] for check in found.values()} <= {"ok", "warn"}
    assert found["board lock"]["found"] == f"works in {shell.home}"
    assert found["claim lock"]["found"] == "released when its holder dies"
    lines = shell.good("doctor").splitlines()
    assert len(lines) == len(found) + 1
    assert all(line.startswith(("ok", "warn")) for line in lines[1:])
    assert list(shell.home.iterdir()) == []


def test_a_mutex_that_dies_with_its_holder_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClaimLock, "initialize", lambda _: None)  # zeros: a mutex, neither shared nor robust
    found = {check.name: check for check in kernel.kernel()}["claim lock"]
    assert found.level is Level.FAIL
    assert found.advice.startswith("Cores claim tasks under a robust mutex")


@pytest.mark.parametrize(("limit", "level", "code"), [(100, "fail", 3), (200, "warn", 0)])
def test_few_descriptors_are_told_and_too_few_fail(shell: Shell, limit: int, level: str, code: int) -> None:
    command = ["sh", "-c", f"ulimit -n {limit}; exec {sys.executable} -m hbrt doctor --json"]
    answer = subprocess.run(
        command, env=shell.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    found = {check["name"]: check for check in json.loads(answer.stdout)}["descriptors"]
    assert (answer.returncode, found["level"], found["found"]) == (code, level, f"{limit} per process")


def test_settings_are_shown_and_a_misspelled_one_is_told(shell: Shell) -> None:
    shell.environment |= {"HBRT_CORES": "1", "HBRT_CAHCE": "strict", "HBRT_SOMETHING_ELSE": "1"}
    shell.environment["HBRT_ROUTE_COMPARE"] = "1"  # a word of HBRT_ROUTE
    found = checks(shell)
    assert found["settings"]["level"] == "ok"
    assert f"HBRT_HOME={shell.home}, " in found["settings"]["found"]
    assert "HBRT_CORES=1" in found["settings"]["found"]
    misspelled, unknown = found["setting HBRT_CAHCE"], found["setting HBRT_SOMETHING_ELSE"]
    assert (misspelled["level"], misspelled["advice"]) == ("warn", "Did you mean HBRT_CACHE?")
    assert (unknown["level"], unknown["advice"]) == ("warn", "docs/settings.md lists the settings.")
    assert found["setting HBRT_ROUTE_COMPARE"]["advice"] == "Did you mean HBRT_ROUTE?"
    shell.environment["HBRT_CORES"] = "many"
    assert shell.hbrt("doctor").returncode == 3
    shell.environment["HBRT_CORES"] = "1"


def test_a_package_beside_hbrt_that_is_missing_says_how_to_install_it() -> None:
    assert guest("rknn", "models").level is Level.OK
    missing = guest("missing", "nothing")
    assert (missing.level, missing.found) == (Level.WARN, "not installed, for nothing")
    assert missing.advice == (
        "To get it, install hbrt with its extra 'missing', "
        "as in pip install '.[missing]' packages/hbrt-missing in its clone."
    )


def test_a_home_that_is_not_there_yet_is_good(shell: Shell) -> None:
    shell.environment["HBRT_HOME"] = str(shell.home / "later")
    assert checks(shell)["boards"]["found"].startswith("none yet")
    assert list(shell.home.iterdir()) == []


def failures(shell: Shell) -> dict[str, str]:
    """What fails, and the advice; the exit code says so, too."""
    answer = shell.hbrt("doctor", "--json")
    failed = {c["name"]: f"{c['found']}. {c['advice']}" for c in json.loads(answer.stdout) if c["level"] == "fail"}
    assert answer.returncode == (3 if failed else 0)
    return failed


def test_a_core_that_is_not_well_fails_with_a_sentence(shell: Shell, tmp_path: Path) -> None:
    image = tmp_path / "image.py"
    image.write_text(
        "import re\nfrom dsp_server import *\n"
        "def spin(input, output, tm):\n    return re.match(r'(a+)+$', 'a' * 64 + 'b') is not None\n"
        "def main():\n    hb_dsp_env_init()\n    hb_dsp_register_fn(0x1000, spin)\n    hb_dsp_start()\n"
    )
    shell.good("start", "--image", image, "--cores", 3, "--recovery", "disabled", "--watchdog", 0)
    assert failures(shell) == {}
    spinning, stopped, killed = (core["pid"] for core in shell.status()["cores"])
    call = "b = connect(); b.submit(0x1000, core=1); print(flush=True); signal.pause()"
    program = shell.start("-c", f"import signal; from arm_client import connect; {call}")
    program.stdout.readline()  # type: ignore[union-attr]
    os.kill(stopped, signal.SIGSTOP)
    os.kill(killed, signal.SIGKILL)
    while len(found := failures(shell)) < 3:
        pass
    assert f"Core 0 (process {spinning}) has had no heartbeat for " in found["board default core 0"]
    assert "while it runs spin (command 0x1000): the op is in C code" in found["board default core 0"]
    assert f"Core 1 (process {stopped}) has had no heartbeat for " in found["board default core 1"]
    assert "its process is stopped" in found["board default core 1"]
    assert "Core 2 has crashed; it stays down until you restart it" in found["board default core 2"]
    assert found["board default core 2"].endswith("'hbrt restart --core 2' restarts it.")
    assert found["board default core 1"].split(":")[0].split(" for ")[0] in shell.hbrt("status").stdout


def test_a_daemon_that_is_stopped_fails_at_once(shell: Shell) -> None:
    shell.good("start", "--cores", 1)
    daemon = shell.pid()
    os.kill(daemon, signal.SIGSTOP)
    try:
        found = failures(shell)["board default"]
    finally:
        os.kill(daemon, signal.SIGCONT)
    assert found.startswith(f"its daemon process {daemon} is stopped, by a signal (SIGSTOP) or a debugger; ")
    assert found.endswith(f"'kill -CONT {daemon}' resumes it.")
    assert failures(shell) == {}


def test_a_core_that_somebody_stopped_is_a_warning(shell: Shell) -> None:
    shell.good("start")
    shell.good("stop", "--core", 1)
    found = checks(shell)["board default core 1"]
    assert (found["level"], found["found"]) == ("warn", "Core 1 is offline")


def test_what_dead_boards_left_is_found_and_with_clean_removed(shell: Shell) -> None:
    for board in ("named", "private-1-abc", "up"):
        shell.good("start", "--board", board, "--cores", 1)
    for board in ("named", "private-1-abc"):
        pid = shell.pid(board)
        os.kill(pid, signal.SIGKILL)
        await_end(pid)
    found = checks(shell)
    assert found["board named"]["level"] == "warn"
    assert found["board named"]["found"].startswith(
        "its daemon died and left attach.sock, control.sock, image-1.py, image-2.py; "
    )
    assert found["board named"]["advice"] == "Run 'hbrt doctor --clean' to remove them."
    assert found["board private-1-abc"]["level"] == "warn"

    cleaned = checks(shell, "--clean")
    assert cleaned["board named"]["found"] == "removed attach.sock, control.sock, image-1.py, image-2.py, lock"
    assert cleaned["board private-1-abc"]["found"].endswith("log")
    assert shell.files("named") == ["log"]
    assert not (shell.home / "private-1-abc").exists()
    assert shell.json("status", "--board", "up")["state"] == "running"
    found = checks(shell)
    assert {check["level"] for check in found.values()} <= {"ok", "warn"}
    assert found["board named"]["level"] == "ok"
    assert found["board named"]["found"].startswith("offline; ")
    assert found["board up"]["found"].startswith(f"running, daemon process {shell.pid('up')}; ")
    assert found["board up"]["found"].endswith("mode 700")


def test_a_home_that_cannot_be_used_fails(shell: Shell) -> None:
    blocked = shell.cwd / "file"
    blocked.write_text("")
    shell.environment["HBRT_HOME"] = str(blocked)
    answer = shell.hbrt("doctor")
    assert answer.returncode == 3
    assert any(
        line.startswith("fail") and "Set HBRT_HOME to a directory" in line for line in answer.stdout.splitlines()
    )


def test_a_board_directory_that_is_refused_fails(shell: Shell) -> None:
    directory = shell.home / "shared"
    directory.mkdir()
    directory.chmod(0o755)
    (directory / "lock").write_text("")
    answer = shell.hbrt("doctor")
    assert answer.returncode == 3
    assert f"run 'chmod 700 {directory}'" in answer.stdout


def test_links_in_the_home_are_left_alone(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("mine\n")
    (tmp_path / "image-1.py").write_text("mine\n")
    (shell.home / "private-link").symlink_to(tmp_path)
    assert "board private-link" not in checks(shell, "--clean")
    assert (tmp_path / "image-1.py").exists()


@each(
    "name, floor, level, found",
    [
        ("click", "0.1", Level.OK, ""),
        ("click", "999.0", Level.FAIL, "older than 999.0"),
        ("no-such-package-here", "1.0", Level.FAIL, "not installed"),
    ],
)
def test_a_package_is_there_and_new_enough(name: str, floor: str, level: Level, found: str) -> None:
    check = package(name, floor)
    assert check.level is level
    assert found in check.found
    assert bool(check.advice) == (level is Level.FAIL)


@pytest.mark.parametrize(
    ("requirements", "level", "found"),
    [
        (["numpy>=1.0; extra == 'cv'", "no-such-package-here>=1; extra == 'dnn'"], Level.OK, "complete, for filters"),
        (
            ["numpy>=999; extra == 'cv'", 'no-such-package-here>=1; extra == "cv"'],
            Level.WARN,
            "older than 999, no-such-package-here is not installed: filters cannot be used",
        ),
    ],
)
def test_an_extra_is_told_with_what_it_lacks(requirements: list[str], level: Level, found: str) -> None:
    check = extra("cv", "filters", requirements)
    assert check.level is level
    assert found in check.found
    advice = """Run 'pip install "numpy>=999" "no-such-package-here>=1"'."""  # right in a clone and with a wheel
    assert check.advice == (advice if level is Level.WARN else "")


def test_point_clouds_are_not_said_to_need_what_makes_them_fast() -> None:
    check = extra("pointcloud", "point clouds", ["numba>=999; extra == 'pointcloud'"], EXTRAS["pointcloud"][1])
    assert check.level is Level.WARN
    assert check.found.endswith(": point clouds run without it, several times slower")


def test_the_extras_that_users_need_are_looked_at(shell: Shell) -> None:
    found = checks(shell)
    assert [found[f"extra {name}"]["level"] for name in EXTRAS] == ["ok"] * len(EXTRAS)
    names = [one["name"] for one in shell.json("doctor", "--extras")]
    assert names == [*(f"extra {name}" for name in EXTRAS), *(f"package hbrt-{name}" for name in GUESTS), "hexagon"]
