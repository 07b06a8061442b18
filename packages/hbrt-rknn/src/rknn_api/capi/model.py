"""A loaded model, shared by the contexts of rknn_dup_context: its graph, tensors by set of shapes, sizes, runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from hbrt.models.run.layer import Device
from hbrt.models.spec.graph import Graph
from rknn_api import planning
from rknn_api.capi.attributes import Side
from rknn_api.container import GRAPH, Container
from rknn_api.errors import RknnError, RknnStatus, invalid_parameter
from rknn_api.layouts import rules_of
from rknn_api.run.c_ops import COp, checked
from rknn_api.run.custom_ops import CustomOps, HostMemory
from rknn_api.run.feeds import batched
from rknn_api.run.runner import GraphRunner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from onnx import ModelProto

    from arm_client.accelerator.on_board import Schedule
    from rknn_api.types import rknn_custom_op

_DATA = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")


class RknnModel:
    """A runnable model file.

    Attributes:
        metadata: Its description.
        rules: Layouts of its chip.
    """

    def __init__(
        self,
        container: Container,
        label: str,
        device: Callable[[], Device] = HostMemory,
        *,
        is_run: bool = True,
        weights_of: RknnModel | None = None,
    ) -> None:
        """Prepare it.

        Args:
            container: The file.
            label: Its name in messages.
            device: Allocates memory for the inputs and outputs of the program's ops.
            is_run: Whether it will be run, not only queried.
            weights_of: The model whose weights it shares.

        Raises:
            RknnError: RKNN_ERR_MODEL_INVALID: it cannot be run, and why.
        """
        if is_run and container.metadata.remove_weight:
            container = _with_weights(container, weights_of)
        self.metadata = container.metadata
        self._container: Container | None = container  # until the graph is kept elsewhere
        self.rules = rules_of(self.metadata.target_platform)
        self._label, self._device, self._is_run = label, device, is_run
        self._ops, self._registered = CustomOps(), list[COp]()
        self._runner: GraphRunner | None = None
        self._lock = threading.Lock()
        if is_run and not self.metadata.custom_ops:
            self._runner = self._graph_runner()
            self._container = None
        else:
            container.proto()  # rejects an invalid one
        self._pool = ThreadPoolExecutor(3, "rknn_batch") if is_run and self.metadata.rknn_batch_size > 1 else None
        self.users = 0
        self._sides: dict[tuple[int, bool], list[Side]] = {}

    @property
    def proto(self) -> ModelProto:
        """Its graph, read again: a context keeps no weights besides those on the board."""
        if self._container is not None:
            return self._container.proto()
        assert self._runner is not None  # noqa: S101 - it has replaced the container
        return self._runner.read()

    def _graph_runner(self) -> GraphRunner:
        return GraphRunner(self.proto, self._label, self._ops, device=self._device, is_on_board=True)

    # -- the program's ops

    def register(self, ops: Sequence[rknn_custom_op]) -> None:
        """Register ops, all or none, and call init for each of their nodes.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: one is incomplete; the message says how; RKNN_ERR_FAIL: its init failed,
                or it
                already exists;
                RKNN_ERR_MODEL_INVALID: the model cannot be run with it.
        """
        proto = self.proto
        known = {node.op_type for node in proto.graph.node}
        names = [checked(op, known) for op in ops]
        if twice := [name for at, name in enumerate(names) if name in self._ops or name in names[:at]]:
            raise RknnError(
                RknnStatus.RKNN_ERR_FAIL,
                f"{twice[0]!r} is already registered, for this context or the one that it duplicates.",
            )
        graph, made = Graph(proto), list[COp]()
        try:
            for name, op in zip(names, ops, strict=True):
                made.append(COp(op, name, graph))
        except RknnError:
            for one in made:
                one.close()
            raise
        for one in made:
            self._ops.add(one.op_type, one, one.layer, one.close)
        self._registered += made
        self.prepare()

    def shared(self) -> RknnModel:
        """The model for another context: this one, or a separate one if a program's ops belong to a context."""
        if self._container is None or not self.metadata.custom_ops:
            return self
        twin = RknnModel(self._container, self._label, self._device, is_run=self._is_run)
        if self._registered:
            twin.register([one.op for one in self._registered])
        return twin

    def prepare(self) -> str:
        """Prepare it for running once all its ops are registered; returns the missing ones, or "".

        Raises:
            RknnError: RKNN_ERR_MODEL_INVALID: it cannot be run, and why.
        """
        missing = [name for name in self.metadata.custom_ops if name not in self._ops]
        with self._lock:
            if self._is_run and self._runner is None and not missing:
                self._runner = self._graph_runner()
        return ", ".join(missing)

    @property
    def sets(self) -> int:
        """Number of sets of shapes; 0 for a model with one shape."""
        return len(self.metadata.dynamic_input)

    def sides(self, at: int, *, is_input: bool) -> list[Side]:
        """The inputs or outputs at a set of shapes; the largest is the first."""
        known = self._sides.get((at, is_input))
        if known is None:
            known = self._sides[at, is_input] = self._sides_at(at, is_input=is_input)
        return known

    def _sides_at(self, at: int, *, is_input: bool) -> list[Side]:
        meta = self.metadata
        infos = meta.inputs if is_input else meta.outputs
        dynamic = meta.dynamic_input if is_input else meta.dynamic_output
        shapes = dynamic[at] if dynamic else tuple(one.shape for one in infos)
        return [
            Side(info, batched(tuple(shape), meta.rknn_batch_size), is_input)
            for info, shape in zip(infos, shapes, strict=True)
        ]

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes of its weights."""
        return planning.weight_bytes(self.proto)

    @cached_property
    def placed(self) -> list[planning.Placed]:
        """Its internal tensors, in the order of computation."""
        fused = self.metadata.extra.get("fused", {})
        return planning.place(planning.internal_tensors(self.proto, self.rules.c2, fused))

    @cached_property
    def internal_bytes(self) -> int:
        """Bytes of its internal tensors."""
        return planning.arena_bytes(self.placed)

    @property
    def edges(self) -> tuple[list[planning.Lifetime], list[planning.Lifetime]]:
        """Its inputs and its outputs as stored."""
        return self._edges(is_input=True), self._edges(is_input=False)

    def _edges(self, *, is_input: bool) -> list[planning.Lifetime]:
        user = "InputOperator" if is_input else "OutputOperator"
        return [
            planning.Lifetime(
                side.info.name,
                prod(side.shape) * np.dtype(side.info.stored).itemsize,
                0,
                0,
                user,
                side.info.stored,
                side.shape,
                side.shape,
            )
            for side in self.sides(0, is_input=is_input)
        ]

    def run(
        self,
        feeds: Sequence[NDArray[Any]],
        workers: int,
        schedule: Schedule,
        places: Sequence[NDArray[Any] | None] = (),
    ) -> list[NDArray[Any]]:
        """Run once; may be called by several threads.

        Args:
            feeds: The inputs in the graph's layout, with all images of a batch.
            workers: Number of batch images that run concurrently.
            schedule: The board's cores to use, and the priority.
            places: Destinations of the outputs; None or missing for a new array.

        Returns:
            The outputs: the given arrays, or new ones.

        Raises:
            RknnError: RKNN_ERR_FAIL: it failed, and why.
        """
        batch = self.metadata.rknn_batch_size
        wanted = [*places, *[None] * (len(self.metadata.outputs) - len(places))]
        if batch == 1:
            return self._one(feeds, schedule, wanted)
        wanted = [place if info.shape else None for info, place in zip(self.metadata.outputs, wanted, strict=True)]
        images, rooms = _by_image(feeds, batch), _by_image(wanted, batch)
        workers = min(workers, batch)

        def share(first: int) -> list[list[NDArray[Any]]]:
            return [self._one(images[at], schedule, rooms[at]) for at in range(first, batch, workers)]

        if self._pool is None or workers == 1:
            workers = 1
            made = [share(0)]
        else:
            made = list(self._pool.map(share, range(workers)))
        results = [made[at % workers][at // workers] for at in range(batch)]
        return [
            np.concatenate([np.atleast_1d(array) for array in one]) if place is None else place
            for one, place in zip(zip(*results, strict=True), wanted, strict=True)
        ]

    def _one(
        self, feeds: Sequence[NDArray[Any]], schedule: Schedule, places: Sequence[NDArray[Any] | None]
    ) -> list[NDArray[Any]]:
        if self._runner is None:
            raise RknnError(
                RknnStatus.RKNN_ERR_FAIL,
                "The context was created with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY: it cannot run the model.",
            )
        names = [info.name for info in self.metadata.outputs]
        named = {info.name: array for info, array in zip(self.metadata.inputs, feeds, strict=True)}
        given = {name: place for name, place in zip(names, places, strict=True) if place is not None}
        found = self._runner.run(named, schedule, given)
        return [found[name] for name in names]

    def close(self) -> None:
        """Release it once no context has it."""
        if self._pool is not None:
            self._pool.shutdown()
        if self._runner is not None:
            self._runner.close()
        self._ops.close()


def _by_image(arrays: Sequence[Any], batch: int) -> list[list[Any]]:
    """Each batch image's part of the arrays; None stays None."""
    parts = [[None] * batch if array is None else np.split(array, batch) for array in arrays]
    return [[part[at] for part in parts] for at in range(batch)]


def _with_weights(container: Container, owner: RknnModel | None) -> Container:
    if owner is None:
        raise RknnError(
            RknnStatus.RKNN_ERR_MODEL_INVALID,
            "The model was exported without its weights (remove_weight): pass RKNN_FLAG_SHARE_WEIGHT_MEM, and in "
            "extend.ctx the context of a model that has them.",
        )
    known = {one.name: one for one in owner.proto.graph.initializer}
    proto = container.proto()
    for tensor in proto.graph.initializer:
        if any(len(getattr(tensor, name)) for name in _DATA) or not int(np.prod(tensor.dims, dtype=np.int64)):
            continue
        found = known.get(tensor.name)
        if found is None or found.dims != tensor.dims or found.data_type != tensor.data_type:
            raise invalid_parameter(
                f"The context in extend.ctx has no weight {tensor.name!r} of {list(tensor.dims)}: its model differs."
            )
        tensor.CopyFrom(found)
    metadata = replace(container.metadata, remove_weight=False)
    return Container(metadata, {**container.sections, GRAPH: proto.SerializeToString()})
