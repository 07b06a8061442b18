"""Where the headers and libraries for C programs and images are: in a clone beside the packages, in a wheel here."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent
_OF_ARM = ("", "dnn", "dnn/plugin", "dsp", "dsp/cv", "dsp/nn")  # what programs write before a header, or leave out
_BESIDE_ARM = ("fastrpc", "neon", "rknn", "rga", "sp", "ucp", "ucp/hobot", "")  # folders of headers beside ``arm``


class NotBuiltError(FileNotFoundError):
    """The installation has no libraries for C; the message says how to have them."""


def include_dir(side: str) -> Path:
    """Folder of headers: of ARM programs (``arm``), images (``dsp``), both (``fastrpc``), RKNN (``rknn``), ``neon``."""
    clone = _HERE.parent.parent / "native" / "include"
    return (clone if clone.is_dir() else _HERE / "include") / side


def include_folders() -> list[Path]:
    """Return the folders in which the compiler of an ARM program finds the headers of hbrt, in their order."""
    return [*(include_dir("arm") / name for name in _OF_ARM), *map(include_dir, _BESIDE_ARM)]


def source_dir(name: str) -> Path:
    """Folder of C sources that an image as Hexagon code is compiled with: ``dsp``, ``hexagon``, ``mailbox``."""
    clone = _HERE.parent.parent / "native"
    return (clone if clone.is_dir() else _HERE / "source") / name


def library(name: str) -> Path:
    """Path of a library: ``libhbrt.so`` for ARM programs, ``libhbrt_dsp.so`` for images.

    Raises:
        NotBuiltError: hbrt was installed where no C compiler was.
    """
    path = _HERE / "lib" / name
    if not path.is_file():
        raise NotBuiltError(f"{path} is not built. Install hbrt anew (in a clone: make native).")
    return path


def is_stale(built: str) -> bool:
    """Whether a clone's sources in C are newer than what was built of them: a pull may bring other functions."""
    sources = (_HERE.parent.parent / "native" / "mailbox").glob("*.[ch]")
    return max((path.stat().st_mtime for path in sources), default=0.0) > Path(built).stat().st_mtime
