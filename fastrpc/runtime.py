"""The handles of this process, and how an invocation travels: one for each attachment to a board.

A session of a domain is a process domain: here one core's process, since a process domain has one address space. The
sessions of a domain lie on the board's cores in turn.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast
from weakref import WeakSet

from arm_client.arrays import Buffer
from arm_client.cabi.last_error import note
from arm_client.errors import HbrtError
from arm_client.session.session import Session, attached
from fastrpc.counting import Statistics, Tally, added
from fastrpc.memory import Memory
from hbrt.board.forked import mark, notice
from hbrt.errors import StatusError
from hbrt.fastrpc import message, scalars, uri
from hbrt.fastrpc.aee import Aee, AeeError, of_status, on_dsp
from hbrt.fastrpc.message import ARGUMENT, COPY_ALIGNMENT, FASTRPC_CMD, HANDLE, HEAD, MOST_URI
from hbrt.status import Status
from hbrt.types import HB_SYS_MEM_CACHE_CLEAN, HB_SYS_MEM_CACHE_INVALIDATE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Span: TypeAlias = "tuple[int, int, int] | bytes | bytearray"
"""An argument: address, bytes and physical address (0 for that of registered memory, or a copy); or bytes to copy."""

_MOST_READY: Final = 256
_LEAST_BUFFER: Final = 4096
_MOST_HANDLES: Final = 1 << 20
_ENDED: Final = {int(Status.HB_DSP_CORE_LOST), int(Status.HB_DSP_WATCHDOG), int(Status.HB_DSP_BOARD_LOST)}
_GONE: Final = {
    int(Status.HB_DSP_NOT_RUNNING),
    int(Status.HB_DSP_FORKED),
    int(Status.HB_DSP_RELAY_LOST),
}
_CODES: Final = {
    int(Status.HB_DSP_UNKNOWN_COMMAND): Aee.AEE_EUNABLETOLOAD,
    int(Status.HB_DSP_RUN_TASK_FAILED): on_dsp(Aee.AEE_EFAILED),
    int(Status.HB_DSP_OUT_OF_TCM): on_dsp(Aee.AEE_ENOMEMORY),
    int(Status.HB_DSP_TASK_NUM_EXCEED_LIMIT): Aee.AEE_EOUTOFHANDLES,
    int(Status.HB_SYS_OUT_OF_MEMORY): Aee.AEE_ENOMEMORY,
}
_STATUSES: Final = frozenset(int(one) for one in Status)


@dataclass
class Opened:
    """A handle.

    Attributes:
        remote: The DSP side's handle.
        mask: Its core of its process domain.
        domain: The effective domain.
        uri: As it was opened.
        ended: Why it is stale; empty while it is not.
    """

    remote: int
    mask: int
    domain: int
    uri: str
    ended: str = ""


@dataclass
class Domain:
    """A domain of this process.

    Attributes:
        priority: Of its tasks, as the board has them.
        is_unsigned: Whether the program asked for skeletons that nobody signed.
        initmem_bytes: Memory that it asked for, for signed skeletons; 0 for no limit.
        handles: Those that are open.
        placed: Cores of its interfaces, by their functions.
        settings: What the program asked for, and has no effect here.
    """

    priority: int = message.task_priority(message.DEFAULT_PRIORITY)
    is_unsigned: bool = False
    initmem_bytes: int = 0
    handles: set[int] = field(default_factory=set)
    placed: dict[str, int] = field(default_factory=dict)
    settings: dict[str, int] = field(default_factory=dict)

    @property
    def limit_bytes(self) -> int:
        """What its objects may allocate; 0 for no limit."""
        return message.UNSIGNED_BYTES if self.is_unsigned else self.initmem_bytes


class Ready(NamedTuple):
    """An invocation whose message lies on the board: all its buffers are shared, so that it can be sent as it is."""

    buffer: Buffer
    task: tuple[int, ...]
    tally: Tally
    opened: Opened
    clean: list[tuple[int, int]]
    invalidate: list[tuple[int, int]]
    on_forgotten: list[Callable[[], None]]  # called when it is to be sent no more
    sent_by_c: list[Callable[[], int]]  # how often the library has sent it, beside the tally


class Made(NamedTuple):
    """A message on the board, and what is to be done when it has been answered.

    Attributes:
        buffer: Message and copies.
        task: Arguments of a submission.
        back: Of each output that was copied: the caller's address or object, place in the buffer, bytes.
        clean: Physical ranges of shared inputs.
        invalidate: Those of shared outputs.
        each: What the call adds to the statistics.
    """

    buffer: Buffer
    task: tuple[int, ...]
    back: list[tuple[int | bytes | bytearray, int, int]]
    clean: list[tuple[int, int]]
    invalidate: list[tuple[int, int]]
    each: Statistics


class Runtime:
    """The FastRPC of one attachment."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.memory = Memory(session)
        self._tasks = session.tasks
        self._handles: dict[int, Opened] = {}
        self._domains: dict[int, Domain] = {}
        self._reserved: set[tuple[int, int]] = set()  # domains and sessions
        self.contexts: dict[int, tuple[int, ...]] = {}  # of several domains, by their numbers
        self.paths: dict[bytes, bytes] = {}  # of DSPRPC_SET_PATH
        self.queues: WeakSet[object] = WeakSet()  # those that are open
        self._last = 0
        self._lock = threading.RLock()
        self._spare: deque[Buffer] = deque()
        self._ready: dict[tuple[int, int, bytes], Ready] = {}
        self._ready_of = 0  # the memory's generation then
        # Told when the first handle of a domain is opened, and when the last one is closed.
        self.on_domain: Callable[..., None] = lambda *_, **__: None
        self._tallies: dict[Statistics, Tally] = {}
        self.memory.on_removed = self._forget_ready

    # -- handles

    def open(self, written: str, default_domain: int | None = None) -> int:
        """A handle of an interface.

        Raises:
            AeeError: AEE_EBADPARM for a URI without a domain; AEE_ECONNREFUSED: the board has no such domain, or it
                does not run; AEE_EUNABLETOLOAD of the DSP side: its image has no such interface.
        """
        parsed = uri.parse(written, default_domain)
        if len(written.encode()) > MOST_URI:
            raise AeeError(Aee.AEE_EBADPARM, f"The URI has more than {MOST_URI} bytes: {written[:80]}...")
        self.core_mask(parsed.domain, parsed.session)
        mask = self._place(parsed.effective_domain, parsed.symbol)
        raw = message.pack_open(written, self.domain(parsed.effective_domain).limit_bytes)
        at = -(-len(raw) // COPY_ALIGNMENT) * COPY_ALIGNMENT
        with self._lock:
            if len(self._handles) >= _MOST_HANDLES:
                raise AeeError(Aee.AEE_EOUTOFHANDLES)
        buffer = self._take(at + COPY_ALIGNMENT)
        view = buffer.view()
        view[: len(raw)] = raw
        priority = self.domain(parsed.effective_domain).priority
        task = (FASTRPC_CMD, priority, mask, 0, buffer.phy_addr, len(raw), buffer.phy_addr + at, HANDLE.size)
        try:
            self._finish(self._submit(task), None)
        except AeeError as error:
            if error.code == Aee.AEE_ECONNRESET:
                raise AeeError(Aee.AEE_ECONNREFUSED, error.sentence) from None
            raise
        else:
            remote = HANDLE.unpack_from(view, at)[0]
        finally:
            self._give_back(buffer)
        with self._lock:
            self._last += 1
            handle = self._last
            self._handles[handle] = Opened(remote, mask, parsed.effective_domain, written)
            handles = self.domain(parsed.effective_domain).handles
            handles.add(handle)
            is_first = len(handles) == 1
        if is_first:
            self.on_domain(parsed.effective_domain, is_up=True)
        return handle

    def close(self, handle: int) -> None:
        """Close a handle; one whose domain has ended too.

        Raises:
            AeeError: AEE_EINVHANDLE; what the interface's own close failed with, and the handle is closed.
        """
        opened = self.opened(handle)
        with self._lock:
            self._handles.pop(handle, None)
            self.domain(opened.domain).handles.discard(handle)
            for key in [key for key, ready in self._ready.items() if ready.opened is opened]:
                self._forget(self._ready.pop(key))
            is_last = not self._handles
            is_last_of_domain = not self.domain(opened.domain).handles
        try:
            if not opened.ended and not self.session.link.fault:
                raw = message.pack_close(opened.remote)
                buffer = self._take(len(raw))
                buffer.view()[: len(raw)] = raw
                task = (FASTRPC_CMD, 0, opened.mask, 0, buffer.phy_addr, len(raw), 0, 0)
                try:
                    self._finish(self._submit(task), opened)
                except AeeError as error:
                    if error.code != Aee.AEE_ECONNRESET:
                        raise
                self._spare.append(buffer)
        finally:
            if is_last_of_domain and not opened.ended:  # one that has crashed does not exit
                self.on_domain(opened.domain, is_up=False)
            if is_last:
                self._free_messages()

    def end_domain(self, effective: int) -> None:
        """End the process of a domain, which starts again; its handles are stale.

        Raises:
            AeeError: AEE_ENOSESSION: nothing of it is open.
        """
        name = uri.suffix(*uri.split_domain(effective)).removeprefix("&_dom=")
        if not self.domain(effective).handles:
            raise AeeError(Aee.AEE_ENOSESSION, f"Nothing is open on {name}; open an interface first.")
        raw = message.pack_end()
        buffer = self._take(len(raw))
        buffer.view()[: len(raw)] = raw
        mask = self.core_mask(*uri.split_domain(effective))
        try:
            self._finish(self._submit((FASTRPC_CMD, 0, mask, 0, buffer.phy_addr, len(raw), 0, 0)), None)
        except AeeError as error:
            if error.code != Aee.AEE_ECONNRESET:
                raise
        self._spare.append(buffer)

    def opened(self, handle: int) -> Opened:
        """What a handle is.

        Raises:
            AeeError: AEE_EINVHANDLE.
        """
        opened = self._handles.get(handle)
        if opened is None:
            raise AeeError(
                Aee.AEE_EINVHANDLE,
                f"{handle:#x} is no open handle of this process: it was closed, or never opened.",
            )
        return opened

    def domain(self, effective: int) -> Domain:
        """The domain of a number."""
        return self._domains.setdefault(effective, Domain())

    def reserve_session(self, domain: int) -> int:
        """A session of a domain that nobody has reserved.

        Raises:
            AeeError: AEE_ENOSESSION: all are.
        """
        with self._lock:
            for session in range(1, uri.SESSIONS):
                if (domain, session) not in self._reserved:
                    self._reserved.add((domain, session))
                    return session
        raise AeeError(Aee.AEE_ENOSESSION, f"The {uri.SESSIONS - 1} sessions to reserve of a domain are reserved.")

    def release_session(self, effective: int) -> None:
        """Undo ``reserve_session``."""
        self._reserved.discard(uri.split_domain(effective))

    def add_context(self, domains: tuple[int, ...]) -> int:
        """Number some domains."""
        with self._lock:
            self._last += 1
            self.contexts[self._last] = domains
            return self._last

    def core_mask(self, domain: int, session: int) -> int:
        """The cores of the process domain of a session, as a mask.

        Raises:
            AeeError: AEE_ECONNREFUSED: the board has no such domain.
        """
        if domain != uri.DEFAULT_DOMAIN:
            raise AeeError(
                Aee.AEE_ECONNREFUSED,
                f"Board {self.session.link.paths.name} has no {uri.DOMAINS[domain]}: its cores are the domain cdsp.",
            )
        domains = self.session.profile.process_domains(self.session.link.core_count)
        return sum(1 << core for core in domains[session % len(domains)])

    def _place(self, effective: int, symbol: str) -> int:
        """The core of an interface, as a mask: the interfaces of a domain lie on its cores in turn."""
        mask = self.core_mask(*uri.split_domain(effective))
        cores = [core for core in range(mask.bit_length()) if mask >> core & 1]
        placed = self.domain(effective).placed
        return 1 << placed.setdefault(symbol, cores[len(placed) % len(cores)])

    # -- invocations

    def invoke_same(self, handle: int, word: int, raw: bytes) -> bool:
        """Send an invocation again whose arguments have been sent before, all shared; False when it has not.

        Args:
            handle: The handle.
            word: The scalar word.
            raw: The bytes of the array of arguments.

        Raises:
            AeeError: as ``invoke``.
        """
        ready = self.ready(handle, word, raw)
        if ready is None:
            return False
        if ready.clean:
            self._flush(ready.clean, HB_SYS_MEM_CACHE_CLEAN)
        self._finish(self._tasks.submit(*ready.task), ready.opened, ready)
        ready.tally.calls += 1
        if ready.invalidate:
            self._flush(ready.invalidate, HB_SYS_MEM_CACHE_INVALIDATE)
        return True

    def invoke(self, handle: int, word: int, spans: Sequence[Span], same: bytes | None = None) -> None:
        """Run a method on the DSP.

        Args:
            handle: Of ``open``.
            word: The scalar word.
            spans: An item for each buffer, inputs first.
            same: As ``raw`` of ``invoke_same``: remember the message, when nothing is copied.

        Raises:
            AeeError: the call failed; its code is what the vendor's call returns.
        """
        opened, made = self.prepare(handle, word, spans)
        try:
            if made.clean:
                self._flush(made.clean, HB_SYS_MEM_CACHE_CLEAN)
            self._finish(self._submit(made.task), opened, made)
        except AeeError:
            self._give_back(made.buffer)
            raise
        self.settle(made)
        if same is not None and not made.each.copied_buffers:
            self._remember((handle, word, same), made, opened)
        else:
            self._give_back(made.buffer)

    def prepare(self, handle: int, word: int, spans: Sequence[Span]) -> tuple[Opened, Made]:
        """Write the message of an invocation. Raises as ``invoke``."""
        opened = self.opened(handle)
        if not mark[0]:
            notice()  # first: a fork's child must not write into a message of its parent
        link = self.session.link
        if opened.ended or link.fault:
            raise AeeError(Aee.AEE_ECONNRESET, opened.ended or link.why_faulty())
        given = scalars.split(word)
        if given.input_handles or given.output_handles:
            raise AeeError(
                Aee.AEE_EUNSUPPORTED, f"The scalar word {word:#010x} names handles; arguments are buffers here."
            )
        if given.total != len(spans):
            raise AeeError(
                Aee.AEE_EBADPARM, f"The scalar word {word:#010x} names {given.total} arguments, not {len(spans)}."
            )
        return opened, self._write(opened, word, given, spans)

    def _write(self, opened: Opened, word: int, given: scalars.Scalars, spans: Sequence[Span]) -> Made:
        head = -(-(HEAD.size + ARGUMENT.size * len(spans)) // COPY_ALIGNMENT) * COPY_ALIGNMENT
        places, each, end = self._places(spans, head)
        buffer = self._take(end)
        view, base = buffer.view(), buffer.phy_addr
        size = HEAD.size + ARGUMENT.size * len(spans)
        task = (FASTRPC_CMD, self.domain(opened.domain).priority, opened.mask, 0, base, size, 0, 0)
        made = Made(buffer, task, [], [], [], each)
        needs_flush = self._needs_flush
        numbers: list[int] = []
        for at, (span, (phy_addr, size_bytes)) in enumerate(zip(spans, places, strict=True)):
            is_input = at < given.inputs
            numbers += (base - phy_addr if phy_addr < 0 else phy_addr, size_bytes)
            if phy_addr < 0 and is_input:
                _copy_in(span, view, buffer.address, -phy_addr)
            elif phy_addr < 0:
                made.back.append((span[0] if isinstance(span, tuple) else span, -phy_addr, size_bytes))
            elif size_bytes and needs_flush:
                (made.clean if is_input else made.invalidate).append((phy_addr, size_bytes))
        raw = message.pack_invoke(opened.remote, word, numbers)
        view[: len(raw)] = raw
        return made

    def _places(self, spans: Sequence[Span], head: int) -> tuple[list[tuple[int, int]], Statistics, int]:
        """Where each buffer goes: physical address, or below 0 the place of its copy, and bytes; and their end."""
        places: list[tuple[int, int]] = []
        copied = copied_bytes = shared_bytes = 0
        end = head
        for span in spans:
            address, size_bytes, phy_addr = span if isinstance(span, tuple) else (0, len(span), 0)
            if size_bytes and not phy_addr and isinstance(span, tuple):
                if not address:
                    raise AeeError(Aee.AEE_EBADPARM, f"A buffer of {size_bytes} bytes is at NULL.")
                phy_addr = self.memory.place(address, size_bytes)
            if phy_addr:
                shared_bytes += size_bytes
            elif size_bytes:
                copied, copied_bytes, phy_addr = copied + 1, copied_bytes + size_bytes, -end
                end += -(-size_bytes // COPY_ALIGNMENT) * COPY_ALIGNMENT
            places.append((phy_addr, size_bytes))
        shared = sum(phy_addr > 0 for phy_addr, _ in places)
        return places, Statistics(1, shared, shared_bytes, copied, copied_bytes, end - head - copied_bytes), end

    def post(self, handle: int, word: int, spans: Sequence[Span]) -> tuple[int, Opened, Made]:
        """Queue an invocation; the caller waits for its task and gives it to ``ended``. Raises as ``invoke``.

        Raises:
            AeeError: AEE_EBADPARM: an output is no shared memory.
        """
        opened, made = self.prepare(handle, word, spans)
        if made.back:
            self._spare.append(made.buffer)
            raise AeeError(
                Aee.AEE_EBADPARM,
                "An output of an asynchronous invocation is not in registered memory: use rpcmem_alloc, or invoke.",
            )
        if made.clean:
            self._flush(made.clean, HB_SYS_MEM_CACHE_CLEAN)
        task = self._submit(made.task)
        if task < 0:
            self._refuse(task, opened)
        return task, opened, made

    def ended(self, task: int, opened: Opened, made: Made) -> int:
        """The code of a posted invocation that has ended; its task is released."""
        try:
            self._finish(task, opened)
        except AeeError as error:
            return note(error.code, error.sentence)
        finally:
            self._give_back(made.buffer)
        self.settle(made)
        return 0

    def settle(self, made: Made) -> None:
        """After an invocation has succeeded: copy outputs back, and count."""
        for target, start, size_bytes in made.back:
            if isinstance(target, bytearray):
                target[:] = made.buffer.view()[start : start + size_bytes]
            elif isinstance(target, int):
                ctypes.memmove(target, made.buffer.address + start, size_bytes)
        if made.invalidate:
            self._flush(made.invalidate, HB_SYS_MEM_CACHE_INVALIDATE)
        self._tally(made.each)

    def _tally(self, each: Statistics) -> None:
        """Count a call; calls of few forms are made again and again."""
        tally = self._tallies.get(each)
        if tally is None:
            tally = self._tallies.setdefault(each, Tally(each))
        tally.calls += 1

    def ready(self, handle: int, word: int, raw: bytes) -> Ready | None:
        """The message of an invocation as of ``invoke_same``, which is good still; None for none."""
        found = self._ready.get((handle, word, raw))
        return None if found is None or self._ready_of != self.memory.generation or found.opened.ended else found

    def finish(self, task: int, opened: Opened) -> None:
        """Wait for a task of an invocation, and raise as ``invoke`` when it has failed."""
        self._finish(task, opened)

    def _forget(self, ready: Ready) -> None:
        for call in ready.on_forgotten:
            call()
        self._keep(ready.tally)

    def _keep(self, tally: Tally) -> None:
        self._tally(tally.each)
        self._tallies[tally.each].calls += tally.calls - 1

    def statistics(self) -> Statistics:
        """What was counted."""
        total = Statistics()
        for tally in self._tallies.values():
            total = added(total, tally.total())
        for ready in [*self._ready.values()]:
            total = added(total, ready.tally.total(sum(count() for count in ready.sent_by_c)))
        return total

    @property
    def _needs_flush(self) -> bool:
        blocks = self.session.blocks
        return blocks.is_strict or blocks.before_flush is not None or blocks.on_flush is not None

    def _flush(self, ranges: list[tuple[int, int]], way: int) -> None:
        for phy_addr, size_bytes in ranges:
            block = self.session.blocks.holding(phy_addr)
            if block is not None and block.is_cached:
                self.session.blocks.flush(phy_addr, size_bytes, way)

    def _remember(self, key: tuple[int, int, bytes], made: Made, opened: Opened) -> None:
        if self._ready_of != self.memory.generation or len(self._ready) >= _MOST_READY:
            self._forget_ready()
            self._ready_of = self.memory.generation
        self._ready[key] = Ready(made.buffer, made.task, Tally(made.each), opened, made.clean, made.invalidate, [], [])

    def _forget_ready(self) -> None:
        ready, self._ready = self._ready, {}  # another thread may be sending one: its buffer goes when that has ended
        for one in ready.values():
            self._forget(one)

    # -- tasks

    def _submit(self, task: tuple[int, ...]) -> int:
        return self._tasks.submit(*task)

    def _finish(self, task: int, opened: Opened | None, held: object = None) -> None:
        """Wait for a task, and raise when it has failed; ``held`` stays until it has ended, whatever interrupts."""
        try:
            has_failed = task < 0 or self._tasks.finish(task)
        except BaseException:
            self._tasks.release_later(task, held)
            raise
        if has_failed:
            self._refuse(task, opened)

    def _refuse(self, task: int, opened: Opened | None) -> None:
        """Raise for a task that was refused, when its number is below 0, or has failed."""
        status = task if task < 0 else self._tasks.wait(task, 1)
        text = self._tasks.why()
        if task >= 0:
            self._tasks.release(task)
        raise self.error(status, text, opened)

    def error(self, status: int, text: str, opened: Opened | None) -> AeeError:
        """The error for the status of a task; notes what has ended."""
        code = of_status(status)
        if code == on_dsp(Aee.AEE_ENOSUCHHANDLE) and opened is not None:
            where = f"{uri.suffix(*uri.split_domain(opened.domain))[6:]} (core {opened.mask.bit_length() - 1})"
            opened.ended = (
                f"The process domain {where} has started anew since the handle of {opened.uri} was opened: close "
                "it, and open another one."
            )
            return AeeError(Aee.AEE_ECONNRESET, opened.ended)
        if status in _ENDED or status in _GONE:
            if opened is not None:
                opened.ended = f"The process domain of the handle of {opened.uri} has ended: {text}"
            return AeeError(Aee.AEE_ECONNRESET, text)
        if status in _CODES:
            return AeeError(_CODES[status], text)
        if status in _STATUSES:
            return AeeError(Aee.AEE_ERPC, text)
        _, _, said = text.partition("It had said:\n")
        return AeeError(code, said)

    # -- messages

    def _take(self, size_bytes: int) -> Buffer:
        """A buffer for a message.

        Raises:
            AeeError: AEE_ENOMEMORY.
        """
        for _ in range(len(self._spare)):
            try:
                buffer = self._spare.popleft()
            except IndexError:
                break  # another thread took the last one
            if buffer.size_bytes >= size_bytes:
                return buffer
            self._spare.append(buffer)
        notice()
        try:
            return Buffer(self.session, max(_LEAST_BUFFER, 1 << (size_bytes - 1).bit_length()), is_cached=False)
        except (HbrtError, StatusError) as error:
            code = Aee.AEE_ECONNRESET if self.session.link.fault else Aee.AEE_ENOMEMORY
            raise AeeError(code, str(error)) from None

    def _give_back(self, buffer: Buffer) -> None:
        """Keep a message for a next call; without a handle there is none."""
        self._spare.append(buffer)
        if not self._handles:
            self._free_messages()

    def _free_messages(self) -> None:
        """The last handle has gone."""
        self._forget_ready()
        while self._spare:
            try:
                self._spare.popleft().free()
            except (HbrtError, IndexError):
                continue  # of a board that has gone, or another thread's


def _copy_in(span: Span, view: memoryview, address: int, at: int) -> None:
    """Copy an input into a message, which lies at an address of this process."""
    if isinstance(span, tuple):
        ctypes.memmove(address + at, span[0], span[1])
    else:
        view[at : at + len(span)] = span


def runtime() -> Runtime:
    """That of the process's attachment; attaches, or starts a private board, when there is none.

    Raises:
        AeeError: AEE_ECONNREFUSED and why.
    """
    try:
        session = attached()
    except StatusError as error:
        raise AeeError(Aee.AEE_ECONNREFUSED, error.text) from None
    found = session.companions.get(Runtime)
    if found is None:
        found = session.companions.setdefault(Runtime, Runtime(session))
    return cast("Runtime", found)
