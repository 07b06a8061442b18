"""Location of headers and libraries for C programs and images: beside the packages in a clone, here in a wheel."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent
_PREFIXES = {"arm": ("dnn", "dnn/plugin", "dsp", "dsp/cv", "dsp/nn"), "fastrpc": ("qurt", "stddef")}
_BESIDE_ARM = ("neon", "rknn", "rga", "sp", "ucp", "ucp/hobot", "")  # header folders besides ``arm`` and ``fastrpc``


class NotBuiltError(FileNotFoundError):
    """The installation has no C libraries; the message says how to build them."""


def include_dir(side: str) -> Path:
    """Return a header folder: programs (``arm``), images (``dsp``), both (``fastrpc``), RKNN (``rknn``), ``neon``."""
    clone = _HERE.parent.parent / "native" / "include"
    return (clone if clone.is_dir() else _HERE / "include") / side


def folders_of(side: str) -> list[Path]:
    """Return a header folder and those below it, whose names programs write before a header, or omit."""
    return [include_dir(side), *(include_dir(side) / name for name in _PREFIXES.get(side, ()))]


def include_folders() -> list[Path]:
    """Return the folders with hbrt's headers for compiling an ARM program, in search order."""
    return [*folders_of("arm"), *folders_of("fastrpc"), *map(include_dir, _BESIDE_ARM)]


def source_dir(name: str) -> Path:
    """Return a folder of C sources compiled into a Hexagon image: ``dsp``, ``hexagon``, ``mailbox``."""
    clone = _HERE.parent.parent / "native"
    return (clone if clone.is_dir() else _HERE / "source") / name


def library(name: str) -> Path:
    """Return the path of a library: ``libhbrt.so`` for ARM programs, ``libhbrt_dsp.so`` for images.

    Raises:
        NotBuiltError: hbrt was installed without a C compiler.
    """
    path = _HERE / "lib" / name
    if not path.is_file():
        raise NotBuiltError(f"{path} is not built. Reinstall hbrt (in a clone: make native).")
    return path


def is_stale(built: str) -> bool:
    """Whether a clone's C sources are newer than their build: a pull may change functions."""
    sources = (_HERE.parent.parent / "native" / "mailbox").glob("*.[ch]")
    return max((path.stat().st_mtime for path in sources), default=0.0) > Path(built).stat().st_mtime
