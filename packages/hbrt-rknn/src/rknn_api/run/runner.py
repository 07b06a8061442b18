"""A runnable model file: its plan, with the images of a batch in parallel on several cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from arm_client.accelerator.on_board import Schedule, is_inline, load
from hbrt.models.errors import GraphError, Reason
from hbrt.models.run.executor import Plan
from hbrt.models.run.layer import Device
from hbrt.models.run.session import LocalSession
from hbrt.models.run.stop import Stop
from rknn_api.container import GRAPH, Container
from rknn_api.errors import RknnError, RknnStatus
from rknn_api.run.board import why_in_process
from rknn_api.run.custom_ops import CustomOps, HostMemory
from rknn_api.run.feeds import graph_views, layouts_of, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto

_CODES = {
    Reason.NO_MEMORY: RknnStatus.RKNN_ERR_MALLOC_FAIL,
    Reason.RUN_FAILED: RknnStatus.RKNN_ERR_FAIL,
}


def refused(error: GraphError) -> RknnError:
    """The return code for a graph that was rejected or whose run failed."""
    return RknnError(_CODES.get(error.reason, RknnStatus.RKNN_ERR_MODEL_INVALID), str(error))


class GraphRunner:
    """A graph with the program's ops, by name, for an in-memory model."""

    def __init__(
        self,
        graph: ModelProto,
        label: str,
        ops: CustomOps,
        threads: int | None = None,
        device: Callable[[], Device] = HostMemory,
        *,
        is_on_board: bool = False,
    ) -> None:
        """Prepare it.

        Args:
            graph: Kept for rebuilding.
            label: Its name in messages.
            ops: The program's ops.
            threads: Threads of one run; half of the CPUs if None.
            device: Allocates memory for the inputs and outputs of the ops.
            is_on_board: Whether to run it on the NPU cores of this process's board, where possible.

        Raises:
            RknnError: RKNN_ERR_MODEL_INVALID: onnxruntime or an op rejects it, and why.
        """
        self._outputs = [value.name for value in graph.graph.output]
        self._plan: Plan | ModelProto = graph
        if not self._outputs:
            return  # there is nothing to compute, which onnxruntime rejects
        try:
            sessions = load if is_on_board else LocalSession
            self._plan = Plan(graph, label, registry=ops, device=device, threads=threads, sessions=sessions)
        except GraphError as error:
            raise refused(error) from error

    def read(self) -> ModelProto:
        """The graph, read again from its single stored copy, since its weights may be large."""
        return self._plan.read() if isinstance(self._plan, Plan) else self._plan

    def run(
        self,
        feeds: dict[str, NDArray[Any]],
        schedule: Schedule | None = None,
        places: Mapping[str, NDArray[Any]] | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Run once; may be called by several threads.

        Args:
            feeds: The inputs.
            schedule: The board's cores to use, and the priority; any if None.
            places: C-contiguous arrays for outputs; the others get new ones.

        Raises:
            RknnError: RKNN_ERR_FAIL: it failed, and why.
        """
        if not isinstance(self._plan, Plan):
            return {}
        try:
            return self._plan.run(feeds, {**dict.fromkeys(self._outputs), **(places or {})}, Stop(), schedule)
        except GraphError as error:
            raise refused(error) from error

    def close(self) -> None:
        """Release what it holds."""
        if isinstance(self._plan, Plan):
            self._plan.close()


class Runner:
    """Run a model file for a program.

    Attributes:
        note: Why it runs in this process although a board was requested; "" if it runs on the board.
    """

    def __init__(self, container: Container, ops: CustomOps, cores: int = 1, mask: int | None = None) -> None:
        """Prepare it.

        Args:
            container: The model.
            ops: The program's.
            cores: Number of batch images that run concurrently.
            mask: NPU cores of the board that run it, 0 for any; None runs it in this process, as does a board with a
                different chip.

        Raises:
            RknnError: RKNN_ERR_MODEL_INVALID: it cannot be run, and why.
        """
        self.metadata = container.metadata
        missing = [name for name in self.metadata.custom_ops if name not in ops]
        if missing:
            raise RknnError(
                RknnStatus.RKNN_ERR_MODEL_INVALID,
                f"The model has the custom ops {', '.join(missing)}, for which nothing is registered.",
            )
        if self.metadata.remove_weight:
            raise RknnError(
                RknnStatus.RKNN_ERR_MODEL_INVALID,
                "The model was exported without its weights (remove_weight); it runs next to a model that has them, by "
                "the flag RKNN_FLAG_SHARE_WEIGHT_MEM of the C API.",
            )
        graph = container.proto()
        self.note = why_in_process(self.metadata.target_platform) if mask is not None and not is_inline() else ""
        is_on_board = mask is not None and not is_inline() and not self.note
        label = f"the model {self.metadata.name!r}"
        self._graph = GraphRunner(graph, label, ops, is_on_board=is_on_board)
        self._schedule = Schedule(mask or 0)
        workers = min(self.metadata.rknn_batch_size, cores)
        self._pool = ThreadPoolExecutor(workers, "rknn_batch") if workers > 1 else None

    def run(self, inputs: Sequence[Any], data_format: Any = None) -> list[NDArray[Any]]:
        """Run once.

        Args:
            inputs: Arrays, one for each input; the images of a batch are stacked along the first dimension.
            data_format: "nhwc" (the default for None) or "nchw", or a list of them.

        Returns:
            Arrays of the outputs, in the model's layout and order.

        Raises:
            RknnError: RKNN_ERR_INPUT_INVALID: an input does not fit; RKNN_ERR_FAIL: the run failed.
        """
        views = graph_views(self.metadata, inputs, layouts_of(data_format, len(self.metadata.inputs)))
        batch = self.metadata.rknn_batch_size
        if batch == 1:
            return self._one(views)
        images = zip(*(np.split(array, batch) for array in views), strict=True)
        results = list(self._pool.map(self._one, images) if self._pool is not None else map(self._one, images))
        return [np.concatenate([np.atleast_1d(array) for array in one]) for one in zip(*results, strict=True)]

    def read(self) -> Container:
        """The model, read again from its single stored copy; also after ``close``."""
        return Container(self.metadata, {GRAPH: self._graph.read().SerializeToString()})

    def _one(self, views: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        feeds = {info.name: typed(view, info) for info, view in zip(self.metadata.inputs, views, strict=True)}
        found = self._graph.run(feeds, self._schedule)
        return [found[info.name] for info in self.metadata.outputs]

    def close(self) -> None:
        """Release what it holds."""
        if self._pool is not None:
            self._pool.shutdown()
        self._graph.close()
