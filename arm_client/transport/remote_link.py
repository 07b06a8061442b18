"""The attachment to a board on another machine: like ``hbrt.attach.link``, over a relay.

This process has its own DDR, laid out like the board's, so that addresses mean the same on both machines and
``virAddr`` is real memory. The connection's thread does everything that concerns this memory, in the order in which it
is decided on either side: for requests, changed bytes, submissions and ends, message order is enough.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from arm_client.cabi.last_error import RequestRefusedError
from arm_client.transport.questions import Questions
from arm_client.transport.remote_channel import RemoteChannel
from arm_client.transport.remote_memory import RemoteMemory
from hbrt.attach.link import Link, program_name
from hbrt.attach.question import UNDO, Question
from hbrt.board.descriptors import check_free
from hbrt.board.forked import notice
from hbrt.board.paths import RemoteBoard
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import CORE_ACTIVITY, LayoutError
from hbrt.errors import BoardError, RefusedError, WrongUseError
from hbrt.findings.checks import without_cores
from hbrt.mailbox.submission import Refusal
from hbrt.mailbox.table import Mailbox
from hbrt.protocol.control import ControlReply, ControlRequest, decode_reply, encode_request
from hbrt.protocol.frames import Message
from hbrt.protocol.remote import RemoteFrame, encode
from hbrt.remote.send_window import FrameSource
from hbrt.remote.shadow import Change
from hbrt.status import Status
from hbrt.trace import switch
from hbrt.trace.kinds import EventKind
from hbrt.trace.switch import Switch

_MAX_DESCRIPTORS = 22  # for the connection, 2 for the copy of the memory, 5 more, plus those needed to load a module
BOARD_LOST = frozenset({Status.HB_DSP_BOARD_LOST, Status.HB_SYS_BOARD_LOST})
MAX_TASKS = 1024  # the number of slots that one client may lease
_SAMPLES = 8  # of the clock difference; the fastest counts


class RemoteLink(Link):
    """This process's attachment to a board on another machine."""

    paths: RemoteBoard
    leases_slots = False
    is_watched = False

    def __init__(self, paths: RemoteBoard, new_memory: Callable[[Ddr, int], RemoteMemory] = RemoteMemory) -> None:
        """Attach.

        Args:
            paths: The board.
            new_memory: Creates the copy of its memory; arguments as for ``RemoteMemory``.

        Raises:
            BoardError: no relay listens there. RefusedError (a BoardError): it refuses this process.
        """
        check_free(_MAX_DESCRIPTORS, f"an attachment to {paths.name}")
        channel = RemoteChannel(paths, program_name())
        self.paths = paths
        self._channel = channel
        self.client_id, activity, heap_bytes, self.daemon_pid, self.relay_pid, _ = channel.welcome
        self.core_count = len(activity)
        undo = contextlib.ExitStack()
        try:
            self.ddr = Ddr.create(heap_bytes, self.core_count)
            undo.callback(self.ddr.close)
            self.memory = new_memory(self.ddr, self.client_id)
            self.doorbell = os.eventfd(0, os.EFD_CLOEXEC)
            undo.callback(os.close, self.doorbell)
            self.lease, self._lease_end = socket.socketpair()  # hangs up when the connection is lost
        except (LayoutError, OSError) as error:
            undo.close()
            channel.start(lambda _: None, lambda *_: None)
            channel.close()
            raise BoardError(f"Cannot create a copy of the memory of {paths.name} here: {error}") from None
        self.mailbox = Mailbox(self.ddr)
        self.first_slots = list(range(MAX_TASKS))
        self.core_doorbells = [-1] * self.core_count  # the cores' doorbells are on their own machine
        self.urgent_bells = []
        self.on_end: Callable[[bytes, bytes], None] = lambda *_: None
        self.fault = 0
        self._why = ""
        self._pid = os.getpid()
        self._questions = Questions()
        self._clocks = deque([(1 << 62, channel.clock_ns)], _SAMPLES)
        self._note_cores(activity)
        channel.start(self._on_message, self._on_lost, self._watched())

    def record(self, directory: Path) -> None:  # noqa: ARG002 - as of every link
        """As ``Link.record``.

        Raises:
            WrongUseError: always.
        """
        raise WrongUseError(
            f"Board {self.paths.name} is on another machine, whose cores write recordings: run the program "
            "on that machine to record it, without HBRT_RECORD here."
        )

    def watch_tasks(self, checks: int) -> int:
        """Like ``Link.watch_tasks``; only whoever starts the board can have its cores watch."""
        if checks:
            from arm_client.cabi.say import warn

            less = without_cores(checks)
            its_cores = f" Its cores do not watch this program: {less}." if less else ""
            how = " To have its cores watch, start the board there with 'hbrt start --check ...'." if less else ""
            warn(
                "Board %s is on another machine. Stray pointers of this program are not detected.%s%s",
                self.paths.name,
                its_cores,
                how,
            )
        return checks

    def block_refusal(self, what: str, phy_addr: int, size_bytes: int) -> Refusal | None:
        """Like ``Link.block_refusal``; the board also knows other processes' blocks and explains it better."""
        if super().block_refusal(what, phy_addr, size_bytes) is None:
            return None
        try:
            status, why = self.check(what, phy_addr, size_bytes)
        except RequestRefusedError as error:
            status, why = error.status, str(error)
        return (status, why) if status else None

    # -- requests

    @property
    def is_asking(self) -> bool:
        """Whether this is the thread that answers requests, or holds one of its locks: finalizers must not ask."""
        return self._channel.is_carrier or self.memory.is_locked

    def undo(self, verb: str, phy_addr: int) -> None:
        """Undo a grant that reached nobody: "free" or "unregister"; nobody waits for the answer."""
        notice()
        question, frames = Question(*self._effects(verb, {"phy": phy_addr})), self._frames_of(verb, {"phy": phy_addr})
        self._questions.discard(question, lambda number: self._put(question, number, frames))

    def trace(self) -> Switch | None:
        """Like ``Link.trace``: the files of the board's other processes are on its machine."""
        return switch.of_environment()

    def request(self, verb: str, question: Question | None = None, **args: Any) -> Any:
        """Send a request to the daemon through the relay; like ``Link.request``."""
        start_ns = time.monotonic_ns()
        try:
            return self._request(verb, question or Question(), **args)
        finally:
            if self.events is not None:
                self.note_request(start_ns, verb)

    def _request(self, verb: str, question: Question, **args: Any) -> Any:
        question.on_answer, question.undo = self._effects(verb, args)
        try:
            encode_request(ControlRequest(0, verb, args))  # refuse here what the schema refuses
        except (ValueError, OverflowError) as error:
            raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, str(error)) from None
        data = _data_of(self.ask(self._frames_of(verb, args), question, verb))
        if verb == "register":
            try:
                self.pull(data, 0)
            except BaseException:
                self.undo("unregister", data)
                raise
        return data

    def _frames_of(self, verb: str, args: dict[str, Any]) -> Callable[[int], FrameSource]:
        def frames_for(number: int) -> FrameSource:
            if verb in {"free", "unregister"}:
                # Every other user of the block then has all its bytes, and the board detects overruns.
                yield from self._changes(args["phy"])
                self.memory.release_block(args["phy"], is_owned=verb == "free")
            yield 0, encode(RemoteFrame.REQUEST, encode_request(ControlRequest(number, verb, args)))

        return frames_for

    def _effects(self, verb: str, args: dict[str, Any]) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
        """Return how an answer changes this process's copy of the memory, and what undoes it if nobody takes it."""

        def on_answer(reply: ControlReply) -> Any:
            is_good = not reply.status
            if verb == "free":
                self.memory.on_free(args["phy"], args.get("site", ""), is_gone=is_good)
            elif verb == "unregister":
                self.memory.on_unregister(args["phy"], is_gone=is_good)
            elif is_good and verb == "alloc":
                self.memory.on_alloc(reply.data, args["size"])
            elif is_good and verb == "register":
                base, size_bytes, owner = reply.data
                self.memory.on_register(base, size_bytes, owner)
                return reply._replace(data=base)
            return reply

        def undo(reply: ControlReply) -> None:
            if not reply.status and verb in UNDO:
                self.undo(UNDO[verb], reply.data)

        return on_answer, undo

    def ask(self, frames_for: Callable[[int], FrameSource], question: Question | None = None, what: str = "") -> Any:
        """Send the frames of ``frames_for(number)`` and wait for the answer with that number.

        Args:
            frames_for: Creates the frames; called by the connection's thread.
            question: Processes the answer; None for nothing.
            what: The request's name in the error if no answer comes.

        Raises:
            RequestRefusedError: the connection is gone, or no answer came in time.
        """
        notice()
        asked = question or Question()
        return self._questions.ask(
            asked, lambda number: self._put(asked, number, frames_for), lambda: self._refuse_unanswered(what)
        )

    def _refuse_unanswered(self, what: str) -> None:
        if self.fault:
            raise RequestRefusedError(self.fault, self.why_faulty())
        raise RequestRefusedError(
            Status.HB_DSP_TIMEOUT,
            f"The relay at {self.paths.name} did not answer {what!r} within {self.request_ms // 1000} s.",
        )

    def _put(self, question: Question, number: int, frames_for: Callable[[int], FrameSource]) -> float:
        if self.fault and not self.is_detaching:
            return 0
        frames, send_queue = frames_for(number), self._channel.send_queue
        question.sent[0] = 1  # no Python call from here to the next, so an interrupt comes after it
        send_queue.append(frames)
        self._channel.ring()
        return self.request_ms / 1000

    def pull(self, phy_addr: int, size_bytes: int) -> None:
        """Fetch the board's changes in the block that contains a range.

        Raises:
            RequestRefusedError: this process does not hold it (anymore), or the connection is gone.
        """

        def frames_for(number: int) -> FrameSource:
            yield 0, encode(RemoteFrame.PULL, number, phy_addr, size_bytes)

        _data_of(self.ask(frames_for, what="pull"))

    def push(self, phy_addr: int) -> None:
        """Send this process's writes to the block that contains an address; returns when the board has them.

        Raises:
            RequestRefusedError: the connection is gone.
        """

        def frames_for(number: int) -> FrameSource:
            yield from self._changes(phy_addr)
            yield 0, encode(RemoteFrame.CHECK, number, "", 0, 0)

        _data_of(self.ask(frames_for, what="push"))

    def check(self, what: str, phy_addr: int, size_bytes: int) -> tuple[int, str]:
        """Return the status and message with which the board would refuse a submitted block; 0 if it would not."""

        def frames_for(number: int) -> FrameSource:
            yield 0, encode(RemoteFrame.CHECK, number, what, phy_addr, size_bytes)

        reply = self.ask(frames_for, what="check")
        return reply.status, reply.text

    def submit(self, raw: bytes) -> None:
        """Send a task, after this process's writes since the last one."""

        def frames_for() -> FrameSource:
            yield from self._changes()
            yield 0, encode(RemoteFrame.SUBMIT, raw)

        start_ns = time.monotonic_ns()
        self._channel.put(frames_for())
        if (events := self.events) is not None:
            text = events.text("to the gateway")
            events.note(EventKind.HOP, start_ns, time.monotonic_ns(), 0, len(raw), text=text)

    @property
    def ahead_ns(self) -> int:
        """How far the board's monotonic clock is ahead of this machine's, estimated from messages."""
        return min(self._clocks)[1]

    def _changes(self, phy_addr: int = 0) -> Iterator[tuple[int, bytes]]:
        for number, address, change in self.memory.changes(phy_addr):
            yield number, encode(RemoteFrame.PUSH, number, address, *change)

    # -- the connection's thread

    def _watched(self) -> dict[Any, Callable[[], None]]:
        """What else the thread polls, as for ``RemoteChannel.start``."""
        return {}

    def _on_message(self, message: Message) -> None:
        kind, fields = message
        if kind == RemoteFrame.END:
            self.on_end(fields[0], fields[1])
        elif kind == RemoteFrame.DATA:
            _, seen, phy_addr, *change = fields
            self.memory.on_data(seen, phy_addr, Change(*change))
        elif kind == RemoteFrame.TAKEN:
            self.memory.on_taken(fields[0])
        elif kind == RemoteFrame.REPLY:
            reply = decode_reply(fields[1])
            if reply.status in BOARD_LOST:  # this ends the connection: whoever lent the board knows a better reason
                raise RefusedError(reply.status, reply.text)
            self._questions.answer(reply.id, reply)
        elif kind == RemoteFrame.STATE:
            self._questions.answer(fields[0], fields[2])
        elif kind == RemoteFrame.BEAT:
            self._note_cores(fields[0])
            self._channel.send(encode(RemoteFrame.CLOCK, time.monotonic_ns()))
        elif kind == RemoteFrame.NOW:
            sent_ns, back_ns = fields[0], time.monotonic_ns()
            self._clocks.append((back_ns - sent_ns, fields[1] - (sent_ns + back_ns) // 2))

    def _note_cores(self, activity: bytes) -> None:
        layout = self.ddr.layout
        for core, doing in enumerate(activity[: self.core_count]):
            self.ddr.map[layout.core(core) + CORE_ACTIVITY] = doing

    def _on_lost(self, status: int, why: str) -> None:
        self._why = self._why or why
        self.is_detaching = False
        self.fault = self.fault or status
        self._lease_end.close()
        self._questions.end()
        os.eventfd_write(self.doorbell, 1)
        if (tell := self.on_fault) is not None:
            tell()

    # -- life

    def proof(self, nonce: str) -> str:
        """Refuse: there is no local relay to prove anything to.

        Raises:
            RequestRefusedError: always.
        """
        raise RequestRefusedError(Status.HB_DSP_PERMISSION, f"{nonce!r}: a remote program holds no lease here.")

    def tell(self, verb: str, **args: Any) -> None:
        """Like ``Link.tell``; a board on another machine asks nothing and gets nothing."""

    def watch_lease(self) -> None:
        """Do nothing: the connection's thread rings the doorbell when the board is lost."""

    def lose(self) -> None:
        """Record that the connection is lost."""
        self.fault = self.fault or Status.HB_DSP_RELAY_LOST

    def is_lost(self) -> bool:
        """Whether the connection is lost."""
        return bool(self.fault)

    def why_faulty(self) -> str:
        """Message for ``fault``."""
        if self.fault in {Status.HB_DSP_FORKED, Status.HB_DSP_NOT_RUNNING}:
            return super().why_faulty()
        return self._why or f"The connection to {self.paths.name} was lost; connect again."

    def close(self) -> None:
        """Detach: the relay ends this process's lease."""
        self.is_detaching = False
        self.detach()
        self._channel.close()
        self.on_fault = None  # break the cycle: free the copy of the board's memory now, not at the next collection
        self.on_end = lambda *_: None
        self.memory.close()
        self.lease.close()
        self.ddr.close()
        os.close(self.doorbell)

    def detach_in_child(self) -> None:
        """In a forked child: like ``Link.detach_in_child``; the connection and its thread are the parent's."""
        self.fault = Status.HB_DSP_FORKED
        self.lease.close()
        self._lease_end.close()


def _data_of(reply: ControlReply) -> Any:
    if reply.status:
        raise RequestRefusedError(reply.status, reply.text)
    return reply.data
