"""Load files and bytes into a checked ModelProto; a bad model is refused before anything is built from it."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import NamedTuple

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto
from onnx.checker import ValidationError
from onnx.external_data_helper import load_external_data_for_model, uses_external_data

from hbrt.models.errors import GraphError, Reason, incompatible, invalid, one_line

MAX_BYTES = (1 << 31) - 1  # protobuf's limit
_COMPILED = (".hbm", ".bin")
MAX_DEPTH = 64  # of graphs in node attributes; no tool writes deeper models


class ReadModel(NamedTuple):
    """A loaded model.

    Attributes:
        proto: The model, including its external data.
        name: File name without suffix; for bytes the graph's name.
        path: The file; None for bytes.
    """

    proto: ModelProto
    name: str
    path: Path | None


def read_file(path: Path) -> ReadModel:
    """Read and check a model file, with the external data next to it.

    Raises:
        GraphError: UNREADABLE; otherwise as for ``read_bytes``.
    """
    try:
        found = path.stat()
        if found.st_size > MAX_BYTES:
            raise incompatible(f"{path} has {found.st_size} bytes; the limit is {MAX_BYTES}.")
        if not stat.S_ISREG(found.st_mode):  # a pipe or a device may never end
            raise _unreadable(path, "It is a directory" if path.is_dir() else "It is not a regular file")
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from None
    proto = _parse(data, str(path))
    _load_external(proto, path)
    _check(proto, str(path))
    return ReadModel(proto, path.stem, path)


def _unreadable(path: Path, why: str) -> GraphError:
    return GraphError(Reason.UNREADABLE, f"Cannot read the model file {path}: {why}; check the path.")


def read_bytes(data: bytes | memoryview, label: str) -> ReadModel:
    """Read and check a model in memory.

    Args:
        data: Serialized ModelProto.
        label: Its name in error messages.

    Raises:
        GraphError: INVALID if the bytes are not a valid model, INCOMPATIBLE if the model is not supported.
    """
    proto = _parse(bytes(data), label)
    for tensor in _tensors(proto.graph, 0):
        if uses_external_data(tensor):
            raise invalid(
                f"{label} keeps the tensor {tensor.name!r} in a separate file; a model in memory has no directory to "
                "look in. Load the model from its file, or save it with its data included."
            )
    _check(proto, label)
    return ReadModel(proto, proto.graph.name or "model", None)


def _parse(data: bytes, label: str) -> ModelProto:
    if not data:
        raise invalid(f"{label} is empty.")
    proto = ModelProto()
    try:
        proto.ParseFromString(data)
    except (DecodeError, ValueError, RecursionError) as error:
        raise invalid(f"{label} is not an ONNX model, or is truncated: {one_line(error)}.{_hint(label)}") from None
    _check_texts(proto, label)
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise invalid(f"{label} has no graph; it is not an ONNX model, or is truncated.{_hint(label)}")
    return proto


def _hint(label: str) -> str:
    if label.endswith(".rknn"):
        return " Models for RKNN are loaded with rknnlite.api.RKNNLite or rknn_init."
    if not label.endswith(_COMPILED):
        return ""
    return (
        " Compiled models only run on the board: replace it with the ONNX file that it was compiled from, using "
        f"'hbrt model new FILE.onnx --as {Path(label).name} --input nv12' if the program provides NV12."
    )


def _check_texts(message: Message, label: str) -> None:
    """Check that every name is UTF-8: protobuf returns others as bytes, and onnxruntime fails while reporting them."""
    for field, value in message.ListFields():
        if field.type not in {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE}:
            continue
        for one in (value,) if isinstance(value, (str, bytes, Message)) else value:
            if isinstance(one, bytes):
                raise invalid(f"{label} is damaged: its {field.full_name} {one[:40]!r} is not UTF-8 text.")
            if not isinstance(one, str):
                _check_texts(one, label)


def _load_external(proto: ModelProto, path: Path) -> None:
    if not any(uses_external_data(tensor) for tensor in _tensors(proto.graph, 0)):
        return
    try:
        load_external_data_for_model(proto, str(path.parent))
    except (OSError, ValueError, ValidationError, RuntimeError, EOFError) as error:
        raise invalid(
            f"{path} keeps data in files next to it that cannot be read: {one_line(error).rstrip('.')}. Put them there."
        ) from None


def _tensors(graph: GraphProto, depth: int) -> list[TensorProto]:
    """Yield all tensors of a graph and of the graphs inside its nodes."""
    if depth > MAX_DEPTH:
        raise invalid(f"Graphs are nested more than {MAX_DEPTH} deep.")
    found = list(graph.initializer)
    for sparse in graph.sparse_initializer:
        found += [sparse.values, sparse.indices]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                found.append(attribute.t)
            elif attribute.type == AttributeProto.TENSORS:
                found += attribute.tensors
            elif attribute.type == AttributeProto.GRAPH:
                found += _tensors(attribute.g, depth + 1)
            elif attribute.type == AttributeProto.GRAPHS:
                for inner in attribute.graphs:
                    found += _tensors(inner, depth + 1)
    return found


def _check(proto: ModelProto, label: str) -> None:
    """Check the structure that later steps rely on: opsets, names, node order. onnxruntime checks types."""
    if not proto.opset_import:
        raise invalid(f"{label} specifies no opset.")
    newest = onnx.defs.onnx_opset_version()
    for entry in proto.opset_import:
        if entry.domain in {"", "ai.onnx"} and not 1 <= entry.version <= newest:
            raise incompatible(f"{label} uses opset {entry.version}; this runtime supports 1 to {newest}.")
    if proto.ir_version < 1:
        raise invalid(f"{label} has no IR version.")
    if proto.ir_version > onnx.IR_VERSION:
        raise incompatible(f"{label} has IR version {proto.ir_version}; this runtime supports up to {onnx.IR_VERSION}.")
    graph = proto.graph
    if not graph.output:
        raise invalid(f"{label} has no output.")
    _check_names(graph, label)
    _check_order(graph, label)


def _check_names(graph: GraphProto, label: str) -> None:
    """Check that every input and output has a unique name that C can hold."""
    for kind, values in (("input", graph.input), ("output", graph.output)):
        names = [value.name for value in values]
        if "" in names:
            raise invalid(f"{label} has an {kind} without a name.")
        for name in names:
            if "\0" in name:  # C could not represent it
                raise invalid(f"{label} is damaged: the name of its {kind} {name!r} has a zero byte.")
        if len(set(names)) < len(names):
            raise invalid(f"{label} has two {kind}s with the same name.")


def _check_order(graph: GraphProto, label: str) -> None:
    """Check that every value is produced once, and before its use, so there is no cycle."""
    made = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    made |= {sparse.values.name for sparse in graph.sparse_initializer} | {""}
    late = {name for node in graph.node for name in node.output}
    for at, node in enumerate(graph.node):
        what = f"node {at} ({node.op_type} {node.name!r})"
        if not node.op_type:
            raise invalid(f"{label}: node {at} has no type.")
        for name in node.input:
            if name not in made:
                why = (
                    "is produced by a later node or by itself: the graph has a cycle or is not sorted"
                    if name in late
                    else "nothing produces"
                )
                raise invalid(f"{label}: {what} uses the value {name!r}, which {why}.")
        for name in node.output:
            if name and name in made:
                raise invalid(f"{label}: {what} produces the value {name!r}, which already exists.")
            made.add(name)
    for value in graph.output:
        if value.name not in made:
            raise invalid(f"{label}: nothing produces the output {value.name!r}.")
