"""Images: files with a ``main()``, in Python or C. A core runs a snapshot of one under the file's own name."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import NamedTuple

from dsp_server.c_images import elf, sanitizers
from dsp_server.c_images.elf import is_elf
from dsp_server.errors import ImageError
from hbrt.board import private_files
from hbrt.board.paths import is_text
from hbrt.status import Status

_C_SUFFIXES = {".so", ".o", ".a", ".c", ".cc", ".cpp", ".cxx", ".C", ".h"}
_MAX_SHOWN = 200
DEFAULT_IMAGE = Path(__file__).parents[1] / "images" / "default.py"
ACCELERATOR = Path(__file__).parents[1] / "accelerator" / "image.py"


class Image(NamedTuple):
    """An image at one moment: its file, and the copy that cores load."""

    origin: Path
    snapshot: Path
    taken_at: float  # wall-clock time in seconds, before the file was read
    sanitizers: tuple[str, ...] = ()  # libraries that must be loaded first in a core's process


class Snapshots:
    """The copies of image files that a board's cores load, so that cores that start later run the same image."""

    def __init__(self, directory: Path) -> None:
        """``directory`` holds the copies and belongs to this board alone."""
        self._directory = directory
        self._count = 0
        self._kept: set[Path] = set()

    def take(self, origin: Path) -> Image:
        """Copy an image file in its current state.

        Raises:
            ImageError: it cannot be read, or is not an image.
        """
        taken_at = time.time()
        source = read_image(origin)
        self._count += 1
        path = self._directory / f"image-{self._count}{'.so' if is_elf(source) else '.py'}"
        try:
            fd = private_files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with os.fdopen(fd, "wb") as file:
                file.write(source)
        except OSError as error:
            path.unlink(missing_ok=True)
            why = f"The image {origin} cannot be copied to {path}: {error.strerror}."
            raise ImageError(
                why, Status.HB_SYS_NOT_RUNNING
            ) from None  # the image is not at fault: the disk may be full, for example
        self._kept.add(path)
        return Image(origin, path, taken_at, sanitizers.first(sanitizers.libraries(source)))

    def keep(self, images: set[Image]) -> None:
        """Delete the copies of all other images."""
        for path in self._kept - {image.snapshot for image in images}:
            path.unlink(missing_ok=True)
            self._kept.discard(path)


def read_image(path: Path) -> bytes:
    """Return the bytes of an image file: Python, or a shared library.

    Raises:
        ImageError: the file does not exist, is not a regular file, cannot be read, is a library that cores cannot load,
        or is not Python (a syntax error names its line), or its path cannot be sent in messages.
    """
    if not is_text(path):
        raise ImageError(
            f"The path of the image {str(path)!r} is not text in this locale; rename the file or its directory, or set "
            "LC_ALL=C.UTF-8.",
            Status.HB_DSP_INVALID_ARGUMENT,
        )
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe or a device might never end
            raise ImageError(f"The image {path} is not a regular file.", Status.HB_DSP_INVALID_ARGUMENT)
        raw = path.read_bytes()
    except OSError as error:
        why = error.strerror or str(error)
        raise ImageError(f"The image {path} cannot be read: {why}.", Status.HB_DSP_INVALID_ARGUMENT) from None
    if is_elf(raw):
        try:
            elf.check(raw, path.name)
        except elf.NotLoadableError as error:
            raise ImageError(f"The image {path} {error}") from None
        return raw
    if path.suffix in _C_SUFFIXES:
        raise ImageError(
            f"The image {path} is not an ELF file. An image in C is a shared library: build it with 'hbrt cc --dsp -o "
            f"{path.stem}.so FILE...'."
        )
    try:
        source = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ImageError(f"The image {path} is not UTF-8 text: {error}.") from None
    try:
        compile(source, str(path), "exec")
    except SyntaxError as error:
        raise ImageError(
            f"The image {path}, line {error.lineno}, is not valid Python: {error.msg}{_shown(error)}."
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        why = str(error) or type(error).__name__
        raise ImageError(f"The image {path} is not valid Python: {why}.") from None
    return raw


def _shown(error: SyntaxError) -> str:
    """Return where in its line the error is, and the line; empty if the line is unknown or too long for a message."""
    line = (error.text or "").strip()
    return f", at column {error.offset} of `{line}`" if 0 < len(line) <= _MAX_SHOWN else ""
