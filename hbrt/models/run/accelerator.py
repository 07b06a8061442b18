"""A program's request to an accelerator core: a block of device memory with a header and a description. Pure.

The description is a msgpack map that stays the same as long as a model runs on the same tensors. The core caches the
parsed result by these bytes, so a run costs one lookup. Tensors are given by physical address: nothing is copied.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

CMD = 0x1000  # only for accelerator cores, which the core mask names
LOAD_PRIORITY = 253  # for loading tasks: the highest that does not interrupt
HEADER = struct.Struct("<II")  # 1 if the run must end at the next node, which the program may write later; bytes
STOP_AT = 0
LENGTH = struct.Struct("<I")  # length before an answer


class Tensor(NamedTuple):
    """A tensor in device memory.

    Attributes:
        name: Name in the model.
        phy_addr: Address of its first byte; C-contiguous.
        dtype: numpy notation, such as "<f4".
        shape: Its sizes; None for an output whose sizes only the run determines.
        room_bytes: For such an output, the bytes available at its address.
    """

    name: str
    phy_addr: int
    dtype: str
    shape: tuple[int, ...] | None
    room_bytes: int = 0


class Request(NamedTuple):
    """A request to load a model (without tensors), or to run it.

    Attributes:
        key: Key of the model's file, see ``file_of``.
        threads: Threads of its session; 0 for the core's own choice.
        inputs: None to only load.
        outputs: The requested outputs.
        modeled_ns: Modeled run time on the board, see ``hbrt.accelerators``; 0 if unknown.
        ddr_bytes: DDR bytes that it moves there.
    """

    key: str
    threads: int
    inputs: tuple[Tensor, ...] | None = None
    outputs: tuple[Tensor, ...] = ()
    modeled_ns: int = 0
    ddr_bytes: int = 0


class Loaded(NamedTuple):
    """A core's description of a model: names and types in onnxruntime's notation, and shapes."""

    inputs: list[str]
    outputs: list[tuple[str, str, list[Any]]]


class Sizes(NamedTuple):
    """Result of a run: sizes of outputs that had none. An output that does not fit is not written."""

    shapes: list[list[int]]


class Failed(NamedTuple):
    """A core's failure: the name of a Reason, and the message."""

    reason: str
    text: str


def file_of(board: Path, key: str) -> Path:
    """Return the path of a key's model in a board's directory.

    Raises:
        ValueError: not a valid key.
    """
    if not key.isalnum():
        raise ValueError(f"{key!r} is not a model key.")
    return board / f"model-{key}.onnx"


def pack(request: Request) -> bytes:
    """Pack a request's description."""
    tensors = [None if side is None else [tuple(one) for one in side] for side in (request.inputs, request.outputs)]
    return bytes(msgpack.packb([request.key, request.threads, *tensors, request.modeled_ns, request.ddr_bytes]))


def unpack(raw: bytes) -> Request:
    """Unpack a request packed by ``pack``."""
    key, threads, *sides, modeled_ns, ddr_bytes = msgpack.unpackb(raw)
    inputs, outputs = (
        None
        if side is None
        else tuple(
            Tensor(name, phy, kind, None if shape is None else tuple(shape), room)
            for name, phy, kind, shape, room in side
        )
        for side in sides
    )
    return Request(key, threads, inputs, outputs or (), modeled_ns, ddr_bytes)


def pack_answer(answer: Loaded | Sizes | Failed, most_bytes: int) -> bytes:
    """Pack an answer, preceded by its length; truncates a failure's text to fit."""
    raw = bytes(msgpack.packb(list(answer)))
    if len(raw) + LENGTH.size > most_bytes and isinstance(answer, Failed):
        return pack_answer(answer._replace(text=answer.text[: len(answer.text) // 2]), most_bytes)
    return LENGTH.pack(len(raw)) + raw


def unpack_answer(raw: memoryview | bytes) -> list[Any]:
    """Unpack the fields of an answer."""
    (size,) = LENGTH.unpack_from(raw)
    fields: list[Any] = msgpack.unpackb(bytes(raw[LENGTH.size : LENGTH.size + size]))
    return fields
