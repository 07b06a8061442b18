"""A remote program's deputy on the board: a client of its own, with a lease, memory and tasks, in a thread of its own.

What comes is done in the order in which it came; what goes leaves in the order in which it was decided. Changed bytes
wait while WINDOW_BYTES of them are on their way, so that a program that does not read costs no more than that.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable

from dsp_server.gateway.handler import Attendant, bounded_reply
from dsp_server.gateway.send_queue import Outbox
from dsp_server.gateway.shared_memory import DeputyMemory
from hbrt.attach.link import Link
from hbrt.attach.tasks import Tasks
from hbrt.board.paths import BoardPaths
from hbrt.ddr.layout import CORE_ACTIVITY
from hbrt.errors import RequestRefusedError
from hbrt.mailbox.table import ANSWER, Answer, State, shorten
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
    Kind,
    decode,
    encode,
)
from hbrt.remote.send_window import Pump
from hbrt.remote.shadow import Change
from hbrt.status import Status

MOST_TASKS = 1024  # of one program, that have not ended
MOST_UNREAD = 4096  # frames of a program that wait for its deputy
MOST_UNREAD_BYTES = WINDOW_BYTES + 2 * MAX_FRAME_BYTES
MOST_WAITING = 4096  # answers that wait for a program that does not say what it has taken in
MOST_WAITING_BYTES = WINDOW_BYTES
LOOK_MS = 1000.0


class _Tasks(Tasks):
    def check_range(self, what: str, phy_addr: int, size_bytes: int) -> int:
        """Status with which a submission would refuse a block, 0 when it would not; ``why`` has the sentence."""
        return self._refuse_range(what, phy_addr, size_bytes)


class Deputy(Attendant):
    """One remote program on the board; arguments as of ``Attendant``."""

    def __init__(
        self, identity: bytes, name: str, paths: BoardPaths, outbox: Outbox, say: Callable[[str], None]
    ) -> None:
        super().__init__(identity, name, paths, outbox, say)
        self.unread_bytes = 0
        self._inbox: deque[bytes] = deque()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._bell_lock = threading.Lock()  # nobody rings a descriptor that was closed
        self._pump = Pump()
        self._carried: dict[int, int] = {}  # handle -> the program's number of the task
        self._handles: dict[int, int] = {}  # and back
        self._link: Link
        self._tasks: _Tasks
        self._memory: DeputyMemory

    # -- for the gate's thread

    def put(self, frame: bytes) -> bool:
        """A frame of the program; False when it has sent more than it may."""
        if len(self._inbox) >= MOST_UNREAD or self.unread_bytes + len(frame) > MOST_UNREAD_BYTES:
            return False
        self.unread_bytes += len(frame)
        self._inbox.append(frame)
        self._ring()
        return True

    def stop(self) -> None:
        """Have it let its program go soon: its memory and tasks with it."""
        self._is_over = True
        self._ring()

    def _ring(self) -> None:
        with self._bell_lock:
            if self._bell >= 0:
                os.eventfd_write(self._bell, 1)

    # -- its own thread

    def _serve(self) -> None:
        with contextlib.ExitStack() as stack:
            self._attach(stack)
            self._welcome()
            self._carry()

    def _attach(self, stack: contextlib.ExitStack) -> None:
        """Become a client of the board, for as long as ``stack`` is open."""
        self._link = Link(self._paths, self.program)
        stack.callback(self._link.close)
        self._tasks = _Tasks(self._link, spins=False)
        stack.callback(self._tasks.close)
        self._memory = DeputyMemory(self._link, self._tasks, self._pump.next_number)
        stack.callback(self._memory.close)
        self._tasks.waiters.watch(self._bell, self._hush)
        stack.callback(self._tasks.waiters.unwatch, self._bell)

    def _close(self) -> None:
        with self._bell_lock:
            os.close(self._bell)
            self._bell = -1

    def _hush(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)

    def _welcome(self) -> None:
        link = self._link
        self._send(
            encode(
                Kind.WELCOME,
                link.client_id,
                activity_of(link),
                link.ddr.layout.heap_bytes,
                link.daemon_pid,
                os.getpid(),
                self._paths.name[:64],
            )
        )

    def _carry(self) -> None:
        """Hand the program's frames to the board, and back what becomes of them."""
        while not self._is_over:
            self._tasks.waiters.sleep_until(self._has_work, LOOK_MS)
            if self._link.fault:
                self._send(encode(Kind.GONE, int(self._link.fault), self._link.why_faulty()))
                return
            for _ in range(len(self._inbox)):
                frame = self._inbox.popleft()
                self.unread_bytes -= len(frame)
                self._on_frame(frame)
                self._check_waiting()
            self._collect()
            for frame in self._pump.frames():
                self._send(frame)

    def _check_waiting(self) -> None:
        """What waits here is bounded, as what is on its way is: a program need not read what it asked for."""
        count, size_bytes = self._pump.job_count, self._pump.waiting_bytes
        if count > MOST_WAITING or size_bytes > MOST_WAITING_BYTES:
            raise MalformedMessageError(
                f"ACK is missing for what {count} answers wait for, of {size_bytes} bytes so far; {MOST_WAITING} "
                f"answers and {MOST_WAITING_BYTES} bytes wait at most. Read what comes, and send ACK."
            )

    def _has_work(self) -> bool:
        has_ended = self._tasks.has_ended
        return self._is_over or bool(self._inbox) or self._pump.has_frames or any(map(has_ended, self._carried))

    def _collect(self) -> None:
        """Tell the ends of tasks, after the bytes that they wrote."""
        ended = [handle for handle in self._carried if self._tasks.has_ended(handle)]
        if not ended:
            return
        frames = []
        for handle in ended:
            number = self._forget(handle)
            answer, state = self._tasks.answer(handle), self._tasks.state(handle) or State.LOST
            text = b"" if state is State.DONE else shorten(self._tasks.text(handle))
            frames.append(_end(number, state, answer, text))
            self._tasks.release(handle)
        self._pump.add(self._memory.everything())
        self._pump.add_frames(*frames)

    def _forget(self, handle: int) -> int:
        number = self._carried.pop(handle)
        del self._handles[number]
        return number

    # -- frames

    def _on_frame(self, raw: bytes) -> None:
        kind, fields = decode(raw, PROGRAM_SAYS)
        match kind:
            case Kind.SUBMIT:
                self._on_submit(fields[0])
            case Kind.PUSH:
                number, phy_addr, *change = fields
                self._memory.push(number, phy_addr, Change(*change))
                self._send(encode(Kind.TAKEN, number))
            case Kind.ACK:
                self._on_ack(fields[0])
            case Kind.REQUEST:
                self._on_request(fields[0])
            case Kind.PULL:
                self._on_pull(*fields)
            case Kind.CHECK:
                self._on_check(*fields)
            case Kind.CANCEL | Kind.ASK | Kind.DROP:
                self._on_question(kind, *fields)
            case Kind.CLOCK:
                self._send(encode(Kind.NOW, fields[0], time.monotonic_ns()))
            case Kind.BYE:
                self._is_over = True
            case _:
                raise MalformedMessageError(f"{Kind(kind).name} comes once, first.")

    def _on_ack(self, number: int) -> None:
        if not self._pump.on_taken(number):
            raise MalformedMessageError(f"ACK {number:#x} names nothing that is on its way.")

    def _on_submit(self, raw: bytes) -> None:
        number, _, custom_id, cmd, priority, core_mask, _, _, *blocks = TASK_REQUEST.unpack(raw)
        if number in self._handles:
            raise MalformedMessageError(f"The task {number:#x} has been submitted before.")
        if len(self._carried) >= MOST_TASKS:
            status = int(Status.HB_DSP_TASK_NUM_EXCEED_LIMIT)
            why = f"The relay carries {MOST_TASKS} tasks of this process that have not ended, which is the most."
        else:
            in_phy, in_bytes, out_phy, out_bytes = blocks
            status = self._tasks.submit(cmd, priority, core_mask, custom_id, in_phy, in_bytes, out_phy, out_bytes)
            if status > 0:
                self._carried[status], self._handles[number] = number, status
                return
            why = self._tasks.why()
        answer = Answer(-1, status, 0, 0, 0, 0, time.monotonic_ns(), 0)
        self._pump.add_frames(_end(number, State.FAILED, answer, shorten(why)))

    def _on_request(self, raw: bytes) -> None:
        request = decode_request(raw)
        if request.verb not in FORWARDED:
            why = f"{request.verb} is for programs on the board's own machine."
            self._reply(ControlReply(request.id, int(Status.HB_DSP_PERMISSION), why))
        elif request.verb in LOOKS:
            # It may be large, and changes nothing: it is made when there is room for it.
            self._pump.add_numbered(lambda number: _reply_frame(number, bounded_reply(self._answer(request))))
        else:
            self._reply(self._answer(request))

    def _answer(self, request: ControlRequest) -> ControlReply:
        try:
            return ControlReply(request.id, 0, "", self._memory.ask(request))
        except RequestRefusedError as error:
            return ControlReply(request.id, int(error.status), str(error))

    def _on_pull(self, number: int, phy_addr: int, size_bytes: int) -> None:
        try:
            self._pump.add(self._memory.pull(phy_addr, size_bytes))
        except RequestRefusedError as error:
            self._reply(ControlReply(number, int(error.status), str(error)))
        else:
            self._reply(ControlReply(number, 0))

    def _on_check(self, number: int, what: str, phy_addr: int, size_bytes: int) -> None:
        status = self._tasks.check_range(what, phy_addr, size_bytes)
        self._reply(ControlReply(number, status, self._tasks.why() if status else ""))

    def _on_question(self, kind: int, number: int, task: int) -> None:
        handle = self._handles.get(task, 0)
        if handle and kind == Kind.CANCEL:
            self._tasks.cancel(handle)
        elif handle and kind == Kind.DROP:
            self._forget(handle)
            self._tasks.release(handle)
        self._collect()
        handle = self._handles.get(task, 0)
        state = (self._tasks.state(handle) if handle else None) or State.EMPTY
        self._pump.add_frames(encode(Kind.STATE, number, task, int(state)))

    def _reply(self, reply: ControlReply) -> None:
        raw = bounded_reply(reply)
        if len(raw) <= SMALL_REPLY_BYTES:
            self._pump.add_frames(_reply_frame(0, raw))
        else:
            self._pump.add_numbered(lambda number: _reply_frame(number, raw), len(raw))


def _reply_frame(number: int, raw: bytes) -> bytes:
    return encode(Kind.REPLY, number, raw)


def activity_of(link: Link) -> bytes:
    """The activity byte of each core."""
    layout = link.ddr.layout
    return bytes(link.ddr.map[layout.core(core) + CORE_ACTIVITY] for core in range(link.core_count))


def _end(number: int, state: State, answer: Answer, text: bytes) -> bytes:
    raw = ANSWER.pack(*answer._replace(text_bytes=len(text)))
    return encode(Kind.END, TASK_END.pack(number, int(state), raw), text)
