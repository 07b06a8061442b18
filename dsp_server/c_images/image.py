"""A C image: loads its snapshot and runs its ``main()``."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from dsp_server import runtime
from dsp_server.c_images import sanitizers
from dsp_server.c_images.runtime_calls import ImageRuntime
from dsp_server.errors import ImageError
from dsp_server.hardware.tcm import TcmError
from dsp_server.registry import RegistrationError
from hbrt.native import symbolizer

_runtime: list[ImageRuntime] = []  # one per process: the library has a single table


def image_runtime() -> ImageRuntime:
    """Return the runtime of this process's images."""
    if not _runtime:
        _runtime.append(ImageRuntime())
    return _runtime[0]


def run_image(snapshot: str, origin: str) -> None:
    """Load an image's snapshot and call its ``main()``.

    Raises:
        ImageError: it does not load, has no ``main()``, or a call in its ``main()`` is refused. Other exceptions from
            such a call pass through.
    """
    ours = image_runtime()
    libraries = sanitizers.libraries(Path(snapshot).read_bytes())
    if missing := sanitizers.missing(libraries):
        raise ImageError(
            f"The image {origin} is built with a sanitizer, whose library must be loaded first: start this process "
            f"with LD_PRELOAD={missing}."
        )
    if runtime.context.trace_fd >= 0:
        sanitizers.report_to(runtime.context.trace_fd, libraries)
        ours.watch(symbolizer.command(), is_sanitized=bool(sanitizers.first(libraries)))
    try:
        image = ctypes.CDLL(snapshot, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        why = str(error).removeprefix(f"{snapshot}: ")
        raise ImageError(
            f"The image {origin} did not load: {why}. Build it with 'hbrt cc --dsp -o {Path(origin).name} FILE...', "
            "which reports what is missing."
        ) from None
    ours.images.add(snapshot)
    try:
        main = ctypes.cast(image.main, ctypes.c_void_p).value
    except AttributeError:
        main = ours.main_of_skeletons()
    if main is None:
        raise ImageError(
            f"The image {origin} has no main(): define one that registers the ops and calls hb_dsp_start(). In C++ a "
            "main() inside a namespace is a different function."
        )
    try:
        ours.main(main, Path(origin).name)
    except (RegistrationError, runtime.NoBoardError, TcmError) as error:
        raise ImageError(f"The image {origin} did not start: {error} ({ours.error_site})") from None


def c_line() -> str:
    """Return ``file:line`` of the image's C code running in this thread; empty if unknown."""
    file, line, _ = _runtime[0].line() if _runtime else ("", 0, "")
    return f"{file}:{line}" if line else ""
