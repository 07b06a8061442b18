"""What a program asks of an accelerator core: a block of device memory with a header and a description. Pure.

The description is a msgpack map that stays the same as long as a model runs on the same tensors. The core keeps what it
made of it under its bytes, so that a run costs it one lookup. Tensors are told by physical address: nothing is copied.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

CMD = 0x1000  # of the accelerator cores alone: the core mask names them
LOAD_PRIORITY = 253  # of a task that loads: the highest that interrupts nothing
HEADER = struct.Struct("<II")  # 1 when the run is to end at the next node, which the program may write later; bytes
STOP_AT = 0
LENGTH = struct.Struct("<I")  # of an answer, before it


class Tensor(NamedTuple):
    """A tensor in device memory.

    Attributes:
        name: In the model.
        phy_addr: Of its first byte; it lies C-contiguous.
        dtype: As numpy writes it, such as "<f4".
        shape: Its sizes; None for an output whose sizes only the run tells.
        room_bytes: Of such an output: what there is at its address.
    """

    name: str
    phy_addr: int
    dtype: str
    shape: tuple[int, ...] | None
    room_bytes: int = 0


class Request(NamedTuple):
    """Load a model, without tensors; or run it on them.

    Attributes:
        key: Of the model's file, see ``file_of``.
        threads: Of its session; 0 for the core's own choice.
        inputs: None to load alone.
        outputs: Those that are wanted.
        modelled_ns: What a run takes on the board, see ``hbrt.accelerators``; 0 where it is not known.
        ddr_bytes: What it moves there.
    """

    key: str
    threads: int
    inputs: tuple[Tensor, ...] | None = None
    outputs: tuple[Tensor, ...] = ()
    modelled_ns: int = 0
    ddr_bytes: int = 0


class Loaded(NamedTuple):
    """What a core says of a model: names and types as onnxruntime writes them, and shapes."""

    inputs: list[str]
    outputs: list[tuple[str, str, list[Any]]]


class Sizes(NamedTuple):
    """Of a run: the sizes of the outputs that had none. One that has no room was not written."""

    shapes: list[list[int]]


class Failed(NamedTuple):
    """Why a core did not: the name of a Reason, and the sentence."""

    reason: str
    text: str


def file_of(board: Path, key: str) -> Path:
    """The model of a key in a board's directory.

    Raises:
        ValueError: the key is none.
    """
    if not key.isalnum():
        raise ValueError(f"{key!r} is not a key of a model.")
    return board / f"model-{key}.onnx"


def pack(request: Request) -> bytes:
    """A request's description."""
    tensors = [None if side is None else [tuple(one) for one in side] for side in (request.inputs, request.outputs)]
    return bytes(msgpack.packb([request.key, request.threads, *tensors, request.modelled_ns, request.ddr_bytes]))


def unpack(raw: bytes) -> Request:
    """The request that ``pack`` packed."""
    key, threads, *sides, modelled_ns, ddr_bytes = msgpack.unpackb(raw)
    inputs, outputs = (
        None
        if side is None
        else tuple(
            Tensor(name, phy, kind, None if shape is None else tuple(shape), room)
            for name, phy, kind, shape, room in side
        )
        for side in sides
    )
    return Request(key, threads, inputs, outputs or (), modelled_ns, ddr_bytes)


def pack_answer(answer: Loaded | Sizes | Failed, most_bytes: int) -> bytes:
    """An answer with its length before it; the text of a failure is cut to what fits."""
    raw = bytes(msgpack.packb(list(answer)))
    if len(raw) + LENGTH.size > most_bytes and isinstance(answer, Failed):
        return pack_answer(answer._replace(text=answer.text[: len(answer.text) // 2]), most_bytes)
    return LENGTH.pack(len(raw)) + raw


def unpack_answer(raw: memoryview | bytes) -> list[Any]:
    """The fields of an answer."""
    (size,) = LENGTH.unpack_from(raw)
    fields: list[Any] = msgpack.unpackb(bytes(raw[LENGTH.size : LENGTH.size + size]))
    return fields
