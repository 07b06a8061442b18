"""The CI files of a page, to paste: they say the same, and their steps run in a clean root, without hbrt."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.limits import PATIENCE_S
from tools.docs_blocks import blocks
from tools.docs_tables import REPOSITORY

PAGE = blocks((REPOSITORY / "docs" / "ci.md").read_text(encoding="utf-8"))
GITHUB, GITLAB = (yaml.safe_load(block.text) for block in PAGE if block.language == "yaml")
(CONTAINER,) = (block.text for block in PAGE if block.language == "dockerfile")
JOB, LAB = GITHUB["jobs"]["test"], GITLAB["dsp"]
STEPS = [line for step in JOB["steps"] if "run" in step for line in step["run"].strip().splitlines()]


def test_all_run_the_same_with_the_same_settings() -> None:
    (ran,) = (block.text.splitlines() for block in PAGE if block.language == "bash")
    install, *rest = STEPS
    assert rest == ran[1:-1]
    assert LAB["before_script"] == [install]
    assert LAB["script"] + LAB["after_script"] == rest
    matrix: dict[str, Any] = JOB["strategy"]["matrix"]
    assert LAB["parallel"]["matrix"] == [{"HBRT_PROFILE": matrix["profile"]}]
    assert all((REPOSITORY / "hbrt/profiles" / f"{name}.toml").is_file() for name in matrix["profile"])
    assert set(JOB["env"]) == {"HBRT_PROFILE", "HBRT_HOME", "HBRT_CACHE"}
    assert LAB["variables"]["HBRT_CACHE"] == JOB["env"]["HBRT_CACHE"]
    assert all(name in ran[0] for name in ("HBRT_HOME", "HBRT_CACHE"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean root: an environment without hbrt that finds what it stands on, and a project that has it in ``hbrt``."""
    here = tmp_path_factory.mktemp("root")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", here / "env"], check=True, timeout=PATIENCE_S)
    libraries = here / "env/lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    (libraries / "beside.pth").write_text(
        sysconfig.get_path("purelib")
    )  # whose own .pth, and so the clone, is not read
    programs = {"pip": 'python -m pip "$@"', **({"cc": f'{cc} "$@" -O0'} if (cc := shutil.which("cc")) else {})}
    for name, command in programs.items():
        (here / "env/bin" / name).write_text(f"#!/bin/sh\nexec {command}\n")
        (here / "env/bin" / name).chmod(0o755)
    (project := here / "project").mkdir()
    for block in PAGE:
        if block.file and block.language == "python":
            (project / block.file).write_text(block.text)
    left_out = shutil.ignore_patterns(".*", "__pycache__", "*.so", "tests", "output")
    shutil.copytree(REPOSITORY, project / "hbrt", ignore=left_out)
    return here


def run_in(root: Path, script: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a runner does, and stop at the first line that fails."""
    environment = {
        "PATH": f"{root}/env/bin:{os.environ['PATH']}",
        "HOME": str(root),
        "HBRT_HOME": f"{root}/project/.hbrt",
        "PIP_NO_INDEX": "1",  # what it stands on is there
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's way to say: without
        "PIP_NO_COMPILE": "1",  # modules that are used are compiled when they are
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
        **settings,
    }
    return subprocess.run(
        ["sh", "-exc", script],
        cwd=root / "project",
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.long
def test_the_steps_run_in_a_clean_root(root: Path) -> None:
    settings = {"HBRT_PROFILE": JOB["strategy"]["matrix"]["profile"][1], "HBRT_CACHE": JOB["env"]["HBRT_CACHE"]}
    ended = run_in(root, "\n".join(["! python -c 'import hbrt'", *STEPS]), **settings)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 passed" in ended.stdout
    assert {file.name for file in (root / "project/report").iterdir()} == {"board.log", "tests.xml"}
    told = dict(line.split(" ", 1) for line in CONTAINER.splitlines() if line[0] != "#" and "useradd" not in line)
    assert told["COPY"] == "hbrt /opt/hbrt"
    install, shows = told["RUN"].split(" && ")
    assert install.replace("--no-cache-dir /opt", ".") == STEPS[0]  # which has run
    ended = run_in(root, f"{shows}\n{' '.join(json.loads(told['CMD']))}")
    assert ended.returncode == 0, ended.stdout + ended.stderr
