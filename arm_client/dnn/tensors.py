"""hbDNNTensor structures to arrays over device memory, and back.

The BPU reads DDR: every array here lies at the tensor's physical address, never in the CPU's cache image, so that in strict
cache mode a missing CLEAN or INVALIDATE shows. A tensor that needs no conversion is handed to the graph as it lies.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from arm_client.dnn import nibbles
from arm_client.dnn.dtypes import NIBBLES
from arm_client.dnn.errors import ModelError, bad_argument
from arm_client.dnn.properties import fill_shape
from arm_client.dnn.spec import DYNAMIC, TensorSpec
from hbrt.dnn_types import HB_DNN_TENSOR_MAX_DIMENSIONS, hbDNNDataType, hbDNNTensor
from hbrt.layout import TABLES_GENERATION
from hbrt.status import Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hbrt.ddr import Ddr

_TENSOR = struct.Struct("<" + "QQI4x" * 4 + "9i9iii" + "i4xQ" + "i4xQi4xQ" + "iii8i4x")
_GENERATION = struct.Struct("<Q")
_MOST_KEPT = 64  # places that are remembered of one model's tensor; a program has a few buffers that it uses in turn


class View(NamedTuple):
    """An hbDNNTensor as Python values.

    Attributes:
        mems: (physical address, bytes) of its four blocks.
        valid: Sizes of validShape; as many as numDimensions says.
        aligned: Sizes of alignedShape.
        tensor_type: As the caller set it.
        stride: As many as valid has.
    """

    mems: tuple[tuple[int, int], ...]
    valid: tuple[int, ...]
    aligned: tuple[int, ...]
    tensor_type: int
    stride: tuple[int, ...]


class Place(NamedTuple):
    """Where a tensor lies, and how. Nothing in it keeps the DDR mapped.

    Attributes:
        offset: Of its first byte in the DDR file; -1 for a tensor without bytes.
        shape: Of the array over memory.
        stride: Bytes; None when the array is contiguous.
        padded_bytes: Bytes of the padded whole, when there is padding; else 0.
        ranges: (physical address, bytes) that must stay inside live blocks.
        room_bytes: What the block holds from the tensor's start; for dynamic outputs.
    """

    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    padded_bytes: int
    ranges: tuple[tuple[int, int], ...]
    room_bytes: int


@dataclass(slots=True)
class Feed:
    """One input of one run: an array that can be used as it is, or what makes it in the worker's thread."""

    name: str
    array: NDArray[Any] | None
    make: Callable[[], NDArray[Any]] | None = None


@dataclass(slots=True)
class Target:
    """One output of one run: an array that the graph may write, and what remains to do with the result."""

    name: str
    array: NDArray[Any] | None
    finish: Callable[[NDArray[Any]], None] | None = None


