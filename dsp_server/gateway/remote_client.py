"""A remote program's session: a client of the board with its own lease, memory, tasks and thread.

It handles frames in the order in which they arrive, and sends frames in the order in which they are made. At most
WINDOW_BYTES of changed bytes are in transit; more must wait, which limits the cost of a program that does not read.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from dsp_server.gateway.handler import ConnectionHandler, SendQueue, bounded_reply
from dsp_server.gateway.shared_memory import RemoteClientMemory
from hbrt.attach.link import LocalLink
from hbrt.attach.tasks import Tasks
from hbrt.attach.waiting import Waiters
from hbrt.board.paths import BoardPaths
from hbrt.ddr.layout import CORE_ACTIVITY
from hbrt.errors import RequestRefusedError
from hbrt.mailbox.handle import slot_of
from hbrt.mailbox.submission import block_refusal
from hbrt.mailbox.table import ANSWER, Answer, State, shorten
from hbrt.profiles.work import NO_WORK, WORK, Work
from hbrt.protocol.control import ControlReply, ControlRequest, MalformedMessageError, decode_request
from hbrt.protocol.remote import (
    FORWARDED,
    LOOKS,
    MAX_FRAME_BYTES,
    PROGRAM_SAYS,
    SMALL_REPLY_BYTES,
    TASK_END,
    TASK_REQUEST,
    WINDOW_BYTES,
    RemoteFrame,
    decode,
    encode,
)
from hbrt.remote.send_window import SendWindow
from hbrt.remote.shadow import Change
from hbrt.status import Status
from hbrt.trace.kinds import EventKind
from hbrt.trace.switch import Recorder

if TYPE_CHECKING:
    from hbrt.trace.ring import Ring

MAX_TASKS = 1024  # unfinished tasks per program
MAX_UNREAD = 4096  # received frames per program
MAX_UNREAD_BYTES = WINDOW_BYTES + 2 * MAX_FRAME_BYTES
MAX_WAITING = 4096  # answers to a program that sends no ACK
MAX_WAITING_BYTES = WINDOW_BYTES
POLL_MS = 1000.0


class RemoteClient(ConnectionHandler):
    """A remote program as a client of the board; takes the arguments of ``ConnectionHandler``."""

    ROLE = "remote client"

    def __init__(
        self, identity: bytes, name: str, paths: BoardPaths, send_queue: SendQueue, log: Callable[[str], None]
    ) -> None:
        super().__init__(identity, name, paths, send_queue, log)
        self.unread_bytes = 0
        self._inbox: deque[bytes] = deque()
        self._window = SendWindow()
        self._numbers: dict[int, int] = {}  # handle -> the program's number for the task
        self._handles: dict[int, int] = {}  # the program's number -> handle
        self._trace: Ring | None = None
        self._link: LocalLink
        self._tasks: Tasks
        self._waiters: Waiters | None = None
        self._memory: RemoteClientMemory

    # -- the gateway's thread calls these

    def put(self, frame: bytes) -> bool:
        """Queue a frame from the program; False if the queue is full."""
        if len(self._inbox) >= MAX_UNREAD or self.unread_bytes + len(frame) > MAX_UNREAD_BYTES:
            return False
        self.unread_bytes += len(frame)
        self._inbox.append(frame)
        self._ring()
        return True

    def stop(self) -> None:
        """Make the thread end soon; the lease, memory and tasks end with it."""
        self._is_over = True
        self._ring()

    def _ring(self) -> None:
        if (waiters := self._waiters) is not None:
            waiters.nudge()

    # -- its own thread

    def _serve(self) -> None:
        with contextlib.ExitStack() as stack:
            self._attach(stack)
            self._welcome()
            self._serve_frames()

    def _attach(self, stack: contextlib.ExitStack) -> None:
        """Be a client of the board until ``stack`` closes."""
        self._link = LocalLink(self._paths, self.program)
        stack.callback(self._link.close)
        self._tasks = Tasks(self._link, polls=False)
        self._waiters = self._tasks.waiters
        stack.callback(self._tasks.close)
        self._memory = RemoteClientMemory(self._link, self._tasks, self._window.next_number)
        stack.callback(self._memory.close)
        self._recorder = Recorder(self._link.trace, "gateway", self.program)
        self._link.on_asked = self._follow_trace
        stack.callback(setattr, self._link, "on_asked", None)
        self._follow_trace()

    def _follow_trace(self) -> None:
        self._recorder.look()
        self._trace = self._recorder.ring

    def _begin_ns(self) -> int:
        """Return the time if a trace is to record what begins now, else 0."""
        return 0 if self._trace is None else time.monotonic_ns()

    def _note(self, start_ns: int, size_bytes: int, what: str, sequence: int = 0, client: int = 0) -> None:
        """Trace bytes, or a task, passing through this gateway, unless they began before the trace."""
        if start_ns and (trace := self._trace) is not None:
            trace.note(EventKind.HOP, start_ns, time.monotonic_ns(), sequence, size_bytes, 0, client, trace.text(what))

    def _send(self, frame: bytes) -> None:
        start_ns = self._begin_ns()
        super()._send(frame)
        self._note(start_ns, len(frame), "to the program")

    def _welcome(self) -> None:
        link = self._link
        self._send(
            encode(
                RemoteFrame.WELCOME,
                link.client_id,
                activity_of(link),
                link.ddr.layout.heap_bytes,
                link.daemon_pid,
                os.getpid(),
                self._paths.name[:64],
            )
        )

    def _serve_frames(self) -> None:
        """Pass the program's frames on to the board, and the results to the program."""
        while not self._is_over:
            self._tasks.waiters.sleep_until_any(self._numbers, self._has_work, POLL_MS)
            if self._link.fault:
                self._send(encode(RemoteFrame.GONE, int(self._link.fault), self._link.why_faulty()))
                return
            for _ in range(len(self._inbox)):
                frame = self._inbox.popleft()
                self.unread_bytes -= len(frame)
                start_ns = self._begin_ns()
                self._on_frame(frame)
                self._note(start_ns, len(frame), "from the program")
                self._check_unsent()
            self._collect()
            for frame in self._window.frames():
                self._send(frame)

    def _check_unsent(self) -> None:
        """Limit the unacknowledged answers: a program may ask without reading.

        Raises:
            MalformedMessageError: too many answers, or too many bytes of answers, wait for an ACK.
        """
        count, size_bytes = self._window.source_count, self._window.waiting_bytes
        if count > MAX_WAITING or size_bytes > MAX_WAITING_BYTES:
            raise MalformedMessageError(
                f"ACK is missing for {count} answers of {size_bytes} bytes; at most {MAX_WAITING} answers and "
                f"{MAX_WAITING_BYTES} bytes may wait. Read the answers, and send ACK."
            )

    def _has_work(self) -> bool:
        has_ended = self._tasks.has_ended
        return self._is_over or bool(self._inbox) or self._window.has_frames or any(map(has_ended, self._numbers))

    def _collect(self) -> None:
        """Send the results of finished tasks, after the bytes that they wrote."""
        ended = [handle for handle in self._numbers if self._tasks.has_ended(handle)]
        if not ended:
            return
        frames = []
        for handle in ended:
            number = self._discard(handle)
            answer, state = self._tasks.answer(handle), self._tasks.state(handle) or State.LOST
            text = b"" if state is State.DONE else shorten(self._tasks.text(handle))
            frames.append(_end(number, state, answer, text, self._tasks.work(handle)))
            self._tasks.release(handle)
        self._window.add(self._memory.everything())
        self._window.add_frames(*frames)

    def _discard(self, handle: int) -> int:
        number = self._numbers.pop(handle)
        del self._handles[number]
        return number

    # -- frames

    def _on_frame(self, raw: bytes) -> None:
        kind, fields = decode(raw, PROGRAM_SAYS)
        match kind:
            case RemoteFrame.SUBMIT:
                self._on_submit(fields[0])
            case RemoteFrame.PUSH:
                number, phy_addr, *change = fields
                self._memory.push(number, phy_addr, Change(*change))
                self._send(encode(RemoteFrame.TAKEN, number))
            case RemoteFrame.ACK:
                self._on_ack(fields[0])
            case RemoteFrame.REQUEST:
                self._on_request(fields[0])
            case RemoteFrame.PULL:
                self._on_pull(*fields)
            case RemoteFrame.CHECK:
                self._on_check(*fields)
            case RemoteFrame.CANCEL | RemoteFrame.ASK | RemoteFrame.DROP:
                self._on_question(kind, *fields)
            case RemoteFrame.CLOCK:
                self._send(encode(RemoteFrame.NOW, fields[0], time.monotonic_ns()))
            case RemoteFrame.BYE:
                self._is_over = True
            case _:
                raise MalformedMessageError(f"{RemoteFrame(kind).name} may come only once, first.")

    def _on_ack(self, number: int) -> None:
        if not self._window.on_taken(number):
            raise MalformedMessageError(f"ACK {number:#x} does not name a frame in transit.")

    def _on_submit(self, raw: bytes) -> None:
        start_ns = self._begin_ns()
        number, _, custom_id, cmd, priority, core_mask, _, _, *blocks = TASK_REQUEST.unpack(raw)
        if number in self._handles:
            raise MalformedMessageError(f"The task {number:#x} was already submitted.")
        if len(self._numbers) >= MAX_TASKS:
            status = int(Status.HB_DSP_TASK_NUM_EXCEED_LIMIT)
            why = f"This process has {MAX_TASKS} unfinished tasks at the relay, the maximum."
        else:
            in_phy, in_bytes, out_phy, out_bytes = blocks
            status = self._tasks.submit(cmd, priority, core_mask, custom_id, in_phy, in_bytes, out_phy, out_bytes)
            if status > 0:
                self._numbers[status], self._handles[number] = number, status
                if start_ns:
                    request = self._tasks.mailbox.request(slot_of(status))
                    self._note(start_ns, len(raw), "submit", request.sequence, request.client)
                return
            why = self._tasks.why()
        answer = Answer(-1, status, 0, 0, 0, 0, time.monotonic_ns(), 0)
        self._window.add_frames(_end(number, State.FAILED, answer, shorten(why)))

    def _on_request(self, raw: bytes) -> None:
        request = decode_request(raw)
        if request.verb not in FORWARDED:
            why = f"{request.verb} is only for programs on the board's own machine."
            self._reply(ControlReply(request.id, int(Status.HB_DSP_PERMISSION), why))
        elif request.verb in LOOKS:
            # The reply may be large and has no side effects, so it is made once the window has room.
            self._window.add_numbered(lambda number: _reply_frame(number, bounded_reply(self._answer(request))))
        else:
            self._reply(self._answer(request))

    def _answer(self, request: ControlRequest) -> ControlReply:
        if request.verb == "leave":
            self._tasks.empty_released()  # what the program released during its run is not a leak
        try:
            return ControlReply(request.id, 0, "", self._memory.ask(request))
        except RequestRefusedError as error:
            return ControlReply(request.id, int(error.status), str(error))

    def _on_pull(self, number: int, phy_addr: int, size_bytes: int) -> None:
        try:
            self._window.add(self._memory.pull(phy_addr, size_bytes))
        except RequestRefusedError as error:
            self._reply(ControlReply(number, int(error.status), str(error)))
        else:
            self._reply(ControlReply(number, 0))

    def _on_check(self, number: int, what: str, phy_addr: int, size_bytes: int) -> None:
        status, why = block_refusal(self._link.ddr, self._link.client_id, what, phy_addr, size_bytes) or (0, "")
        self._reply(ControlReply(number, status, why))

    def _on_question(self, kind: int, number: int, task: int) -> None:
        handle = self._handles.get(task, 0)
        if handle and kind == RemoteFrame.CANCEL:
            self._tasks.cancel(handle)
        elif handle and kind == RemoteFrame.DROP:
            self._discard(handle)
            self._tasks.release(handle)
        self._collect()
        handle = self._handles.get(task, 0)
        state = (self._tasks.state(handle) if handle else None) or State.EMPTY
        self._window.add_frames(encode(RemoteFrame.STATE, number, task, int(state)))

    def _reply(self, reply: ControlReply) -> None:
        raw = bounded_reply(reply)
        if len(raw) <= SMALL_REPLY_BYTES:
            self._window.add_frames(_reply_frame(0, raw))
        else:
            self._window.add_numbered(lambda number: _reply_frame(number, raw), len(raw))


def _reply_frame(number: int, raw: bytes) -> bytes:
    return encode(RemoteFrame.REPLY, number, raw)


def activity_of(link: LocalLink) -> bytes:
    """Return the activity byte of each core."""
    layout = link.ddr.layout
    return bytes(link.ddr.map[layout.core(core) + CORE_ACTIVITY] for core in range(link.core_count))


def _end(number: int, state: State, answer: Answer, text: bytes, work: Work = NO_WORK) -> bytes:
    raw = ANSWER.pack(*answer._replace(text_bytes=len(text)))
    return encode(RemoteFrame.END, TASK_END.pack(number, int(state), raw, WORK.pack(*work)), text)
