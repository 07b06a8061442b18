"""The model file of this emulator: an .rknn file in its own format, which is not compatible with a board's.

A header, a JSON text that describes the model, and sections of bytes::

    0   char[8]  "HBRTRKNN"
    8   uint32   version of the layout, 1
    12  uint32   bytes of the JSON text
    16  uint32   CRC-32 of the JSON text
    20  uint32   0
    24  the JSON text, UTF-8
        sections, each at a multiple of 64 bytes of the file

All numbers are little-endian. The section ``graph`` is an ONNX model. Its inputs are real numbers in the layout of the
converted model, as passed by the program: the file itself applies mean and deviation, and a quantized model's
QuantizeLinear and DequantizeLinear. Other sections are kept unchanged.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Self

from hbrt.borders.regular_files import read_regular
from rknn_api.encryption import decrypted, is_encrypted
from rknn_api.errors import RknnError, RknnStatus, invalid_model

if TYPE_CHECKING:
    from onnx import ModelProto

MAGIC = b"HBRTRKNN"
VERSION = 1
GRAPH = "graph"
NORMALIZED = "rknn_normalize"
"""Prefix of the names of the graph's nodes that subtract the mean and divide by the deviation."""
TYPES = frozenset(
    {
        *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float16", "float32", "float64", "bfloat16", "int4", "uint4"),
    }
)
"""Possible types of a tensor, with numpy's names."""
_TYPES_OF_METADATA: Mapping[str, type] = {
    **dict.fromkeys(("target_platform", "name", "quantized_dtype", "custom_string"), str),
    **dict.fromkeys(("rknn_batch_size", "optimization_level"), int),
    "remove_weight": bool,
    "extra": dict,
}
_TYPES_OF_TENSOR: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("name", "dtype", "stored", "stored_name"), str),
    "scale": (int, float),
    "zero_point": int,
}
_HEAD = struct.Struct("<8sIIII")
MAX_MODEL_BYTES = 4 << 30
_ALIGN = 64
_VENDORS_MAGIC = b"RKNN"  # how files for a board begin


