"""Prepare an ONNX model for conversion: cut it, fix its shapes, prepend normalization."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime as ort
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from hbrt.borders.interrupts import let_out
from hbrt.findings.text import counted
from hbrt.models.errors import GraphError, one_line
from hbrt.models.loading.model_file import read_file
from hbrt.models.run.layer import TensorType
from hbrt.models.run.stop import QUIET
from hbrt.models.spec.graph import bodies, described
from hbrt.models.spec.graph_edits import free_name, graph_inputs, rename_reads
from rknn_api.container import NORMALIZED
from rknn_api.errors import invalid_model, invalid_parameter
from rknn_api.run.custom_ops import CustomOps, call_shape_infer
from rknn_api.run.runner import refused
from rknn_api.toolkit.config import Config

_MIN_SET, _SET = 10, 13
_CAST, _SETTLED = "InsertedPrecisionFreeCast_", "_as_float32"


def load(
    path: Path,
    inputs: Sequence[str] | None,
    input_size_list: Sequence[Sequence[int]] | None,
    input_initial_val: Sequence[Any] | None,
    outputs: Sequence[str] | None,
    ops: CustomOps,
) -> ModelProto:
    """Read an ONNX file, and cut it.

    Args:
        path: The file.
        inputs: Names of the values to use as inputs; the model's own if None.
        input_size_list: A shape for each of them, with the batch.
        input_initial_val: For each of them a constant array, or None.
        outputs: Names of the values to use as outputs; the model's own if None.
        ops: The program's ops.

    Raises:
        RknnError: RKNN_ERR_MODEL_INVALID: the file is not a model; RKNN_ERR_PARAM_INVALID: an argument does not fit.

    Source: RKNN-Toolkit2 API Reference (2.3.2), load_onnx, https://github.com/airockchip/rknn-toolkit2
    """
    try:
        model = read_file(path).proto
    except GraphError as error:
        raise refused(error) from None
    lists = {"inputs": inputs, "outputs": outputs, "input_size_list": input_size_list}
    for what, one in {**lists, "input_initial_val": input_initial_val}.items():
        if one is not None and (not isinstance(one, (list, tuple)) or (what == "outputs" and not one)):
            raise invalid_parameter(f"{what} is {one!r}; pass a list with one entry for each, or omit it.")
    model = _cut(model, inputs, outputs, ops)
    given = graph_inputs(model.graph)
    names = list(inputs) if inputs is not None else [value.name for value in given]
    for what, values in (("input_size_list", input_size_list), ("input_initial_val", input_initial_val)):
        if values is not None and len(values) != len(names):
            raise invalid_parameter(f"{what} has {len(values)} entries, but the inputs are {', '.join(names)}.")
    by_name = {value.name: value for value in given}
    for name, shape in zip(names, input_size_list or (), strict=False):
        _fix_shape(by_name[name], shape)
    for name, value in zip(names, input_initial_val or (), strict=False):
        if value is not None:
            _fix_value(model, by_name[name], value)
    model = _of_later_set(model)
    for at, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{at}"
    return model


def _of_later_set(model: ModelProto) -> ModelProto:
    """The model in an operator set with integers, if it has an older one that onnx can convert."""
    if max((one.version for one in model.opset_import if one.domain in {"", "ai.onnx"}), default=_SET) >= _MIN_SET:
        return model
    try:
        return onnx.version_converter.convert_version(model, _SET)
    except (RuntimeError, ValueError, IndexError):  # the quantizer reports which set it needs
        return model


def _cut(model: ModelProto, inputs: Sequence[str] | None, outputs: Sequence[str] | None, ops: CustomOps) -> ModelProto:
    graph = model.graph
    own = [value.name for value in graph_inputs(graph)], [value.name for value in graph.output]
    begin = own[0] if inputs is None else list(inputs)
    end = own[1] if outputs is None else list(outputs)
    if (begin, end) == own:
        copy = ModelProto()
        copy.CopyFrom(model)
        return copy
    known = {name for node in graph.node for name in node.output} | {value.name for value in graph.input}
    for what, names in (("inputs", begin), ("outputs", end)):
        for name in names:
            if names.count(name) > 1:
                raise invalid_parameter(f"{what} names {name!r} twice.")
            if name not in known:
                raise invalid_parameter(f"{what} names {name!r}, but the model has no such value.")
    try:
        return onnx.utils.Extractor(with_types(model, ops)).extract_model(begin, end)
    except Exception as error:  # noqa: BLE001 - onnx may raise anything for names that do not match
        let_out(error)
        raise invalid_parameter(f"The model cannot be cut from {begin} to {end}: {one_line(error)}.") from None


def _fix_value(model: ModelProto, value: ValueInfoProto, given: Any) -> None:
    """Make an input a constant."""
    dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    try:
        array = np.asarray(given, dtype)
    except (TypeError, ValueError):
        raise invalid_parameter(f"input_initial_val has {given!r} for {value.name!r}, which needs {dtype}.") from None
    known = shape_of(value)
    if len(known) != array.ndim or any(size not in {-1, new} for size, new in zip(known, array.shape, strict=True)):
        raise invalid_parameter(
            f"input_initial_val has the shape {list(array.shape)} for {value.name!r}, which needs {list(known)}."
        )
    model.graph.initializer.append(numpy_helper.from_array(array, value.name))
    model.graph.input.remove(value)


def _fix_shape(value: ValueInfoProto, given: Sequence[Any]) -> None:
    """Set the open sizes of an input."""
    try:
        shape = [index(size) for size in given]
    except TypeError:
        raise invalid_parameter(f"input_size_list has {given!r}; it must have the sizes of {value.name!r}.") from None
    known = shape_of(value)
    if value.type.tensor_type.HasField("shape") and len(known) == len(shape) + 1:  # RKNN-Toolkit 1 adds the batch
        raise invalid_parameter(
            f"input_size_list has {shape} for {value.name!r}, but the model {list(known)}: write the batch, too, as in "
            f"{[max(known[0], 1), *shape]}."
        )
    is_other = len(known) == len(shape) and any(size not in {-1, new} for size, new in zip(known, shape, strict=True))
    if is_other and value.type.tensor_type.HasField("shape"):
        raise invalid_parameter(
            f"input_size_list has {shape} for {value.name!r}, but the model {list(known)}, where -1 is open. To use "
            "a size other than the model's, use dynamic_input of config."
        )
    _set_shape(value, shape)


def _set_shape(value: ValueInfoProto, shape: Sequence[int | str]) -> None:
    tensor = value.type.tensor_type
    if tensor.HasField("shape") and len(tensor.shape.dim) != len(shape):
        raise invalid_parameter(
            f"The input {value.name!r} has {len(tensor.shape.dim)} dimensions, but the shape {list(shape)} was given."
        )
    tensor.shape.ClearField("dim")
    for size in shape:
        dim = tensor.shape.dim.add()
        if isinstance(size, str):
            dim.dim_param = size
        else:
            dim.dim_value = size


def shape_of(value: ValueInfoProto) -> tuple[int, ...]:
    """Shape of a value; -1 for an open size, and (-1,) if nothing is known."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return (-1,)
    return tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim)


