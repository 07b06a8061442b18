"""``dspqueue``: packets to an image and back, over rings in board memory, without a call for each.

While the image's function works through the requests, a further one costs no task.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Self

from arm_client.arrays import Buffer as BoardBuffer
from fastrpc.runtime import runtime
from hbrt.ddr.fence import Fence
from hbrt.fastrpc import message, ring, uri
from hbrt.fastrpc.aee import Aee, AeeError
from hbrt.fastrpc.message import FASTRPC_CMD
from hbrt.fastrpc.ring import BUFFER_DEREF, BUFFER_REF, Buffer, Packet

if TYPE_CHECKING:
    from collections.abc import Sequence

_PAUSE_S = 0.0005


class QueueStatistics(NamedTuple):
    """Packets and bytes of messages, to the DSP and back."""

    written: int = 0
    written_bytes: int = 0
    read: int = 0
    read_bytes: int = 0


class DspQueue:
    """A queue to a domain; a context manager.

    Args:
        domain: Name of the domain.
        session: 0..3; the image imports the queue in that session.
        request_bytes: Of the ring to the DSP, at most 16 MiB.
        response_bytes: Of the ring back.
        on_packet: Called with each response, in a thread of its own; then ``read`` is refused.

    Raises:
        AeeError: as remote_handle64_open; AEE_EBADPARM for a size.

    Source: qualcomm/fastrpc, dspqueue.h, https://github.com/qualcomm/fastrpc
    """

    def __init__(
        self,
        domain: str = "cdsp",
        session: int = 0,
        *,
        request_bytes: int = 65_536,
        response_bytes: int = 16_384,
        on_packet: Callable[[Packet], object] | None = None,
    ) -> None:
        if domain not in uri.DOMAINS:
            raise AeeError(Aee.AEE_EBADPARM, f"There is no domain {domain!r}; write one of {', '.join(uri.DOMAINS)}.")
        requests, responses = ring.ring_bytes(request_bytes), ring.ring_bytes(response_bytes)
        self._here = runtime()
        self._mask = self._here.core_mask(uri.DOMAINS.index(domain), session)
        self._block = BoardBuffer(
            self._here.session, ring.QUEUE_HEAD_BYTES + requests + responses + message.COPY_ALIGNMENT, is_cached=False
        )
        view = self._block.view()
        ring.SIZES.pack_into(view, 0, requests, responses)
        self._queue = ring.queue_of(view[: -message.COPY_ALIGNMENT])
        self.id = self._block.phy_addr
        self._wake_at = self.id + len(view) - message.COPY_ALIGNMENT
        self._wake = message.pack_wake(self.id)
        view[-message.COPY_ALIGNMENT :][: len(self._wake)] = self._wake
        self._tasks = self._here.session.tasks
        self._waking: deque[int] = deque()
        self._error: AeeError | None = None
        self._on_packet = on_packet
        self._fence = Fence()
        self._told = QueueStatistics()
        self.is_closed = False

    def write(self, text: bytes = b"", buffers: Sequence[tuple[int, int, int, int]] = (), timeout: float = 0.0) -> None:
        """Send a packet.

        Args:
            text: The message.
            buffers: Descriptor, offset, bytes (0 for all, with offset 0) and flags of each; fastrpc_mmap has mapped it.
            timeout: Seconds to wait for room; 0 does not wait.

        Raises:
            AeeError: AEE_EWOULDBLOCK or AEE_EEXPIRED: no room; AEE_ENOSUCHMAP: a descriptor is not mapped;
                AEE_EBADPARM; AEE_ECONNRESET: the domain has ended.
        """
        self._check()
        named = tuple(self._buffer(*one) for one in buffers)
        limit = time.monotonic() + timeout
        while not self._queue.requests.write(named, text):
            self._wait(limit, timeout, "The queue has no room for the packet.")
        self._told = self._told._replace(
            written=self._told.written + 1, written_bytes=self._told.written_bytes + len(text)
        )
        self._fence.full()  # the packet before the question
        if not self._queue.is_served:
            self._queue.set_served(is_served=True)
            self._ask()

    def read(self, timeout: float = 0.0) -> Packet:
        """Take a response; ``timeout`` as of ``write``.

        Raises:
            AeeError: AEE_EWOULDBLOCK or AEE_EEXPIRED: there is none; AEE_EBADSTATE: a callback takes them.
        """
        self._check()
        if self._on_packet is not None:
            raise AeeError(Aee.AEE_EBADSTATE, "The queue's callback takes its responses.")
        limit = time.monotonic() + timeout
        while (packet := self._take()) is None:
            self._wait(limit, timeout, "The queue has no response.")
        return packet

    def peek(self) -> tuple[int, int, int] | None:
        """Flags, number of buffers and bytes of the message of the next response; None for none."""
        self._check()
        return self._queue.responses.peek()

    def statistics(self) -> QueueStatistics:
        """What was sent and received."""
        return self._told

    def close(self) -> None:
        """Close the queue, once the image has worked through its requests; again is nothing."""
        if self.is_closed:
            return
        self.is_closed = True
        for task in self._waking:
            self._tasks.wait(task, 0)
            self._tasks.release(task)
        self._waking.clear()
        self._block.free()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self) -> Packet | None:
        packet = self._queue.responses.read()
        if packet is not None:
            told = self._told
            self._told = told._replace(read=told.read + 1, read_bytes=told.read_bytes + len(packet.message))
        return packet

    def _buffer(self, fd: int, offset: int = 0, size: int = 0, flags: int = 0) -> Buffer:
        mapped = self._here.memory.phy_of_fd(fd)
        if mapped is None:
            raise AeeError(Aee.AEE_ENOSUCHMAP, f"File descriptor {fd} is not mapped; fastrpc_mmap it first.")
        if flags & BUFFER_REF and flags & BUFFER_DEREF:
            raise AeeError(Aee.AEE_EBADPARM, f"The flags {flags:#x} take and drop a reference at once.")
        phy_addr, whole = mapped
        if (not size and offset) or offset < 0 or size < 0 or offset + size > whole:
            raise AeeError(
                Aee.AEE_EBADPARM, f"{size} bytes from {offset} on are not in the {whole} bytes of descriptor {fd}."
            )
        return Buffer(fd, size or whole, offset, flags, phy_addr + offset)

    def _ask(self) -> None:
        """Have the image look at the requests."""
        self._reap()
        task = self._tasks.submit(FASTRPC_CMD, 0, self._mask, 0, self._wake_at, len(self._wake), 0, 0)
        if task < 0:
            raise self._here.error(task, self._tasks.why(), None)
        self._waking.append(task)
        if self._on_packet is not None:
            self._here.session.notifier.add(task, lambda _: self._hand_on())

    def _hand_on(self) -> None:
        while self._on_packet is not None and not self.is_closed and (packet := self._take()) is not None:
            self._on_packet(packet)

    def _reap(self) -> None:
        """Release the tasks that have ended; note why one has failed."""
        while self._waking and self._tasks.has_ended(self._waking[0]):
            task = self._waking.popleft()
            status = self._tasks.wait(task, 1)
            if status and self._error is None:
                self._error = self._here.error(status, self._tasks.why(), None)
            self._tasks.release(task)

    def _wait(self, limit: float, timeout: float, why: str) -> None:
        self._reap()
        self._check()
        if not timeout:
            raise AeeError(Aee.AEE_EWOULDBLOCK, why)
        if time.monotonic() >= limit:
            raise AeeError(Aee.AEE_EEXPIRED, f"{why} {timeout:g} s have passed.")
        time.sleep(_PAUSE_S)

    def _check(self) -> None:
        if self.is_closed:
            raise AeeError(Aee.AEE_EINVHANDLE, "The queue is closed.")
        if self._error is not None:
            raise self._error
