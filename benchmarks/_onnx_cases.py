"""The ONNX project's backend cases, and one run of each: by bare onnxruntime, and by hbDNN on a board."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import onnx
import onnxruntime as ort
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case import node as node_suite
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from benchmarks._board_model import BoardModel
from hbrt.models.run.ort_session import session_options

if TYPE_CHECKING:
    from onnx.backend.test.case.test_case import TestCase

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "light")
TYPES = frozenset(
    {
        *(TensorProto.BOOL, TensorProto.INT4, TensorProto.UINT4, TensorProto.INT8, TensorProto.UINT8),
        *(TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32, TensorProto.UINT32, TensorProto.INT64),
        *(TensorProto.UINT64, TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE),
    }
)
"""What hbDNNDataType has, and booleans, as U8."""
RKNN_TYPES = TYPES - {TensorProto.UINT4, TensorProto.UINT64, TensorProto.DOUBLE}
"""What rknn_tensor_type has, and numpy."""
MAX_DIMENSIONS = 8
MAX_RKNN_DIMENSIONS = 16
_MAX_WEIGHTS = 1 << 24

Run = Callable[[list[Any]], Sequence[Any]]


@dataclass(frozen=True)
class Case:
    """One case: a model and what it must answer.

    Attributes:
        name: As the ONNX project names it.
        kind: One of KINDS.
        model: The model.
        data_sets: (inputs, expected outputs) of each.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
    """

    name: str
    kind: str
    model: ModelProto
    data_sets: list[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float

    def not_carried(self, types: Collection[int] = TYPES, most_dimensions: int = MAX_DIMENSIONS) -> str:
        """Why the API cannot carry one of the tensors; empty when it can."""
        constants = {tensor.name for tensor in self.model.graph.initializer}
        for value in (*self.model.graph.input, *self.model.graph.output):
            kind = value.type.WhichOneof("value")
            if value.name in constants:
                continue
            if kind != "tensor_type":
                return (kind or "no type").removesuffix("_type")
            if value.type.tensor_type.elem_type not in types:
                return str(TensorProto.DataType.Name(value.type.tensor_type.elem_type)).lower()
            if len(value.type.tensor_type.shape.dim) > most_dimensions:
                return f"more than {most_dimensions} dimensions"
        return ""

    def check(self, run: Run) -> None:
        """Run all data sets, and compare as the ONNX project's runner does.

        Raises:
            AssertionError: a result differs. Whatever ``run`` raises.
        """
        for inputs, expected in self.data_sets:
            found = list(run(inputs))
            Runner.assert_similar_outputs(expected, found, self.rtol, self.atol, self.name)


def cases(kinds: Sequence[str] = KINDS) -> Iterator[Case]:
    """All cases that the installed onnx package carries, none from the network."""
    for kind in kinds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the generators divide by zero on purpose
            found = load_model_tests(kind="real" if kind == "light" else kind)
        for test in sorted(found, key=lambda test: test.name):
            if test.model is not None:
                yield _made(test, kind)
            elif test.model_dir is not None:
                yield Case(test.name, kind, *_stored(Path(test.model_dir)), test.rtol, test.atol)
            elif test.url is not None:
                yield Case(test.name, kind, *_light(test.url), test.rtol, test.atol)


def bare(model: ModelProto) -> Run:
    """Bare onnxruntime, with the session options that hbDNN has."""
    session = ort.InferenceSession(model.SerializeToString(), session_options(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]

    def run(inputs: list[Any]) -> Sequence[Any]:
        arrays = [np.asarray(one) if isinstance(one, np.generic) else one for one in inputs]
        found: Sequence[Any] = session.run(None, dict(zip(names, arrays, strict=True)))
        return found

    return run


def on_board(model: ModelProto) -> Run:
    """The same model by hbDNN; for one run after the other."""

    def run(inputs: list[Any]) -> Sequence[Any]:
        with BoardModel(model.SerializeToString()) as loaded:
            found = loaded(inputs)
        is_bool = [value.type.tensor_type.elem_type == TensorProto.BOOL for value in model.graph.output]
        return [array.astype(np.bool_) if flag else array for array, flag in zip(found, is_bool, strict=True)]

    return run


def by_rknn(model: ModelProto) -> Run:
    """The same model by the toolkit's Python names, in real numbers; for one run after the other."""

    def run(inputs: list[Any]) -> Sequence[Any]:
        from rknn.api import RKNN

        given = [np.asarray(one) for one in inputs]
        constants = {tensor.name for tensor in model.graph.initializer}
        names = [value.name for value in model.graph.input if value.name not in constants]
        toolkit = RKNN()
        toolkit.config(target_platform="rk3588")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model.SerializeToString())
            sizes = [list(array.shape) for array in given]
            status = toolkit.load_onnx(path, inputs=names, input_size_list=sizes)
        status = status or toolkit.build(do_quantization=False) or toolkit.init_runtime(target="rk3588")
        found = None if status else toolkit.inference(given, data_format="nchw")
        sentence = toolkit.last_error
        toolkit.release()
        if found is None:
            raise RuntimeError(sentence)
        return found

    return run


