"""Where a caller's tensor is: hbDNNTensor structures, checked against the model's specs. Rules, no data."""

from __future__ import annotations

import struct
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from arm_client.dnn.errors import bad_argument
from arm_client.dnn.spec.dtypes import NIBBLES
from arm_client.dnn.spec.spec import TensorSpec
from arm_client.session.process import process
from hbrt.ddr.layout import TABLES_GENERATION
from hbrt.dnn_types import HB_DNN_TENSOR_MAX_DIMENSIONS, hbDNNDataType, hbDNNTensor
from hbrt.models.spec.spec import DYNAMIC

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hbrt.ddr.file import Ddr

_TENSOR = struct.Struct("<" + "QQI4x" * 4 + "9i9iii" + "i4xQ" + "i4xQi4xQ" + "iii8i4x")
_GENERATION = struct.Struct("<Q")


Ranges = tuple[tuple[int, int], ...]
"""A memory range: (physical address, bytes)."""


class View(NamedTuple):
    """An hbDNNTensor as Python values.

    Attributes:
        mems: (physical address, bytes) of its four blocks.
        valid: Sizes of validShape; as many as numDimensions says.
        aligned: Sizes of alignedShape.
        tensor_type: Type that the caller set.
        stride: One per entry of valid.
    """

    mems: tuple[tuple[int, int], ...]
    valid: tuple[int, ...]
    aligned: tuple[int, ...]
    tensor_type: int
    stride: tuple[int, ...]


class TensorBinding(NamedTuple):
    """Which memory a tensor has in a task, and how it lies there.

    Attributes:
        offset: Offset of its first byte in the DDR file; -1 for an empty tensor.
        shape: Shape of the array in memory.
        stride: Strides in bytes; None for a contiguous array.
        padded_bytes: Total bytes with padding; 0 without padding.
        ranges: (physical address, bytes) pairs that must stay inside live blocks.
        room_bytes: Bytes from the tensor's start to the end of its block; for dynamic outputs.
    """

    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    padded_bytes: int
    ranges: Ranges
    room_bytes: int


def generation_of(ddr: Ddr) -> int:
    """Return a number that changes with every allocation and free on the board."""
    number: int = _GENERATION.unpack_from(ddr.map, TABLES_GENERATION)[0]
    return number


def check_range(what: str, phy_addr: int, size_bytes: int, ddr: Ddr) -> None:
    """Check that memory is live and that this process may use it.

    Raises:
        ModelError: INVALID_ARGUMENT: it is not inside one live block, or belongs to another process.
    """
    session = process.default
    client = session.link.client_id if session is not None and session.link.ddr is ddr else None
    if (refusal := ddr.refusal(phy_addr, size_bytes, client)) is not None:
        raise bad_argument(f"{what}: {refusal[1]}")


def view_of(raw: bytes) -> View:
    """Convert the bytes of an hbDNNTensor to Python values.

    Raises:
        ModelError: INVALID_ARGUMENT if a shape has too many dimensions.
    """
    values = _TENSOR.unpack(raw)
    mems = tuple((values[at], values[at + 2]) for at in range(0, 12, 3))
    shapes = []
    for at, name in ((12, "validShape"), (21, "alignedShape")):
        rank = values[at + 8]
        if not 0 <= rank <= HB_DNN_TENSOR_MAX_DIMENSIONS:
            raise bad_argument(
                f"{name}.numDimensions is {rank}; fill the properties with hbDNNGetInputTensorProperties or "
                "hbDNNGetOutputTensorProperties."
            )
        shapes.append(values[at : at + rank])
    valid, aligned = shapes
    return View(mems, valid, aligned, values[31], values[-8:][: len(valid)])


