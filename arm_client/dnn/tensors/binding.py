"""Map hbDNNTensor structures to arrays in device memory, and back.

The BPU reads DDR: every array here is at the tensor's physical address, never in the CPU's cache image, so that a
missing CLEAN or INVALIDATE shows in strict cache mode. A tensor that needs no conversion is passed to the graph in
place.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from arm_client.dnn.errors import ModelError, bad_argument
from arm_client.dnn.spec.dtypes import NIBBLES
from arm_client.dnn.spec.properties import fill_shape
from arm_client.dnn.spec.spec import TensorSpec
from arm_client.dnn.tensors.image_feeds import whole_pictures
from arm_client.dnn.tensors.tensor_memory import Ranges, TensorBinding, array_at, binding_of, generation_of
from hbrt.dnn_types import HB_DNN_TENSOR_MAX_DIMENSIONS, hbDNNTensor
from hbrt.models.spec import nibbles
from hbrt.models.spec.spec import DYNAMIC
from hbrt.status import Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hbrt.ddr.file import Ddr

_MAX_KEPT = 64  # bindings of one model; a program has a few buffers that it uses in turn

Take = Callable[["NDArray[Any]"], None]
"""Receives the result of a dynamic output: an array that later runs leave alone."""


@dataclass(slots=True)
class Feed:
    """One input of one run: an array ready for use, or a function that makes it in the worker's thread.

    ``ranges`` are its (physical address, bytes) pairs.
    """

    name: str
    array: NDArray[Any] | None
    make: Callable[[], NDArray[Any]] | None = None
    ranges: Ranges = ()


@dataclass(slots=True)
class Target:
    """One output of one run: an array for the graph to write, and what to do with the result.

    ``ranges`` are its (physical address, bytes) pairs.
    """

    name: str
    array: NDArray[Any] | None
    finish: Callable[[NDArray[Any]], None] | None = None
    ranges: Ranges = ()


class BoundTensors:
    """The tensors of a run, bound to memory.

    Attributes:
        arrays: Inputs by name; None when some are made when the run begins.
        targets: Outputs, in order.
        wanted: Outputs by name, as ``Plan.run`` takes them.
        inputs: The memory of the inputs.
        ranges: The memory of all.
    """

    __slots__ = ("_feeds", "arrays", "inputs", "ranges", "targets", "wanted")

    def __init__(self, feeds: Sequence[Feed], targets: Sequence[Target]) -> None:
        self._feeds = feeds
        self.targets = targets
        self.arrays = None if any(feed.make is not None for feed in feeds) else self.made()
        self.wanted = {target.name: target.array for target in targets}
        self.inputs = tuple(one for feed in feeds for one in feed.ranges)
        self.ranges = self.inputs + tuple(one for target in targets for one in target.ranges)

    def made(self) -> dict[str, NDArray[Any]]:
        """Return the inputs by name, converting them now if necessary."""
        return {feed.name: array_of(feed) for feed in self._feeds}


class Bindings:
    """A model's bound tensors, keyed by their structures' bytes; bound again after any allocation or free.

    Args:
        inputs: What the model says of its inputs.
        outputs: And of its outputs.
        takes: As of ``targets_of``.
    """

    def __init__(
        self, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], takes: Sequence[Take | None] = ()
    ) -> None:
        self._inputs, self._outputs, self._takes = inputs, outputs, takes
        self._may_be_split = any(spec.valid_shape[:1] > (1,) for spec in inputs)  # into tensors of batch 1
        is_taken = [bool(takes) and takes[at] is not None for at in range(len(outputs))]
        self._open = [at for at, spec in enumerate(outputs) if spec.is_dynamic and not is_taken[at]]
        self._known: dict[object, tuple[Ddr, int, BoundTensors]] = {}

    def of(self, output: Sequence[hbDNNTensor], input: Sequence[hbDNNTensor], ddr: Ddr) -> BoundTensors:
        """Check the caller's tensors and bind them, unless they are unchanged since an earlier run.

        Raises:
            ModelError: INVALID_ARGUMENT, with the tensor and what is wrong with it.
        """
        if self._may_be_split and not isinstance(input, ctypes.Array):  # nobody knows how many there are
            return self._bound(output, input, ddr)
        # A run writes actual sizes into the structures of open outputs.
        places = [ctypes.addressof(nth(output, at, self._outputs[at].name)) for at in self._open] if self._open else ()
        key = (_bytes_of(input, self._inputs), _bytes_of(output, self._outputs), *places)
        generation = generation_of(ddr)
        known = self._known.get(key)
        if known is not None and known[0] is ddr and known[1] == generation:
            return known[2]
        bound = self._bound(output, input, ddr)
        if len(self._known) >= _MAX_KEPT or (known is not None and known[0] is not ddr):
            self._known.clear()
        self._known[key] = (ddr, generation, bound)
        return bound

    def _bound(self, output: Sequence[hbDNNTensor], input: Sequence[hbDNNTensor], ddr: Ddr) -> BoundTensors:
        feeds = feeds_of(self._inputs, input, ddr)
        return BoundTensors(feeds, targets_of(self._outputs, output, ddr, self._takes))


def _bytes_of(tensors: Sequence[hbDNNTensor], specs: Sequence[TensorSpec]) -> bytes:
    if isinstance(tensors, ctypes.Array):
        return bytes(tensors)
    return b"".join(bytes(nth(tensors, at, spec.name)) for at, spec in enumerate(specs))


def blocks_of(tensor: hbDNNTensor) -> Ranges:
    """The memory that a picture's tensor names."""
    return tuple((mem.phyAddr, mem.memSize) for mem in tensor.sysMem[:2] if mem.phyAddr)


