"""The models for ``hrt_model_exec``: loading, choosing by name, and showing their tensors and runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arm_client import dnn
from arm_client.session.session import attached, default
from hbrt import settings
from hbrt.accelerators.chips import chip_named, run_of
from hbrt.accelerators.onnx_layers import UnknownSizesError, layers_of_model

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from onnx import ModelProto

    from arm_client.dnn import Model, Tensor
    from arm_client.dnn.run.plan import Plan

RULE = "-" * 69


class Models:
    """What ``--model_file`` names.

    Args:
        files: Paths separated by commas.
        are_run: Whether they are to be run. Otherwise they are loaded in this process, and no board is needed.

    Attributes:
        models: In the order of the files.
        load_ms: What loading took, without the start of a private board.

    Raises:
        HbrtError: a file cannot be read, or is not a model that the runtime supports.
    """

    def __init__(self, files: str, *, are_run: bool = True) -> None:
        paths = [Path(part.strip()) for part in files.split(",") if part.strip()]
        if not paths:
            raise click.UsageError("Name a model: --model_file=model.onnx, several separated by commas.")
        if are_run:
            default()
        start = time.perf_counter()
        with nullcontext() if are_run else in_this_process():
            self.models: list[Model] = dnn.load(paths)
        self._files = dict(zip((model.name for model in self.models), paths, strict=True))
        self.load_ms = (time.perf_counter() - start) * 1e3

    def chosen(self, name: str) -> list[Model]:
        """The model of that name; all when it is empty.

        Raises:
            click.UsageError: no model has this name; lists the existing ones.
        """
        found = [model for model in self.models if name in {"", model.name}]
        if not found:
            raise click.UsageError(f"Unknown model {name!r}; known are {self._names()}.")
        return found

    def one(self, name: str) -> Model:
        """The model to run.

        Raises:
            click.UsageError: there are several and no name was given, or no model has the name.
        """
        found = self.chosen(name)
        if len(found) > 1:
            raise click.UsageError(f"There are several models: name one with --model_name: {self._names()}.")
        return found[0]

    def file_of(self, model: Model) -> Path:
        """The file that a model came from."""
        return self._files[model.name]

    def heading(self) -> str:
        """The first lines: the loading time, and the models' names."""
        count = len(self.models)
        names = "".join(f"[{model.name}]" for model in self.models)
        return (
            f"Load model to DDR cost {self.load_ms:.3f}ms.\n"
            f"This model file has {count} model{'s' if count > 1 else ''}:\n{names}"
        )

    def _names(self) -> str:
        return ", ".join(model.name for model in self.models)


def in_this_process() -> AbstractContextManager[None]:
    """Load models with no board: they run in this process."""
    return settings.set_to("HBRT_BPU", "inline")


def plan_of(model: Model) -> Plan:
    """Where a model runs, step by step."""
    from arm_client.dnn.capi.api import model_behind

    return model_behind(model.handle).model.plan


def document_of(model: Model) -> dict[str, Any]:
    """The entry of ``model_info --json`` for one model."""
    plan = plan_of(model)
    return {
        "name": model.name,
        "inputs": [_tensor_document(tensor, is_input=True) for tensor in model.inputs],
        "outputs": [_tensor_document(tensor, is_input=False) for tensor in model.outputs],
        "steps": [{"name": step.name, "processor": step.processor, "ops": step.ops} for step in plan.steps],
        "notes": plan.notes,
    }


def _tensor_document(tensor: Tensor, *, is_input: bool) -> dict[str, Any]:
    shown = tensor.properties
    document: dict[str, Any] = {"name": tensor.name}
    if is_input:
        document["input_source"] = tensor.spec.source.name
    return document | {
        "valid_shape": list(shown.shape),
        "aligned_shape": list(shown.aligned_shape),
        "aligned_byte_size": shown.aligned_byte_size,
        "tensor_type": tensor.spec.tensor_type.name,
        "tensor_layout": tensor.spec.layout.name,
        "quanti_type": shown.quanti_type,
        "stride": list(shown.stride),
        "scale_data": shown.scale_data.tolist(),
        "zero_point_data": shown.zero_point_data.tolist(),
        "shift_data": shown.shift_data.tolist(),
        "quantize_axis": shown.quantize_axis,
    }


def text_of(model: dict[str, Any]) -> str:
    """The block of ``model_info`` on what ``document_of`` returned, as users of the board know it."""
    parts = [RULE, f"[model name]: {model['name']}"]
    for kind in ("input", "output"):
        for at, tensor in enumerate(model[f"{kind}s"]):
            parts += ["", f"{kind}[{at}]:", *_lines(tensor)]
    if len(model["steps"]) > 1 or model["notes"]:
        parts += ["", "steps:"]
        for step in model["steps"]:
            ops = ", ".join(f"{count} {name}" for name, count in step["ops"].items())
            parts.append(f"{step['name']}: {step['processor']}, {ops}")
        parts += [f"note: {note}" for note in model["notes"]]
    return "\n".join([*parts, RULE])


def _lines(tensor: dict[str, Any]) -> Iterator[str]:
    quanti, steps = tensor["quanti_type"], max(len(tensor["scale_data"]), len(tensor["shift_data"]))
    has = {"scale_data": quanti == "SCALE", "shift_data": quanti == "SHIFT", "quantize_axis": steps > 1}
    has["zero_point_data"] = has["scale_data"]
    for name, value in tensor.items():
        if has.get(name, True):
            yield f"{name.replace('_', ' ')}: {_value_text(name, value)}"


def _value_text(name: str, value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    is_shape = not name.endswith("_data")
    return f"({''.join(f'{one},' for one in value)})" if is_shape else ",".join(f"{one:g}" for one in value)


def modeled_run(model: ModelProto) -> dict[str, Any]:
    """A run on one core of this process's board, in milliseconds, by the model's layers, or ``why_not``."""
    board = attached().profile.chip
    if chip_named(board) is None:
        return {"board": board, "why_not": f"no parameters of {board} are fitted or assumed"}
    try:
        run = run_of(layers_of_model(model), board)
    except UnknownSizesError as error:
        return {"board": board, "why_not": str(error)}
    low_ms, run_ms, high_ms = (us / 1000 for us in (run.low_us, run.us, run.high_us))
    return {"board": board, "run_ms": run_ms, "low_ms": low_ms, "high_ms": high_ms, "assumed": run.why}


def modeled_text(run: dict[str, Any]) -> str:
    """It as a sentence."""
    if "why_not" in run:
        return f"Modeled for {run['board']}: no estimate, since {run['why_not'].rstrip('.')}."
    assumed = f" Assumed: {run['assumed']}." if run["assumed"] else ""
    return (
        f"Modeled for {run['board']} by the model's layers: a run takes {run['run_ms']:.3f}ms on one core, 90% of "
        f"such {run['low_ms']:.3f} to {run['high_ms']:.3f}ms; the figures above are measured on this machine.{assumed}"
    )
