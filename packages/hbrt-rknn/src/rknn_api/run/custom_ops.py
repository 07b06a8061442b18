"""A program's ops, by op type: the required methods of a Python class, and how a graph runs it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto, helper

from hbrt.borders.interrupts import let_out
from hbrt.findings.text import counted
from hbrt.models.errors import GraphError, Reason, one_line
from hbrt.models.run.layer import LayerCreator, TensorType
from rknn_api.errors import invalid_parameter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hbrt.models.spec.graph import NodeInfo

_METHODS = {"shape_infer": ["node", "in_shapes", "in_dtypes"], "compute": ["node", "inputs"]}


def get_node_attr(node: NodeProto, name: str) -> Any:
    """An attribute of a custom op's node.

    Args:
        node: The node argument of ``shape_infer`` and ``compute``.
        name: Name of the attribute.

    Returns:
        int, float, str, lists of them, or an array; None if the node does not set it.

    Source: RKNN SDK advanced guide (chapter 5), 5.5.3
    """
    found = next((attribute for attribute in node.attribute if attribute.name == name), None)
    if found is None:
        return None
    value = helper.get_attribute_value(found)
    if found.type == AttributeProto.STRING:
        return value.decode("utf-8", "replace")
    if found.type == AttributeProto.STRINGS:
        return [one.decode("utf-8", "replace") for one in value]
    if found.type == AttributeProto.TENSOR:
        return onnx.numpy_helper.to_array(value)
    return list(value) if isinstance(value, Iterable) else value


class CustomOps:
    """The ops of one model, by op type; the registry for its plan."""

    def __init__(self) -> None:
        self.generation = 0
        self._ops: dict[str, Any] = {}
        self._creators: dict[str, LayerCreator] = {}
        self._closes: list[Callable[[], None]] = []

    def __contains__(self, op_type: str) -> bool:
        return op_type in self._ops

    def __bool__(self) -> bool:
        return bool(self._ops)

    def __getitem__(self, op_type: str) -> Any:
        return self._ops[op_type]

    def register(self, op: Any) -> None:
        """Register an op.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: a part is missing; the message says which.

        Source: RKNN SDK advanced guide (chapter 5), 5.5.3
        """
        if isinstance(op, type):
            raise invalid_parameter(
                f"{op.__name__} is a class; register an object of it: reg_custom_op({op.__name__}())."
            )
        said = type(op).__name__
        op_type = getattr(op, "op_type", None)
        if not isinstance(op_type, str) or not op_type:
            raise invalid_parameter(
                f"{said}.op_type is {op_type!r}; it must be a string: the op type of the model's node."
            )
        if onnx.defs.has(op_type):
            raise invalid_parameter(
                f"{said}.op_type is {op_type!r}, which ONNX has; use a name of your own, such as 'cst{op_type}', in "
                "the model, too."
            )
        if op_type in self._ops:
            raise invalid_parameter(f"{op_type!r} is already registered, by {type(self._ops[op_type]).__name__}.")
        for name, wanted in _METHODS.items():
            _check_method(op, said, name, wanted)
        self.add(op_type, op, lambda node: _PythonOp(op, node))

    def add(self, op_type: str, op: Any, creator: LayerCreator, close: Callable[[], None] | None = None) -> None:
        """Register ``creator`` for the nodes of an op type."""
        self._ops[op_type], self._creators[op_type] = op, creator
        self._closes += [close] if close is not None else []
        self.generation += 1

    def close(self) -> None:
        """Release the ops' resources once nothing runs them anymore."""
        closes, self._closes = self._closes, []
        for close in closes:
            close()

    def of_types(self, types: Iterable[tuple[str, str]]) -> tuple[int, Mapping[tuple[str, str], LayerCreator]]:
        """For a plan: the creators of the op types that have one, in any domain."""
        return self.generation, {one: self._creators[one[1]] for one in types if one[1] in self._creators}


