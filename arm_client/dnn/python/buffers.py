"""Device memory for a model's tensors, read and written as numpy arrays: Python's layer over the C names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arm_client.cabi.last_error import last_error
from arm_client.dnn.errors import ModelError, bad_argument
from arm_client.dnn.spec.dtypes import NIBBLES
from arm_client.dnn.spec.properties import IMAGE_ALIGNMENT, NV12, PLANAR, fill_properties, fill_shape, strides_of, up
from arm_client.dnn.spec.spec import TensorSpec
from arm_client.session.process import process
from arm_client.sys import hbSysAllocMem, hbSysFreeMem
from hbrt.dnn_types import hbDNNTensor, hbDNNTensorLayout
from hbrt.models.spec import nibbles
from hbrt.models.spec.spec import DYNAMIC
from hbrt.types import hbSysMem

_CHANNELS_FIRST = hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW
_HALF = 128


class TensorBuffer:
    """Uncached memory of one tensor, and the C structure that describes it.

    Args:
        spec: The model's spec of the tensor.
        tensor: The structure to fill; a new one by default. May be an element of a C array.
        shape: Sizes of the data, for a dynamic tensor.
        picture: Rows and columns of the picture, for an input whose source is the resizer.
        times: How many of the model's batches an output holds, as hbDNNRoiInfer needs.

    Raises:
        ModelError: the shape does not fit the tensor, or there is no memory for it.
    """

    def __init__(
        self,
        spec: TensorSpec,
        tensor: hbDNNTensor | None = None,
        *,
        shape: Sequence[int] | None = None,
        picture: tuple[int, int] | None = None,
        times: int = 1,
    ) -> None:
        self.spec = spec
        self.tensor = hbDNNTensor() if tensor is None else tensor
        self._mem: hbSysMem | None = None  # an empty tensor needs no memory
        self._taken: NDArray[Any] | None = None
        self._held_shape: tuple[int, ...] | None = None  # that reshape has made room for
        self._view: NDArray[Any] | None = None  # shape of the current values
        fill_properties(spec, self.tensor.properties)
        self.valid_shape, self.aligned_shape, self.stride = spec.valid_shape, spec.aligned_shape, spec.stride
        self.size = spec.aligned_bytes
        if picture is not None:
            self._take_picture(*picture)
        elif shape is not None:
            self._take_shape(tuple(shape))
        elif times > 1:
            self._take_batches(times)
        if self.size == DYNAMIC:
            self.size = 0
        self._make_room()

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored values: bytes for pictures, else the graph's own."""
        return np.dtype(np.uint8) if self.spec.image else self.spec.graph_dtype

    @property
    def has_rows(self) -> bool:
        """Whether this is a picture with aligned rows: Y or NV12."""
        return self.spec.tensor_type in PLANAR

    @property
    def row_bytes(self) -> int:
        """Bytes per picture row, including padding."""
        is_planes = self.spec.layout == _CHANNELS_FIRST
        return self.aligned_shape[3] if is_planes else self.aligned_shape[2] * self.aligned_shape[3]

    def put(self, values: ArrayLike) -> None:
        """Write values into the tensor; padding is left unchanged.

        Args:
            values: Stored values of `dtype` in the valid shape, or all of them in one row; dimensions of 1 may be
                omitted. A picture is passed as bytes in any shape: Y, or Y and then UV, with rows of W bytes or of the
                aligned W; RGB, BGR and YUV444 in the tensor's layout. int8 is also taken, except for NV12: the bytes
                minus 128, as programs pass them to a board.

        Raises:
            ModelError: INVALID_ARGUMENT: wrong type, shape or number of bytes.
        """
        array = np.asarray(values)
        if self.spec.image and array.dtype == np.int8 and self.spec.tensor_type not in NV12:
            array = (array.astype(np.int16) + _HALF).astype(np.uint8)
        if array.dtype != self.dtype:
            raise bad_argument(f"{self.spec.name!r} holds {self.dtype}, not {array.dtype}: {self._remedy(array.dtype)}")
        if self.spec.image:
            self._put_picture(array.reshape(-1))
            return
        if array.shape != self.valid_shape:
            wanted = [one for one in self.valid_shape if one != 1]
            if [one for one in array.shape if one != 1] not in (wanted, [math.prod(wanted)]):
                raise bad_argument(
                    f"{self.spec.name!r} has the shape {list(self.valid_shape)}, not {list(array.shape)}."
                )
            array = array.reshape(self.valid_shape)
        if self.spec.tensor_type in NIBBLES:
            nibbles.pack(array, self._bytes())
        elif array.size:
            self.values()[...] = array

    def get(self) -> NDArray[Any]:
        """Return a copy of the stored values in the valid shape; a picture's rows have the aligned W."""
        if self._taken is not None:
            return self._taken
        if self.spec.image:
            return self._bytes().copy()
        if self.spec.tensor_type in NIBBLES:
            return nibbles.unpack(self._bytes(), self.valid_shape, self.dtype)
        return self.values().copy()

    def values(self) -> NDArray[Any]:
        """Return a strided view of the stored values in the valid shape; not for pictures and 4-bit types."""
        if self._taken is not None:
            return self._taken
        if self._mem is None or not math.prod(self.valid_shape):
            return np.empty(self.valid_shape, self.dtype)
        if self._view is None:
            self._view = np.ndarray(self.valid_shape, self.dtype, self._mem.view(), 0, self.stride)
        return self._view

    def raw(self) -> bytes:
        """Return the bytes as laid out in memory, including padding."""
        return self._bytes().tobytes()

    def put_raw(self, data: bytes) -> None:
        """Write the tensor's bytes as laid out in memory, including padding."""
        self._bytes()[:] = np.frombuffer(data, np.uint8)

    def reshape(self, shape: Sequence[int]) -> None:
        """Resize a dynamic tensor.

        Raises:
            ModelError: the shape does not fit the tensor, or memory ran out.
        """
        if tuple(shape) != self._held_shape:
            self._held_shape = None
            self._take_shape(tuple(shape))
            self._make_room()
            self._held_shape = tuple(shape)

    def take(self, result: NDArray[Any]) -> None:
        """Keep a dynamic result as its own array, since its size is not known in advance."""
        self._taken = result
        self.valid_shape = self.aligned_shape = result.shape
        self.size = (result.size + 1) // 2 if self.spec.tensor_type in NIBBLES else result.nbytes
        self.stride = result.strides if result.flags.c_contiguous else strides_of(result.shape, self.dtype.itemsize)

    def free(self) -> None:
        """Free the memory; does nothing when already freed."""
        if self._mem is not None:
            hbSysFreeMem(self._mem)
            self._mem = self._view = self._held_shape = None
            self.tensor.sysMem[0] = hbSysMem()

    def free_later(self) -> None:
        """Like ``free``, but deferred to this process's next request to the daemon; for finalizers."""
        session = process.default
        block = session.blocks.holding(self._mem.phyAddr) if self._mem is not None and session is not None else None
        if block is not None and session is not None:
            session.blocks.free_later(block)
        self._mem = self._view = None

    def _make_room(self) -> None:
        """Make room for the data: reuse the memory if it is large enough, else replace it."""
        if self.size <= (self._mem.memSize if self._mem is not None else 0):
            return
        self.free()
        mem = hbSysMem()
        status = hbSysAllocMem(mem, self.size)
        if status:
            raise ModelError(status, f"Cannot allocate {self.size} bytes for {self.spec.name!r}: {last_error()}")
        mem.array(np.uint8).fill(0)
        self._mem = mem
        self.tensor.sysMem[0] = mem

    def _take_shape(self, shape: tuple[int, ...]) -> None:
        wanted = self.spec.valid_shape
        if len(shape) != len(wanted) or any(
            size < 0 or known not in {size, DYNAMIC} for size, known in zip(shape, wanted, strict=True)
        ):
            raise bad_argument(f"{self.spec.name!r} has the shape {list(wanted)} (-1 is open), not {list(shape)}.")
        if not self.spec.is_dynamic:
            return
        self._view = None
        self.valid_shape = self.aligned_shape = shape
        count = math.prod(shape)
        self.size = (count + 1) // 2 if self.spec.tensor_type in NIBBLES else count * self.dtype.itemsize
        self.stride = strides_of(shape, self.dtype.itemsize)
        fill_shape(self.tensor.properties.validShape, shape)

    def _take_batches(self, times: int) -> None:
        self.valid_shape = (self.valid_shape[0] * times, *self.valid_shape[1:])
        self.aligned_shape = (self.aligned_shape[0] * times, *self.aligned_shape[1:])
        self.size *= times
        properties = self.tensor.properties
        fill_shape(properties.validShape, self.valid_shape)
        fill_shape(properties.alignedShape, self.aligned_shape)
        properties.alignedByteSize = self.size

    def _remedy(self, given: np.dtype[Any]) -> str:
        """Say how to convert values of another type."""
        if self.spec.image:
            return "it is a picture: pass its bytes, 0 to 255; the model normalizes them itself."
        if self.spec.quantization is not None and given.kind == "f":
            return "quantize real numbers with the tensor's quantize(), or call the model itself, which quantizes them."
        return f"convert it with astype({self.dtype.name!r})."

    def _take_picture(self, height: int, width: int) -> None:
        is_planes = self.spec.layout == _CHANNELS_FIRST
        channels = self.spec.valid_shape[1 if is_planes else 3]
        # The resizer's source rows are multiples of 16 bytes, whatever the type.
        padded = up(width, IMAGE_ALIGNMENT)
        self.valid_shape = (1, channels, height, width) if is_planes else (1, height, width, channels)
        self.aligned_shape = (1, channels, height, padded) if is_planes else (1, height, padded, channels)
        is_nv12 = self.spec.tensor_type in NV12
        self.size = height * padded * 3 // 2 if is_nv12 else height * padded * channels
        self.stride = (0,) * 4 if is_nv12 else strides_of(self.aligned_shape, 1)
        properties = self.tensor.properties
        fill_shape(properties.validShape, self.valid_shape)
        fill_shape(properties.alignedShape, self.aligned_shape)
        properties.alignedByteSize = self.size
        properties.stride[:] = (*self.stride, 0, 0, 0, 0)

    def _put_picture(self, data: NDArray[Any]) -> None:
        planes = self.spec.layout == _CHANNELS_FIRST
        width, padded = (shape[3 if planes else 2] for shape in (self.valid_shape, self.aligned_shape))
        if data.size == self.size:
            self.put_raw(data.tobytes())
            return
        dense = self.size // padded * width
        if not self.has_rows or data.size != dense:
            sizes = f"{self.size}" if dense == self.size else f"{dense}, or {self.size} with rows of {padded}"
            raise bad_argument(
                f"The picture {self.spec.name!r} of {self.valid_shape} has {sizes} bytes, not {data.size}."
            )
        rows = self.size // padded
        self._bytes().reshape(rows, padded)[:, :width] = data.reshape(rows, width)

    def _bytes(self) -> NDArray[np.uint8]:
        if self._taken is None:
            return np.empty(0, np.uint8) if self._mem is None else self._mem.array(np.uint8)[: self.size]
        if self.spec.tensor_type not in NIBBLES:
            return np.ascontiguousarray(self._taken).reshape(-1).view(np.uint8)
        packed = np.zeros(self.size, np.uint8)
        nibbles.pack(self._taken, packed)
        return packed