def shapes_of(model: ModelProto) -> list[tuple[int, ...]]:
    """Shapes of the inputs; -1 where a size is open."""
    return [shape_of(value) for value in graph_inputs(model.graph)]


def with_shapes(model: ModelProto, config: Config) -> ModelProto:
    """The model whose inputs have known sizes, or those of dynamic_input: open if the sets differ.

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: a size is open, or a set does not fit the model.
    """
    values = graph_inputs(model.graph)
    sets = config.dynamic_input
    if not sets:
        for value, shape in zip(values, shapes_of(model), strict=True):
            if min(shape, default=0) < 0:
                raise invalid_parameter(
                    f"The input {value.name!r} has open sizes: {list(shape)}. Pass inputs and input_size_list "
                    "to load_onnx, or dynamic_input to config."
                )
        return model
    if len(sets[0]) != len(values):
        names = ", ".join(value.name for value in values)
        raise invalid_parameter(f"dynamic_input has {len(sets[0])} shapes per set, but the model's inputs are {names}.")
    copy = ModelProto()
    copy.CopyFrom(model)
    for at, value in enumerate(graph_inputs(copy.graph)):
        shapes = [one[at] for one in sets]
        sizes = [
            same.pop() if len(same := {shape[axis] for shape in shapes}) == 1 else f"{value.name}_{axis}"
            for axis in range(len(shapes[0]))
        ]
        _set_shape(value, sizes)
    # The file's information on other values was only right for its own sizes.
    copy.graph.ClearField("value_info")
    for value in copy.graph.output:
        value.type.tensor_type.ClearField("shape")
    return copy


