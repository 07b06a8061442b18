"""NDArray and TShape: tensors as a layer sees them, with the members that the vendor's softmax sample uses."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray as Array

from arm_client.dnn.errors import bad_argument
from hbrt.types import hbSysMem


class TShape(tuple[int, ...]):
    """Sizes of dimensions: ``TShape(2, 3)`` or ``TShape([2, 3])`` for C++'s ``TShape{2, 3}``."""

    __slots__ = ()

    def __new__(cls, *sizes: int | Iterable[int]) -> Self:
        """One size per dimension, or one list of them."""
        first = sizes[0] if len(sizes) == 1 else None
        listed: Any = first if isinstance(first, Iterable) else sizes
        return super().__new__(cls, (int(size) for size in listed))

    def Size(self) -> int:
        """Number of elements."""
        return math.prod(self)


class DeviceAddress(NamedTuple):
    """One address in device memory: for the CPU and for the DSP."""

    address: int
    phy_addr: int


class NDArray:
    """A tensor that a layer reads or writes: a view of memory, never a copy.

    Besides the sample's members, it works as a numpy array (``numpy()``, ``np.asarray``), and knows its device memory.
    """

    __slots__ = ("_array", "_at", "_mem")

    def __init__(self, array: Array[Any], at: DeviceAddress | None = None) -> None:
        """Create a view.

        Args:
            array: C-contiguous.
            at: Any address in the same block of device memory; None if the array is not in device memory.
        """
        self._array = array
        self._at = at
        self._mem: hbSysMem | None = None

    def CanonicalAxis(self, axis: int) -> int:
        """Return an axis counted from the front; -1 is the last.

        Raises:
            ModelError: HB_DNN_INVALID_ARGUMENT: the axis is out of range.
        """
        count = self._array.ndim
        if not -count <= axis < count:
            raise bad_argument(f"The axis {axis} is out of range for shape {list(self._array.shape)}.")
        return axis % count

    def Shape(self) -> TShape:
        """Sizes of the dimensions."""
        return TShape(self._array.shape)

    def Size(self) -> int:
        """Number of elements."""
        return self._array.size

    def Reshape(self, shape: TShape | Iterable[int]) -> NDArray:
        """Return the same memory in another shape.

        Raises:
            ModelError: HB_DNN_INVALID_ARGUMENT: the number of elements differs.
        """
        sizes = TShape(shape)
        if sizes.Size() != self._array.size or min(sizes, default=0) < 0:
            raise bad_argument(
                f"A tensor of shape {list(self._array.shape)} has {self._array.size} elements and cannot be "
                f"seen as {list(sizes)}."
            )
        return NDArray(self._array.reshape(sizes), self._at)

    def __getitem__(self, index: int) -> NDArray:
        """Return a view of the sub-array at an index of the first dimension.

        Raises:
            IndexError: the index is out of range, or there is no dimension to index.
        """
        if not self._array.ndim or not -self._array.shape[0] <= index < self._array.shape[0]:
            raise IndexError(f"Index {index} is out of range for a tensor of shape {list(self._array.shape)}.")
        return NDArray(self._array[index, ...], self._at)

    def __iter__(self) -> Iterator[NDArray]:
        return (self[at] for at in range(len(self)))

    def __len__(self) -> int:
        return len(self._array)

    def RawData(self) -> ctypes.Array[ctypes.c_ubyte]:
        """Return the bytes as a ctypes array, for hbSysWriteMem, hbSysReadMem and ctypes.memmove."""
        kind = ctypes.c_ubyte * self._array.nbytes
        if not self._array.size or not self._array.flags.writeable:
            return kind.from_address(self._address())
        return kind.from_buffer(self._bytes().data)

    def numpy(self) -> Array[Any]:
        """Return the tensor as a numpy array, a view."""
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array[Any]:  # noqa: FBT001 - numpy's protocol
        return np.array(self._array, dtype, copy=copy)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self._array.dtype

    @property
    def mem(self) -> hbSysMem:
        """Return the tensor's device memory; put its phyAddr into a DSP op's parameter structure.

        Raises:
            ModelError: HB_DNN_INVALID_ARGUMENT: not in device memory, such as a layer's own numpy array.
        """
        if self._mem is None:
            if self._at is None:
                raise bad_argument(
                    f"This tensor of shape {list(self._array.shape)} is not in device memory; copy it there."
                )
            address = self._address()
            mem = hbSysMem(self._at.phy_addr + address - self._at.address, address, self._array.nbytes)
            mem.backing = (address, self._bytes().data)
            self._mem = mem
        return self._mem

    @property
    def phy_addr(self) -> int:
        """Physical address of the first element; raises like ``mem``."""
        return self.mem.phyAddr

    def __repr__(self) -> str:
        return f"NDArray({list(self._array.shape)}, {self._array.dtype})"

    def _bytes(self) -> Array[np.uint8]:
        return self._array.reshape(-1).view(np.uint8)

    def _address(self) -> int:
        address: int = self._array.__array_interface__["data"][0]
        return address
