"""Files and bytes to a checked ModelProto; a bad model is refused with the reason before anything is built from it."""

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

MAX_BYTES = (1 << 31) - 1  # what protobuf reads
_COMPILED = (".hbm", ".bin")
MAX_DEPTH = 64  # of graphs in attributes of nodes; deeper is no model that a tool wrote


class ReadModel(NamedTuple):
    """A model as it was given.

    Attributes:
        proto: With its external data inside.
        name: File's name without its ending; for bytes the graph's name.
        path: The file; None for bytes.
    """

    proto: ModelProto
    name: str
    path: Path | None


def read_file(path: Path) -> ReadModel:
    """Read and check a model file, with the external data beside it.

    Raises:
        GraphError: UNREADABLE; else as ``read_bytes``.
    """
    try:
        found = path.stat()
        if found.st_size > MAX_BYTES:
            raise incompatible(f"{path} has {found.st_size} bytes; a model has at most {MAX_BYTES}.")
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
    return GraphError(Reason.UNREADABLE, f"The model file {path} cannot be read: {why}; check the path.")


def read_bytes(data: bytes | memoryview, label: str) -> ReadModel:
    """Read and check a model in memory.

    Args:
        data: Serialized ModelProto.
        label: What to call it in a message.

    Raises:
        GraphError: INVALID for bytes that are not sound model, INCOMPATIBLE for one that cannot be carried.
    """
    proto = _parse(bytes(data), label)
    for tensor in _tensors(proto.graph, 0):
        if uses_external_data(tensor):
            raise invalid(
                f"{label} keeps the tensor {tensor.name!r} in a separate file; in memory there is no directory to "
                "find it in. Load the model from its file, or save it with its data inside."
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
        raise invalid(f"{label} is not an ONNX model, or is cut short: {one_line(error)}.{_hint(label)}") from None
    _check_texts(proto, label)
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise invalid(f"{label} has no graph; it is not an ONNX model, or is cut short.{_hint(label)}")
    return proto


def _hint(label: str) -> str:
    if not label.endswith(_COMPILED):
        return ""
    return (
        " What is compiled for a board runs there alone: put the ONNX file that it was made from in its place, by "
        f"'hbrt model new FILE.onnx --as {Path(label).name} --input nv12' where the program gives NV12."
    )


def _check_texts(message: Message, label: str) -> None:
    """Every name is UTF-8: protobuf hands over as bytes what is not, and onnxruntime fails on it while it complains."""
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
            f"{path} keeps data in files beside it, and they cannot be read: {one_line(error).rstrip('.')}. Put them "
            "there."
        ) from None


def _tensors(graph: GraphProto, depth: int) -> list[TensorProto]:
    """All tensors of a graph and of the graphs inside its nodes."""
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
    """Structure that every later step leans on: op sets, names, order of nodes. Types are onnxruntime's to check."""
    if not proto.opset_import:
        raise invalid(f"{label} names no op set.")
    newest = onnx.defs.onnx_opset_version()
    for entry in proto.opset_import:
        if entry.domain in {"", "ai.onnx"} and not 1 <= entry.version <= newest:
            raise incompatible(f"{label} uses op set {entry.version}; this runtime knows 1 to {newest}.")
    if proto.ir_version < 1:
        raise invalid(f"{label} has no IR version.")
    if proto.ir_version > onnx.IR_VERSION:
        raise incompatible(f"{label} has IR version {proto.ir_version}; this runtime knows up to {onnx.IR_VERSION}.")
    graph = proto.graph
    if not graph.output:
        raise invalid(f"{label} has no output.")
    _check_names(graph, label)
    _check_order(graph, label)


def _check_names(graph: GraphProto, label: str) -> None:
    """Every input and output has its own name, which C can hold."""
    for kind, values in (("input", graph.input), ("output", graph.output)):
        names = [value.name for value in values]
        if "" in names:
            raise invalid(f"{label} has an {kind} without a name.")
        for name in names:
            if "\0" in name:  # C could not tell it
                raise invalid(f"{label} is damaged: the name of its {kind} {name!r} has a zero byte.")
        if len(set(names)) < len(names):
            raise invalid(f"{label} has two {kind}s of one name.")


def _check_order(graph: GraphProto, label: str) -> None:
    """Every value is made once, and before it is used: so there is no cycle."""
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
                    "is made by a later node or by itself: the graph has a cycle or is not sorted"
                    if name in late
                    else "is made by nobody"
                )
                raise invalid(f"{label}: {what} uses the value {name!r}, which {why}.")
        for name in node.output:
            if name and name in made:
                raise invalid(f"{label}: {what} makes the value {name!r}, which already exists.")
            made.add(name)
    for value in graph.output:
        if value.name not in made:
            raise invalid(f"{label}: the output {value.name!r} is made by nobody.")