def simplified(model: ModelProto, ops: CustomOps, level: int) -> ModelProto:
    """The model with constants folded, and batch norms merged into their convolutions, by onnxruntime.

    Args:
        model: Not changed.
        ops: Nothing is folded in a model with the program's own ops, which onnxruntime does not know, or with control
            flow, which onnxruntime 1.31 may write in a form that it cannot read.
        level: 0 changes nothing.

    Raises:
        RknnError: RKNN_ERR_MODEL_INVALID: onnxruntime rejects the model, and why.
    """
    if level == 0 or any(node.op_type in ops or any(bodies(node)) for node in model.graph.node):
        return model
    found = _folded(model)
    held = {tensor.name for tensor in found.graph.initializer}
    if any(node.input and held.issuperset(node.input) for node in found.graph.node):
        found = _folded(found)  # the values it made constant last: from casts, or a function's nodes
    return found if _same_edges(found, model) else model


def _folded(model: ModelProto) -> ModelProto:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = QUIET
    with tempfile.TemporaryDirectory(prefix="hbrt-rknn-") as folder:
        options.optimized_model_filepath = f"{folder}/model.onnx"
        try:
            ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # noqa: BLE001 - its exceptions share no base class; each means that it rejected the model
            let_out(error)
            text = one_line(error)
            hint = ""
            if "is not a registered function/op" in text or "No Op registered" in text:
                hint = " Register an op of your own with reg_custom_op, between config and load_onnx."
            raise invalid_model(f"onnxruntime rejects the model: {text}.{hint}") from None
        found = onnx.load(options.optimized_model_filepath)
    _settle_casts(found.graph)
    return found


def _settle_casts(graph: GraphProto) -> None:
    """Keep onnxruntime's float16 casts, under names that it does not reuse; casts of weights are already applied."""

    def new(name: str) -> str:
        return f"{name.removeprefix(_CAST)}{_SETTLED}" if name.startswith(_CAST) else name

    for node in graph.node:
        node.name = new(node.name)
        node.input[:] = [new(name) for name in node.input]
        node.output[:] = [new(name) for name in node.output]
    for one in (*graph.initializer, *graph.value_info):
        one.name = new(one.name)
    halves = {tensor.name: tensor for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT16}
    for node in [one for one in graph.node if one.op_type == "Cast" and one.name.endswith(_SETTLED)]:
        if (half := halves.get(node.input[0])) is not None:
            whole = numpy_helper.to_array(half).astype(np.float32)
            graph.initializer.append(numpy_helper.from_array(whole, node.output[0]))
            graph.node.remove(node)
    read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    for tensor in [one for one in halves.values() if one.name not in read]:
        graph.initializer.remove(tensor)


def _same_edges(one: ModelProto, other: ModelProto) -> bool:
    """Whether two models have the same inputs and outputs: an unused input may be dropped."""
    return [value.name for value in graph_inputs(one.graph)] == [value.name for value in graph_inputs(other.graph)]


