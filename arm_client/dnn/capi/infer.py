"""One inference: the caller's tensors bound to a model, to be run later in a core's thread."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from arm_client.dnn.capi.runtime import look_at_inputs
from arm_client.dnn.tensors.binding import Feed, Take, Target, array_of, feeds_of, targets_of
from hbrt.models.errors import GraphError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from arm_client.dnn.capi.runtime import Loaded
    from arm_client.dnn.cores.tasks import Inference
    from arm_client.dnn.run.plan import Plan
    from arm_client.dnn.tensors.tensor_memory import Ranges
    from hbrt.ddr.file import Ddr
    from hbrt.dnn_types import hbDNNInferCtrlParam, hbDNNTensor
    from hbrt.models.run.executor import Begun
    from hbrt.models.run.stop import Stop


class BoundTensors(NamedTuple):
    """A model's tensors, bound to memory."""

    feeds: list[Feed]
    targets: list[Target]


def bound_tensors(
    loaded: Loaded,
    output: Sequence[hbDNNTensor],
    input: Sequence[hbDNNTensor],
    ddr: Ddr,
    takes: Sequence[Take | None] = (),
) -> BoundTensors:
    """Check the tensors and bind them; ``takes`` as of ``targets_of``.

    Raises:
        ModelError: INVALID_ARGUMENT, with the tensor and what is wrong with it.
    """
    model = loaded.model
    feeds = feeds_of(model.inputs, loaded.input_caches, input, ddr)
    return BoundTensors(feeds, targets_of(model.outputs, loaded.output_caches, output, ddr, takes))


def job_of(loaded: Loaded, bound: BoundTensors, ctrl: hbDNNInferCtrlParam) -> Inference:
    """An inference over the tensors.

    Raises:
        ModelError: as ``look_at_inputs``.
    """
    look_at_inputs(tuple(one for feed in bound.feeds for one in feed.ranges))
    return _Inference(loaded.model.plan, *bound, ctrl)


@dataclass(eq=False, slots=True)
class _Inference:
    """A model and the tensors of one run."""

    plan: Plan
    feeds: list[Feed]
    targets: list[Target]
    ctrl: hbDNNInferCtrlParam
    begun: Begun | None = None

    def begin(self, stop: Stop, begun: Begun) -> None:
        """Pass it to the board's cores; if that fails, ``__call__`` tries again and reports why.

        Not if inputs must be prepared first, which takes a while: another thread does that.
        """
        if any(feed.make is not None for feed in self.feeds):
            return
        self.begun = begun
        with suppress(GraphError):
            self.plan.begin(begun, self._arrays(), self._wanted(), stop, self.ctrl)

    def __call__(self, stop: Stop) -> None:
        begun = self.begun
        if begun is not None and begun.bound is not None:
            results = self.plan.run({}, self._wanted(), stop, self.ctrl, begun)
        else:
            results = self.plan.run(self._arrays(), self._wanted(), stop, self.ctrl)
        for target in self.targets:
            if target.finish is not None:
                target.finish(results[target.name])

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {feed.name: array_of(feed) for feed in self.feeds}

    def _wanted(self) -> dict[str, NDArray[Any] | None]:
        return {target.name: target.array for target in self.targets}

    def ranges(self) -> Ranges:
        """The memory of the tensors."""
        inputs = tuple(one for feed in self.feeds for one in feed.ranges)
        return inputs + tuple(one for target in self.targets for one in target.ranges)
