"""The 2D engine's calls as passed on by librga.so: one job each, and imported buffers.

``native/arm/rga.c`` is the other side: ``struct job``, and the names of im2d.h.

Source: librga, im2d, https://github.com/airockchip/librga
Emulator: a picture at a virtual address belongs to the CPU, and the driver writes back its cache; one given by a
descriptor or a physical address is accessed as the device sees it. A call has ended when it returns.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from arm_client.cabi.last_error import note
from hbrt.errors import RequestRefusedError
from hbrt.structures import CStructure, int32_t, structure, uint32_t, void_p
from rknn_api.capi.runtime import runtime
from rknn_api.errors import RknnError
from rknn_api.log import Log
from rknn_api.rga.formats import byte_count, format_of, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rknn_api.rga.engine import Picture, Rect

PROCESS, FILL, MOSAIC, BLUR, BORDER = range(5)
BY_FD, BY_ADDRESS, BY_PHYSICAL = range(3)
NOERROR, SUCCESS, FAILED, NOT_SUPPORTED, INVALID = 2, 1, 0, -1, -3
_TEXT_BYTES: Final = 256
_RGB_CLIP: Final = 2 << 8
_log: Final = Log()
_imported: dict[int, Source] = {}
_handles = count(1)


class Source(NamedTuple):
    """A buffer's location: the kind of number, the number, and the size in bytes; 0 if the program does not give it."""

    kind: int
    value: int
    size: int


@structure
class rga_buffer_t(CStructure):
    """A picture as in im2d.h (96 bytes)."""

    vir_addr: void_p
    phy_addr: void_p
    fd: int32_t
    width: int32_t
    height: int32_t
    wstride: int32_t
    hstride: int32_t
    format: int32_t
    color_space_mode: int32_t
    global_alpha: int32_t
    rd_mode: int32_t
    color: int32_t
    colorkey_max: int32_t
    colorkey_min: int32_t
    nn_scale_r: int32_t
    nn_scale_g: int32_t
    nn_scale_b: int32_t
    nn_offset_r: int32_t
    nn_offset_g: int32_t
    nn_offset_b: int32_t
    rop_code: int32_t
    handle: uint32_t


class Job(ctypes.Structure):
    """``struct job`` of ``native/arm/rga.c``."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("is_check", ctypes.c_int32),
        ("usage", ctypes.c_int32),
        ("color", ctypes.c_int32),
        ("interpolation", ctypes.c_int32),
        ("status", ctypes.c_int32),
        ("thickness", ctypes.c_int32),
        ("sizes", ctypes.c_int32 * 4),
        ("src", ctypes.c_void_p),
        ("dst", ctypes.c_void_p),
        ("pat", ctypes.c_void_p),
        ("from_", ctypes.c_int32 * 4),
        ("to", ctypes.c_int32 * 4),
        ("of_pat", ctypes.c_int32 * 4),
        ("text", ctypes.c_char * _TEXT_BYTES),
    )


class _RefusedError(Exception):
    """A job that the engine does not accept.

    Attributes:
        status: IM_STATUS_*.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def hbrt_rga_do(job: int) -> int:
    """Run the job at this address; the result is its ``status``."""
    given = Job.from_address(job)
    try:
        given.status = _done(given)
    except Exception as error:  # noqa: BLE001 - OpenCV raises its own if it has no memory, for example
        status, sentence = FAILED, f"The pictures cannot be computed: {error}"
        if isinstance(error, _RefusedError):
            status, sentence = error.status, str(error)
        given.status = status
        given.text = sentence.encode()[: _TEXT_BYTES - 1]
        _log.error("rga", sentence)
        note(status, sentence)
    return 0


def hbrt_rga_import(kind: int, value: int, size: int) -> int:
    """Import a buffer; returns its handle, or 0 if there is no such memory."""
    source = Source(kind, value, size)
    try:
        _bytes_of(source, size)
    except _RefusedError as error:
        _log.error("importbuffer", str(error))
        note(error.status, str(error))
        return 0
    handle = next(_handles)
    _imported[handle] = source
    return handle


def hbrt_rga_release(handle: int) -> int:
    """Release a buffer; returns -1 for an unknown handle."""
    if _imported.pop(handle, None) is None:
        _log.error("releasebuffer_handle", f"Unknown handle {handle}: not imported, or already released.")
        return -1
    return 0


