"""The handles of this process, and the path of invocations: one for each attachment to a board."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Final, cast
from weakref import WeakSet

from arm_client.cabi.last_error import note
from arm_client.session.process import process
from arm_client.session.session import Session, attached
from fastrpc.counting import Counts, Statistics, added
from fastrpc.domains import Domains, Opened
from fastrpc.invocations.errors import error_of
from fastrpc.invocations.kept import Kept, KeptMessages, fill, key_of
from fastrpc.invocations.messages import Back, Made, Messages, Span, spans_of
from fastrpc.memory import FastrpcMemory
from fastrpc.wire import message, scalars, uri
from fastrpc.wire.aee import Aee, AeeError
from fastrpc.wire.message import COPY_ALIGNMENT, FASTRPC_CMD, HANDLE, MAX_URI
from hbrt.board.forked import mark, notice
from hbrt.borders.interrupts import let_out
from hbrt.errors import StatusError
from hbrt.types import HB_SYS_MEM_CACHE_CLEAN, HB_SYS_MEM_CACHE_INVALIDATE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from arm_client.arrays import Buffer

__all__ = ["FastrpcRuntime", "Made", "Opened", "Span", "runtime"]

_MAX_HANDLES: Final = 1 << 20


class FastrpcRuntime:
    """The FastRPC of one attachment."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.memory = FastrpcMemory(session)
        self.domains = Domains(session)
        self._counts = Counts()
        self._messages = Messages(session, self.memory)
        self._kept = KeptMessages(self._messages.release)
        self.memory.on_changed = self._kept.discard
        self._tasks = session.tasks
        self._handles: dict[int, Opened] = {}
        self.paths: dict[bytes, bytes] = {}  # set by DSPRPC_SET_PATH
        self.queues: WeakSet[object] = WeakSet()  # the open ones
        self._last = 0
        self._lock = threading.RLock()
        # Called when the first handle of a domain is opened, and when the last one is closed.
        self.on_domain: Callable[..., None] = lambda *_, **__: None

    # -- handles

    def open(self, written: str, default_domain: int | None = None) -> int:
        """A handle of an interface.

        Raises:
            AeeError: AEE_EBADPARM: the URI has no domain; AEE_ECONNREFUSED: the board has no such domain, or it is not
                running; AEE_EUNABLETOLOAD from the DSP side: its image has no such interface.
        """
        parsed = uri.parse(written, default_domain)
        if len(written.encode()) > MAX_URI:
            raise AeeError(Aee.AEE_EBADPARM, f"The URI has more than {MAX_URI} bytes: {written[:80]}...")
        self.domains.core_mask(parsed.domain, parsed.session)
        mask = self.domains.place(parsed.effective_domain, parsed.symbol)
        raw = message.pack_open(written, self.domains.of(parsed.effective_domain).limit_bytes)
        at = -(-len(raw) // COPY_ALIGNMENT) * COPY_ALIGNMENT
        with self._lock:
            if len(self._handles) >= _MAX_HANDLES:
                raise AeeError(Aee.AEE_EOUTOFHANDLES)
        buffer = self._messages.take(at + COPY_ALIGNMENT)
        view = buffer.view()
        view[: len(raw)] = raw
        priority = self.domains.of(parsed.effective_domain).priority
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
            self._release(buffer)
        with self._lock:
            self._last += 1
            handle = self._last
            self._handles[handle] = Opened(remote, mask, parsed.effective_domain, written)
            handles = self.domains.of(parsed.effective_domain).handles
            handles.add(handle)
            is_first = len(handles) == 1
        if is_first:
            self.on_domain(parsed.effective_domain, is_up=True)
        return handle

    def close(self, handle: int) -> None:
        """Close a handle, even one whose domain has ended.

        Raises:
            AeeError: AEE_EINVHANDLE; the code with which the interface's own close failed; the handle is closed
                nevertheless.
        """
        opened = self.opened(handle)
        with self._lock:
            self._handles.pop(handle, None)
            self.domains.of(opened.domain).handles.discard(handle)
            self._kept.discard(opened)
            is_last = not self._handles
            is_last_of_domain = not self.domains.of(opened.domain).handles
        try:
            if not opened.ended and not self.session.link.fault:
                raw = message.pack_close(opened.remote)
                buffer = self._messages.take(len(raw))
                buffer.view()[: len(raw)] = raw
                task = (FASTRPC_CMD, 0, opened.mask, 0, buffer.phy_addr, len(raw), 0, 0)
                try:
                    self._finish(self._submit(task), opened)
                except AeeError as error:
                    if error.code != Aee.AEE_ECONNRESET:
                        raise
                self._messages.release(buffer)
        finally:
            if is_last_of_domain and not opened.ended:  # a crashed one does not exit
                self.on_domain(opened.domain, is_up=False)
            if is_last:
                self._free_messages()

    def end_domain(self, effective: int) -> None:
        """End the process of a domain, which restarts; its handles become stale.

        Raises:
            AeeError: AEE_ENOSESSION: it has no open session.
        """
        name = uri.suffix(*uri.split_domain(effective)).removeprefix("&_dom=")
        if not self.domains.of(effective).handles:
            raise AeeError(Aee.AEE_ENOSESSION, f"Nothing is open on {name}; open an interface first.")
        raw = message.pack_end()
        buffer = self._messages.take(len(raw))
        buffer.view()[: len(raw)] = raw
        mask = self.domains.core_mask(*uri.split_domain(effective))
        try:
            self._finish(self._submit((FASTRPC_CMD, 0, mask, 0, buffer.phy_addr, len(raw), 0, 0)), None)
        except AeeError as error:
            if error.code != Aee.AEE_ECONNRESET:
                raise
        self._messages.release(buffer)

    def opened(self, handle: int) -> Opened:
        """The handle's data.

        Raises:
            AeeError: AEE_EINVHANDLE.
        """
        opened = self._handles.get(handle)
        if opened is None:
            raise AeeError(
                Aee.AEE_EINVHANDLE,
                f"{handle:#x} is not an open handle of this process: it was closed, or never opened.",
            )
        return opened

    # -- invocations

    def invoke(self, handle: int, word: int, given: bytes | Sequence[Span]) -> Kept | None:
        """Run a method on the DSP.

        Args:
            handle: From ``open``.
            word: The scalar word.
            given: One item per buffer, inputs first; or the bytes of the array of arguments.

        Returns:
            The message, if the same call may send it again unchanged.

        Raises:
            AeeError: the call failed; its code is what the vendor's call returns.
        """
        key = key_of(handle, word, given)
        spans = None if isinstance(given, bytes) else given
        kept = self._kept.take(key)
        is_new = kept is None or bool(kept.opened.ended) or (bool(kept.made.copies) and not self._may_write())
        if kept is None or is_new:
            changes = self._kept.changes
            opened, made = self.prepare(handle, word, spans_of(word, given) if isinstance(given, bytes) else given)
            kept, back = Kept(made, opened, changes, self._counts.tally(made.each)), made.back
        else:
            opened, made = kept.opened, kept.made
            back = fill(made, spans, word >> 16 & 0xFF) if made.copies else made.back
        try:
            if made.clean:
                self._messages.flush(made.clean, HB_SYS_MEM_CACHE_CLEAN)
            self._messages.begin(made)
            self._finish(self._submit(made.task), opened, kept)
        except AeeError:
            self._messages.end(made, opened)
            if is_new or made.copies:
                self._release(made.buffer)
            raise
        self._messages.end(made, opened)
        if back or made.invalidate:
            self._settle(made, back)
        kept.tally.calls += 1
        if is_new or made.copies:
            may_keep = self._messages.is_plain if made.copies else not made.watched
            if not may_keep or not self._kept.keep(key, kept):
                self._release(made.buffer)
                return None
        return None if made.copies else kept

    def _may_write(self) -> bool:
        """Whether this process may write into a message that was sent before."""
        if not mark[0]:
            notice()  # a fork's child must not write into a message of its parent
        return not self.session.link.fault

    def discard_messages(self) -> None:
        """Write the messages of later calls anew, since their tasks change."""
        self._kept.discard()

    def prepare(self, handle: int, word: int, spans: Sequence[Span]) -> tuple[Opened, Made]:
        """Write the message of an invocation. Raises as ``invoke``."""
        opened = self.opened(handle)
        if not mark[0]:
            notice()  # first: a fork's child must not write into a message of its parent
        link = self.session.link
        if opened.ended or link.fault:
            raise AeeError(Aee.AEE_ECONNRESET, opened.ended or link.why_faulty())
        given = scalars.split(word)
        if given.output_handles:
            raise AeeError(
                Aee.AEE_EUNSUPPORTED,
                f"The scalar word {word:#010x} has output handles, which methods do not support here.",
            )
        if given.total != len(spans):
            raise AeeError(
                Aee.AEE_EBADPARM, f"The scalar word {word:#010x} specifies {given.total} arguments, got {len(spans)}."
            )
        priority = self.domains.of(opened.domain).priority
        return opened, self._messages.write(opened, priority, word, given, spans)

    def post(self, handle: int, word: int, spans: Sequence[Span]) -> tuple[int, Opened, Made]:
        """Queue an invocation; the caller waits for its task and passes it to ``ended``. Raises as ``invoke``.

        Raises:
            AeeError: AEE_EBADPARM: an output is not in shared memory.
        """
        opened, made = self.prepare(handle, word, spans)
        if made.back:
            self._messages.release(made.buffer)
            raise AeeError(
                Aee.AEE_EBADPARM,
                "An output of an asynchronous invocation is not in registered memory: use rpcmem_alloc, or invoke.",
            )
        if made.clean:
            self._messages.flush(made.clean, HB_SYS_MEM_CACHE_CLEAN)
        self._messages.begin(made)
        task = self._submit(made.task)
        if task < 0:
            try:
                self._refuse(task, opened)
            finally:
                self._messages.end(made, opened)
                self._release(made.buffer)
        return task, opened, made

    def ended(self, task: int, opened: Opened, made: Made) -> int:
        """The code of a posted invocation that has ended; its task is released."""
        try:
            self._finish(task, opened)
        except AeeError as error:
            return note(error.code, error.sentence)
        finally:
            self._messages.end(made, opened)
            self._release(made.buffer)
        self._settle(made, made.back)
        self._counts.tally(made.each).calls += 1
        return 0

    def _settle(self, made: Made, back: list[Back]) -> None:
        """After a successful invocation: copy outputs back."""
        for target, start, size_bytes in back:
            if isinstance(target, bytearray):
                target[:] = made.buffer.view()[start : start + size_bytes]
            elif isinstance(target, int):
                ctypes.memmove(target, made.buffer.address + start, size_bytes)
        if made.invalidate:
            self._messages.flush(made.invalidate, HB_SYS_MEM_CACHE_INVALIDATE)

    def finish(self, task: int, opened: Opened) -> None:
        """Wait for a task of an invocation, and raise the same errors as ``invoke`` if it failed."""
        self._finish(task, opened)

    def statistics(self) -> Statistics:
        """The counts."""
        return added(self._counts.total(), self._kept.sent_by_c())

    # -- tasks

    def _submit(self, task: tuple[int, ...]) -> int:
        return self._tasks.submit(*task)

    def _finish(self, task: int, opened: Opened | None, held: object = None) -> None:
        """Wait for a task, and raise if it failed; ``held`` is kept until it has ended, even after an interrupt."""
        try:
            has_failed = task < 0 or self._tasks.finish(task)
        except BaseException:
            self._tasks.release_later(task, held)
            raise
        if has_failed:
            self._refuse(task, opened)

    def _refuse(self, task: int, opened: Opened | None) -> None:
        """Raise if a task was rejected (its number is below 0) or has failed."""
        status = task if task < 0 else self._tasks.wait(task, 1)
        text = self._tasks.why()
        if task >= 0:
            self._tasks.release(task)
        raise error_of(status, text, opened)

    # -- messages

    def _release(self, buffer: Buffer) -> None:
        """Keep a message for the next call, unless there is no handle."""
        self._messages.release(buffer)
        if not self._handles:
            self._free_messages()

    def _free_messages(self) -> None:
        """Called when the last handle is closed."""
        self._kept.discard()
        self._messages.free()


def runtime() -> FastrpcRuntime:
    """The runtime of the process's attachment; attaches or starts a private board if there is none.

    Raises:
        AeeError: AEE_ECONNREFUSED, with the reason.
    """
    usual = process.default  # in most calls, nothing has changed
    if usual is not None and mark[0] and not usual.link.fault and (mine := usual.companions.get(FastrpcRuntime)):
        return cast("FastrpcRuntime", mine)
    try:
        session = attached()
    except StatusError as error:
        let_out(error)
        raise AeeError(Aee.AEE_ECONNREFUSED, error.text) from None
    found = session.companions.get(FastrpcRuntime)
    if found is None:
        found = session.companions.setdefault(FastrpcRuntime, FastrpcRuntime(session))
    return cast("FastrpcRuntime", found)
