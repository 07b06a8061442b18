"""A loaded model: its tensor specs, and the plan that runs it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from arm_client.dnn.errors import ModelError, invalid, one_line, refusals
from arm_client.dnn.loading import description_file
from arm_client.dnn.loading.model_specs import specify
from arm_client.dnn.profile import profile_log
from arm_client.dnn.run.plan import Plan
from hbrt.borders.interrupts import let_out
from hbrt.models.loading import model_file
from hbrt.models.spec.graph_edits import graph_inputs

if TYPE_CHECKING:
    from arm_client.dnn.spec.spec import TensorSpec


@dataclass(eq=False)
class LoadedModel:
    """One model.

    Attributes:
        name: The name that hbDNNGetModelHandle looks up.
        inputs: Specs of the inputs, in the graph's order, without initializers.
        outputs: Specs of the outputs, in the graph's order.
        plan: Runs it.
        is_retired: Whether no task may use it anymore.
        last_run_ns: Duration of the last task that ran only this model; 0 before the first.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    plan: Plan
    is_retired: bool = False
    last_run_ns: int = 0

    def close(self) -> None:
        """Free the resources of its layers; the model must no longer be running."""
        profile_log.finish(self.plan, self.name)
        self.plan.close()


def load(sources: list[Path | bytes | memoryview]) -> list[LoadedModel]:
    """Load models from files (a path) and memory (bytes), in order.

    Raises:
        ModelError: for the first model refused: CAN_NOT_OPEN_FILE, INVALID_MODEL or INCOMPATIBLE_MODEL with the reason.
    """
    models: list[LoadedModel] = []
    for at, source in enumerate(sources):
        try:
            model = _load_one(source, at)
        except BaseException:
            for other in models:
                other.close()
            raise
        taken = {other.name for other in models}
        number = 2
        name = model.name
        while model.name in taken:  # handles are looked up by name
            model.name = f"{name}_{number}"
            number += 1
        models.append(model)
    for model in models:
        profile_log.watch(model.plan, model.name)
    return models


@refusals()
def _load_one(source: Path | bytes | memoryview, at: int) -> LoadedModel:
    if isinstance(source, Path):
        read = model_file.read_file(source)
        label = str(source)
    else:
        label = f"the model in memory at index {at}"
        read = model_file.read_bytes(source, label)
    names = [value.name for value in graph_inputs(read.proto.graph)]
    description = description_file.of_model(read.path, read.proto, names)
    try:
        specified = specify(read.proto, description)
        plan = Plan(specified.proto, label, specified.notes)
    except (ModelError, MemoryError):
        raise
    except Exception as error:  # onnx may raise any exception for an inconsistent tensor
        let_out(error)
        raise invalid(f"{label} is damaged: {type(error).__name__}: {one_line(error)}.") from error
    # A name is a C string: a file name may not be valid UTF-8, a graph's name may contain a zero byte.
    name = os.fsencode(description.name or read.name).partition(b"\0")[0].decode("utf-8", "replace") or "model"
    return LoadedModel(name, specified.inputs, specified.outputs, plan)