@dataclass(frozen=True)
class TensorInfo:
    """One input or output of a model, for one image: a batch has ``rknn_batch_size`` of them along dimension 0.

    Attributes:
        name: As in the graph.
        shape: As in the graph; the largest of ``Metadata.dynamic_input`` for a model with several shapes; -1 if only
            the data decides the size of an output.
        dtype: Type of the graph's own tensor, as a numpy name; the program's type by default.
        stored: Type of the tensor inside: "int8" or "int16" if it is quantized, "float16" for other real numbers, or
            ``dtype``.
        scale: real = (stored - zero_point) * scale; 1.0 if it is not quantized.
        zero_point: 0 if it is not quantized.
        layout: "NCHW" or "NHWC" for a four-dimensional tensor in the graph; otherwise "UNDEFINED".
        mean: Mean subtracted by the model, one per channel; may be empty. Only for inputs.
        std: Deviation divided by in the model, one per channel; may be empty.
        stored_name: The graph's tensor of the type ``stored``: the output of a QuantizeLinear after an input, or the
            input of an output's DequantizeLinear; "" if there is none.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    stored: str
    scale: float = 1.0
    zero_point: int = 0
    layout: str = "UNDEFINED"
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    stored_name: str = ""


@dataclass(frozen=True)
class Metadata:
    """The contents of the JSON text.

    Attributes:
        target_platform: Chip that the model is for, such as "rk3588".
        inputs: In the graph's order.
        outputs: In the graph's order.
        name: Name of the model.
        quantized_dtype: Such as "w8a8"; "" for an unquantized model.
        rknn_batch_size: Images per run.
        dynamic_input: Shapes by set and input, the first largest set first; empty for a model with one shape.
        dynamic_output: Shapes of the outputs by set; empty for a model with one shape.
        custom_string: Set by the program.
        custom_ops: Op types that must be registered at run time.
        remove_weight: Whether the weights were omitted because they are shared from another model.
        optimization_level: As configured.
        extra: Other data that the toolkit stores.
    """

    target_platform: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    name: str = "model"
    quantized_dtype: str = ""
    rknn_batch_size: int = 1
    dynamic_input: tuple[tuple[tuple[int, ...], ...], ...] = ()
    dynamic_output: tuple[tuple[tuple[int, ...], ...], ...] = ()
    custom_string: str = ""
    custom_ops: tuple[str, ...] = ()
    remove_weight: bool = False
    optimization_level: int = 3
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Container:
    """A model file's content.

    Attributes:
        metadata: The description.
        sections: Bytes by name; ``graph`` always exists.
    """

    metadata: Metadata
    sections: Mapping[str, bytes | memoryview]

    @property
    def graph(self) -> bytes | memoryview:
        """The serialized ONNX model."""
        return self.sections[GRAPH]

    def proto(self) -> ModelProto:
        """The graph, parsed again.

        Raises:
            RknnError: RKNN_ERR_MODEL_INVALID: it is not an ONNX model, or does not match the description.
        """
        from google.protobuf.message import DecodeError
        from onnx import ModelProto

        from hbrt.models.spec.graph_edits import graph_inputs

        name = self.metadata.name
        try:
            made: ModelProto = ModelProto.FromString(bytes(self.graph))
        except DecodeError as error:
            raise invalid_model(f"The model {name!r} is damaged: its graph cannot be read: {error}.") from None
        sides = {
            "inputs": (self.metadata.inputs, graph_inputs(made.graph)),
            "outputs": (self.metadata.outputs, made.graph.output),
        }
        for what, (infos, values) in sides.items():
            described, has = [info.name for info in infos], [value.name for value in values]
            if described != has:
                raise invalid_model(
                    f"The model {name!r} is damaged: it describes the {what} {described}, but its graph has {has}."
                )
        return made

    def to_bytes(self) -> bytes:
        """The file's bytes."""
        places: dict[str, list[int]] = {}
        end = 0  # sections count from the first multiple of 64 after the text, so its own length does not move them
        for name, data in self.sections.items():
            places[name] = [end, len(data), zlib.crc32(data)]
            end += _aligned(len(data))
        text = json.dumps({"model": asdict(self.metadata), "sections": places}).encode()
        out = bytearray(_aligned(_HEAD.size + len(text)) + end)
        _HEAD.pack_into(out, 0, MAGIC, VERSION, len(text), zlib.crc32(text), 0)
        out[_HEAD.size : _HEAD.size + len(text)] = text
        start = len(out) - end
        for name, data in self.sections.items():
            at = start + places[name][0]
            out[at : at + len(data)] = data
        return bytes(out)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, label: str = "The model") -> Self:
        """Read a file's bytes. Sections are views of them, not copies.

        Args:
            data: The whole file.
            label: Its name in messages.

        Raises:
            RknnError: RKNN_ERR_MODEL_INVALID: it is not such a file, is damaged or truncated; the message says which.
        """
        view = memoryview(data)
        if is_encrypted(view):
            view = memoryview(decrypted(view, label))
        text, start = _text(view, label)
        try:
            described = json.loads(text)
            metadata = _metadata(described["model"])
            places = {str(name): [int(number) for number in place] for name, place in described["sections"].items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise invalid_model(f"{label} is damaged: its description cannot be read: {error!r}.") from None
        sections: dict[str, bytes | memoryview] = {}
        for name, place in places.items():
            found = _section(view, start, place)
            if found is None:
                raise invalid_model(f"{label} is damaged: its section {name!r} is truncated or changed.")
            sections[name] = found
        if GRAPH not in sections:
            raise invalid_model(f"{label} has no section 'graph'.")
        return cls(metadata, sections)

    def write(self, path: Path) -> None:
        """Write the file; raises as ``written``."""
        written(path, self.to_bytes())

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file.

        Raises:
            RknnError: RKNN_ERR_MODEL_INVALID: it cannot be read, or as ``from_bytes``.
        """
        return cls.from_bytes(read(path), f"The model file {path}")


def written(path: Path, data: bytes) -> None:
    """Write a model file atomically: concurrent readers see the complete old file.

    Raises:
        RknnError: RKNN_ERR_FAIL: it cannot be written, and why.
    """
    new = path.parent / f".{path.name}.{token_hex(4)}"
    try:
        new.write_bytes(data)
        new.replace(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise RknnError(
            RknnStatus.RKNN_ERR_FAIL, f"The model file {path} cannot be written: {error.strerror}."
        ) from None


def read(path: Path) -> bytes:
    """The bytes of a model file.

    Raises:
        RknnError: RKNN_ERR_MODEL_INVALID: it cannot be read.
    """
    try:
        return read_regular(path, MAX_MODEL_BYTES)
    except OSError as error:
        raise invalid_model(f"The model file {path} cannot be read: {error.strerror}; check the path.") from None


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


def _text(view: memoryview, label: str) -> tuple[bytes, int]:
    """The JSON text, and where the sections begin."""
    if len(view) < _HEAD.size or view[: len(MAGIC)] != MAGIC:
        if view[:4] == _VENDORS_MAGIC:
            raise invalid_model(
                f"{label} is for a board: it runs only there. Convert the ONNX file that it was made from: "
                "RKNN().load_onnx, build, export_rknn."
            )
        raise invalid_model(f"{label} is not an RKNN model of this emulator; create one with RKNN().export_rknn.")
    _, version, size, crc, _ = _HEAD.unpack_from(view)
    if version != VERSION:
        raise invalid_model(f"{label} has format version {version}; this emulator reads {VERSION}. Export it again.")
    text = bytes(view[_HEAD.size : _HEAD.size + size])
    if len(text) != size or zlib.crc32(text) != crc:
        raise invalid_model(f"{label} is damaged: its description is truncated or changed.")
    return text, _aligned(_HEAD.size + size)


def _section(view: memoryview, start: int, place: list[int]) -> memoryview | None:
    if len(place) != 3 or min(place) < 0:
        return None
    offset, size, crc = place
    found = view[start + offset : start + offset + size]
    return found if len(found) == size and zlib.crc32(found) == crc else None


def _metadata(read: Mapping[str, Any]) -> Metadata:
    known = {one.name: read[one.name] for one in fields(Metadata) if one.name in read}
    known["inputs"] = tuple(_tensor(one) for one in known["inputs"])
    known["outputs"] = tuple(_tensor(one) for one in known["outputs"])
    for name in ("dynamic_input", "dynamic_output"):
        known[name] = tuple(tuple(tuple(int(size) for size in shape) for shape in one) for one in known.get(name, ()))
    known["custom_ops"] = tuple(str(one) for one in known.get("custom_ops", ()))
    made = Metadata(**known)
    _check_types(made, _TYPES_OF_METADATA)
    if made.rknn_batch_size < 1:
        raise ValueError(f"rknn_batch_size is {made.rknn_batch_size}")
    for sets, edges in ((made.dynamic_input, made.inputs), (made.dynamic_output, made.outputs)):
        if any(len(one) != len(edges) for one in sets):
            raise ValueError(f"sets of shapes are {sets}, for {len(edges)} tensors")
    return made


def _check_types(made: Metadata | TensorInfo, types: Mapping[str, type | tuple[type, ...]]) -> None:
    for name, kind in types.items():
        if not isinstance(value := getattr(made, name), kind):
            raise ValueError(f"{name} is {value!r}")  # noqa: TRY004 - from a file, not from a program


def _tensor(read: Mapping[str, Any]) -> TensorInfo:
    known = {one.name: read[one.name] for one in fields(TensorInfo) if one.name in read}
    known["shape"] = tuple(int(size) for size in known["shape"])
    for name in ("mean", "std"):
        known[name] = tuple(float(number) for number in known.get(name, ()))
    made = TensorInfo(**known)
    _check_types(made, _TYPES_OF_TENSOR)
    if {made.dtype, made.stored} - TYPES or (made.layout != "UNDEFINED") != (len(made.shape) == 4):
        raise ValueError(f"{made.name} is {made.dtype}, {made.stored} of {made.shape} in {made.layout}")
    return made
