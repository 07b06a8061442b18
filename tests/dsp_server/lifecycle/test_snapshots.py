"""Image files: what is one, the copy that cores load, and whose lines a traceback shows."""

from __future__ import annotations

import os
import py_compile
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dsp_server.errors import ImageError
from dsp_server.lifecycle.snapshots import DEFAULT_IMAGE, Image, Snapshots, read_image
from hbrt.status import Status

BAD: dict[str, tuple[Callable[[Path], object], Status, str]] = {
    "nothing": (str, Status.HB_DSP_INVALID_ARGUMENT, "cannot be read: No such file or directory."),
    "directory": (Path.mkdir, Status.HB_DSP_INVALID_ARGUMENT, "is not a regular file."),
    "pipe": (os.mkfifo, Status.HB_DSP_INVALID_ARGUMENT, "is not a regular file."),
    "device": (lambda path: path.symlink_to("/dev/zero"), Status.HB_DSP_INVALID_ARGUMENT, "is not a regular file."),
    "loop": (lambda path: path.symlink_to(path), Status.HB_DSP_INVALID_ARGUMENT, "cannot be read: Too many levels"),
    "bytes": (lambda path: path.write_bytes(b"x = '\xff'"), Status.HB_DSP_RUN_TASK_FAILED, "is not UTF-8 text: "),
    "NUL": (lambda path: path.write_bytes(b"x = 1\0"), Status.HB_DSP_RUN_TASK_FAILED, "is not valid Python: "),
    "syntax": (
        lambda path: path.write_text("x = 1\ndef main(:\n"),
        Status.HB_DSP_RUN_TASK_FAILED,
        "line 2, is not valid Python: ",
    ),
    "depth": (
        lambda path: path.write_text("x = " + "(" * 5000 + ")" * 5000),
        Status.HB_DSP_RUN_TASK_FAILED,
        "is not valid Python: too many nested parentheses.",
    ),
    "more depth": (
        lambda path: path.write_text("x = " + "-" * 100_000 + "1"),
        Status.HB_DSP_RUN_TASK_FAILED,
        "is not valid Python: ",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_file_that_is_no_image_is_named_with_the_reason(tmp_path: Path, case: str) -> None:
    make, status, text = BAD[case]
    path = tmp_path / "image.py"
    make(path)
    with pytest.raises(ImageError) as caught:
        read_image(path)
    assert str(caught.value).startswith(f"The image {path}")
    assert text in str(caught.value)
    assert caught.value.status == status


def test_default_image_is_one() -> None:
    assert b"def main()" in read_image(DEFAULT_IMAGE)


def test_snapshots_are_the_owners_and_go_when_no_image_needs_them(tmp_path: Path) -> None:
    origin = tmp_path / "mine.py"
    origin.write_text("x = '\u00e9'\n", encoding="utf-8")
    board = tmp_path / "board"
    board.mkdir()
    snapshots = Snapshots(board)
    first = snapshots.take(origin)
    origin.write_text("x = 2\n")
    second = snapshots.take(origin)
    assert (first.origin, first.snapshot.read_text(encoding="utf-8")) == (origin, "x = '\u00e9'\n")
    assert second.snapshot.read_text() == "x = 2\n"
    assert second.taken_at > first.taken_at
    assert stat.S_IMODE(second.snapshot.stat().st_mode) == 0o600
    snapshots.keep({second})
    assert [path.name for path in board.iterdir()] == ["image-2.py"]
    snapshots.keep({second})
    third = snapshots.take(origin)
    assert third.snapshot.name == "image-3.py"


def test_snapshot_never_follows_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "image-1.py").symlink_to(victim)
    origin = tmp_path / "mine.py"
    origin.write_text("x = 1\n")
    with pytest.raises(ImageError, match="cannot be copied to"):
        Snapshots(tmp_path).take(origin)
    assert victim.read_text() == "precious"


LOADER = """
import sys, traceback
from dsp_server.core.image_loader import load_and_run
try:
    load_and_run(sys.argv[1], sys.argv[2])
except Exception:
    traceback.print_exc()  # as a core does; the interpreter's own printer reads the file anew
"""


def _load(image: Image) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LOADER, str(image.snapshot), str(image.origin)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_image_runs_as_the_file_it_was(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("value = 42\n")
    origin = tmp_path / "mine.py"
    origin.write_text("import beside\ndef main():\n    print(__file__, __name__, beside.value)\n")
    result = _load(Snapshots(tmp_path).take(origin))
    assert result.stdout == f"{origin} hbrt_image 42\n"


def test_traceback_shows_the_lines_that_ran_though_the_file_has_changed(tmp_path: Path) -> None:
    origin = tmp_path / "mine.py"
    origin.write_text("def main():\n    raise ValueError('as it was')\n")
    image = Snapshots(tmp_path).take(origin)
    origin.write_text("# another\n# text\n")
    stderr = _load(image).stderr
    assert f'File "{origin}", line 2, in main' in stderr
    assert "    raise ValueError('as it was')\n" in stderr


def test_image_without_main_says_so(tmp_path: Path) -> None:
    origin = tmp_path / "mine.py"
    origin.write_text("main = 5\n")
    assert f"ImageError: The image {origin} has no main(): define one" in _load(Snapshots(tmp_path).take(origin)).stderr


def _edit_unseen(path: Path, before: str, after: str) -> None:
    """Compile a module, then change its text so that neither its size nor the second of its change tells."""
    assert len(before) == len(after)
    path.parent.mkdir(exist_ok=True)
    path.write_text(before)
    os.utime(path, (1e9, 1e9))
    py_compile.compile(str(path), doraise=True)
    path.write_text(after)
    os.utime(path, (1e9, 1e9))


def test_modules_of_an_image_are_their_text_whatever_bytecode_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("beside.py", "package/__init__.py", "package/inner.py", "installed/other.py"):
        _edit_unseen(tmp_path / name, "value = 1\n", "value = 2\n")
    origin = tmp_path / "mine.py"
    origin.write_text(
        "import beside, other, package, package.inner\n"
        "def main():\n    print(beside.value, package.value, package.inner.value, other.value)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "installed"))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    assert _load(Snapshots(tmp_path).take(origin)).stdout == "2 2 2 1\n"  # what is installed is Python's business
