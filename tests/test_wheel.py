"""An installed wheel works as well as the clone, and claims three names in site-packages."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.tags import cpython_tags
from packaging.utils import parse_wheel_filename

from tests.limits import PATIENCE_S

REPOSITORY = Path(__file__).resolve().parent.parent
NATIVE = REPOSITORY / "native"
PACKAGES = ("arm_client", "dsp_server", "hbrt")


def files_of(folder: Path) -> set[str]:
    """Paths below a folder of the clone, without what running its programs leaves there."""
    return {
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the backend itself: no network, no isolated environment."""
    target = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(target)],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel installed, to put before everything else on a program's path."""
    target = tmp_path_factory.mktemp("installed")
    options = [
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-index",
        "--no-compile",
        "--target",
        str(target),
    ]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel)], check=True, timeout=PATIENCE_S)
    return target


def run_installed(installed: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program with the installed wheel, in a folder where no clone is in sight."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},  # once for all
        "PYTHONPATH": str(installed),
        "HBRT_HOME": str(cwd / "boards"),
        "NUMBA_DISABLE_JIT": "1",  # kernels of a path that is gone tomorrow are compiled for nobody
    }
    return subprocess.run(
        arguments,
        cwd=cwd,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13)])
def test_one_wheel_is_for_every_python_from_3_11_on(wheel: Path, version: tuple[int, int]) -> None:
    _, _, _, tags = parse_wheel_filename(wheel.name)
    (tag,) = tags
    assert (tag.interpreter, tag.abi) == ("cp311", "abi3")
    assert tag in set(cpython_tags(version, platforms=[tag.platform]))
    with zipfile.ZipFile(wheel) as archive:
        assert "hbrt/native/_mailbox.abi3.so" in archive.namelist()


def test_a_wheel_claims_three_names(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name.split("/")[0] for name in archive.namelist()}
    (metadata,) = names - set(PACKAGES)
    assert names == {*PACKAGES, metadata}
    assert metadata.endswith(".dist-info")


def test_a_wheel_holds_every_file_of_the_packages_and_the_samples(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {f"{package}/{name}" for package in PACKAGES for name in files_of(REPOSITORY / package)}
    expected.discard("hbrt/native/lib/python.cfg")  # a clone's environment; a wheel's library lies in its own
    samples = {f"hbrt/_samples/{name}" for name in files_of(REPOSITORY / "samples")}
    assert samples
    assert {f"{package}/py.typed" for package in PACKAGES} <= held
    headers = {f"hbrt/native/include/{name}" for name in files_of(NATIVE / "include")}
    # What 'hbrt cc --target hexagon' compiles anew.
    sources = {f"hbrt/native/source/{part}/{name}" for part in ("dsp", "mailbox") for name in files_of(NATIVE / part)}
    assert held == expected | samples | headers | sources | {"hbrt/_tour.md"}


@pytest.mark.long
def test_an_installed_wheel_is_what_runs_and_it_runs_its_samples_in_an_empty_folder(
    installed: Path, tmp_path: Path
) -> None:
    packages = ", ".join(PACKAGES)
    show = f"import {packages}; print(*(one.__file__ for one in ({packages})))"
    answer = run_installed(installed, tmp_path, sys.executable, "-c", show)
    assert answer.stdout.split() == [str(installed / name / "__init__.py") for name in PACKAGES], answer.stderr

    names = ("softmax", "pointpillars")  # one of each kind: the wheel holds all of them
    answer = run_installed(installed, tmp_path, str(installed / "bin" / "hbrt"), "run", "nn", *names)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "2 of 2 passed" in answer.stdout
    for op in names:
        assert op in answer.stdout