def with_random_weights(model: ModelProto, seed: int) -> ModelProto:
    """A copy of a light net with weights that differ from one another.

    The nets of the package have each weight tensor filled with one value, so that whatever the input, all their outputs
    are one value. Matrices of more than 16 M weights stay as they are: what follows them tells outputs apart. Softmax,
    which random weights drive to 0 and 1, becomes LogSoftmax.
    """
    rng = np.random.default_rng(seed)
    found = ModelProto()
    found.CopyFrom(model)
    graph = found.graph
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    filled = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    for node in filled:
        shape = shapes[node.input[0]]
        if shape.size > 1 and np.prod(shape) > _MAX_WEIGHTS:
            continue
        if shape.size > 1:
            weights = rng.standard_normal(shape, np.float32) * np.sqrt(2 / np.prod(shape[1:]))
        else:
            weights = rng.uniform(0.5, 1.5, shape)  # a bias, or a scale or variance, which is positive
        graph.node.remove(node)
        graph.initializer.append(numpy_helper.from_array(weights.astype(np.float32), node.output[0]))
    for node in graph.node:
        if node.op_type == "Softmax":
            node.op_type = "LogSoftmax"
    return found


def node_cases(modules: Sequence[str]) -> Iterator[Case]:
    """The node cases of some modules of the suite alone, such as "conv": making all of them takes seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in modules:
            import_module(f"onnx.backend.test.case.node.{name}")
    for test in node_suite._NodeTestCases:  # noqa: SLF001 - what the suite's own collector returns
        yield _made(test, "node")


def random_inputs(model: ModelProto, seed: int) -> list[Any]:
    """Random float inputs of a model whose shapes are known."""
    rng = np.random.default_rng(seed)
    constants = {tensor.name for tensor in model.graph.initializer}
    return [
        rng.random([dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim], np.float32)
        for value in model.graph.input
        if value.name not in constants
    ]


def _made(test: TestCase, kind: str) -> Case:
    sets = [([_array(one) for one in given], [_array(one) for one in wanted]) for given, wanted in test.data_sets or ()]
    return Case(test.name, kind, cast("ModelProto", test.model), sets, test.rtol, test.atol)


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def _stored(directory: Path) -> tuple[ModelProto, list[tuple[list[Any], list[Any]]]]:
    model = onnx.load(directory / "model.onnx")
    sets = []
    for data in sorted(directory.glob("test_data_set*")):
        inputs = _stored_values(data, "input", [value.type for value in model.graph.input])
        sets.append((inputs, _stored_values(data, "output", [value.type for value in model.graph.output])))
    return model, sets


def _stored_values(data: Path, what: str, types: list[Any]) -> list[Any]:
    values: list[Any] = []
    for at in range(len(list(data.glob(f"{what}_*.pb")))):
        raw = (data / f"{what}_{at}.pb").read_bytes()
        kind = types[at].WhichOneof("value")
        if kind == "sequence_type":
            values.append(numpy_helper.to_list(onnx.SequenceProto.FromString(raw)))
        elif kind == "optional_type":
            values.append(numpy_helper.to_optional(onnx.OptionalProto.FromString(raw)))
        else:
            values.append(numpy_helper.to_array(TensorProto.FromString(raw)))
    return values


def _light(url: str) -> tuple[ModelProto, list[tuple[list[Any], list[Any]]]]:
    """A net of the package: its input is a ramp, as the ONNX project's runner makes it."""
    path = Path(onnx.__file__).parents[1] / url
    model = onnx.load(path)
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [
        Runner.generate_dummy_data(value, seed=0, random=False)
        for value in model.graph.input
        if value.name not in constants
    ]
    outputs = [
        numpy_helper.to_array(TensorProto.FromString(path.with_name(f"{path.stem}_output_{at}.pb").read_bytes()))
        for at in range(len(model.graph.output))
    ]
    return model, [(inputs, outputs)]