def _check_method(op: Any, said: str, name: str, wanted: list[str]) -> None:
    method = getattr(op, name, None)
    text = f"def {name}(self, {', '.join(wanted)})"
    if not callable(method):
        raise invalid_parameter(f"{said} has no {name}; define: {text}.")
    found = list(inspect.signature(method).parameters)
    if found != wanted:
        raise invalid_parameter(f"{said}.{name} takes ({', '.join(found)}); its parameters' names are fixed: {text}.")


def call_shape_infer(op: Any, node: NodeProto, types: Iterable[TensorType | None]) -> list[TensorType]:
    """The result of an op's shape_infer.

    Raises:
        GraphError: INCOMPATIBLE: it raises, or does not return lists of shapes and dtypes; the message says which.
    """
    known = [one for one in types if one is not None]
    shapes = [list(one.shape) if one.shape is not None else None for one in known]
    dtypes = [one.dtype for one in known]
    where = f"{type(op).__name__}.shape_infer (node {node.name!r})"
    try:
        answer = op.shape_infer(node, shapes, dtypes)
    except (Exception, SystemExit) as error:
        let_out(error)
        raise GraphError(
            Reason.INCOMPATIBLE, f"{where} raised {type(error).__name__} for {shapes}: {one_line(error)}."
        ) from error
    try:
        out_shapes, out_dtypes = answer
        found = [
            TensorType(tuple(int(size) for size in shape), np.dtype(dtype))
            for shape, dtype in zip(out_shapes, out_dtypes, strict=True)
        ]
    except (TypeError, ValueError):
        found = []
    if len(found) != len(node.output):
        raise GraphError(
            Reason.INCOMPATIBLE,
            f"{where} returned {answer!r}; it must return (out_shapes, out_dtypes), lists with an entry for each of "
            f"the {len(node.output)} outputs.",
        )
    return found


class _PythonOp:
    """A node computed by a program's class."""

    processor = "CPU"

    def __init__(self, op: Any, node: NodeInfo) -> None:
        self._op = op
        graph = node.graph
        output = next((value.name for value in node.outputs if value is not None), "")
        self._node = NodeProto() if graph is None else graph.nodes[graph.producers[output]]
        self._is_nested = node.is_nested
        self._where = f"{type(op).__name__}.compute (node {node.name!r})"

    def decline(self) -> str:
        """Only a node inside the body of another."""
        return "it is in the body of an If, Loop or Scan" if self._is_nested else ""

    def set_up(self) -> None:
        """Empty: the class reads its attributes when it is called."""

    def infer_shape(self, bottom: list[TensorType | None]) -> list[TensorType]:
        """The result of shape_infer."""
        return call_shape_infer(self._op, self._node, bottom)

    def forward(self, bottom: list[Any], top: list[Any], ctrl: Any) -> None:
        """Call compute, and check its results."""
        del ctrl
        try:
            # Copies: other nodes read the arrays, too, and a class may work in place.
            made = self._op.compute(self._node, [one.copy() for one in bottom if one is not None])
        except (Exception, SystemExit) as error:
            let_out(error)
            raise self.failure(f"raised {type(error).__name__}: {one_line(error)}") from error
        if not isinstance(made, (list, tuple)) or len(made) != len(top):
            gave = counted(len(made), "output") if isinstance(made, (list, tuple)) else type(made).__name__
            raise self.failure(f"returned {gave}; it must return a list with one array for each of {len(top)} outputs")
        for array, target in zip(made, top, strict=True):
            given = np.asarray(array)
            if given.shape != target.shape:
                raise self.failure(
                    f"returned the shape {list(given.shape)}, but shape_infer returned {list(target.shape)}"
                )
            target[...] = given

    def failure(self, what: str) -> GraphError:
        """RUN_FAILED with the reason."""
        return GraphError(Reason.RUN_FAILED, f"{self._where} {what}.")

    def tear_down(self) -> None:
        """Nothing is kept."""


class HostMemory:
    """Memory of this process for the inputs and outputs of a program's ops."""

    is_usable = True

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """A new array of zeros."""
        return np.zeros(shape, dtype)

    def view(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array itself."""
        return array

    def close(self) -> None:
        """Does nothing: the arrays are freed with their last reference."""
