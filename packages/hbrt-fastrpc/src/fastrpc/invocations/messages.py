"""Messages of invocations on the board: their buffers and contents."""

from __future__ import annotations

import ctypes
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from arm_client.arrays import Buffer
from arm_client.errors import HbrtError
from fastrpc.counting import Statistics
from fastrpc.wire import message
from fastrpc.wire.aee import Aee, AeeError
from fastrpc.wire.message import ARGUMENT, COPY_ALIGNMENT, FASTRPC_CMD, HEAD
from fastrpc.wire.scalars import LONG_METHOD
from hbrt.board.forked import notice
from hbrt.borders.interrupts import let_out
from hbrt.errors import StatusError
from hbrt.findings.checks import Check

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from arm_client.session.session import Session
    from fastrpc.domains import Opened
    from fastrpc.invocations.watched import Watched
    from fastrpc.memory import FastrpcMemory
    from fastrpc.wire.scalars import Scalars

Span: TypeAlias = "tuple[int, int, int] | bytes | bytearray | int"
"""An argument: address, bytes and physical address (0 for that of registered memory, or a copy); or bytes to copy; or a
handle's value."""

_MIN_BUFFER: Final = 4096


class Made(NamedTuple):
    """A message on the board, and the work left once it has been answered.

    Attributes:
        buffer: Message and copies.
        task: Arguments of a submission.
        back: For each copied output: the caller's address or object, offset in the buffer, size in bytes.
        clean: Physical ranges of shared inputs.
        invalidate: The blocks of shared outputs.
        each: What the call adds to the statistics.
        method: The number in the scalar word.
        watched: Its buffers, under the check memory.
        before: Of each watched input, the bytes before the call.
    """

    buffer: Buffer
    task: tuple[int, ...]
    back: list[tuple[int | bytes | bytearray, int, int]]
    clean: list[tuple[int, int]]
    invalidate: list[tuple[int, int]]
    each: Statistics
    method: int
    watched: list[Watched]
    before: dict[int, bytes]


