"""``dspqueue``: packets to an image and back, over rings in board memory, without a call for each.

While the image's function is processing requests, another one costs no task.
"""

from __future__ import annotations

import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from arm_client.arrays import Buffer as BoardBuffer
from fastrpc.invocations.errors import error_of
from fastrpc.runtime import runtime
from fastrpc.wire import message, ring, uri
from fastrpc.wire.aee import Aee, AeeError
from fastrpc.wire.message import FASTRPC_CMD
from fastrpc.wire.ring import BUFFER_DEREF, BUFFER_REF, FLAG_WAKEUP, WAKEUP, Buffer, Packet
from hbrt.ddr.fence import Fence
from hbrt.ddr.layout import CORE_EPOCH

if TYPE_CHECKING:
    from collections.abc import Sequence

_PAUSE_S = 0.0005
_EPOCH: Final = struct.Struct("<Q")


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
        on_packet: Called with each response, in its own thread; ``read`` is then rejected.
        on_ready: Used instead: called in such a thread while there are responses, which it takes with ``take``.
        on_error: Called there once when the domain has ended.

    Raises:
        AeeError: as remote_handle64_open; AEE_EBADPARM for an invalid size, or more than 64 queues in a process.

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
        on_ready: Callable[[], object] | None = None,
        on_error: Callable[[AeeError], object] | None = None,
    ) -> None:
        if domain not in uri.DOMAINS:
            raise AeeError(Aee.AEE_EBADPARM, f"Unknown domain {domain!r}; write one of {', '.join(uri.DOMAINS)}.")
        requests, responses = ring.ring_bytes(request_bytes), ring.ring_bytes(response_bytes)
        self._here = runtime()
        if len(self._here.queues) >= ring.MAX_QUEUES:
            raise AeeError(Aee.AEE_EBADPARM, f"A process has at most {ring.MAX_QUEUES} queues; close one first.")
        self._mask = self._here.domains.core_mask(uri.DOMAINS.index(domain), session)
        self._priority = self._here.domains.of(uri.effective_domain(uri.DOMAINS.index(domain), session)).priority
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
        self._epoch = -1  # start count of the core that has imported the queue
        self._on_packet = on_packet
        self._on_ready = self._hand_on if on_packet is not None else on_ready
        self._on_error = on_error
        self._fence = Fence()
        self._lock = threading.RLock()
        self._told = QueueStatistics()
        self._asked = threading.Event()
        self._watcher: threading.Thread | None = None
        self.is_closed = self._is_ending = False
        self._here.queues.add(self)

    def write(
        self,
        text: Any = b"",
        buffers: Sequence[tuple[int, int, int, int]] = (),
        timeout: float = 0.0,
        flags: int = 0,
    ) -> None:
        """Send a packet.

        Args:
            text: The message: bytes, or an array, sent in C order.
            buffers: Descriptor, offset, bytes (0 for all, with offset 0) and flags of each; must be mapped by
                fastrpc_mmap.
            timeout: Seconds to wait for space; 0 does not wait.
            flags: The packet's flags, 16 bits, in addition to those implied by its contents.

        Raises:
            AeeError: AEE_EWOULDBLOCK or AEE_EEXPIRED: no room; AEE_ENOSUCHMAP: a descriptor is not mapped;
                AEE_EBADPARM; AEE_ECONNRESET: the domain has ended.
        """
        self._check()
        if not 0 <= flags < 1 << 16:
            raise AeeError(Aee.AEE_EBADPARM, f"Invalid flags {flags:#x}: a packet's flags have 16 bits.")
        named, raw = tuple(self._buffer(*one) for one in buffers), memoryview(text).tobytes()
        limit = _limit(timeout)
        while not self._send(named, raw, flags & ~ring.OWN_FLAGS):
            self._wait(limit, timeout, "The queue has no room for the packet.")

    def write_early_wakeup(self, delay_us: int = 0, flags: int = 0) -> None:
        """Announce that a packet will come soon, with 32 bits each; readers do not receive it. Raises as ``write``."""
        self._check()
        if not 0 <= min(delay_us, flags) <= max(delay_us, flags) < 1 << 32:
            raise AeeError(Aee.AEE_EBADPARM, f"{delay_us} us and the flags {flags:#x} must fit into 32 bits each.")
        if not self._queue.requests.write((), WAKEUP.pack(delay_us, flags), FLAG_WAKEUP):
            raise AeeError(Aee.AEE_EWOULDBLOCK, "The queue has no room for the packet.")

    def read(self, timeout: float = 0.0) -> Packet:
        """Take a response; ``timeout`` as for ``write``.

        Raises:
            AeeError: AEE_EWOULDBLOCK or AEE_EEXPIRED: no response; AEE_EBADSTATE: a callback takes the responses.
        """
        self.wait_for_response(timeout)
        packet = self.take()
        return packet if packet is not None else self.read(timeout)  # another thread took that one

    def wait_for_response(self, timeout: float) -> None:
        """Wait until there is a response; raises the same errors as ``read``."""
        self._check()
        if self._on_ready is not None:
            raise AeeError(Aee.AEE_EBADSTATE, "The queue's callback takes its responses.")
        limit = _limit(timeout)
        while self._queue.responses.peek() is None:
            self._wait(limit, timeout, "The queue has no response.")

    def take(self) -> Packet | None:
        """Take a response; None if there is none."""
        with self._lock:
            packet = None if self.is_closed else self._queue.responses.read()
            if packet is not None:
                told = self._told
                self._told = told._replace(read=told.read + 1, read_bytes=told.read_bytes + len(packet.message))
        return packet

    def peek(self) -> tuple[int, int, int] | None:
        """Flags, number of buffers and bytes of the message of the next response; None if there is none."""
        self._check()
        return self._queue.responses.peek()

    def statistics(self) -> QueueStatistics:
        """Packets and bytes sent and received."""
        return self._told

    def depths(self) -> tuple[int, int, int, int]:
        """Packets and bytes waiting to be read on this side and on the other."""
        self._check()
        return *self._queue.responses.depth(), *self._queue.requests.depth()

    @property
    def is_imported(self) -> bool:
        """Whether an image has it open."""
        return not self.is_closed and self._error is None and self._queue.importer >= 0

    def close(self) -> None:
        """Close the queue, once the image has processed its requests; closing it again has no effect.

        HBRT_WATCHDOG_MS ends an image's function that does not return. After an interrupt, the queue is still open.
        """
        while (task := self._oldest_waking()) is not None:
            self._tasks.wait(task, 0)
            with self._lock:
                if task == self._oldest_waking():  # otherwise the watcher has released it
                    self._waking.popleft()
                    self._tasks.release(task)
        self._is_ending = True
        self._asked.set()
        if self._watcher is not None and self._watcher is not threading.current_thread():
            self._watcher.join()  # a running callback may still read
        with self._lock:
            if self.is_closed:
                return
            self.is_closed = True
        self._here.queues.discard(self)
        self._block.free()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _oldest_waking(self) -> int | None:
        with self._lock:
            return self._waking[0] if self._waking else None

    def _send(self, named: tuple[Buffer, ...], text: bytes, flags: int) -> bool:
        with self._lock:
            self._check()
            if not self._queue.requests.write(named, text, flags):
                return False
            self._told = self._told._replace(
                written=self._told.written + 1, written_bytes=self._told.written_bytes + len(text)
            )
            if self._epoch < 0:
                self._look()
            self._fence.full()  # the packet before the check
            if not self._queue.is_served:
                self._queue.set_served(is_served=True)
                self._ask()
            return True

    def _buffer(self, fd: int, offset: int = 0, size: int = 0, flags: int = 0) -> Buffer:
        mapped = self._here.memory.mapped(fd)
        if mapped is None:
            raise AeeError(Aee.AEE_ENOSUCHMAP, f"File descriptor {fd} is not mapped; fastrpc_mmap it first.")
        if flags & BUFFER_REF and flags & BUFFER_DEREF:
            raise AeeError(Aee.AEE_EBADPARM, f"The flags {flags:#x} both take and drop a reference.")
        phy_addr, whole = mapped.block.phy_addr, mapped.size_bytes
        if (not size and offset) or offset < 0 or size < 0 or offset + size > whole:
            raise AeeError(
                Aee.AEE_EBADPARM, f"{size} bytes from offset {offset} are outside the {whole} bytes of descriptor {fd}."
            )
        return Buffer(fd, size or whole, offset, flags, phy_addr + offset)

    def _ask(self) -> None:
        """Make the image process the requests."""
        self._reap()
        core = self._queue.importer
        mask = 1 << core if core >= 0 else self._mask
        task = self._tasks.submit(FASTRPC_CMD, self._priority, mask, 0, self._wake_at, len(self._wake), 0, 0)
        if task < 0:
            raise error_of(task, self._tasks.why(), None)
        self._waking.append(task)
        if self._on_ready is not None or self._on_error is not None:
            self._asked.set()
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="hbrt-dspqueue", daemon=True)
                self._watcher.start()

    def _hand_on(self) -> None:
        while self._on_packet is not None and (packet := self.take()) is not None:
            self._on_packet(packet)

    def _watch(self) -> None:
        """Report responses, and the end, while requests to the image are open."""
        while self._asked.wait() and not self._is_ending:
            self._asked.clear()
            while self._waking and not self._is_ending:
                self._reap()
                self._tell()
                time.sleep(_PAUSE_S)
            self._tell()
            if self._error is not None:
                if self._on_error is not None:
                    self._on_error(self._error)
                return

    def _tell(self) -> None:
        if self._on_ready is not None and not self._is_ending and self._queue.responses.peek() is not None:
            self._on_ready()

    def _reap(self) -> None:
        """Release the tasks that have ended; record why one failed."""
        with self._lock:
            self._reap_all()

    def _reap_all(self) -> None:
        while self._waking and self._tasks.has_ended(self._waking[0]):
            task = self._waking.popleft()
            status = self._tasks.wait(task, 1)
            if status and self._error is None:
                self._error = error_of(status, self._tasks.why(), None)
            self._tasks.release(task)

    def _look(self) -> None:
        """Record that the board, or the core that imported the queue, has ended; there may be no task in progress."""
        link, core = self._here.session.link, self._queue.importer
        if link.fault:
            self._error = AeeError(Aee.AEE_ECONNRESET, link.why_faulty())
        elif core >= 0:
            (epoch,) = _EPOCH.unpack_from(link.ddr.map, link.ddr.layout.core(core) + CORE_EPOCH)
            if epoch != self._epoch and self._epoch >= 0 and self._error is None:
                self._error = AeeError(Aee.AEE_ECONNRESET, f"Core {core}, which had imported the queue, has restarted.")
            self._epoch = epoch

    def _wait(self, limit: float, timeout: float, why: str) -> None:
        self._reap()
        self._look()
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


def _limit(timeout: float) -> float:
    """The deadline of a wait of this many seconds."""
    if not timeout >= 0:
        raise AeeError(Aee.AEE_EBADPARM, f"Invalid timeout {timeout}: must be 0 or more seconds.")
    return time.monotonic() + timeout