class Normalization(NamedTuple):
    """The processing of an input: ``mean`` is subtracted, ``std`` divided by, per channel; ``name`` is the result."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    name: str


def normalized(model: ModelProto, config: Config) -> tuple[ModelProto, list[Normalization]]:
    """The model with mean subtraction and division by the deviation built in, for the first inputs that have numbers.

    Returns:
        The model, and its processing of each input.

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: the numbers do not fit the inputs.

    Source: RKNN-Toolkit2 API Reference (2.3.2), config, https://github.com/airockchip/rknn-toolkit2
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    values = graph_inputs(graph)
    flags = config.is_bgr if len(config.is_bgr) > 1 else ()  # one is for all inputs
    lists = (("mean_values", config.mean_values), ("std_values", config.std_values), ("quant_img_RGB2BGR", flags))
    for what, given in lists:
        if len(given) > len(values) or (given is flags and len(given) not in {0, len(values)}):
            raise invalid_parameter(f"{what} is for {counted(len(given), 'input')}, but the model has {len(values)}.")
    found: list[Normalization] = []
    new: list[NodeProto] = []
    for at, (value, shape) in enumerate(zip(values, shapes_of(copy), strict=True)):
        mean = config.mean_values[at] if at < len(config.mean_values) else ()
        std = config.std_values[at] if at < len(config.std_values) else ()
        name, before = value.name, len(new)
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        for what, numbers, op_type in (("mean_values", mean, "Sub"), ("std_values", std, "Div")):
            if all(number == (op_type == "Div") for number in numbers):
                continue
            if len(shape) != 4 or len(numbers) not in {1, shape[1]}:
                raise invalid_parameter(
                    f"{what} has {len(numbers)} numbers for the input {value.name!r} of shape {list(shape)}; it needs "
                    "one per channel, for inputs with four dimensions."
                )
            if dtype.kind != "f":
                raise invalid_parameter(
                    f"{what} is for inputs of real numbers, but {value.name!r} is of {dtype}: pass "
                    f"{float(op_type == 'Div'):g} for each channel, and normalize inside the model."
                )
            result = free_name(graph, f"{value.name}_{op_type.lower()}")
            by = np.array(numbers, dtype).reshape(1, -1, 1, 1)
            constant = numpy_helper.from_array(by, f"{result}_by")
            graph.initializer.append(constant)
            new.append(helper.make_node(op_type, [name, constant.name], [result], f"{NORMALIZED}_{result}"))
            name = result
        if len(new) > before:
            rename_reads(graph, value.name, name)
        found.append(Normalization(mean, std, name))
    nodes = [*new, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    return copy, found


def with_types(model: ModelProto, ops: CustomOps) -> ModelProto:
    """The model with the type of each value that can be inferred, including those after the program's ops.

    Raises:
        RknnError: RKNN_ERR_MODEL_INVALID: onnx or a shape_infer rejects it, and why.
    """
    try:
        while True:
            model = onnx.shape_inference.infer_shapes(model, data_prop=True)
            graph = model.graph
            known = {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}
            constants = {tensor.name: tensor for tensor in graph.initializer}
            more = []
            for node in graph.node:
                if node.op_type not in ops or all(_is_typed(known.get(name)) for name in node.output):
                    continue
                types = [_type_of(name, known, constants) for name in node.input if name]
                if all(one is not None and one.shape is not None for one in types):
                    made = call_shape_infer(ops[node.op_type], node, types)
                    found = [(name, one) for name, one in zip(node.output, made, strict=True) if name]
                    more += [(name, one) for name, one in found if _declared(known.get(name)) != one]
            if not more:
                return model
            for name, one in more:
                _declare(model, known, name, one)
    except GraphError as error:
        raise refused(error) from error
    except onnx.shape_inference.InferenceError as error:
        raise invalid_model(f"The model's shapes are inconsistent: {one_line(error)}.") from None


def _declared(value: ValueInfoProto | None) -> TensorType | None:
    if value is None:
        return None
    dtype, shape = described(value)
    return None if dtype is None else TensorType(shape, dtype)


def _is_typed(value: ValueInfoProto | None) -> bool:
    """Whether every size is known: a size with only a name in the file may be known to the op."""
    one = _declared(value)
    return one is not None and one.shape is not None and min(one.shape, default=0) >= 0


def _type_of(
    name: str, known: Mapping[str, ValueInfoProto], constants: Mapping[str, onnx.TensorProto]
) -> TensorType | None:
    if name in constants:
        tensor = constants[name]
        return TensorType(tuple(tensor.dims), helper.tensor_dtype_to_np_dtype(tensor.data_type))
    return _declared(known.get(name))


def _declare(model: ModelProto, known: Mapping[str, ValueInfoProto], name: str, one: TensorType) -> None:
    value = helper.make_tensor_value_info(
        name,
        helper.np_dtype_to_tensor_dtype(np.dtype(one.dtype)),
        [size if size >= 0 else None for size in one.shape or ()],
    )
    if name in known:
        known[name].CopyFrom(value)
    else:
        model.graph.value_info.append(value)