def array_at(
    ddr: Ddr, binding: TensorBinding, dtype: np.dtype[Any], shape: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """Return an array in device memory; with a shape other than the binding's, it is contiguous."""
    if binding.offset < 0:
        return np.empty(binding.shape if shape is None else shape, dtype)
    buffer, offset = ddr.bytes_with(binding.offset, binding.room_bytes)
    if shape is None:
        return np.ndarray(binding.shape, dtype, buffer, offset, binding.stride)
    return np.ndarray(shape, dtype, buffer, offset)


def binding_of(spec: TensorSpec, tensor: hbDNNTensor, ddr: Ddr, *, is_input: bool) -> TensorBinding:
    """Check a caller's tensor against the spec, and bind it to its memory.

    Raises:
        ModelError: INVALID_ARGUMENT, with the tensor and the rule; or memory that is not live, or is another's.
    """
    binding = _bound(spec, view_of(bytes(tensor)), ddr, is_input=is_input)
    for phy_addr, size_bytes in binding.ranges:
        check_range(f"The tensor {spec.name!r}", phy_addr, size_bytes, ddr)
    return binding


def _bound(spec: TensorSpec, view: View, ddr: Ddr, *, is_input: bool) -> TensorBinding:
    if view.tensor_type != spec.tensor_type:
        raise bad_argument(
            f"The tensor {spec.name!r} has the tensorType {_type_name(view.tensor_type)}; the model "
            f"has {spec.tensor_type.name}. Only NV12 may be changed, to NV12_SEPARATE."
        )
    phy_addr, size_bytes = view.mems[0]
    if spec.is_dynamic and not is_input:
        return _dynamic_binding(spec, phy_addr, size_bytes, ddr)
    shape = _valid_shape(spec, view)
    is_padded = not spec.is_dynamic and spec.aligned_shape != spec.valid_shape and view.aligned == spec.aligned_shape
    if not is_padded and view.aligned != shape and not (spec.is_dynamic and view.aligned == spec.aligned_shape):
        raise bad_argument(
            f"The tensor {spec.name!r} has the alignedShape {list(view.aligned)}; leave it at "
            f"{list(spec.aligned_shape)} (padded by the caller), or set it to validShape (padded by the runtime)."
        )
    if is_padded:
        need = spec.aligned_bytes
    elif spec.tensor_type in NIBBLES:
        need = (prod(shape) + 1) // 2
    else:
        need = prod(shape) * spec.graph_dtype.itemsize
    if not need:
        return TensorBinding(-1, shape, None, 0, (), 0)
    if size_bytes < need:
        raise bad_argument(
            f"The tensor {spec.name!r} needs {need} bytes, but sysMem[0].memSize is {size_bytes}; allocate "
            "alignedByteSize bytes."
        )
    _check_address(spec, phy_addr)
    return TensorBinding(
        ddr.offset_of(phy_addr),
        shape,
        spec.stride if is_padded else None,
        need if is_padded else 0,
        ((phy_addr, need),),
        size_bytes,
    )


def _dynamic_binding(spec: TensorSpec, phy_addr: int, size_bytes: int, ddr: Ddr) -> TensorBinding:
    if not size_bytes:
        return TensorBinding(-1, spec.valid_shape, None, 0, (), 0)
    _check_address(spec, phy_addr)
    return TensorBinding(ddr.offset_of(phy_addr), spec.valid_shape, None, 0, ((phy_addr, size_bytes),), size_bytes)


def _valid_shape(spec: TensorSpec, view: View) -> tuple[int, ...]:
    fits = len(view.valid) == len(spec.valid_shape) and all(
        given >= 0 and size in {DYNAMIC, given} for given, size in zip(view.valid, spec.valid_shape, strict=True)
    )
    if fits:
        return view.valid
    what = (
        "fill in the sizes that are -1, and leave the others"
        if spec.is_dynamic
        else "leave it as hbDNNGetInputTensorProperties or hbDNNGetOutputTensorProperties filled it"
    )
    raise bad_argument(
        f"The tensor {spec.name!r} has the validShape {list(view.valid)}; the model has "
        f"{list(spec.valid_shape)}: {what}."
    )


def _check_address(spec: TensorSpec, phy_addr: int) -> None:
    if phy_addr % spec.graph_dtype.itemsize:
        raise bad_argument(
            f"The tensor {spec.name!r} is at {phy_addr:#x}, which is not a multiple of its element's "
            f"{spec.graph_dtype.itemsize} bytes."
        )


def _type_name(number: int) -> str:
    return hbDNNDataType(number).name if number in hbDNNDataType.__members__.values() else str(number)
