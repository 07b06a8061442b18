"""What iDMA may move: the rules for transfers, and how bytes are moved, without engine or clock."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Final, NamedTuple

from dsp_server.hardware.buffers import address_of, bytes_view

if TYPE_CHECKING:
    from dsp_server.hardware.buffers import BufferLike

IDMA_OK: Final = 0
IDMA_ERR_BAD_TRANSFER: Final = -1
IDMA_ERR_QUEUE_FULL: Final = -2
IDMA_ERR_UNKNOWN_HANDLE: Final = -3

FEW_ROWS: Final = 8
"""Up to this many rows a 2-D copy is a loop over rows; above, numpy's setup cost pays off."""


class IdmaError(Exception):
    """Base class of the engine's refusals; the C names return `code`."""

    code = IDMA_ERR_BAD_TRANSFER


class BadTransfer(IdmaError, ValueError):
    """Sizes, pitches or buffers that do not allow a transfer. Nothing was queued."""


class QueueFull(IdmaError):
    """The queue is full of outstanding descriptors. Nothing was queued."""

    code = IDMA_ERR_QUEUE_FULL


class UnknownHandle(IdmaError, LookupError):
    """A handle that no descriptor has had."""

    code = IDMA_ERR_UNKNOWN_HANDLE


class Shape(NamedTuple):
    """Rows of a 2-D transfer; a pitch is the number of bytes from one row's start to the next."""

    row_bytes: int
    num_rows: int
    src_pitch_bytes: int
    dst_pitch_bytes: int


def checked_copy(dst: BufferLike, src: BufferLike, size_bytes: int | None) -> tuple[memoryview, memoryview]:
    """Return the bytes that a flat copy moves: destination and source, of equal length.

    Raises:
        BadTransfer: a size beyond either buffer, overlapping buffers, or an unusable buffer.
    """
    to, from_ = writable("destination", dst), usable("source", src)
    if size_bytes is None:
        if to.nbytes != from_.nbytes:
            raise BadTransfer(
                f"The destination has {to.nbytes} bytes, the source {from_.nbytes}: say how many to copy."
            )
        size_bytes = to.nbytes
    size_bytes = _count("size in bytes", size_bytes)
    _check_inside("source", size_bytes, from_)
    _check_inside("destination", size_bytes, to)
    to, from_ = to[:size_bytes], from_[:size_bytes]
    check_apart(to, from_)
    return to, from_


def checked_copy_2d(dst: BufferLike, src: BufferLike, shape: Shape) -> tuple[memoryview, memoryview, Shape]:
    """Return the bytes that a 2-D copy moves, each from the start of its first row to the end of its last row.

    Raises:
        BadTransfer: see `checked_copy`, or a pitch shorter than a row.
    """
    to, from_ = writable("destination", dst), usable("source", src)
    shape = Shape(
        _count("row in bytes", shape.row_bytes),
        _count("number of rows", shape.num_rows),
        _count("source pitch in bytes", shape.src_pitch_bytes),
        _count("destination pitch in bytes", shape.dst_pitch_bytes),
    )
    to = to[: _extent("destination", shape, shape.dst_pitch_bytes, to)]
    from_ = from_[: _extent("source", shape, shape.src_pitch_bytes, from_)]
    if not _side_by_side(to, from_, shape):
        check_apart(to, from_)
    return to, from_, shape


def check_apart(dst: memoryview, src: memoryview) -> None:
    """Raise BadTransfer if two views share bytes."""
    gap_bytes = address_of(dst) - address_of(src)
    if dst.nbytes and src.nbytes and -dst.nbytes < gap_bytes < src.nbytes:
        raise BadTransfer(
            f"Source and destination overlap: {src.nbytes} and {dst.nbytes} bytes that start {gap_bytes:+} "
            "bytes apart. iDMA moves bytes in no fixed order; copy through another buffer."
        )


def move_rows(dst: memoryview, src: memoryview, shape: Shape) -> None:
    """Move the bytes of a checked 2-D transfer."""
    row_bytes, num_rows, src_pitch_bytes, dst_pitch_bytes = shape
    if not row_bytes:
        return
    if num_rows <= FEW_ROWS:
        for row in range(num_rows):
            to, from_ = row * dst_pitch_bytes, row * src_pitch_bytes
            dst[to : to + row_bytes] = src[from_ : from_ + row_bytes]
        return
    import numpy as np

    rows_of_dst = np.ndarray((num_rows, row_bytes), np.uint8, dst, strides=(dst_pitch_bytes, 1))
    rows_of_dst[:] = np.ndarray((num_rows, row_bytes), np.uint8, src, strides=(src_pitch_bytes, 1))


def usable(side: str, buffer: BufferLike) -> memoryview:
    """Return the buffer's bytes. Raises BadTransfer, naming the side, if it is not a buffer or was freed."""
    try:
        return bytes_view(buffer)
    except TypeError as error:
        raise BadTransfer(f"The {side} ({type(buffer).__name__}) is not a usable buffer: {error}.") from None
    except ValueError:
        raise BadTransfer(f"The {side} was freed: allocate it again.") from None


def writable(side: str, buffer: BufferLike) -> memoryview:
    """Return the buffer's bytes for writing. Raises BadTransfer like `usable`, or if it is read-only."""
    view = usable(side, buffer)
    if view.readonly:
        raise BadTransfer(f"The {side} is read-only: iDMA needs a writable buffer.")
    return view


def _count(what: str, value: int) -> int:
    try:
        value = index(value)
    except TypeError:
        raise BadTransfer(f"The {what} is {value!r}: pass an integer.") from None
    if value < 0:
        raise BadTransfer(f"The {what} is {value}: it must be 0 or more.")
    return value


def _check_inside(side: str, size_bytes: int, view: memoryview) -> None:
    if size_bytes > view.nbytes:
        raise BadTransfer(
            f"A transfer of {size_bytes} bytes runs past the {side}, which has {view.nbytes}: make it smaller."
        )


def _extent(side: str, shape: Shape, pitch_bytes: int, view: memoryview) -> int:
    """Bytes from the start of the first row to the end of the last row."""
    if shape.num_rows > 1 and pitch_bytes < shape.row_bytes:
        raise BadTransfer(
            f"The {side} pitch of {pitch_bytes} bytes is shorter than a row of {shape.row_bytes}: "
            "give the pitch in bytes, not in elements."
        )
    extent_bytes = (shape.num_rows - 1) * pitch_bytes + shape.row_bytes if shape.num_rows else 0
    _check_inside(side, extent_bytes, view)
    return extent_bytes


def _side_by_side(dst: memoryview, src: memoryview, shape: Shape) -> bool:
    """Whether rows with equal pitch are in different columns: part of an image copied next to itself."""
    pitch_bytes = shape.src_pitch_bytes
    if pitch_bytes != shape.dst_pitch_bytes or not pitch_bytes:
        return False
    column = (address_of(dst) - address_of(src)) % pitch_bytes
    return shape.row_bytes <= column <= pitch_bytes - shape.row_bytes
