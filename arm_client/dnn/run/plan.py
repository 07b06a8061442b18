"""How this API runs one model: the executor with the program's layers, their memory, and this API's errors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from arm_client.accelerator.on_board import Schedule, load
from arm_client.dnn.environment import warn
from arm_client.dnn.errors import of_graph
from arm_client.dnn.layers.adapter import adapted
from arm_client.dnn.run.device import Device
from hbrt.models.errors import GraphError
from hbrt.models.run import executor
from hbrt.models.run.executor import Begun

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto

    from hbrt.dnn_types import hbDNNInferCtrlParam
    from hbrt.models.run.stop import Stop


class Plan(executor.Plan):
    """A plan that uses the layers registered with hbDNNRegisterLayerCreator."""

    def __init__(self, proto: ModelProto, label: str, notes: Sequence[str] = ()) -> None:
        """Prepare a checked model, which the plan keeps so that it can rebuild.

        Args:
            proto: The model.
            label: Its name in error messages.
            notes: Earlier notes on the model; logged now, and listed with the plan's own.

        Raises:
            ModelError: INVALID_MODEL or INCOMPATIBLE_MODEL.
        """
        self._given = tuple(notes)
        self._label = label
        try:
            super().__init__(
                proto,
                label,
                registry=adapted,
                device=Device,
                threads=_threads(),
                sessions=partial(load, schedule=_schedule),
            )
        except GraphError as error:
            raise of_graph(error) from error
        self.announce(self._given)

    @property
    def notes(self) -> list[str]:
        """The notes passed in, and which nodes stay in onnxruntime although a layer has their type, and why."""
        return [*self._given, *super().notes]

    def run(
        self,
        feeds: dict[str, NDArray[Any]],
        outputs: dict[str, NDArray[Any] | None],
        stop: Stop,
        ctrl: hbDNNInferCtrlParam | None = None,
        begun: Begun | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Like the executor's, with this API's errors.

        Raises:
            ModelError: RUN_TASK_FAILED with the reason; INCOMPATIBLE_MODEL if the model can no longer be built because
                layers were registered or unregistered meanwhile.
        """
        try:
            return super().run(feeds, outputs, stop, ctrl, begun)
        except GraphError as error:
            raise of_graph(error) from error

    def announce(self, notes: Sequence[str]) -> None:
        """Log notes."""
        for text in notes:
            warn(f"{self._label}: {text}.")


def _schedule(ctrl: hbDNNInferCtrlParam) -> Schedule:
    return Schedule(ctrl.bpuCoreId, ctrl.priority, ctrl.customId)


def _threads() -> int | None:
    """HB_MAX_THREAD_NUM."""
    text = os.environ.get("HB_MAX_THREAD_NUM", "")
    return int(text) if text.isdecimal() and int(text) > 0 else None
