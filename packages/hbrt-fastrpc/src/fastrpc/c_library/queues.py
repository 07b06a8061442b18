"""``dspqueue_*`` for C: a handle is the queue's id, a pointer the object there or None, a function pointer a number."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable
from typing import Any

from fastrpc.arguments import note_code
from fastrpc.queues import DspQueue
from fastrpc.runtime import runtime
from fastrpc.wire import ring, uri
from fastrpc.wire.aee import Aee, AeeError
from fastrpc.wire.types import dspqueue_buffer, dspqueue_callback_t

_DEFAULT_SIZES = 65_536, 16_384
_NO_LIMIT = 0xFFFF_FFFF
_OPTIMIZED = 1000

_queues: dict[int, DspQueue] = {}
os.register_at_fork(after_in_child=_queues.clear)


@note_code
def dspqueue_create(
    domain: int, flags: int, requests: int, responses: int, on_packet: int, on_error: int, context: int, queue: Any
) -> None:
    """Like dspqueue_create."""
    del flags
    if queue is None:
        raise AeeError(Aee.AEE_EBADPARM, "The address for the queue is NULL.")
    number, session = uri.split_domain(domain)

    def calling(function: int) -> Callable[[int], None] | None:
        call = dspqueue_callback_t(function) if function else None
        return None if call is None else lambda code: call(made.id, ctypes.c_int32(code).value, context)

    ready, failed = calling(on_packet), calling(on_error)
    made = DspQueue(
        uri.DOMAINS[number],
        session,
        request_bytes=requests or _DEFAULT_SIZES[0],
        response_bytes=responses or _DEFAULT_SIZES[1],
        on_ready=None if ready is None else lambda: ready(0),
        on_error=None if failed is None else lambda error: failed(error.code),
    )
    _queues[made.id] = made
    queue.value = made.id


@note_code
def dspqueue_close(queue: int) -> None:
    """Like dspqueue_close."""
    found = _of(queue)
    if found.is_imported:
        raise AeeError(Aee.AEE_ERPC, "The image has the queue open: have it call dspqueue_close first.")
    found.close()  # until then, a callback may read
    _queues.pop(queue, None)


@note_code
def dspqueue_export(queue: int, number: Any) -> None:
    """Like dspqueue_export."""
    if number is None:
        raise AeeError(Aee.AEE_EBADPARM, "The address for the number is NULL.")
    number.value = _of(queue).id


@note_code
def dspqueue_write(
    queue: int, flags: int, count: int, buffers: Any, length: int, message: Any, timeout_us: int
) -> None:
    """Like dspqueue_write."""
    found = _of(queue)
    if (
        (count and buffers is None)
        or (length and message is None)
        or count > ring.MAX_BUFFERS
        or length > ring.MAX_MESSAGE
    ):
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"{count} buffers and {length} bytes: a packet has at most {ring.MAX_BUFFERS} and {ring.MAX_MESSAGE}, "
            "and no address may be NULL.",
        )
    given = (dspqueue_buffer * count).from_address(ctypes.addressof(buffers)) if count else ()
    named = [(one.fd, one.offset, one.size, one.flags) for one in given]
    text = ctypes.string_at(ctypes.addressof(message), length) if length else b""
    found.write(text, named, _seconds(timeout_us), flags)


@note_code
def dspqueue_read(
    queue: int,
    flags: Any,
    most_buffers: int,
    count: Any,
    buffers: Any,
    most_message: int,
    length: Any,
    message: Any,
    timeout_us: int,
) -> None:
    """Like dspqueue_read."""
    found = _of(queue)
    head = _head(found, timeout_us)
    if head[1] > (most_buffers if buffers is not None else 0) or head[2] > (most_message if message is not None else 0):
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"The packet has {head[1]} buffers and {head[2]} bytes; room for {most_buffers} and {most_message}.",
        )
    packet = found.take()
    if packet is None:
        raise AeeError(Aee.AEE_EWOULDBLOCK, "Another thread took the response.")
    for place, value in ((flags, packet.flags), (count, len(packet.buffers)), (length, len(packet.message))):
        _put(place, value)
    memory = runtime().memory
    for at, one in enumerate(packet.buffers):
        mapped = memory.mapped(one.fd)
        address = mapped.address + one.offset if mapped is not None and mapped.address else 0
        told = dspqueue_buffer(one.fd, one.size, one.offset, one.flags, address)
        ctypes.memmove(ctypes.byref(buffers, at * ctypes.sizeof(told)), ctypes.byref(told), ctypes.sizeof(told))
    if packet.message:
        ctypes.memmove(ctypes.addressof(message), packet.message, len(packet.message))


@note_code
def dspqueue_peek(queue: int, flags: Any, count: Any, length: Any, timeout_us: int) -> None:
    """Like dspqueue_peek."""
    for place, value in zip((flags, count, length), _head(_of(queue), timeout_us), strict=True):
        _put(place, value)


@note_code
def dspqueue_write_early_wakeup_noblock(queue: int, delay_us: int, flags: int) -> None:
    """Like dspqueue_write_early_wakeup_noblock."""
    _of(queue).write_early_wakeup(delay_us, flags)


@note_code
def dspqueue_get_stat(queue: int, stat: int, value: Any) -> None:
    """Like dspqueue_get_stat. A board has no low-power state: an early wake-up has no effect."""
    told = (*_of(queue).depths(), 0, 0, _OPTIMIZED)
    if not 1 <= stat <= len(told) or value is None:
        raise AeeError(
            Aee.AEE_EBADPARM, f"Unknown statistic {stat}, or its buffer is missing: must be 1 to {len(told)}."
        )
    value.value = told[stat - 1]


def _of(queue: int) -> DspQueue:
    found = _queues.get(queue)
    if found is None:
        raise AeeError(Aee.AEE_EBADPARM, f"{queue:#x} is not an open queue: it was closed, or never created.")
    return found


def _head(queue: DspQueue, timeout_us: int) -> tuple[int, int, int]:
    """Flags, number of buffers and bytes of the message of the next response, waiting up to the timeout."""
    if timeout_us:
        queue.wait_for_response(_seconds(timeout_us))
    head = queue.peek()
    if head is None:
        raise AeeError(Aee.AEE_EWOULDBLOCK, "The queue has no response.")
    return head


def _seconds(timeout_us: int) -> float:
    return math.inf if timeout_us == _NO_LIMIT else timeout_us / 1e6


def _put(place: Any, value: int) -> None:
    if place is not None:
        place.value = value


def _at_once(call: Callable[..., int]) -> Callable[..., int]:
    return lambda *given: call(*given, 0)


dspqueue_write_noblock = _at_once(dspqueue_write)
dspqueue_read_noblock = _at_once(dspqueue_read)
dspqueue_peek_noblock = _at_once(dspqueue_peek)