class Messages:
    """The messages of one attachment; buffers are reused."""

    def __init__(self, session: Session, memory: FastrpcMemory) -> None:
        self._session, self._memory = session, memory
        self._watch: ModuleType | None = None
        if Check.MEMORY in session.checks:
            from fastrpc.invocations import watched  # a program without checks does not pay for it

            self._watch = watched
        self._spare: deque[Buffer] = deque()

    def take(self, size_bytes: int) -> Buffer:
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
            return Buffer(self._session, max(_MIN_BUFFER, 1 << (size_bytes - 1).bit_length()), is_cached=False)
        except (HbrtError, StatusError) as error:
            let_out(error)
            code = Aee.AEE_ECONNRESET if self._session.link.fault else Aee.AEE_ENOMEMORY
            raise AeeError(code, str(error)) from None

    def release(self, buffer: Buffer) -> None:
        """Keep a buffer for a next message."""
        self._spare.append(buffer)

    def free(self) -> None:
        """Free the unused buffers."""
        while self._spare:
            try:
                self._spare.popleft().free()
            except (HbrtError, IndexError):
                continue  # of a board that is gone, or another thread's

    @property
    def needs_flush(self) -> bool:
        """Whether any check observes flushes."""
        blocks = self._session.blocks
        return blocks.is_strict or blocks.before_flush is not None or blocks.on_flush is not None

    def flush(self, ranges: list[tuple[int, int]], way: int) -> None:
        """Clean or invalidate physical ranges, where they are cached."""
        for phy_addr, size_bytes in ranges:
            block = self._session.blocks.holding(phy_addr)
            if block is not None and block.is_cached:
                self._session.blocks.flush(phy_addr, size_bytes, way)

    def begin(self, made: Made) -> None:
        """Before a call, once its inputs are cleaned: remember them, under the check memory."""
        if self._watch is not None:
            made.before.update(self._watch.inputs(self._session, made.watched))

    def end(self, made: Made, opened: Opened) -> None:
        """Called afterwards: report anything forbidden that the skeleton did."""
        if self._watch is not None:
            self._watch.look(self._session, opened, made.method, made.watched, made.before)

    def write(self, opened: Opened, priority: int, word: int, given: Scalars, spans: Sequence[Span]) -> Made:
        """Write the message of an invocation, whose scalar word is ``given``.

        Raises:
            AeeError: AEE_EBADPARM: a buffer is at NULL; AEE_ENOMEMORY.
        """
        head = -(-(HEAD.size + ARGUMENT.size * len(spans)) // COPY_ALIGNMENT) * COPY_ALIGNMENT
        places, each, end = self._places(spans, head)
        buffer = self.take(end)
        view, base = buffer.view(), buffer.phy_addr
        size = HEAD.size + ARGUMENT.size * len(spans)
        task = (FASTRPC_CMD, priority, opened.mask, 0, base, size, 0, 0)
        made = Made(buffer, task, [], [], [], each, word >> 24 & LONG_METHOD, [], {})
        needs_flush = self.needs_flush
        numbers: list[int] = []
        for at, (span, (phy_addr, size_bytes)) in enumerate(zip(spans, places, strict=True)):
            if isinstance(span, int):
                numbers += (span, 0)
                continue
            is_input = at < given.inputs
            if self._watch is not None and size_bytes:
                is_copied, start = phy_addr < 0, base - phy_addr if phy_addr < 0 else phy_addr
                made.watched.append(self._watch.Watched(at, start, size_bytes, is_input, is_copied))
                if is_copied:
                    view[size_bytes - phy_addr :][:COPY_ALIGNMENT] = self._watch.FILL
            numbers += (base - phy_addr if phy_addr < 0 else phy_addr, size_bytes)
            if phy_addr < 0 and is_input:
                _copy_in(span, view, buffer.address, -phy_addr)
            elif phy_addr < 0:
                made.back.append((span[0] if isinstance(span, tuple) else span, -phy_addr, size_bytes))
            elif size_bytes and needs_flush:
                (made.clean if is_input else made.invalidate).append((phy_addr, size_bytes))
        raw = message.pack_invoke(opened.remote, word, numbers, self._memory.table_addr)
        view[: len(raw)] = raw
        return made

    def _places(self, spans: Sequence[Span], head: int) -> tuple[list[tuple[int, int]], Statistics, int]:
        """Each buffer's physical address or, if negative, its copy's offset, and its size; and the end of them all."""
        places: list[tuple[int, int]] = []
        copied = copied_bytes = shared_bytes = 0
        end = head
        for span in spans:
            if isinstance(span, int):
                places.append((0, 0))
                continue
            address, size_bytes, phy_addr = span if isinstance(span, tuple) else (0, len(span), 0)
            if size_bytes and not phy_addr and isinstance(span, tuple):
                if not address:
                    raise AeeError(Aee.AEE_EBADPARM, f"A buffer of {size_bytes} bytes is at NULL.")
                phy_addr = self._memory.place(address, size_bytes)
            if phy_addr:
                shared_bytes += size_bytes
            elif size_bytes:
                copied, copied_bytes, phy_addr = copied + 1, copied_bytes + size_bytes, -end
                end += (-(-size_bytes // COPY_ALIGNMENT) + (self._watch is not None)) * COPY_ALIGNMENT
            places.append((phy_addr, size_bytes))
        shared = sum(phy_addr > 0 for phy_addr, _ in places)
        return places, Statistics(1, shared, shared_bytes, copied, copied_bytes, end - head - copied_bytes), end


def _copy_in(span: tuple[int, int, int] | bytes | bytearray, view: memoryview, address: int, at: int) -> None:
    """Copy an input at an address of this process into a message."""
    if isinstance(span, tuple):
        ctypes.memmove(address + at, span[0], span[1])
    else:
        view[at : at + len(span)] = span
