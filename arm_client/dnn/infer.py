"""One inference: the caller's tensors bound to a model, to be run later in a core's thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from arm_client.dnn.tensors import array_of, feeds_of, targets_of

if TYPE_CHECKING:
    from arm_client.dnn.executor import Stop
    from arm_client.dnn.runtime import Loaded
    from arm_client.dnn.tasks import Job
    from hbrt.ddr import Ddr
    from hbrt.dnn_types import hbDNNInferCtrlParam, hbDNNTensor


def job_of(
    loaded: Loaded,
    output: Sequence[hbDNNTensor],
    input: Sequence[hbDNNTensor],
    ctrl: hbDNNInferCtrlParam,
    ddr: Ddr,
) -> Job:
    """Check the tensors and bind them.

    Raises:
        ModelError: INVALID_ARGUMENT, with the tensor and what is wrong with it.
    """
    model = loaded.model
    feeds = feeds_of(model.inputs, loaded.input_memos, input, ddr)
    targets = targets_of(model.outputs, loaded.output_memos, output, ddr)

    def run(stop: Stop) -> None:
        arrays = {feed.name: array_of(feed) for feed in feeds}
        results = model.plan.run(arrays, {target.name: target.array for target in targets}, stop, ctrl)
        for target in targets:
            if target.finish is not None:
                target.finish(results[target.name])

    return run