def feeds_of(specs: Sequence[TensorSpec], tensors: Sequence[hbDNNTensor], ddr: Ddr) -> list[Feed]:
    """Inputs of one run.

    An input of batch N takes one tensor, or N tensors of batch 1 at separate addresses; the first tensor's validShape
    decides.

    Raises:
        ModelError: INVALID_ARGUMENT, naming the tensor and the problem.
    """
    feeds = []
    at = 0
    for spec in specs:
        first = nth(tensors, at, spec.name)
        batch = spec.valid_shape[0] if spec.valid_shape else 0
        if batch > 1 and first.properties.validShape.dimensionSize[0] == 1:
            part = one_of_batch(spec)
            parts = [feed_of(part, nth(tensors, at + i, spec.name), ddr) for i in range(batch)]
            ranges = tuple(one for part in parts for one in part.ranges)
            whole = lambda parts=parts: np.concatenate([array_of(part) for part in parts])  # noqa: E731
            feeds.append(Feed(spec.name, None, whole, ranges))
            at += batch
        else:
            feeds.append(feed_of(spec, first, ddr))
            at += 1
    return feeds


def one_of_batch(spec: TensorSpec) -> TensorSpec:
    """Return the spec of one batch element as its own tensor."""
    batch = spec.valid_shape[0]
    return replace(
        spec,
        valid_shape=(1, *spec.valid_shape[1:]),
        aligned_shape=(1, *spec.aligned_shape[1:]),
        graph_shape=(1, *spec.graph_shape[1:]),
        aligned_bytes=DYNAMIC if spec.aligned_bytes == DYNAMIC else spec.aligned_bytes // batch,
    )


def array_of(feed: Feed) -> NDArray[Any]:
    """Return the array of an input, converting it now if necessary."""
    if feed.make is not None:
        return feed.make()
    assert feed.array is not None  # noqa: S101 - a feed has one of the two
    return feed.array


