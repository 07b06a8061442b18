"""What the tile manager and iDMA need to know about a buffer: its bytes, its address, and who requested it."""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from numpy.typing import NDArray

    BufferLike: TypeAlias = ReadableBuffer | NDArray[Any]

# Calls from C come through this module: a local variable of its frame holds the place in the C code.
_C_CALLS = "dsp_server.c_images.runtime_calls"
# The caller of an allocation or a transfer is the first frame outside these modules.
_NOT_CALLERS = (
    {"contextlib", _C_CALLS}
    | {
        f"dsp_server.hardware.{name}"
        for name in ("buffers", "channels", "descriptors", "idma", "frame", "tile_manager")
    }
    | {f"dsp_server.detectors.{name}" for name in ("call", "dma", "tiles")}
)


def bytes_view(buffer: BufferLike) -> memoryview:
    """A flat view of the buffer's bytes.

    Raises:
        TypeError: not a buffer, or its bytes are not contiguous.
        ValueError: a memoryview that has been released.
    """
    view = memoryview(cast("ReadableBuffer", buffer))  # numpy's types do not show that an array is a buffer
    if view.format == "B" and view.ndim == 1:
        if not view.contiguous:
            raise TypeError("the buffer's bytes are not contiguous")
        return view
    if view.nbytes == 0:
        return memoryview(bytearray())
    return view.cast("B")


def address_of(view: memoryview) -> int:
    """Return this process's address of the first byte; 0 for an empty view."""
    if not view.nbytes:
        return 0
    if not view.readonly:
        return ctypes.addressof(ctypes.c_char.from_buffer(view))
    import numpy as np

    address: int = np.frombuffer(view, np.uint8).__array_interface__["data"][0]
    return address


def caller_line() -> str:
    """Return `file:line` of the op's code that called into this package."""
    frame = sys._getframe(1)  # noqa: SLF001 - inspect.stack() reads source files: thousands of times slower
    while frame.f_back is not None and (name := frame.f_globals.get("__name__")) in _NOT_CALLERS:
        if name == _C_CALLS and "site" in frame.f_code.co_varnames:
            return str(frame.f_locals["site"])
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
