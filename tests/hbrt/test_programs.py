"""The installed programs: Ctrl-C ends each with 130 and no traceback, whatever it is doing."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hbrt import programs
from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    from tests.shared import Shell

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = ["hbrt", "dsp_server", "dsp_relay_server", "hrt_model_exec"]
CTRL_C = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0)\n"


def with_module(shell: Shell, folder: Path, name: str, text: str) -> Shell:
    """A shell whose Python finds a module of this text before any other of its name."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(text)
    before = shell.environment.get("PYTHONPATH")
    shell.environment["PYTHONPATH"] = f"{folder}:{before}" if before else str(folder)
    return shell


def test_each_is_where_the_installed_package_says() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {name: f"hbrt.programs:{name}" for name in PROGRAMS}
    assert all(callable(getattr(programs, name)) for name in PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_ctrl_c_while_it_loads(shell: Shell, tmp_path: Path, name: str) -> None:
    with_module(shell, tmp_path / "site", "click", CTRL_C)  # which all are made of
    answer = shell.python("-c", f"from hbrt.programs import {name}; {name}()", "--help")
    assert (answer.returncode, answer.stdout, answer.stderr) == (130, "", "")


def test_ctrl_c_while_it_ends(shell: Shell, tmp_path: Path) -> None:
    with_module(shell, tmp_path / "site", "goes_late", f"def late():\n    {CTRL_C.replace(chr(10), '; ')}\n")
    code = "import atexit, goes_late; atexit.register(goes_late.late); from hbrt.programs import hbrt; hbrt()"
    answer = shell.python("-c", code, "--version")
    assert (answer.returncode, answer.stderr) == (130, "")


@pytest.mark.parametrize("module", ["hbrt", "dsp_server", "dsp_server.relay"])
def test_modules_are_the_programs(shell: Shell, tmp_path: Path, module: str) -> None:
    with_module(shell, tmp_path / "site", "click", CTRL_C)
    answer = shell.python("-m", module, "--help")
    assert (answer.returncode, answer.stdout, answer.stderr) == (130, "", "")


def test_who_has_ctrl_c_ignored_is_not_ended(shell: Shell, tmp_path: Path) -> None:
    """As a shell has it for what it runs in the background."""
    with_module(shell, tmp_path / "site", "comes_early", CTRL_C)
    program = "import comes_early; from hbrt.programs import hbrt; hbrt()"
    command = ["sh", "-c", 'trap "" INT; exec "$0" -c "$1" --version', sys.executable, program]
    answer = subprocess.run(
        command, env=shell.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (answer.returncode, answer.stderr) == (0, "")


def test_a_program_of_another_name_keeps_its_own_handler(shell: Shell) -> None:
    """Whoever calls a verb's function in its own process gets a KeyboardInterrupt, as everywhere in Python."""
    code = (
        "import signal\n"
        "from hbrt.programs import interruptible\n"
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "with interruptible():\n"
        "    assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL\n"
        "assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL\n"
    )
    assert shell.python("-c", code).returncode == 0
