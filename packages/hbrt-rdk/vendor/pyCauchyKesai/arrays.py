"""Arrays in device memory.

Source: https://github.com/WuChao-2024/pyCauchyKesai
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from arm_client import (
    hbSysAllocCachedMem,
    hbSysAllocMem,
    hbSysFlushMem,
    hbSysFreeMem,
    hbSysMem,
    hbSysMemFlushFlag,
    last_error,
)


class IONMemory:
    """A block of device memory.

    Args:
        size: Bytes.
        cached: Whether the CPU caches it.

    Raises:
        MemoryError: out of memory.
    """

    def __init__(self, size: int, cached: bool = True) -> None:  # noqa: FBT001, FBT002 - the binding's signature
        self._mem = hbSysMem()
        status = hbSysAllocCachedMem(self._mem, size) if cached else hbSysAllocMem(self._mem, size)
        if status:
            raise MemoryError(f"Out of device memory for {size} bytes: {last_error()}")
        self.size = size
        weakref.finalize(self, hbSysFreeMem, self._mem)

    @property
    def is_allocated(self) -> bool:
        """Always."""
        return True

    @property
    def phy_addr(self) -> int:
        """Physical address."""
        return int(self._mem.phyAddr)

    def numpy(self) -> NDArray[np.uint8]:
        """Its bytes."""
        return self._mem.array(np.uint8)[: self.size]

    def flush_clean(self) -> None:
        """Write the CPU's cached changes back to memory."""
        hbSysFlushMem(self._mem, hbSysMemFlushFlag.HB_SYS_MEM_CACHE_CLEAN)

    def flush_invalidate(self) -> None:
        """Invalidate the CPU's cache, so that it reads memory again."""
        hbSysFlushMem(self._mem, hbSysMemFlushFlag.HB_SYS_MEM_CACHE_INVALIDATE)


@dataclass
class IONArrayDesc:
    """The type and shape of an array.

    Attributes:
        dtype: Type of its numbers.
        shape: Its sizes.
        name: Of the input or output.
        scale: Empty unless quantized; one, or one per index of ``quantize_axis``.
        zero_point: Like ``scale``.
        quantize_axis: The dimension that they belong to.
    """

    dtype: np.dtype[Any]
    shape: list[int]
    name: str = ""
    scale: list[float] = field(default_factory=list)
    zero_point: list[int] = field(default_factory=list)
    quantize_axis: int = 0

    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size() * self.dtype.itemsize

    def is_quantized(self) -> bool:
        """Whether its numbers represent real ones."""
        return bool(self.scale)


class IONArray:
    """An array in device memory: ``IONArray(dtype, shape)``, or ``IONArray(desc)``.

    Args:
        kind: Type of the numbers, or a description.
        shape: Sizes, with a type.
        cached: Accessed through the CPU's cache.
        defer: Allocate memory only when ``allocate`` or ``numpy`` is called.
        byte_size: Size of that memory in bytes, if larger than the array: of earlier versions.
    """

    def __init__(
        self,
        kind: DTypeLike | IONArrayDesc,
        shape: Sequence[int] = (),
        cached: bool = True,  # noqa: FBT001, FBT002 - the binding's signature
        defer: bool = False,  # noqa: FBT001, FBT002
        *,
        byte_size: int = 0,
    ) -> None:
        given = kind if isinstance(kind, IONArrayDesc) else IONArrayDesc(np.dtype(kind), [int(size) for size in shape])
        self.desc, self.byte_offset, self._cached, self._byte_size = given, 0, cached, byte_size
        self.memory: IONMemory | None = None
        if not defer:
            self.allocate(cached)

    @staticmethod
    def from_memory(memory: IONMemory, byte_offset: int, template: IONArrayDesc | IONArray) -> IONArray:
        """An array in part of a block."""
        made = IONArray(template.desc if isinstance(template, IONArray) else template, defer=True)
        made.memory, made.byte_offset = memory, byte_offset
        return made

    @staticmethod
    def from_numpy_array(values: ArrayLike, cached: bool = True) -> IONArray:  # noqa: FBT001, FBT002
        """An array with these numbers."""
        array = np.ascontiguousarray(values)
        made = IONArray(array.dtype, array.shape, cached)
        made.from_numpy(array)
        return made

    def allocate(self, cached: bool = True) -> None:  # noqa: FBT001, FBT002
        """Allocate memory."""
        self.memory = IONMemory(max(self.desc.nbytes(), self._byte_size, 1), cached)

    @property
    def is_allocated(self) -> bool:
        """Whether it has memory."""
        return self.memory is not None

    @property
    def shape(self) -> list[int]:
        """Its sizes."""
        return self.desc.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of its numbers."""
        return self.desc.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of its numbers."""
        return self.desc.nbytes()

    @property
    def phy_addr(self) -> int:
        """Physical address."""
        return self._block().phy_addr + self.byte_offset

    @property
    def mem_size(self) -> int:
        """Bytes of its block."""
        return self._block().size

    def numpy(self) -> NDArray[Any]:
        """Its numbers, to read and write in place."""
        part = self._block().numpy()[self.byte_offset : self.byte_offset + self.desc.nbytes()]
        return part.view(self.desc.dtype).reshape(self.desc.shape)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001
        return np.array(self.numpy(), dtype, copy=copy)

    def from_numpy(self, values: ArrayLike) -> None:
        """Write numbers, and flush them.

        Raises:
            ValueError: they do not fit.
        """
        array = np.asarray(values)
        if array.dtype != self.desc.dtype or array.size != self.desc.size():
            raise ValueError(
                f"The array has {self.desc.dtype} {self.desc.shape}, not {array.dtype} {list(array.shape)}."
            )
        self.numpy()[...] = array.reshape(self.desc.shape)
        self.flush_clean()

    def dequantize(self) -> NDArray[Any]:
        """The real numbers that it represents, float32; its own numbers if it is not quantized."""
        if not self.desc.is_quantized():
            return self.numpy().copy()
        zero = np.asarray(self.desc.zero_point or [0], np.float32)
        return (self.numpy().astype(np.float32) - self._along(zero)) * self._along(np.asarray(self.desc.scale))

    def quantize(self, values: ArrayLike) -> None:
        """Quantize and write real numbers."""
        zero = np.asarray(self.desc.zero_point or [0], np.float32)
        real = np.asarray(values, np.float32)
        if self.desc.is_quantized():
            limits = np.iinfo(self.desc.dtype)
            real = np.rint(real / self._along(np.asarray(self.desc.scale)) + self._along(zero))
            real = real.clip(limits.min, limits.max)
        self.from_numpy(real.astype(self.desc.dtype))

    def flush_clean(self) -> None:
        """Write the CPU's cached changes back to memory."""
        self._block().flush_clean()

    def flush_invalidate(self) -> None:
        """Make the CPU read memory again."""
        self._block().flush_invalidate()

    def _along(self, values: NDArray[Any]) -> NDArray[np.float32]:
        row = values.astype(np.float32)
        if row.size == 1:
            return row
        return row.reshape([-1 if at == self.desc.quantize_axis else 1 for at in range(self.desc.ndim())])

    def _block(self) -> IONMemory:
        if self.memory is None:
            self.allocate(self._cached)
        if self.memory is None:
            raise AssertionError
        return self.memory
