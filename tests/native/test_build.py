"""The C parts are built once, by a compiler of the machine or of a package."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hbrt.native.files import NotBuiltError, library
from tests.limits import PATIENCE_S

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = runpy.run_path(str(REPOSITORY / "native" / "build.py"))
LIBRARIES = BUILD["of_core"]()
has_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is here")


def build(root: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(root / "native" / "build.py")],
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    shutil.copytree(REPOSITORY / "native", tmp_path / "native")
    (tmp_path / "hbrt" / "native").mkdir(parents=True)
    shutil.copy(REPOSITORY / "hbrt" / "native" / "record.py", tmp_path / "hbrt" / "native")
    return tmp_path


@pytest.mark.long
@has_compiler
def test_everything_is_built_and_only_once(clone: Path) -> None:
    assert build(clone).returncode == 0
    built = {path: path.stat().st_mtime_ns for path in (clone / "hbrt" / "native").rglob("*.so")}
    names = {name for one in LIBRARIES for name in (one.target.name, *one.names)}
    assert {path.name for path in built} == {"_mailbox.abi3.so", *names}
    libraries = clone / "hbrt" / "native" / "lib"
    for one in LIBRARIES:
        assert len({(libraries / name).stat().st_ino for name in (one.target.name, *one.names)}) == 1
    assert build(clone).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in (clone / "hbrt" / "native").rglob("*.so")} == built


def test_a_compiler_that_is_not_there_is_one_sentence(clone: Path) -> None:
    answer = build(clone, CC="no-such-compiler")
    assert answer.returncode == 1
    assert answer.stderr.startswith("hbrt: No C compiler found: no such file: CC is 'no-such-compiler'.")
    assert len(answer.stderr.splitlines()) == 1
    assert not list((clone / "hbrt" / "native").rglob("*.so"))


@pytest.mark.parametrize(("path", "asked"), [("/nowhere", "ziglang=="), (os.environ["PATH"], "")])
def test_a_compiler_is_asked_for_where_there_is_none(path: str, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not asked and shutil.which("cc") is None:
        pytest.skip("no C compiler is here")
    monkeypatch.delenv("CC", raising=False)
    answer = subprocess.run(
        [sys.executable, str(REPOSITORY / "native" / "build.py"), "--fallback"],
        env={**os.environ, "PATH": path},
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    pins = [line for line in (REPOSITORY / "constraints.txt").read_text().splitlines() if line.startswith("ziglang==")]
    assert answer.stdout.split() == (pins if asked else [])


def test_ziglang_is_the_compiler_where_there_is_no_other(clone: Path, tmp_path: Path) -> None:
    package = tmp_path / "packages" / "ziglang"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        "import pathlib, sys\nprint('asked for', *sys.argv[1:], flush=True)\n"
        "pathlib.Path(sys.argv[sys.argv.index('-o') + 1]).touch()\n"
    )
    environment = {"PATH": "/nowhere", "PYTHONPATH": str(package.parent), "CC": ""}
    answer = build(clone, **environment)
    (image,) = (line for line in answer.stdout.splitlines() if "libhbrt_dsp" in line)
    assert (image.startswith("asked for cc "), "-lunwind" in image.split()) == (True, True), answer.stderr


def test_a_library_that_is_not_built_is_named() -> None:
    with pytest.raises(NotBuiltError, match=r"libnone\.so is not built.*make native"):
        library("libnone.so")


CLOSING = """
import _ctypes, ctypes, os, sys
_ctypes.dlclose(ctypes.CDLL(sys.argv[1])._handle)
ctypes.CDLL(sys.argv[1], os.RTLD_NOLOAD | os.RTLD_NOW)
"""


def test_a_library_stays_mapped_after_dlclose() -> None:
    """Python keeps the addresses that a library has passed to it."""
    every = [one.target for folder in BUILD["distributions"]() for one in BUILD["of_guest"](folder)]
    every += [one.target for one in LIBRARIES]
    assert len(every) > len(LIBRARIES)
    # One of the core that a guest needs would stay because of the guest: a process for each.
    for target in every:
        subprocess.run([sys.executable, "-c", CLOSING, str(target)], check=True, timeout=PATIENCE_S)
