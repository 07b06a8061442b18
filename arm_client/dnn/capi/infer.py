"""One inference: the caller's tensors bound to a model, to be run later in a core's thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arm_client.dnn.capi.runtime import look_at_inputs
from arm_client.dnn.tensors.binding import Feed, Take, Target, array_of, feeds_of, targets_of

if TYPE_CHECKING:
    from arm_client.dnn.capi.runtime import Loaded
    from arm_client.dnn.cores.tasks import Job
    from arm_client.dnn.run.plan import Plan
    from arm_client.dnn.tensors.tensor_memory import Ranges
    from hbrt.ddr.file import Ddr
    from hbrt.dnn_types import hbDNNInferCtrlParam, hbDNNTensor
    from hbrt.models.run.stop import Stop


def job_of(
    loaded: Loaded,
    output: Sequence[hbDNNTensor],
    input: Sequence[hbDNNTensor],
    ctrl: hbDNNInferCtrlParam,
    ddr: Ddr,
    takes: Sequence[Take | None] = (),
) -> Job:
    """Check the tensors and bind them; ``takes`` as of ``targets_of``.

    Raises:
        ModelError: INVALID_ARGUMENT, with the tensor and what is wrong with it.
    """
    model = loaded.model
    feeds = feeds_of(model.inputs, loaded.input_caches, input, ddr)
    targets = targets_of(model.outputs, loaded.output_caches, output, ddr, takes)
    look_at_inputs(tuple(one for feed in feeds for one in feed.ranges))
    return _Inference(model.plan, feeds, targets, ctrl)


@dataclass(frozen=True, eq=False, slots=True)
class _Inference:
    """A model and the tensors of one run."""

    plan: Plan
    feeds: list[Feed]
    targets: list[Target]
    ctrl: hbDNNInferCtrlParam

    def __call__(self, stop: Stop) -> None:
        arrays = {feed.name: array_of(feed) for feed in self.feeds}
        wanted = {target.name: target.array for target in self.targets}
        results = self.plan.run(arrays, wanted, stop, self.ctrl)
        for target in self.targets:
            if target.finish is not None:
                target.finish(results[target.name])

    def ranges(self) -> Ranges:
        """The memory of the tensors."""
        inputs = tuple(one for feed in self.feeds for one in feed.ranges)
        return inputs + tuple(one for target in self.targets for one in target.ranges)
