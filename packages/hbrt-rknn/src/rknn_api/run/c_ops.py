"""A program's ops as C callbacks: their registration, a context for each node, and how a graph runs them.

Source: RKNN SDK advanced guide (chapter 5), 5.5.4
Emulator: a tensor has its type from the ONNX model; callbacks of one node never run at the same time; in init, tensors
have attributes but no memory yet; GPU callbacks run on the CPU.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hbrt.models.errors import GraphError, Reason
from hbrt.models.run.layer import TensorType
from hbrt.models.spec.graph import Graph, NodeInfo, Value
from rknn_api.errors import RknnError, RknnStatus, invalid_parameter
from rknn_api.log import Log
from rknn_api.python_types import DTYPES, rknn_custom_op_callback, rknn_custom_op_destroy
from rknn_api.types import (
    RKNN_MAX_DIMS,
    RKNN_MAX_NAME_LEN,
    rknn_custom_op,
    rknn_custom_op_attr,
    rknn_custom_op_context,
    rknn_custom_op_tensor,
    rknn_target_type,
    rknn_tensor_attr,
    rknn_tensor_format,
    rknn_tensor_mem,
    rknn_tensor_type as element,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

_GPU: Final = int(rknn_target_type.RKNN_TARGET_TYPE_GPU)
_log: Final = Log()
_numbers: Final = itertools.count(1)
_nodes: Final[dict[int, _Node]] = {}  # by internal_ctx: what rknn_custom_op_get_op_attr looks up


class Placed(NamedTuple):
    """An array as an op sees it, ``offset`` bytes into its memory."""

    array: NDArray[Any]
    mem: rknn_tensor_mem
    offset: int


def checked(op: rknn_custom_op, known: Iterable[str]) -> str:
    """The op type to register.

    Args:
        op: The structure.
        known: Op types of the model's nodes.

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: what is missing.
    """
    op_type, types = op.op_type.decode(errors="replace"), sorted(set(known))
    if not op_type:
        raise invalid_parameter("op_type is empty; it must be the op type of the model's nodes.")
    if op_type not in types:
        alone = op_type.replace("::", ".").rpartition(".")[2]
        near = get_close_matches(op_type, types, 1, 0.6)
        if alone in types:
            hint = f"write the op type without its domain, {alone!r}"
        else:
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(types)}."
        raise invalid_parameter(
            f"op_type is {op_type!r}, but the model has no such node; {hint}{'' if hint[-1] in '?.' else '.'}"
        )
    where = f"The op {op_type!r}"
    if op.target not in set(rknn_target_type):
        raise invalid_parameter(
            f"{where} has the invalid target {op.target}: must be RKNN_TARGET_TYPE_CPU or RKNN_TARGET_TYPE_GPU."
        )
    if not op.compute:
        raise invalid_parameter(f"{where} has no compute; set the callback.")
    if op.compute_native:
        raise invalid_parameter(
            f"{where} has compute_native, which is reserved; set it to NULL, and clear the structure by memset."
        )
    if op.target == _GPU:
        _check_kernel(op, where)
    return op_type


def _check_kernel(op: rknn_custom_op, where: str) -> None:
    if not op.cl_kernel_name or not op.cl_kernel_source:
        raise invalid_parameter(f"{where} is for the GPU; set cl_kernel_name and cl_kernel_source.")
    if not op.cl_source_size:
        path = Path(ctypes.string_at(op.cl_kernel_source).decode(errors="replace"))
        if not path.is_file():
            raise invalid_parameter(
                f"{where} has cl_source_size 0, so cl_kernel_source is a path, but there is no file {path}; for a "
                "string, set its length."
            )


class COp:
    """A registered op on one model: a context for each of its nodes, which ``close`` destroys."""

    def __init__(self, op: rknn_custom_op, op_type: str, graph: Graph, keep: Any = None) -> None:
        """Call init for each node.

        Args:
            op: Copied.
            op_type: From ``checked``.
            graph: The model's.
            keep: The owner of the callbacks, such as a library.

        Raises:
            RknnError: RKNN_ERR_FAIL: init failed; contexts already created are destroyed. RKNN_ERR_MODEL_INVALID: the
                model does not give the type of a node's output.
        """
        self.op = rknn_custom_op.from_buffer_copy(op)
        self.op_type, self._keep = op_type, (op, keep)
        if op.target == _GPU:
            _log.warning(
                "rknn_register_custom_ops",
                f"No GPU is emulated: the callbacks of {op_type!r} run on the CPU, and gpu_ctx is NULL.",
            )
        self._nodes: dict[str, _Node] = {}
        infos = [graph.info(at) for at, node in enumerate(graph.nodes) if node.op_type == op_type]
        try:
            for info in infos:
                self._nodes[_key(info)] = _Node(self.op, info)
        except RknnError:
            self.close()
            raise

    def layer(self, node: NodeInfo) -> _CLayer:
        """The function with which a plan runs a node."""
        return _CLayer(self._nodes.get(_key(node)), node)

    def close(self) -> None:
        """Call destroy once for each node for which init was called."""
        nodes, self._nodes = self._nodes, {}
        for one in nodes.values():
            one.close()


def _key(node: NodeInfo) -> str:
    return next((value.name for value in node.outputs if value is not None), "")


class _Node:
    """One node: the structure passed to its callbacks."""

    def __init__(self, op: rknn_custom_op, info: NodeInfo) -> None:
        self.info, self.lock = info, threading.Lock()
        self.types = _output_types(info)
        self.context = rknn_custom_op_context(target=op.target, internal_ctx=next(_numbers))
        self._told: dict[str, tuple[int, int, Any]] = {}  # type, elements, and targets of get_op_attr's pointers
        self._steps = [
            (name, rknn_custom_op_callback(getattr(op, name))) for name in ("prepare", "compute") if getattr(op, name)
        ]
        self._destroy = rknn_custom_op_destroy(op.destroy) if op.destroy else None
        _nodes[self.context.internal_ctx] = self
        if op.init:
            made = [tensors([_described(*one) for one in side]) for side in (_types(info.inputs), _types(info.outputs))]
            status = self._call(rknn_custom_op_callback(op.init), *made)
            if status:
                del _nodes[self.context.internal_ctx]
                raise RknnError(RknnStatus.RKNN_ERR_FAIL, f"init of {said(info)} returned {status}.")

    def run(self, inputs: Any, outputs: Any) -> None:
        """Call prepare and compute.

        Raises:
            GraphError: RUN_FAILED: one of them did not return 0.
        """
        with self.lock:
            for name, callback in self._steps:
                if status := self._call(callback, inputs, outputs):
                    raise GraphError(Reason.RUN_FAILED, f"{name} of {said(self.info)} returned {status}.")

    def _call(self, callback: Any, inputs: Any, outputs: Any) -> int:
        return int(callback(ctypes.byref(self.context), inputs, len(inputs), outputs, len(outputs)))

    def tell(self, name: str, attr: rknn_custom_op_attr) -> None:
        """Fill in the requested attribute; its data lives as long as the node."""
        attr.name, attr.dtype, attr.n_elems, attr.data = (
            name.encode()[: RKNN_MAX_NAME_LEN - 1],
            element.RKNN_TENSOR_UINT8,
            0,
            None,
        )
        value = self.info.attributes.get(name, self.info.name if name == "name" else None)
        if value is None:
            return
        if name not in self._told:
            is_text = isinstance(value, str)
            held = np.frombuffer(f"{value}\0".encode(), np.uint8) if is_text else np.ascontiguousarray(value)
            if held.dtype == np.float64:  # ONNX's attributes are float32
                held = held.astype(np.float32)
            if held.dtype.name not in DTYPES:
                _log.warning(
                    "rknn_custom_op_get_op_attr",
                    f"{said(self.info)}: the attribute {name!r} is neither a number nor a string.",
                )
                return
            self._told[name] = int(DTYPES[held.dtype.name]), held.size - is_text, held
        attr.dtype, attr.n_elems, held = self._told[name]
        attr.data = held.ctypes.data

    def close(self) -> None:
        """Call destroy, which may still query attributes."""
        if self._destroy is not None and (status := self._destroy(ctypes.byref(self.context))):
            _log.warning("rknn_destroy", f"destroy of {said(self.info)} returned {status}.")
        _nodes.pop(self.context.internal_ctx, None)


def get_op_attr(context: rknn_custom_op_context, name: str, attr: rknn_custom_op_attr) -> None:
    """Return an attribute of a context's node, including "name".

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: the context is not from a callback.
    """
    node = _nodes.get(context.internal_ctx)
    if node is None:
        raise invalid_parameter("op_ctx was not passed to a callback, or its rknn_destroy was called.")
    node.tell(name, attr)


def said(node: NodeInfo) -> str:
    """A node's name in messages."""
    return f"the op {node.op_type!r} (node {node.name!r})"


