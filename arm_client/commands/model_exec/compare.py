"""``hrt_model_exec compare``: a model layer by layer against a reference, and the first layer that differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from arm_client.commands.model_exec.layers import with_all_outputs

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

QUANTIZERS = {"QuantizeLinear", "DequantizeLinear"}
_BEFORE, _AFTER = "_QuantizeLinear_Input", "_DequantizeLinear_Output"
"""How onnxruntime's quantizer names the values that it puts around a layer's result."""
QUANTIZED_COSINE, COSINE = 0.99, 0.9999
LARGEST_SHARE = 1e-3


class Limits(NamedTuple):
    """From where on a layer differs.

    Attributes:
        cosine: The least cosine of the angle between both results.
        share: The largest error, as a share of the reference's largest value; infinite for no limit.
    """

    cosine: float
    share: float


class Likeness(NamedTuple):
    """How a layer's result is like the reference's.

    Attributes:
        node: Name of the node, or its kind if it has no name.
        op: Its kind.
        value: Name of the reference's value.
        cosine: Cosine of the angle between both, 1 for the same direction; NaN if one contains a NaN.
        largest_error: Largest absolute error.
        share: The same as a share of the reference's largest absolute value.
        where: Index of that element.
        here: Its value.
        reference: The reference's.
        differs: Whether a limit is exceeded or the shapes differ.
        shapes: Both shapes, if they differ.
    """

    node: str
    op: str
    value: str
    cosine: float
    largest_error: float
    share: float
    where: tuple[int, ...]
    here: float
    reference: float
    differs: bool
    shapes: str = ""

    def sentence(self) -> str:
        """What differs."""
        who = f"{self.op} {self.node}" if self.node != self.op else self.op
        if self.shapes:
            return f"The first layer that differs is {who}: its result {self.value} has the shape {self.shapes}."
        at = "".join(f"[{index}]" for index in self.where)
        return (
            f"The first layer that differs is {who}: the cosine of its result {self.value} is {self.cosine:.6f}, and "
            f"the largest error {self.largest_error:.6g}, at {self.value}{at}: {self.here:.6g} here, "
            f"{self.reference:.6g} in the reference."
        )

    def document(self) -> dict[str, Any]:
        """For ``--json``; non-numbers become null."""
        data = {**self._asdict(), "where": list(self.where)}
        return {key: None if isinstance(one, float) and not np.isfinite(one) else one for key, one in data.items()}


def likeness(node: str, op: str, value: str, here: NDArray[Any], reference: NDArray[Any], limits: Limits) -> Likeness:
    """How one result is like the reference's, in float64.

    Args:
        node: Name of the node.
        op: Its kind.
        value: Name of the reference's value.
        here: Result of the model, real numbers of any shape.
        reference: The reference's value.
        limits: From where on they differ.
    """
    nan = float("nan")
    if here.shape != reference.shape:
        shapes = f"{list(here.shape)} here, {list(reference.shape)} in the reference"
        return Likeness(node, op, value, nan, nan, nan, (), nan, nan, differs=True, shapes=shapes)
    if not here.size:
        return Likeness(node, op, value, 1.0, 0.0, 0.0, (), nan, nan, differs=False)
    ours, theirs = (array.astype(np.float64) for array in (here, reference))
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        errors = np.where(same, 0.0, np.abs(ours - theirs))
        lengths = float(np.linalg.norm(ours) * np.linalg.norm(theirs))
        cosine = 1.0 if same.all() else float(np.vdot(ours, theirs)) / lengths if lengths else 0.0
        at = int(np.argmax(np.where(np.isnan(errors), np.inf, errors)))
        largest, biggest = float(errors.flat[at]), float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0))
        share = largest / biggest if biggest else largest
    return Likeness(
        node,
        op,
        value,
        cosine,
        largest,
        share,
        tuple(int(index) for index in np.unravel_index(at, here.shape)),
        float(ours.flat[at]),
        float(theirs.flat[at]),
        differs=not (cosine >= limits.cosine and share <= limits.share),
    )


def compare(
    nodes: Sequence[NodeProto],
    values: Mapping[str, NDArray[Any]],
    reference: Mapping[str, NDArray[Any]],
    limits: Limits,
) -> list[Likeness]:
    """Every layer whose result is in the reference, in the order of the model's nodes.

    A result that a side quantizes is compared as the next layer gets it.

    Args:
        nodes: The model's.
        values: Its values by name.
        reference: The reference's values by name.
        limits: From where on a layer differs.
    """
    found = []
    for node in nodes:
        for output in () if node.op_type in QUANTIZERS else node.output:
            name = output.removesuffix(_BEFORE)
            here, there = (_as_passed_on(side, name) for side in (values, reference))
            if here is not None and there is not None:
                found.append(likeness(node.name or node.op_type, node.op_type, name, here, there, limits))
    return found


def _as_passed_on(values: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any] | None:
    return next((values[one] for one in (f"{name}{_AFTER}", name, f"{name}{_BEFORE}") if one in values), None)


def limits_for(
    nodes: Sequence[NodeProto], reference: Iterable[str], cosine: float | None, share: float | None
) -> Limits:
    """The requested limits, otherwise the defaults for both models: a quantized one has errors by design.

    Args:
        nodes: The model's.
        reference: Names of the reference's values.
        cosine: The smallest cosine; None for the default.
        share: The largest error, as a share; None for the default.
    """
    is_quantized = any(node.op_type in QUANTIZERS for node in nodes) or any(one.endswith(_AFTER) for one in reference)
    usual = Limits(QUANTIZED_COSINE, float("inf")) if is_quantized else Limits(COSINE, LARGEST_SHARE)
    return Limits(usual.cosine if cosine is None else cosine, usual.share if share is None else share)


def reference_values(file: Path, fed: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The values of a reference by name: from an archive of arrays, or from a model run by plain onnxruntime.

    Args:
        file: ``.npz`` or ``.onnx``.
        fed: The inputs of the model's graph, by name.

    Raises:
        click.UsageError: it is neither, or takes other inputs than the model. OSError: it cannot be read.
    """
    if file.suffix == ".npz":
        try:
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except ValueError as error:
            raise click.UsageError(f"{file} is not an archive of arrays: {error}.") from None
    if file.suffix != ".onnx":
        raise click.UsageError(f"{file}: a reference is a model, .onnx, or its values by name, .npz.")
    from arm_client.dnn.errors import refusals
    from hbrt.models.loading.model_file import read_file

    with refusals():
        proto = read_file(file).proto
    return _run(file, with_all_outputs(proto), fed)


def _run(file: Path, proto: ModelProto, fed: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    import onnxruntime

    from hbrt.models.spec.graph_edits import graph_inputs

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    wanted = [value.name for value in graph_inputs(proto.graph)]
    if missing := sorted(set(wanted) - set(fed)):
        raise click.UsageError(
            f"{file} takes the input {missing[0]!r}, but the model has {', '.join(sorted(fed)) or 'none'}: a reference "
            "must have the same input names."
        )
    try:
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
        names = [one.name for one in session.get_outputs()]
        return dict(zip(names, session.run(names, {name: fed[name] for name in wanted}), strict=True))
    except Exception as error:  # noqa: BLE001 - onnxruntime has its own exceptions, without a common root
        raise click.UsageError(f"onnxruntime does not run {file} with the model's input: {error}") from None
