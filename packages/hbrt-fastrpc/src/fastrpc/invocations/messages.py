"""Messages of invocations on the board: their buffers and contents."""

from __future__ import annotations

import ctypes
from collections import deque
from itertools import repeat
from struct import unpack_from
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from arm_client.arrays import Buffer
from arm_client.errors import HbrtError
from fastrpc.counting import Statistics
from fastrpc.wire import message, scalars
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

Back: TypeAlias = "tuple[int | bytes | bytearray, int, int]"
"""A copied output: the caller's address or object, offset in the message, bytes."""
Copy: TypeAlias = "tuple[int, int, int, tuple[int, int, int] | bytes | bytearray]"
"""A copied argument: its number, offset in the message, bytes, and where it is."""

_MIN_BUFFER: Final = 4096


def spans_of(word: int, raw: bytes) -> list[Span]:
    """The buffers of an array of arguments, and the values of its handles.

    Raises:
        AeeError: AEE_EBADPARM: there are fewer than in the scalar word.
    """
    given = scalars.split(word)
    count = given.total
    if count * ARGUMENT.size > len(raw):
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"The scalar word {word:#010x} specifies {count} arguments, got {len(raw) // ARGUMENT.size}.",
        )
    numbers = unpack_from(f"<{2 * count}Q", raw)
    end = 2 * given.buffers
    return [*zip(numbers[0:end:2], numbers[1:end:2], repeat(0)), *numbers[end::2]]


class Made(NamedTuple):
    """A message on the board, and the work left once it has been answered.

    Attributes:
        buffer: Message and copies.
        task: Arguments of the submission.
        copies: Its copied arguments.
        back: Its copied outputs.
        clean: Physical ranges of shared inputs.
        invalidate: The blocks of shared outputs.
        each: What the call adds to the statistics.
        method: The number in the scalar word.
        watched: Its buffers, under the check memory.
        before: For each watched input, the bytes before the call.
    """

    buffer: Buffer
    task: tuple[int, ...]
    copies: list[Copy]
    back: list[Back]
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
        """Keep a buffer for a later message."""
        self._spare.append(buffer)

    def free(self) -> None:
        """Free the unused buffers."""
        while self._spare:
            try:
                self._spare.popleft().free()
            except (HbrtError, IndexError):
                continue  # of a board that is gone, or of another thread

    @property
    def is_plain(self) -> bool:
        """Whether no check observes buffers or flushes."""
        return self._watch is None and not self.needs_flush

    @property
    def needs_flush(self) -> bool:
        """Whether any check observes flushes."""
        blocks = self._session.blocks
        return blocks.is_strict or blocks.before_flush is not None or blocks.on_flush is not None

    def flush(self, ranges: list[tuple[int, int]], way: int) -> None:
        """Clean or invalidate physical ranges if they are cached."""
        for phy_addr, size_bytes in ranges:
            block = self._session.blocks.holding(phy_addr)
            if block is not None and block.is_cached:
                self._session.blocks.flush(phy_addr, size_bytes, way)

    def begin(self, made: Made) -> None:
        """Before a call, once its inputs are cleaned: record them, for the memory check."""
        if self._watch is not None:
            made.before.update(self._watch.inputs(self._session, made.watched))

    def end(self, made: Made, opened: Opened) -> None:
        """After a call: report forbidden writes by the skeleton."""
        if self._watch is not None:
            self._watch.look(self._session, opened, made.method, made.watched, made.before)

    def write(self, opened: Opened, priority: int, word: int, given: Scalars, spans: Sequence[Span]) -> Made:
        """Write the message of an invocation, whose scalar word is ``given``.

        Raises:
            AeeError: AEE_EBADPARM: a buffer is at NULL; AEE_ENOMEMORY.
        """
        size = HEAD.size + ARGUMENT.size * len(spans)
        head = end = -(-size // COPY_ALIGNMENT) * COPY_ALIGNMENT
        needs_flush = self.needs_flush
        room = 0 if self._watch is None else COPY_ALIGNMENT  # after each copy
        numbers: list[int] = []
        copies: list[Copy] = []
        clean: list[tuple[int, int]] = []
        invalidate: list[tuple[int, int]] = []
        copied_bytes = shared = shared_bytes = 0
        for at, span in enumerate(spans):
            if isinstance(span, int):
                numbers += (span, 0)
                continue
            address, size_bytes, phy_addr = span if isinstance(span, tuple) else (1, len(span), 0)
            if size_bytes and not phy_addr and isinstance(span, tuple):
                if not address:
                    raise AeeError(Aee.AEE_EBADPARM, f"A buffer of {size_bytes} bytes is at NULL.")
                phy_addr = self._memory.place(address, size_bytes)
            if phy_addr:
                shared, shared_bytes = shared + 1, shared_bytes + size_bytes
                if size_bytes and needs_flush:
                    (clean if at < given.inputs else invalidate).append((phy_addr, size_bytes))
            elif size_bytes:
                copies.append((at, end, size_bytes, span))
                copied_bytes += size_bytes
                end += -(-size_bytes // COPY_ALIGNMENT) * COPY_ALIGNMENT + room
            numbers += (phy_addr, size_bytes)
        each = Statistics(1, shared, shared_bytes, len(copies), copied_bytes, end - head - copied_bytes)
        buffer = self.take(end)
        back = _copy(buffer, copies, given.inputs, numbers)
        raw = message.pack_invoke(opened.remote, word, numbers, self._memory.table_addr)
        ctypes.memmove(buffer.address, raw, len(raw))
        task = (FASTRPC_CMD, priority, opened.mask, 0, buffer.phy_addr, size, 0, 0)
        watch = self._watch
        watched = [] if watch is None else watch.watch(buffer, given, numbers, {at for at, *_ in copies})
        return Made(buffer, task, copies, back, clean, invalidate, each, word >> 24 & LONG_METHOD, watched, {})


def _copy(buffer: Buffer, copies: list[Copy], inputs: int, numbers: list[int]) -> list[Back]:
    """Copy inputs into a message, and record the physical addresses of all copies; returns what must be copied back."""
    back: list[Back] = []
    for at, start, size_bytes, span in copies:
        numbers[2 * at] = buffer.phy_addr + start
        source = span[0] if isinstance(span, tuple) else span
        if at >= inputs:
            back.append((source, start, size_bytes))
        else:
            given = bytes(source) if isinstance(source, bytearray) else source
            ctypes.memmove(buffer.address + start, given, size_bytes)
    return back
