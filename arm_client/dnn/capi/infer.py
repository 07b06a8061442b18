"""One inference: the caller's tensors bound to a model, to be run later in a core's thread."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from arm_client.dnn.capi.runtime import look_at_inputs
from hbrt.models.errors import GraphError

if TYPE_CHECKING:
    from arm_client.dnn.capi.runtime import Loaded
    from arm_client.dnn.cores.tasks import Inference
    from arm_client.dnn.run.plan import Plan
    from arm_client.dnn.tensors.binding import BoundTensors
    from arm_client.dnn.tensors.tensor_memory import Ranges
    from hbrt.dnn_types import hbDNNInferCtrlParam
    from hbrt.models.run.executor import Begun
    from hbrt.models.run.stop import Stop


def job_of(loaded: Loaded, bound: BoundTensors, ctrl: hbDNNInferCtrlParam) -> Inference:
    """Return an inference over the tensors.

    Raises:
        ModelError: as for ``look_at_inputs``.
    """
    look_at_inputs(bound.inputs)
    return _Inference(loaded.model.plan, bound, ctrl)


class _Inference:
    """A model and the tensors of one run."""

    __slots__ = ("_begun", "_bound", "_ctrl", "_plan")

    def __init__(self, plan: Plan, bound: BoundTensors, ctrl: hbDNNInferCtrlParam) -> None:
        self._plan, self._bound, self._ctrl = plan, bound, ctrl
        self._begun: Begun | None = None

    def begin(self, stop: Stop, begun: Begun) -> None:
        """Pass it to the board's cores; if that fails, ``__call__`` tries again and reports why.

        Skipped if inputs must be prepared first, which takes a while and is done in another thread.
        """
        if self._bound.arrays is None:
            return
        self._begun = begun
        with suppress(GraphError):
            self._plan.begin(begun, self._bound.arrays, self._bound.wanted, stop, self._ctrl)

    def __call__(self, stop: Stop) -> None:
        bound, begun = self._bound, self._begun
        if begun is not None and begun.bound is not None:
            results = self._plan.run({}, bound.wanted, stop, self._ctrl, begun)
        else:
            results = self._plan.run(bound.arrays or bound.made(), bound.wanted, stop, self._ctrl)
        for target in bound.targets:
            if target.finish is not None:
                target.finish(results[target.name])

    def ranges(self) -> Ranges:
        """The memory of the tensors."""
        return self._bound.ranges
