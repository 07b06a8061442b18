"""The README's tour, as a newcomer takes it: in an empty directory, in a virtual environment, from a wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hbrt.cli.group import group
from tests.docs.conftest import clean_environment, end_boards
from tests.limits import PATIENCE_S, WHOLE_RUN_S
from tools.docs_blocks import blocks, run_page, section

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PAGE = (REPOSITORY / "docs" / "tour.md").read_text(encoding="utf-8")
IN_C = "## Programs and images in C and C++"
TOUR = PAGE.partition(IN_C)[0]
INSTALLS = "pip install"


def place_dependencies(directory: Path) -> None:
    """Links to all that is installed here but hbrt itself, so that installing hbrt asks no network."""
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not entry.name.startswith(("hbrt-", "_hbrt", "__editable__")):
            (directory / entry.name).symlink_to(entry)


@pytest.fixture
def newcomer(tmp_path: Path, board_home: Path) -> Iterator[dict[str, str]]:
    """Environment of somebody who has a wheel of hbrt as ``~/hbrt``, and whose pip finds all else without a network."""
    home, wheels, dependencies, programs = (tmp_path / name for name in ("home", "wheels", "dependencies", "programs"))
    for directory in (home, wheels, dependencies, programs):
        directory.mkdir()
    place_dependencies(dependencies)
    (programs / "pip").write_text('#!/bin/sh\nexec python -m pip "$@"\n', encoding="utf-8")
    (programs / "pip").chmod(0o755)
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheels)]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True, timeout=PATIENCE_S)
    environment = clean_environment(board_home, Path(sys.executable).parent)
    yield {
        **environment,
        "PATH": f"{programs}:{environment['PATH']}",
        "HOME": str(home),
        "PYTHONPATH": str(dependencies),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_COMPILE": "1",  # modules that are used are compiled when they are
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    end_boards(board_home)


@pytest.mark.long
def test_the_tour_does_what_it_says(newcomer: dict[str, str], tmp_path: Path, board_home: Path) -> None:
    here = tmp_path / "tour"
    here.mkdir()
    (wheel,) = Path(newcomer["PIP_FIND_LINKS"]).glob("hbrt-*.whl")
    # The page installs from the clone; that builds a wheel of it, for which pip would ask the network for the builder.
    assert TOUR.count("pip install --quiet ~/hbrt") == 2
    page = TOUR.replace("~/hbrt pytest", f"{wheel} pytest").replace("~/hbrt'[dnn]'", f"'{wheel}[dnn]'")
    assert TOUR.count(" -m venv ") == 1
    page = page.replace(" -m venv ", " -m venv --without-pip ")  # a quarter of the tour; pip is among what it stands on
    ran = list(run_page(page, here, newcomer, PATIENCE_S))
    assert len(ran) == sum(block.language == "bash" for block in blocks(TOUR))
    assert [path.name for path in board_home.rglob("*") if path.is_file() or path.is_socket()] == ["log"]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is here")
def test_c_on_both_sides_does_what_it_says(tmp_path: Path, board_home: Path) -> None:
    (tmp_path / "samples").symlink_to(REPOSITORY / "samples")
    page = section(PAGE, IN_C)
    (block,) = run_page(page, tmp_path, clean_environment(board_home, Path(sys.executable).parent), PATIENCE_S)
    assert "hbrt cc" in block.text
    end_boards(board_home)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is here")
def test_the_readme_does_what_it_says(tmp_path: Path, board_home: Path) -> None:
    (tmp_path / "samples").symlink_to(REPOSITORY / "samples")
    ran = list(run_page(README, tmp_path, clean_environment(board_home, Path(sys.executable).parent), PATIENCE_S))
    assert len(ran) == sum(block.language == "bash" for block in blocks(README))
    assert len(README.encode()) <= 6144


def test_the_verb_writes_the_files_of_the_tour(tmp_path: Path) -> None:
    done = CliRunner().invoke(group, ["tour", str(tmp_path / "tour")])
    assert done.exit_code == 0, done.output
    files = {block.file: block.text for block in blocks(TOUR) if block.file}
    assert {file.name: file.read_text() for file in (tmp_path / "tour").glob("*.py")} == files
    assert (tmp_path / "tour" / "tour.md").read_text() == PAGE
    again = CliRunner().invoke(group, ["tour", str(tmp_path / "tour")])
    assert again.exit_code == 0, again.output
    (tmp_path / "tour" / "stale.py").write_text("mine")
    refused = CliRunner().invoke(group, ["tour", str(tmp_path / "tour")])
    assert (refused.exit_code, "stale.py already exists" in refused.output) == (2, True)


def test_the_readme_leads_with_two_commands_that_make_knows() -> None:
    first = blocks(README)[0].text.splitlines()
    assert [line.split()[:2] for line in first] == [["make", "demo"], ["make", "test"]]
    for line in first:
        goal = line.split()[1]
        answer = subprocess.run(
            ["make", "--dry-run", goal], cwd=REPOSITORY, capture_output=True, check=False, timeout=PATIENCE_S
        )
        assert answer.returncode == 0, answer.stderr


def dry_run(goal: str, venv: Path) -> str:
    """What make would run for a goal, with no virtual environment made yet."""
    command = ["make", "--dry-run", goal, f"VENV={venv}"]
    return subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, check=True, text=True, timeout=PATIENCE_S
    ).stdout


def test_a_first_demo_shows_what_it_installs(tmp_path: Path) -> None:
    (install,) = (line for line in dry_run("demo", tmp_path / "venv").splitlines() if "--editable" in line)
    assert " -q" not in install, "pip is to say what it does"


def test_a_wheel_installs_no_dependency(tmp_path: Path) -> None:
    told = dry_run("wheel", tmp_path / "venv")
    assert "--editable" not in told
    assert "install --constraint constraints.txt hatchling" in told


def test_a_busy_machine_meets_no_limit_of_the_tests() -> None:
    """None for the whole; for each test, one above all that it waits for, and another one for what no signal ends."""
    told = subprocess.run(
        ["make", "--dry-run", "test"], cwd=REPOSITORY, capture_output=True, check=True, text=True, timeout=PATIENCE_S
    )
    (command,) = (line for line in told.stdout.splitlines() if " -m pytest " in line)
    assert command.startswith("env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -m pytest ")
    options = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"][
        "ini_options"
    ]
    assert WHOLE_RUN_S + PATIENCE_S <= options["timeout"] < options["faulthandler_timeout"]
    assert options["faulthandler_exit_on_timeout"]


def test_every_bash_block_of_the_tour_is_followed_by_its_output_or_prints_nothing() -> None:
    tour = blocks(TOUR)
    silent = [
        block.line
        for block, after in zip(tour, [*tour[1:], None], strict=True)
        if block.language == "bash" and (after is None or after.language != "text") and INSTALLS not in block.text
    ]
    assert silent == []


def test_no_home_directory_is_quoted_which_a_shell_would_not_expand() -> None:
    for page in (README, PAGE):
        assert not re.search(r"""["']~/""", page)