def _done(job: Job) -> int:
    from rknn_api.rga import engine

    target = _picture("dst", job.dst, job.usage)
    to = engine.whole(_rect(job.to), target)
    if job.kind in {FILL, MOSAIC}:
        return _painted(job, target, to)
    if unknown := job.usage & ~engine.DONE:
        raise _RefusedError(
            NOT_SUPPORTED, f"usage is {job.usage:#x}; this emulator does not support {unknown & (2**32 - 1):#x}."
        )
    source = _picture("src", job.src, job.usage)
    taken = engine.whole(_rect(job.from_), source)
    if job.usage & 1 << 20 and not any(job.to):  # IM_CROP: as large as the cut-out rectangle
        to = (0, 0, taken[2], taken[3])
    under, below = None, (0, 0, 0, 0)
    if job.pat and rga_buffer_t.from_address(job.pat).width:
        under = _picture("pat", job.pat, job.usage)
        below = engine.whole(_rect(job.of_pat), under)
        _check(engine.refusal("pat", under, below))
    _check(engine.refusal("src", source, taken))
    _check(engine.refusal("dst", target, to))
    told = rga_buffer_t.from_address(job.dst)
    how = engine.How(job.usage, job.interpolation, told.rop_code, told.colorkey_min, told.colorkey_max)
    if job.kind == BORDER:
        how = how._replace(border=_rect(job.sizes), border_type=job.interpolation)
        _check(engine.border_refusal(taken, to, how.border, source.format.down))
    else:
        _check(engine.scale_refusal(taken, to, job.usage))
    blur = tuple(job.sizes) if job.kind == BLUR else None
    _check(engine.how_refusal(how, source, blur))
    if job.is_check:
        return NOERROR
    source = source._replace(mode=source.mode or target.mode)  # imcvtcolor gives one mode for both
    target = target._replace(mode=target.mode or source.mode)
    if blur:
        source = engine.blurred(source, taken, blur)
        taken = engine.whole((0, 0, 0, 0), source)
    engine.process(source, target, under, (taken, to, below), how)
    return SUCCESS


def _painted(job: Job, target: Picture, to: Rect) -> int:
    from rknn_api.rga import engine

    sides = engine.sides_of(to, job.thickness)
    for side in (to, *sides):
        _check(engine.refusal("dst", target, side))
    if job.is_check:
        return NOERROR
    if job.kind == FILL:
        engine.fill(target, sides, job.color)
    else:
        engine.mosaic(target, to, job.sizes[0])
    return SUCCESS


def _check(sentence: str) -> None:
    if sentence:
        raise _RefusedError(INVALID, sentence)


def _rect(given: Any) -> Rect:
    x, y, width, height = given
    return x, y, width, height


def _picture(name: str, address: int | None, usage: int) -> Picture:
    from rknn_api.rga.engine import BIT_MAP, Picture

    one = rga_buffer_t.from_address(address or 0)
    found = format_of(one.format)
    if found is None:
        raise _RefusedError(
            NOT_SUPPORTED, f"The format of {name} is {one.format:#x}, which this emulator does not support."
        )
    if one.color_space_mode & 0xF00 == _RGB_CLIP:
        raise _RefusedError(NOT_SUPPORTED, f"The color space of {name}, IM_RGB_CLIP, is not emulated; use IM_RGB_FULL.")
    wstride, hstride = one.wstride or one.width, one.hstride or one.height
    if min(one.width, one.height, wstride, hstride) < 1:
        raise _RefusedError(INVALID, f"{name} is {one.width} x {one.height} of {shown(found)}; sizes must be above 0.")
    source = _source(name, one)
    needed = byte_count(found, wstride, hstride)
    if source.size and source.size < needed:
        raise _RefusedError(
            INVALID,
            f"The buffer of {name} has {source.size} bytes; {wstride} x {hstride} of {shown(found)} needs {needed}.",
        )
    data = _bytes_of(source, needed)
    made = Picture(data, found, one.width, one.height, wstride, hstride, one.color_space_mode, one.global_alpha)
    if usage & BIT_MAP and 1 in found.bits:
        made = made._replace(alpha=255, alphas=(one.global_alpha & 255, one.global_alpha >> 16 & 255))
    return made


def _source(name: str, one: rga_buffer_t) -> Source:
    if one.handle:
        imported = _imported.get(one.handle)
        if imported is None:
            raise _RefusedError(INVALID, f"Unknown handle {one.handle} of {name}: not imported, or already released.")
        return imported
    if one.phy_addr:
        return Source(BY_PHYSICAL, one.phy_addr, 0)
    if one.fd > 0:
        return Source(BY_FD, one.fd, 0)
    if one.vir_addr:
        return Source(BY_ADDRESS, one.vir_addr, 0)
    raise _RefusedError(INVALID, f"{name} has no memory: no handle, descriptor or address.")


def _bytes_of(source: Source, size: int) -> NDArray[np.uint8]:
    """The bytes of a buffer, as a view.

    Raises:
        _RefusedError: there is no such memory.
    """
    if source.kind == BY_ADDRESS:
        if not source.value:
            raise _RefusedError(INVALID, "The virtual address is NULL.")
        return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(source.value)), np.uint8)
    if source.kind == BY_PHYSICAL:
        try:
            return np.frombuffer(runtime().memory.at(source.value, size), np.uint8)
        except (RknnError, RequestRefusedError) as error:
            raise _RefusedError(
                INVALID, f"Invalid physical address {source.value:#x} of {size} bytes: {error}"
            ) from None
    return _bytes_of_file(source.value, size)


def _bytes_of_file(fd: int, size: int) -> NDArray[np.uint8]:
    from rknn_api.capi.runtime import existing

    try:
        held = existing(0).memory.by_fd(fd)
    except RknnError:  # no call of the runtime was made
        held = None
    if held is not None:
        return np.frombuffer(held.device(), np.uint8)[:size]
    try:
        return np.frombuffer(mmap.mmap(fd, size or os.fstat(fd).st_size), np.uint8)
    except (OSError, ValueError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise _RefusedError(INVALID, f"Invalid file descriptor {fd} of {size} bytes: {why}.") from None
