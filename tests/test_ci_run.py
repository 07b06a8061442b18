"""``.ci/run``: one unlucky test does not fail a landing, and is named; a test that fails twice does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = """
from pathlib import Path

def test_good():
    pass

def test_unlucky():
    tried = Path(__file__).with_name("tried")
    is_first = not tried.exists()
    tried.touch()
    assert not is_first

def test_broken():
    assert {works}
"""


def ci_run(folder: Path, *, works: bool, lint: str = "true") -> tuple[int, list[str], list[str]]:
    """Run ``.ci/run`` in a project of three tests: its exit code, the lines it prints, those of the kept file."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    (folder / ".venv" / "bin").mkdir(parents=True)
    python = folder / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (folder / "Makefile").write_text(f"test:\n\t@{lint}\n\t@.venv/bin/python -m pytest -q -n 0\n")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_three.py").write_text(TESTS.format(works=works))
    others = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist"}
    environment = {**os.environ, **others, "XDG_STATE_HOME": str(folder / "state")}
    run = subprocess.run(
        ["bash", ".ci/run"], cwd=folder, env=environment, text=True, capture_output=True, check=False, timeout=300
    )
    kept = folder / "state" / "hbrt" / "flaky.txt"
    return run.returncode, run.stdout.splitlines(), kept.read_text().splitlines() if kept.exists() else []


def test_a_test_that_fails_once_is_named_and_does_not_fail_the_run(tmp_path: Path) -> None:
    code, lines, kept = ci_run(tmp_path, works=True)
    assert code == 0
    assert [line for line in lines if line.startswith("flaky: ")] == ["flaky: test_three.py::test_unlucky"]
    assert lines[-1].startswith("1 passed")
    assert [line.split()[-1] for line in kept] == ["test_three.py::test_unlucky"]


def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    code, lines, kept = ci_run(tmp_path, works=False)
    assert code == 1
    assert not [line for line in lines if line.startswith("flaky: ")]
    assert lines[-1].startswith("1 failed, 1 passed")
    assert not kept


@pytest.mark.parametrize("works", [True, False])
def test_what_fails_before_the_tests_fails_the_run(tmp_path: Path, works: bool) -> None:  # noqa: FBT001
    code, lines, _ = ci_run(tmp_path, works=works, lint="false")
    assert code == 2
    assert lines[-1] == "pytest did not run to its end."
