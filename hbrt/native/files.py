"""Location of headers and libraries for C programs and images: the core's, then those of the installed guests.

The core's headers are beside the packages in a clone, and here in a wheel. A guest's are in its package.
"""

from __future__ import annotations

from pathlib import Path

from hbrt.borders import guests

_HERE = Path(__file__).resolve().parent
_BESIDE_ARM = ("neon", "ucp", "ucp/hobot", "")  # header folders besides ``arm``


class NotBuiltError(FileNotFoundError):
    """The installation has no C libraries; the message says how to build them."""


def include_dir(side: str) -> Path:
    """Return a header folder, the core's (``arm`` for programs, ``dsp`` for images) or a guest's (``rknn``)."""
    clone = _HERE.parent.parent / "native" / "include"
    own = (clone if clone.is_dir() else _HERE / "include") / side
    return own if own.is_dir() else next((one / side for one in _guests("include") if (one / side).is_dir()), own)


def with_subfolders(folder: Path) -> list[Path]:
    """Return a header folder and those below it, whose names programs write before a header, or omit."""
    return sorted([folder, *folder.glob("*/**/")])


def folders_of(side: str) -> list[Path]:
    """Return a header folder and those below it."""
    return with_subfolders(include_dir(side))


def include_folders() -> list[Path]:
    """Return the folders with hbrt's headers for compiling an ARM program, in search order."""
    of_guests = [one for folder in _guests("include") for one in with_subfolders(folder)]
    return [*folders_of("arm"), *map(include_dir, _BESIDE_ARM), *of_guests]


def image_folders() -> list[Path]:
    """Return the folders with headers for compiling an image, in search order: the core's, then the guests'.

    A guest's folder ``dsp/include`` has headers that differ for images.
    """
    of_guests = [
        one
        for folder in _guests("dsp")
        for one in (folder / "include", *with_subfolders(folder.with_name("include")))
        if one.is_dir()
    ]
    return [include_dir("dsp"), *of_guests]


def source_dir(name: str) -> Path:
    """Return a folder of the core's C sources that a Hexagon image includes headers of: ``dsp``, ``mailbox``."""
    clone = _HERE.parent.parent / "native"
    return (clone if clone.is_dir() else _HERE / "source") / name


def hexagon_sources() -> Path:
    """Return the folder of C sources compiled into a Hexagon image, next to ``dsp``, with more of them.

    Raises:
        MissingGuestError: the guest that brings them is not installed.
    """
    for folder in _guests("hexagon"):
        return folder
    raise guests.MissingGuestError("Hexagon code", "fastrpc")


def library_folders() -> list[Path]:
    """Return the folders of the libraries that ARM programs link, the core's first."""
    return [_HERE / "lib", *_guests("lib")]


def guest_libraries(*, is_image: bool = False) -> list[Path]:
    """Return the guests' libraries that ARM programs link, or images, whose names end in ``_dsp``."""
    found = (file for folder in _guests("lib") for file in sorted(folder.glob("lib*.so")))
    return [file for file in found if file.stem.endswith("_dsp") == is_image]


def library(name: str) -> Path:
    """Return the path of a library: ``libhbrt.so`` for ARM programs, ``libhbrt_dsp.so`` for images, or a guest's.

    Raises:
        NotBuiltError: hbrt was installed without a C compiler.
    """
    path = _HERE / "lib" / name
    if not path.is_file():
        found = next((one / name for one in _guests("lib") if (one / name).is_file()), None)
        if found is None:
            raise NotBuiltError(f"{path} is not built. Reinstall hbrt (in a clone: make native).")
        return found
    return path


def _guests(part: str) -> list[Path]:
    """Return this folder in the C parts of each installed guest."""
    return [folder / part for folder in guests.native_folders() if (folder / part).is_dir()]


def is_stale(built: str) -> bool:
    """Whether a clone's C sources are newer than their build: a pull may change functions."""
    sources = (_HERE.parent.parent / "native" / "mailbox").glob("*.[ch]")
    return max((path.stat().st_mtime for path in sources), default=0.0) > Path(built).stat().st_mtime
