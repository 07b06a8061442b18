"""Behavior of the vendor API's structures, and limits of their fields; the headers define the fields.

`hbDSPSoftmaxParam` is the vendor's public structure (J5 DSP development guide, 10.2.3.3 DSP Softmax Operator
Development, https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html). Emulator: the other NN
ops' structures and commands are its choice. docs/nn-ops.md and docs/pointcloud.md have offsets and formulas.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import DTypeLike, NDArray


QUANTI_DTYPES = {8: "int8", 9: "uint8", 11: "int16", 12: "uint16", 14: "int32"}
"""numpy name of each `tensor_type`, numbered as in hbDNNDataType."""

MAX_SHIFT = 126
"""Up to this value 2^shift and 2^-shift are both normal float32 numbers, so SHIFT is exact."""

MAX_DIMENSION = (1 << 31) - 1
MAX_DIMENSIONS = 8
"""Length of `shape`, the value of HB_DNN_TENSOR_MAX_DIMENSIONS."""

POINT_DIMS: Final = (4, 5)
MAX_GRID: Final = (1 << 15) - 1
"""Maximum cells per axis: x is in the high and y in the low 16 bits of an int32, and -1 means no cell."""
NO_CELL: Final = -1
"""Coordinate word of a point that was filtered out."""
MAX_PLACES: Final = (1 << 31) - 1
"""max_voxels * max_points * dims fits an int32."""


class SysMem:
    """Behavior of hbSysMem."""

    phyAddr: int
    virAddr: int | None
    memSize: int
    # Set by the allocation: (virAddr, bytes) of the block, so that a view keeps its mapping alive.
    backing: tuple[int, memoryview] | None = None
    locate: ClassVar[Callable[[int, int], memoryview | None] | None] = None
    """Returns the bytes of this process's block at an address, which keep its mapping alive."""

    def view(self) -> memoryview:
        """Return the block's bytes as the CPU sees them, writable: format 'B', ``memSize`` long.

        Raises:
            ValueError: the structure holds no block (never allocated, or freed).
        """
        if not self.virAddr:
            raise ValueError(
                f"This hbSysMem holds no memory (phyAddr {self.phyAddr:#x}, virAddr NULL): hbSysAllocMem was not "
                "called or did not return 0 (then last_error() says why)."
            )
        backing = self.backing
        if backing is not None and backing[0] == self.virAddr and len(backing[1]) >= self.memSize:
            return backing[1][: self.memSize]
        # A structure with a modified virAddr (a crop), or copied as bytes.
        locate = type(self).locate
        if locate is not None and (found := locate(self.virAddr, self.memSize)) is not None:
            return found
        # Memory unknown to any board: trust the address, like C.
        return memoryview((ctypes.c_ubyte * self.memSize).from_address(self.virAddr)).cast("B")

    def array(self, dtype: DTypeLike, shape: int | tuple[int, ...] | None = None) -> NDArray[Any]:
        """Return a numpy view of the block, C order, starting at its first byte, without copying.

        Args:
            dtype: Element type.
            shape: Shape in elements; None for as many whole elements as fit in the block.

        Raises:
            ValueError: the shape needs more bytes than ``memSize``, or the structure holds no block.
        """
        import numpy as np

        element = np.dtype(dtype)
        view = self.view()
        if shape is None:
            shape = (self.memSize // element.itemsize,)
        dims = (shape,) if isinstance(shape, int) else tuple(shape)
        count = 1
        for dim in dims:
            count *= dim
        if count * element.itemsize > self.memSize:
            raise ValueError(
                f"An array of shape {dims} and type {element} needs {count * element.itemsize} bytes, but the "
                f"block at {self.phyAddr:#x} has {self.memSize}. Allocate a larger block."
            )
        return np.frombuffer(view, dtype=element, count=count).reshape(dims) if count else np.empty(dims, element)


class Quanti:
    """Behavior of hbDSPQuantizeParam and hbDSPDequantizeParam."""

    shape: Any
    dimension_count: int

    def set_shape(self, dimensions: Sequence[int]) -> None:
        """Fill `shape` and `dimension_count`.

        Raises:
            ValueError: no dimensions, more than 8, or one that does not fit an int32.
        """
        if not 1 <= len(dimensions) <= MAX_DIMENSIONS:
            raise ValueError(
                f"A shape with {len(dimensions)} dimensions does not fit the structure: "
                f"reshape the tensor to between 1 and {MAX_DIMENSIONS} dimensions."
            )
        if max(dimensions) > MAX_DIMENSION:
            raise ValueError(f"Dimension {max(dimensions)} is above {MAX_DIMENSION}, the largest int32.")
        self.dimension_count = len(dimensions)
        self.shape[: len(dimensions)] = list(dimensions)


class CvCmd:
    """Behavior of hbDSPCvCmd."""

    name: str

    @property
    def op_name(self) -> str:
        """Name of the op: `gaussian_blur` for HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR."""
        return self.name.removeprefix("HB_DSP_RPC_CMD_CV_").lower()