def feed_of(spec: TensorSpec, tensor: hbDNNTensor, ddr: Ddr) -> Feed:
    """One input.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    if spec.image is not None:
        return Feed(spec.name, None, whole_pictures(spec, tensor, ddr), blocks_of(tensor))
    binding = binding_of(spec, tensor, ddr, is_input=True)
    if spec.tensor_type in NIBBLES:
        packed = array_at(ddr, binding, np.dtype(np.uint8), ((prod(binding.shape) + 1) // 2,))
        return Feed(spec.name, None, lambda: nibbles.unpack(packed, binding.shape, spec.graph_dtype), binding.ranges)
    if spec.graph_dtype == np.bool_:
        stored = array_at(ddr, binding, np.dtype(np.uint8))
        # The graph's bools must be 0 or 1. A scalar stays an array.
        return Feed(spec.name, None, lambda: np.asarray(stored != 0), binding.ranges)
    array = array_at(ddr, binding, spec.graph_dtype)
    if binding.stride is not None:
        return Feed(spec.name, None, lambda: np.ascontiguousarray(array), binding.ranges)
    return Feed(spec.name, array, None, binding.ranges)


def targets_of(
    specs: Sequence[TensorSpec], tensors: Sequence[hbDNNTensor], ddr: Ddr, takes: Sequence[Take | None] = ()
) -> list[Target]:
    """Bind the outputs of one run.

    Args:
        specs: What the model says of them.
        tensors: The caller's.
        ddr: They lie in it.
        takes: By output: what takes its result instead of its tensor; None, or no entry, for nothing.

    Raises:
        ModelError: INVALID_ARGUMENT, naming the tensor and the problem.
    """
    return [
        Target(spec.name, None, take)
        if (take := takes[at] if takes else None) is not None
        else target_of(spec, nth(tensors, at, spec.name), ddr)
        for at, spec in enumerate(specs)
    ]


def target_of(spec: TensorSpec, tensor: hbDNNTensor, ddr: Ddr) -> Target:
    """One output.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    binding = binding_of(spec, tensor, ddr, is_input=False)
    if spec.is_dynamic:
        return Target(spec.name, None, lambda result: _deliver(spec, tensor, binding, ddr, result), binding.ranges)
    if spec.tensor_type in NIBBLES:
        packed = array_at(ddr, binding, np.dtype(np.uint8), ((prod(binding.shape) + 1) // 2,))
        return Target(spec.name, None, lambda result: nibbles.pack(result, packed), binding.ranges)
    array = array_at(ddr, binding, spec.graph_dtype)
    if binding.stride is None:
        return Target(spec.name, array, None, binding.ranges)

    def pad(result: NDArray[Any]) -> None:
        array_at(ddr, binding, np.dtype(np.uint8), (binding.padded_bytes,))[:] = 0
        array[...] = result

    return Target(spec.name, None, pad, binding.ranges)


def nth(tensors: Sequence[hbDNNTensor], at: int, name: str) -> hbDNNTensor:
    """Return one tensor of the caller's array.

    Raises:
        ModelError: INVALID_ARGUMENT if the array is too short, or the element is something else.
    """
    try:
        found: object = tensors[at]
    except (IndexError, ValueError):
        found = None
    if not isinstance(found, hbDNNTensor):
        raise bad_argument(f"The array of tensors has no hbDNNTensor at index {at}, which should be {name!r}.")
    return found


def _deliver(spec: TensorSpec, tensor: hbDNNTensor, binding: TensorBinding, ddr: Ddr, result: NDArray[Any]) -> None:
    """Copy a dynamic result, and write its size into the caller's structure."""
    is_nibble = spec.tensor_type in NIBBLES
    need = (result.size + 1) // 2 if is_nibble else result.nbytes
    if need > binding.room_bytes:
        tensor.properties.alignedByteSize = need  # so that the caller can allocate enough and infer again
        raise ModelError(
            Status.HB_DNN_RUN_TASK_FAILED,
            f"The output {spec.name!r} has {need} bytes for this input (shape {list(result.shape)}), but "
            f"sysMem[0].memSize is {binding.room_bytes}; allocate that many.",
        )
    if result.ndim > HB_DNN_TENSOR_MAX_DIMENSIONS:
        raise ModelError(
            Status.HB_DNN_RUN_TASK_FAILED,
            f"The output {spec.name!r} has {result.ndim} dimensions; the API allows {HB_DNN_TENSOR_MAX_DIMENSIONS}.",
        )
    if need:
        if is_nibble:
            nibbles.pack(result, array_at(ddr, binding, np.dtype(np.uint8), (need,)))
        else:
            array_at(ddr, binding, spec.graph_dtype, result.shape)[...] = result
    properties = tensor.properties
    fill_shape(properties.validShape, result.shape)
    fill_shape(properties.alignedShape, result.shape)
    properties.alignedByteSize = need
    steps = (
        () if is_nibble else tuple(spec.graph_dtype.itemsize * prod(result.shape[i + 1 :]) for i in range(result.ndim))
    )
    properties.stride[:] = steps + (0,) * (HB_DNN_TENSOR_MAX_DIMENSIONS - len(steps))