def _output_types(node: NodeInfo) -> list[TensorType]:
    found = []
    for value in node.outputs:
        if value is None:
            continue
        if value.dtype is None or value.shape is None or min(value.shape, default=0) < 0:
            raise RknnError(
                RknnStatus.RKNN_ERR_MODEL_INVALID,
                f"The model does not specify the shape and type of {value.name!r} of {said(node)}, and C callbacks "
                "cannot: convert it with fixed shapes, without dynamic_input.",
            )
        found.append(TensorType(value.shape, value.dtype))
    return found


def _types(values: Sequence[Value | None]) -> list[tuple[str, TensorType]]:
    return [
        (one.name, TensorType(one.shape, np.dtype(np.float32) if one.dtype is None else one.dtype))
        for one in values
        if one is not None
    ]


def _described(name: str, kind: TensorType) -> rknn_custom_op_tensor:
    shape = kind.shape if kind.shape is not None and min(kind.shape, default=0) >= 0 else ()
    count = int(np.prod(shape, dtype=np.int64))
    if kind.dtype.name not in DTYPES or len(shape) > RKNN_MAX_DIMS:
        raise RknnError(
            RknnStatus.RKNN_ERR_MODEL_INVALID,
            f"{name!r} is {kind.dtype} with {len(shape)} dimensions, which rknn_tensor_attr does not support.",
        )
    fmt = rknn_tensor_format.RKNN_TENSOR_NCHW if len(shape) == 4 else rknn_tensor_format.RKNN_TENSOR_UNDEFINED
    size = count * kind.dtype.itemsize
    attr = rknn_tensor_attr(
        name=name.encode()[: RKNN_MAX_NAME_LEN - 1], n_dims=len(shape), n_elems=count, size=size, fmt=fmt,
        type=DTYPES[kind.dtype.name], scale=1.0, size_with_stride=size,
    )  # fmt: skip
    attr.dims[: len(shape)] = shape
    return rknn_custom_op_tensor(attr=attr, mem=rknn_tensor_mem(fd=-1, size=size))


