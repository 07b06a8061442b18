"""The life of a task on the caller's side in relay mode: a relay queues it.

The slots are this process's own, as in direct mode. Submitting writes the descriptor into one, marks it SENT, and sends
the descriptor to the relay, which makes the slot READY. From there on all is as in direct mode: the core rings this
process, which waits, reads and releases by itself.

A relay that dies is noticed by its process's end, one that hangs by a beat that it does not answer; either way every
task under way ends as HB_DSP_RELAY_LOST at once, and the next submission finds or starts another relay. The handle of a
task that was lost this way leaves the slot, which is taken back like that of a released task, and is remembered apart.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import time
from os import eventfd_write
from time import monotonic_ns
from typing import TYPE_CHECKING

import zmq

from arm_client.transport.forwarded_tasks import ForwardedTasks
from arm_client.transport.relay_channel import RelayChannel, open_channel
from hbrt.ddr.layout import SLOT_RECORD_BYTES
from hbrt.errors import RequestRefusedError
from hbrt.mailbox.handle import SLOT_MASK
from hbrt.mailbox.table import FIRST_END, SUBMISSION, Answer, State
from hbrt.profiles.work import NO_WORK, Work
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.relay import RELAY_SAYS, SUBMIT_HEAD, Kind, decode, encode
from hbrt.status import Status

if TYPE_CHECKING:
    from hbrt.attach.link import LocalLink

BEAT_SECONDS = 1.0
LOST_SECONDS = 10.0
BYE_LINGER_MS = 200
_DONE = int(FIRST_END)
_NOBLOCK = int(zmq.NOBLOCK)
REQUEST_BYTES = SUBMISSION.size
_NAMES = struct.Struct(f"<{len(SUBMIT_HEAD)}sQQ")  # what a SUBMIT has before its REQUEST
TRIES = 2
TAKES_NO_MORE = "The relay takes no more messages of this process."


class _Lost:
    """The end of tasks that a relay took along."""

    __slots__ = ("answer", "status", "why")

    def __init__(self, status: int, why: str) -> None:
        self.status = status
        self.why = why
        self.answer = Answer(-1, status, len(why.encode()), 0, 0, 0, monotonic_ns(), 0)


class RelayTasks(ForwardedTasks):
    """The tasks of this process on one board, queued by its relay."""

    link: LocalLink

    def __init__(self, link: LocalLink) -> None:
        super().__init__(link)
        self._channel: RelayChannel | None = None
        self._parents: RelayChannel | None = None
        self._opening = threading.RLock()
        self._heard_at = 0.0
        self._pinged_at = 0.0  # 0 when no answer is due
        self._lost: dict[int, _Lost] = {}  # by handle, until it is released

    # -- submit

    def submit(self, *given: int) -> int:
        """As ``TaskSlots.submit``."""
        before = self._last_serial()
        try:
            return self._submit(*given)
        except BaseException:
            self._release_newest(*given, since=before)
            raise

    def _submit(self, *given: int) -> int:
        for _ in range(TRIES):
            if self._channel is None and (refused := self._connect()):
                return refused
            with self.table:
                channel = self._channel
                if channel is None:  # it was lost while this thread came here
                    continue
                handle = super().submit(*given)
                if handle < 0:
                    return handle
                slot = handle & SLOT_MASK
                record = self.records + slot * SLOT_RECORD_BYTES
                try:
                    self._send(channel, handle, self.map[record : record + REQUEST_BYTES])
                except OSError as error:
                    self._forget(slot, handle)
                    why = error
                else:
                    return handle
            self.drop(slot)  # no message of it is under way, but its state is SENT
            if not self._is_gone(channel, why):
                break
        return self._refuse_unreached()

    def _queue_task(self, *given: int) -> int:
        return super(ForwardedTasks, self)._queue_task(*given)  # C prepares it

    @staticmethod
    def _send(channel: RelayChannel, handle: int, request: bytes) -> None:
        channel.submit(_NAMES.pack(SUBMIT_HEAD, channel.ticket, handle) + request)

    def _is_gone(self, channel: RelayChannel, error: OSError) -> bool:
        """End the tasks of a relay that took no message; whether it is gone, so that another one may be had."""
        is_gone = not isinstance(error, BlockingIOError)
        self._lose(channel, Status.HB_DSP_RELAY_LOST, self._has_gone(channel) if is_gone else TAKES_NO_MORE)
        return is_gone

    def _has_gone(self, channel: RelayChannel) -> str:
        return (
            f"The relay of board {self.link.paths.name} (process {channel.pid}) died, and the task with it; the "
            "board keeps running, and the next call starts or finds a new relay."
        )

    def _refuse_unreached(self) -> int:
        return self.refuse(Status.HB_DSP_RELAY_LOST, f"The relay of board {self.link.paths.name} cannot be reached.")

    # -- the relay

    @property
    def relay_pid(self) -> int | None:
        """Process of the relay that gets the tasks; None when there is none now."""
        channel = self._channel
        return None if channel is None else channel.pid

    def _connect(self) -> int:
        """Have a channel to a relay that lives; finds or starts one. 0, or the status why there is none to be had."""
        with self._opening:
            if self._channel is not None:
                return 0
            try:
                channel = open_channel(self.link)
            except RequestRefusedError as error:
                return self.refuse(error.status, str(error))
            try:
                with self.table:
                    if self._channel is None:
                        self._pinged_at, self._heard_at = 0.0, time.monotonic()
                        channel.watch(lambda: self._on_death(channel), lambda: self._on_look(channel), BEAT_SECONDS)
                        self._channel = channel
            finally:
                if self._channel is not channel:  # an interrupt, or a signal's handler has opened one meanwhile
                    channel.close()
            return 0

    def _take_in(self, channel: RelayChannel) -> bool:
        """Take in one frame of the relay; False when none has come, or it ends the session."""
        with self.table:
            raw = channel.take() if self._channel is channel else None
        if raw is None:
            return False
        self._heard_at, self._pinged_at = time.monotonic(), 0.0
        try:
            kind, fields = decode(raw, RELAY_SAYS)
        except MalformedMessageError as error:
            self._lose(channel, Status.HB_DSP_RELAY_LOST, f"The relay broke the protocol. {error}")
            return False
        if kind == Kind.END:
            eventfd_write(self.link.doorbell, 1)  # a waiting thread reads the slot
        elif kind in {Kind.GONE, Kind.REFUSED}:
            is_board_lost = kind == Kind.GONE and fields[0] == Status.HB_DSP_BOARD_LOST
            status = Status.HB_DSP_BOARD_LOST if is_board_lost else Status.HB_DSP_RELAY_LOST
            self._lose(channel, status, f"The relay has ended the session of this process. {fields[1]}")
            return False
        return True

    def _on_look(self, channel: RelayChannel) -> None:
        """By the channel's thread: take in the relay's frames; ping a silent relay, and give a dead one up."""
        while self._take_in(channel):
            pass
        now = time.monotonic()
        if self._pinged_at:
            if now - self._pinged_at > LOST_SECONDS:
                why = f"The relay (process {channel.pid}) has given no sign of life for {LOST_SECONDS:g} s."
                self._lose(channel, Status.HB_DSP_RELAY_LOST, why)
        elif now - self._heard_at >= BEAT_SECONDS and self._has_tasks():
            with self.table:
                if self._channel is channel:
                    self._pinged_at = now
                    with contextlib.suppress(zmq.ZMQError):  # it takes no more: its silence says so in time
                        channel.send(encode(Kind.PING, 0), _NOBLOCK)

    def _has_tasks(self) -> bool:
        mm, states = self.map, self.states
        return any(handle and mm[states + slot] < _DONE for slot, handle in enumerate(self.handles))

    def _on_death(self, channel: RelayChannel) -> None:
        while self._take_in(channel):
            pass  # its last messages
        self._lose(channel, Status.HB_DSP_RELAY_LOST, self._has_gone(channel))

    def _lose(self, channel: RelayChannel, status: int, why: str) -> None:
        """End every task under way, since nobody says any more what the relay did with it."""
        if status == Status.HB_DSP_BOARD_LOST:
            self.link.lose()
        elif self.link.is_lost():
            status, why = self.link.fault, self.link.why_faulty()
        end, slots = _Lost(status, why), []
        with self.table:
            if self._channel is not channel:
                return
            self._channel = None
            for slot, handle in enumerate(self.handles):
                if handle and self.map[self.states + slot] < _DONE and not self.is_held(slot):
                    self._lost[handle] = end
                    if self._forget(slot, handle):
                        slots.append(slot)
                    else:  # it has ended, and was released meanwhile
                        del self._lost[handle]
        eventfd_write(self.link.doorbell, 1)
        for slot in slots:
            if not self.link.fault:
                self.drop(slot)  # after the callers wake: a relay that was stopped may hold the claim lock
        channel.close()

    # -- wait, look, release

    def state(self, handle: int) -> State | None:
        """State of a task, None when the handle is not a live one; one on its way to the relay is READY."""
        state = super().state(handle)
        if state is None and handle in self._lost:
            return State.LOST
        return State.READY if state is State.SENT else state

    def answer(self, handle: int) -> Answer:
        """Core, result, times and cycles of a task."""
        lost = self._lost.get(handle)
        return super().answer(handle) if lost is None else lost.answer

    def work(self, handle: int) -> Work:
        """What the op of a task charged."""
        return NO_WORK if handle in self._lost else super().work(handle)

    def text(self, handle: int) -> str:
        """Text that a failed task's core, or the end of its relay, left."""
        lost = self._lost.get(handle)
        return super().text(handle) if lost is None else lost.why

    def release(self, handle: int) -> int:
        """Release a task; as ``TaskSlots.release``."""
        status = super().release(handle)
        return 0 if status and self._lost.pop(handle, None) is not None else status

    def live_handles(self) -> list[int]:
        """Handles that were not released."""
        return super().live_handles() + list(self._lost)

    def refuse_handle(self, handle: int) -> int:
        """As ``TaskSlots.refuse_handle``; a task that a relay took along has its own reason."""
        lost = self._lost.get(handle)
        return super().refuse_handle(handle) if lost is None else self.refuse(lost.status, lost.why)

    def close(self) -> None:
        """Say goodbye to the relay, and close what this object opened."""
        with self.table:
            channel, self._channel = self._channel, None
            if channel is not None:
                with contextlib.suppress(zmq.ZMQError):  # the daemon reports it to a relay that takes no more
                    channel.send(encode(Kind.BYE), _NOBLOCK)
        if channel is not None:
            channel.close(BYE_LINGER_MS)
        self._lost.clear()
        super().close()

    def abandon_in_child(self) -> None:
        """In a fork's child: as ``TaskSlots.abandon_in_child``; the channel is the parent's."""
        super().abandon_in_child()
        self._lost.clear()
        self._opening = threading.RLock()
        self._parents, self._channel = self._channel, None  # kept: what collects it would close the parent's socket
