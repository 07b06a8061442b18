"""Behavior of RKNN structures; their fields are in rknn_api/types.py.

Source: RKNN C API Reference (2.3.2), data structures, https://github.com/airockchip/rknn-toolkit2
Emulator: numbers missing from the reference are the emulator's choice: flags, enums other than rknn_mem_sync_mode, and
array lengths. Sizes are those of an LP64 C compiler.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


class rknn_context(ctypes.c_uint64):
    """Handle of a context; ``value`` is 0 until rknn_init fills it."""

    def __repr__(self) -> str:
        """The handle's number."""
        return f"rknn_context({self.value:#x})"


class TensorAttr:
    """Behavior of rknn_tensor_attr."""

    n_dims: int
    dims: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Its valid dimensions."""
        return tuple(self.dims[: self.n_dims])


class TensorMem:
    """Behavior of rknn_tensor_mem."""

    size: int
    backing: memoryview | None = None  # keeps the mapping

    def array(self, dtype: DTypeLike, shape: int | tuple[int, ...] | None = None) -> NDArray[Any]:
        """The bytes as the CPU sees them, as a numpy array: a view.

        Args:
            dtype: Type of an element.
            shape: Stride in elements; None for as many whole elements as fit.

        Raises:
            ValueError: the memory was destroyed, or is smaller.
        """
        import numpy as np

        if self.backing is None:
            raise ValueError("This rknn_tensor_mem has no memory: it was destroyed, or rknn_create_mem failed.")
        element = np.dtype(dtype)
        whole = np.frombuffer(self.backing, element, len(self.backing) // element.itemsize)
        if shape is None:
            return whole
        wanted = (shape,) if isinstance(shape, int) else shape
        count = int(np.prod(wanted, dtype=np.int64))
        if count > whole.size:
            raise ValueError(f"An array of {wanted} {element} has {count * element.itemsize} bytes, not {self.size}.")
        return whole[:count].reshape(wanted)
