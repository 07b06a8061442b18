"""Board memory for the inputs and outputs of a program's ops, which access them in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rknn_api.errors import RknnError
from rknn_api.run.c_ops import Placed
from rknn_api.types import rknn_mem_alloc_flags, rknn_tensor_mem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rknn_api.capi.memory import RknnMemory

_FLAGS = int(rknn_mem_alloc_flags.RKNN_FLAG_MEMORY_NON_CACHEABLE)


class OpMemory:
    """A plan's blocks; each is a rknn_tensor_mem, which can be passed to rknn_mem_sync."""

    def __init__(self, memory: RknnMemory) -> None:
        self._memory = memory
        self._mems: list[rknn_tensor_mem] = []

    @property
    def is_usable(self) -> bool:
        """Whether the board still exists."""
        return not self._memory.session.link.fault

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """A new array in its own block, zeroed; raises as ``RknnMemory.create``."""
        count = int(np.prod(shape, dtype=np.int64))
        mem = self._memory.create(max(count * dtype.itemsize, 1), _FLAGS)
        self._memory.of(mem).block.is_managed = True  # the runtime's own: not a leak of the program
        self._mems.append(mem)
        return mem.array(np.uint8)[: count * dtype.itemsize].view(dtype).reshape(shape)

    def view(self, array: NDArray[Any]) -> Placed | None:
        """An array with its memory; None for an array elsewhere, which is then copied."""
        address: int = array.__array_interface__["data"][0]
        for mem in self._mems if array.flags.c_contiguous else ():
            if 0 <= (offset := address - int(mem.virt_addr or 0)) <= mem.size - array.nbytes:
                return Placed(array, mem, offset)
        return None

    def close(self) -> None:
        """Free all blocks."""
        mems, self._mems = self._mems, []
        for mem in mems:
            try:
                self._memory.destroy(mem)
            except RknnError:
                return  # the board has gone in the meantime, and the memory with it