def tensors(made: Sequence[rknn_custom_op_tensor]) -> Any:
    """The array for a callback."""
    return (rknn_custom_op_tensor * len(made))(*made)


class _CLayer:
    """A node computed by C callbacks."""

    processor = "CPU"

    def __init__(self, node: _Node | None, info: NodeInfo) -> None:
        self._node, self._info = node, info
        self._last: list[Any] = []
        self._made: tuple[Any, Any] = ((), ())

    def decline(self) -> str:
        """Only a node inside the body of another."""
        return "it is in the body of an If, Loop or Scan" if self._info.is_nested or self._node is None else ""

    def set_up(self) -> None:
        """Empty: init has read the attributes."""

    def infer_shape(self, bottom: list[TensorType | None]) -> list[TensorType]:
        """The model's types."""
        del bottom
        assert self._node is not None  # noqa: S101 - see decline
        return self._node.types

    def forward(self, bottom: list[Any], top: list[Any], ctrl: Any) -> None:
        """Call prepare and compute on the tensors in place."""
        del ctrl
        assert self._node is not None  # noqa: S101 - see decline
        given = [*bottom, *top]
        if len(given) != len(self._last) or any(one is not last for one, last in zip(given, self._last, strict=True)):
            inputs, outputs = (
                tensors(
                    [
                        _at(value.name, view)
                        for value, view in zip(values, views, strict=True)
                        if value is not None and view is not None
                    ]
                )
                for values, views in ((self._info.inputs, bottom), (self._info.outputs, top))
            )
            self._last, self._made = given, (inputs, outputs)
        self._node.run(*self._made)

    def tear_down(self) -> None:
        """Does nothing: the op's contexts belong to the model."""


def _at(name: str, view: Any) -> rknn_custom_op_tensor:
    placed = view if isinstance(view, Placed) else None
    array: NDArray[Any] = view if placed is None else placed.array
    made = _described(name, TensorType(array.shape, array.dtype))
    if placed is None:
        made.mem.virt_addr = array.ctypes.data
    else:
        ctypes.memmove(ctypes.byref(made.mem), ctypes.byref(placed.mem), ctypes.sizeof(rknn_tensor_mem))
        made.mem.offset = placed.offset
    return made
