"""What iDMA may move: the rules of a transfer and the moving of bytes, with no engine and no clock."""

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
"""Up to here a 2-D copy is a loop over rows; above, numpy's set-up cost pays."""


class IdmaError(Exception):
    """Base of the engine's refusals; the C names return `code`."""

    code = IDMA_ERR_BAD_TRANSFER


class BadTransfer(IdmaError, ValueError):
    """Sizes, pitches or buffers between which no bytes can be moved. Nothing was queued."""


class QueueFull(IdmaError):
    """As many descriptors are outstanding as the queue holds. Nothing was queued."""

    code = IDMA_ERR_QUEUE_FULL


class UnknownHandle(IdmaError, LookupError):
    """A handle that no descriptor has had."""

    code = IDMA_ERR_UNKNOWN_HANDLE


class Shape(NamedTuple):
    """Rows of a 2-D transfer; pitches are bytes from one row's start to the next one's."""

    row_bytes: int
    num_rows: int
    src_pitch_bytes: int
    dst_pitch_bytes: int


def checked_copy(dst: BufferLike, src: BufferLike, size_bytes: int | None) -> tuple[memoryview, memoryview]:
    """The bytes that a flat copy moves: destination, source, of one length.

    Raises:
        BadTransfer: a size beyond either buffer, buffers that overlap, or a buffer that cannot be used.
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
    """The bytes that a 2-D copy moves, each from its first row's start to its last row's end.

    Raises:
        BadTransfer: as `checked_copy`, or a pitch shorter than a row.
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
    """Raise BadTransfer when two views share bytes."""
    gap_bytes = address_of(dst) - address_of(src)
    if dst.nbytes and src.nbytes and -dst.nbytes < gap_bytes < src.nbytes:
        raise BadTransfer(
            f"Source and destination overlap: {src.nbytes} and {dst.nbytes} bytes that start {gap_bytes:+} "
            "bytes apart. iDMA moves bytes in no set order; copy by way of another buffer."
        )


def move_rows(dst: memoryview, src: memoryview, shape: Shape) -> None:
    """Move a checked 2-D transfer's bytes."""
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
    """The buffer's bytes. Raises BadTransfer, with the side's name, if it is not a buffer or was freed."""
    try:
        return bytes_view(buffer)
    except TypeError as error:
        raise BadTransfer(f"The {side} ({type(buffer).__name__}) is not a usable buffer: {error}.") from None
    except ValueError:
        raise BadTransfer(f"The {side} is a buffer that was freed: allocate it again.") from None


def writable(side: str, buffer: BufferLike) -> memoryview:
    """The buffer's bytes, to be written. Raises BadTransfer as `usable`, and when it is read-only."""
    view = usable(side, buffer)
    if view.readonly:
        raise BadTransfer(f"The {side} is read-only: iDMA writes into a writable buffer.")
    return view


def _count(what: str, value: int) -> int:
    try:
        value = index(value)
    except TypeError:
        raise BadTransfer(f"The {what} is {value!r}: pass a whole number.") from None
    if value < 0:
        raise BadTransfer(f"The {what} is {value}: it cannot be negative.")
    return value


def _check_inside(side: str, size_bytes: int, view: memoryview) -> None:
    if size_bytes > view.nbytes:
        raise BadTransfer(
            f"A transfer of {size_bytes} bytes runs past the {side}, which has {view.nbytes}: make it smaller."
        )


def _extent(side: str, shape: Shape, pitch_bytes: int, view: memoryview) -> int:
    """Bytes from the first row's start to the last row's end."""
    if shape.num_rows > 1 and pitch_bytes < shape.row_bytes:
        raise BadTransfer(
            f"The {side} pitch of {pitch_bytes} bytes is shorter than a row of {shape.row_bytes}: "
            "give the pitch in bytes, not in elements."
        )
    extent_bytes = (shape.num_rows - 1) * pitch_bytes + shape.row_bytes if shape.num_rows else 0
    _check_inside(side, extent_bytes, view)
    return extent_bytes


def _side_by_side(dst: memoryview, src: memoryview, shape: Shape) -> bool:
    """Whether rows of one pitch lie in different columns: part of an image, copied beside itself."""
    pitch_bytes = shape.src_pitch_bytes
    if pitch_bytes != shape.dst_pitch_bytes or not pitch_bytes:
        return False
    column = (address_of(dst) - address_of(src)) % pitch_bytes
    return shape.row_bytes <= column <= pitch_bytes - shape.row_bytes
