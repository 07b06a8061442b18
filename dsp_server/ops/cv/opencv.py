"""OpenCV as a core uses it: single-threaded, because a core is one core; and an error message if it is missing.

Many of its functions need one or two images of scratch memory. glibc would get this memory from the kernel, and return
it, at every call, and every page would fault: corners at 1080p would take three times as long. So the core keeps what
OpenCV frees, up to KEPT_BYTES; the first part of it is on huge pages where the kernel has them, like large numpy
arrays.
"""

from __future__ import annotations

import ctypes
import math
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hbrt.lazy import how_to_install

try:
    import cv2
except ImportError as error:
    if find_spec("cv2") is not None:
        raise ImportError(
            f"The CV ops need OpenCV, which is installed but cannot be loaded ({error}). If a library cannot be "
            "mapped, there is too little address space: start the board with a larger ulimit -v."
        ) from None
    raise ImportError(
        f"The CV ops need OpenCV, which this Python does not have ({error}): {how_to_install('cv')}, and restart "
        "the board."
    ) from None

__all__ = ["aligned_empty", "cv2"]

CACHE_LINE_BYTES = 64
KEPT_BYTES = 128 << 20
LARGEST_KEPT_BYTES = 64 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # mallopt(3)
HUGE_PAGE_BYTES = 2 << 20
_MADV_HUGEPAGE = 14  # madvise(2)


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return a new uninitialized array that starts at a cache line: elsewhere OpenCV is a few percent slower."""
    size_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(size_bytes + CACHE_LINE_BYTES, np.uint8)
    at = -raw.ctypes.data % CACHE_LINE_BYTES
    return raw[at : at + size_bytes].view(dtype).reshape(shape)


def _keep_freed_memory() -> None:
    libc = ctypes.CDLL(None)
    mallopt = getattr(libc, "mallopt", None)  # only glibc has it
    if mallopt is None:
        return
    mallopt(_M_MMAP_THRESHOLD, LARGEST_KEPT_BYTES)
    mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
    # The first part of the kept range may be on huge pages: nothing is touched here, so it costs only addresses.
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    place = libc.malloc(LARGEST_KEPT_BYTES - HUGE_PAGE_BYTES)
    if place:
        begin = -(-place // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
        libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(LARGEST_KEPT_BYTES - 2 * HUGE_PAGE_BYTES), _MADV_HUGEPAGE)
        libc.free(ctypes.c_void_p(place))


cv2.setNumThreads(1)
cv2.ocl.setUseOpenCL(False)
_keep_freed_memory()
