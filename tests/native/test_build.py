"""The C parts are built once, and only where a compiler is."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hbrt.native.files import NotBuiltError, library
from tests.limits import PATIENCE_S

REPOSITORY = Path(__file__).resolve().parents[2]
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


@has_compiler
def test_everything_is_built_and_only_once(clone: Path) -> None:
    assert build(clone).returncode == 0
    built = {path: path.stat().st_mtime_ns for path in (clone / "hbrt" / "native").rglob("*.so")}
    assert {path.name for path in built} == {"_mailbox.abi3.so", "libhbrt.so", "libhbrt_dsp.so"}
    assert build(clone).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in (clone / "hbrt" / "native").rglob("*.so")} == built


def test_where_no_compiler_is_nothing_is_built_and_a_sentence_says_so(clone: Path) -> None:
    answer = build(clone, CC="no-such-compiler")
    assert answer.returncode == 0, answer.stderr
    assert "no C compiler is here" in answer.stdout
    assert not list((clone / "hbrt" / "native").rglob("*.so"))


def test_a_library_that_is_not_built_is_named() -> None:
    with pytest.raises(NotBuiltError, match=r"libnone\.so is not built.*make native"):
        library("libnone.so")
