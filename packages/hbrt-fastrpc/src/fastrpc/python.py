"""For Python programs: numpy arrays in shared memory, and the cost of calls."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from arm_client.arrays import extent
from fastrpc.counting import Statistics
from fastrpc.runtime import FastrpcRuntime, runtime

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.uint8) -> NDArray[Any]:
    """New zeroed array in shared memory, as from rpcmem_alloc: calls do not copy it, or contiguous parts of it.

    It is freed with the last view of it.

    Raises:
        AeeError: AEE_ENOMEMORY.
    """
    dims, size_bytes = extent(shape, dtype)
    here = runtime()
    region = here.memory.alloc(max(size_bytes, 1))
    exporter = region.block.hand_over()
    region.block.is_managed = True
    weakref.finalize(exporter, _free, weakref.ref(here), region.start).atexit = False
    return np.ndarray(dims, dtype, buffer=memoryview(exporter).cast("B"))


def from_array(array: ArrayLike) -> NDArray[Any]:
    """Copy of an array in shared memory."""
    model = np.asarray(array)
    mine = empty(model.shape, model.dtype)
    mine[...] = model
    return mine


def statistics() -> Statistics:
    """Counts of shared and copied arguments in this process's calls."""
    return runtime().statistics()


def _free(owner: weakref.ref[FastrpcRuntime], address: int) -> None:
    here = owner()
    if here is not None:
        here.memory.free_later(address)