class Memo:
    """Places of one model's tensors, by the bytes of the structure; checked anew when any block came or went."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Ddr, int, Place]] = {}

    def place(self, spec: TensorSpec, tensor: hbDNNTensor, ddr: Ddr, make: Callable[[View], Place]) -> Place:
        """The place of a tensor, by ``make`` when it is not known.

        Raises:
            ModelError: INVALID_ARGUMENT: what ``make`` found, or memory that was freed meanwhile.
        """
        raw = bytes(tensor)
        generation = _GENERATION.unpack_from(ddr.map, TABLES_GENERATION)[0]
        known = self._known.get(raw)
        if known is not None and known[0] is ddr:
            if known[1] == generation:
                return known[2]
            place = known[2]
        else:
            place = make(view_of(raw))
        for phy_addr, size_bytes in place.ranges:
            if not ddr.contains(phy_addr, size_bytes):
                raise bad_argument(f"The tensor {spec.name!r}: {ddr.explain(phy_addr, size_bytes)}")
        if len(self._known) >= _MOST_KEPT:
            self._known.clear()
        self._known[raw] = (ddr, generation, place)
        return place


def view_of(raw: bytes) -> View:
    """The bytes of an hbDNNTensor as Python values.

    Raises:
        ModelError: INVALID_ARGUMENT when a shape says more dimensions than there are.
    """
    values = _TENSOR.unpack(raw)
    mems = tuple((values[at], values[at + 2]) for at in range(0, 12, 3))
    shapes = []
    for at, name in ((12, "validShape"), (21, "alignedShape")):
        rank = values[at + 8]
        if not 0 <= rank <= HB_DNN_TENSOR_MAX_DIMENSIONS:
            raise bad_argument(
                f"{name}.numDimensions is {rank}; fill the properties by hbDNNGetInputTensorProperties or "
                "hbDNNGetOutputTensorProperties."
            )
        shapes.append(values[at : at + rank])
    valid, aligned = shapes
    return View(mems, valid, aligned, values[31], values[-8:][: len(valid)])


def feeds_of(
    specs: Sequence[TensorSpec], memos: Sequence[Memo], tensors: Sequence[hbDNNTensor], ddr: Ddr
) -> list[Feed]:
    """Inputs of one run.

    An input of batch N takes one tensor, or N tensors of batch 1 at addresses of their own, which its first tensor's
    validShape tells.

    Raises:
        ModelError: INVALID_ARGUMENT, with the tensor and what is wrong with it.
    """
    feeds = []
    at = 0
    for spec, memo in zip(specs, memos, strict=True):
        first = nth(tensors, at, spec.name)
        batch = spec.valid_shape[0] if spec.valid_shape else 0
        if batch > 1 and first.properties.validShape.dimensionSize[0] == 1:
            part = one_of_batch(spec)
            parts = [feed_of(part, memo, nth(tensors, at + i, spec.name), ddr) for i in range(batch)]
            feeds.append(Feed(spec.name, None, lambda parts=parts: np.concatenate([array_of(p) for p in parts])))  # type: ignore[misc]
            at += batch
        else:
            feeds.append(feed_of(spec, memo, first, ddr))
            at += 1
    return feeds


def one_of_batch(spec: TensorSpec) -> TensorSpec:
    """Spec of one element of a batch, as its own tensor."""
    from dataclasses import replace

    batch = spec.valid_shape[0]
    return replace(
        spec,
        valid_shape=(1, *spec.valid_shape[1:]),
        aligned_shape=(1, *spec.aligned_shape[1:]),
        graph_shape=(1, *spec.graph_shape[1:]),
        aligned_bytes=DYNAMIC if spec.aligned_bytes == DYNAMIC else spec.aligned_bytes // batch,
    )


def array_of(feed: Feed) -> NDArray[Any]:
    """The array of an input, made now when it has to be."""
    if feed.make is not None:
        return feed.make()
    assert feed.array is not None  # noqa: S101 - a feed has one of the two
    return feed.array


def feed_of(spec: TensorSpec, memo: Memo, tensor: hbDNNTensor, ddr: Ddr) -> Feed:
    """One input.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    place = memo.place(spec, tensor, ddr, lambda view: _place(spec, view, ddr, is_input=True))
    if spec.tensor_type in NIBBLES:
        packed = over(ddr, place, np.dtype(np.uint8), ((prod(place.shape) + 1) // 2,))
        return Feed(spec.name, None, lambda: nibbles.unpack(packed, place.shape, spec.graph_dtype))
    if spec.graph_dtype == np.bool_:
        stored = over(ddr, place, np.dtype(np.uint8))
        return Feed(spec.name, None, lambda: stored != 0)  # a byte that is neither 0 nor 1 is no bool to the graph
    array = over(ddr, place, spec.graph_dtype)
    if place.stride is not None:
        return Feed(spec.name, None, lambda: np.ascontiguousarray(array))
    return Feed(spec.name, array)


def targets_of(
    specs: Sequence[TensorSpec], memos: Sequence[Memo], tensors: Sequence[hbDNNTensor], ddr: Ddr
) -> list[Target]:
    """Outputs of one run.

    Raises:
        ModelError: INVALID_ARGUMENT, with the tensor and what is wrong with it.
    """
    return [
        target_of(spec, memo, nth(tensors, at, spec.name), ddr)
        for at, (spec, memo) in enumerate(zip(specs, memos, strict=True))
    ]


def target_of(spec: TensorSpec, memo: Memo, tensor: hbDNNTensor, ddr: Ddr) -> Target:
    """One output.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    place = memo.place(spec, tensor, ddr, lambda view: _place(spec, view, ddr, is_input=False))
    if spec.is_dynamic:
        return Target(spec.name, None, lambda result: _deliver(spec, tensor, place, ddr, result))
    if spec.tensor_type in NIBBLES:
        packed = over(ddr, place, np.dtype(np.uint8), ((prod(place.shape) + 1) // 2,))
        return Target(spec.name, None, lambda result: nibbles.pack(result, packed))
    array = over(ddr, place, spec.graph_dtype)
    if place.stride is None:
        return Target(spec.name, array)

    def pad(result: NDArray[Any]) -> None:
        over(ddr, place, np.dtype(np.uint8), (place.padded_bytes,))[:] = 0
        array[...] = result

    return Target(spec.name, None, pad)


def over(ddr: Ddr, place: Place, dtype: np.dtype[Any], shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """Array over device memory; another shape than the place's is contiguous."""
    if place.offset < 0:
        return np.empty(place.shape if shape is None else shape, dtype)
    if shape is None:
        return np.ndarray(place.shape, dtype, ddr.bytes, place.offset, place.stride)
    return np.ndarray(shape, dtype, ddr.bytes, place.offset)


def nth(tensors: Sequence[hbDNNTensor], at: int, name: str) -> hbDNNTensor:
    """One tensor of the caller's array.

    Raises:
        ModelError: INVALID_ARGUMENT when the array is shorter, or holds something else.
    """
    try:
        found: object = tensors[at]
    except (IndexError, ValueError):
        found = None
    if not isinstance(found, hbDNNTensor):
        raise bad_argument(f"The array of tensors has no hbDNNTensor at index {at}, which is to be {name!r}.")
    return found


def _place(spec: TensorSpec, view: View, ddr: Ddr, *, is_input: bool) -> Place:
    """Check a caller's tensor against the spec; find where it lies."""
    if view.tensor_type != spec.tensor_type:
        raise bad_argument(
            f"The tensor {spec.name!r} has the tensorType {_type_name(view.tensor_type)}; the model says "
            f"{spec.tensor_type.name}. Only NV12 may be switched, to NV12_SEPARATE."
        )
    phy_addr, size_bytes = view.mems[0]
    if spec.is_dynamic and not is_input:
        return _dynamic_place(spec, phy_addr, size_bytes, ddr)
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
        return Place(-1, shape, None, 0, (), 0)
    if size_bytes < need:
        raise bad_argument(
            f"The tensor {spec.name!r} needs {need} bytes, and sysMem[0].memSize is {size_bytes}; allocate "
            "alignedByteSize bytes."
        )
    _check_address(spec, phy_addr)
    return Place(
        ddr.offset_of(phy_addr),
        shape,
        spec.stride if is_padded else None,
        need if is_padded else 0,
        ((phy_addr, need),),
        size_bytes,
    )


def _dynamic_place(spec: TensorSpec, phy_addr: int, size_bytes: int, ddr: Ddr) -> Place:
    if not size_bytes:
        return Place(-1, spec.valid_shape, None, 0, (), 0)
    _check_address(spec, phy_addr)
    return Place(ddr.offset_of(phy_addr), spec.valid_shape, None, 0, ((phy_addr, size_bytes),), size_bytes)


def _valid_shape(spec: TensorSpec, view: View) -> tuple[int, ...]:
    fits = len(view.valid) == len(spec.valid_shape) and all(
        given == size or (size == DYNAMIC and given >= 0)
        for given, size in zip(view.valid, spec.valid_shape, strict=True)
    )
    if fits:
        return view.valid
    what = (
        "fill in the sizes that are -1, and leave the others"
        if spec.is_dynamic
        else "leave it as hbDNNGetInputTensorProperties or hbDNNGetOutputTensorProperties filled it"
    )
    raise bad_argument(
        f"The tensor {spec.name!r} has the validShape {list(view.valid)}; the model says "
        f"{list(spec.valid_shape)}: {what}."
    )


def _check_address(spec: TensorSpec, phy_addr: int) -> None:
    if phy_addr % spec.graph_dtype.itemsize:
        raise bad_argument(
            f"The tensor {spec.name!r} lies at {phy_addr:#x}, which is no multiple of its element's "
            f"{spec.graph_dtype.itemsize} bytes."
        )


def _deliver(spec: TensorSpec, tensor: hbDNNTensor, place: Place, ddr: Ddr, result: NDArray[Any]) -> None:
    """Copy a result whose size the data decided, and say its size in the caller's structure."""
    is_nibble = spec.tensor_type in NIBBLES
    need = (result.size + 1) // 2 if is_nibble else result.nbytes
    if need > place.room_bytes:
        raise ModelError(
            Status.HB_DNN_RUN_TASK_FAILED,
            f"The output {spec.name!r} has {need} bytes for this input (shape {list(result.shape)}), and "
            f"sysMem[0].memSize is {place.room_bytes}; allocate that many.",
        )
    if result.ndim > HB_DNN_TENSOR_MAX_DIMENSIONS:
        raise ModelError(
            Status.HB_DNN_RUN_TASK_FAILED,
            f"The output {spec.name!r} has {result.ndim} dimensions; the API carries {HB_DNN_TENSOR_MAX_DIMENSIONS}.",
        )
    if need:
        if is_nibble:
            nibbles.pack(result, over(ddr, place, np.dtype(np.uint8), (need,)))
        else:
            over(ddr, place, spec.graph_dtype, result.shape)[...] = result
    properties = tensor.properties
    fill_shape(properties.validShape, result.shape)
    fill_shape(properties.alignedShape, result.shape)
    properties.alignedByteSize = need
    steps = (
        () if is_nibble else tuple(spec.graph_dtype.itemsize * prod(result.shape[i + 1 :]) for i in range(result.ndim))
    )
    properties.stride[:] = steps + (0,) * (HB_DNN_TENSOR_MAX_DIMENSIONS - len(steps))


def _type_name(number: int) -> str:
    return hbDNNDataType(number).name if number in hbDNNDataType else str(number)
