"""Relay mode: a relay queues the tasks.

The slots are this process's own, as in direct mode. Publishing sends the descriptor, which is in its slot and SENT, to
the relay, which makes the slot READY. From then on everything is as in direct mode: the core rings this process, which
waits, reads and releases by itself.

A dead relay is detected by its process's end, a hung one by an unanswered heartbeat; either way every pending task ends
as HB_DSP_RELAY_LOST at once, and the next submission finds or starts another relay. The handle of a task lost this way
is kept separately; its slot is reclaimed like that of a released task.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import time
from os import eventfd_write
from time import monotonic_ns
from typing import TYPE_CHECKING, cast

import zmq

from arm_client.transport.relay_channel import RelayChannel, open_channel
from hbrt.attach.tasks import Carrier, Lost, Tasks
from hbrt.ddr.layout import SLOT_RECORD_BYTES
from hbrt.errors import RequestRefusedError
from hbrt.mailbox.handle import SLOT_MASK
from hbrt.mailbox.table import FIRST_END, SUBMISSION, Answer
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.relay import RELAY_SAYS, SUBMIT_HEAD, RelayFrame, decode, encode
from hbrt.status import Status

if TYPE_CHECKING:
    from hbrt.attach.link import LocalLink

BEAT_SECONDS = 1.0
LOST_SECONDS = 10.0
BYE_LINGER_MS = 200
_DONE = int(FIRST_END)
_NOBLOCK = int(zmq.NOBLOCK)
REQUEST_BYTES = SUBMISSION.size
_NAMES = struct.Struct(f"<{len(SUBMIT_HEAD)}sQQ")  # the part of a SUBMIT before its REQUEST
TRIES = 2
TAKES_NO_MORE = "The relay accepts no more messages from this process."


class Relay(Carrier):
    """Sends tasks to the board's relay."""

    _link: LocalLink

    def __init__(self) -> None:
        # Between the sending threads and the one that finds the relay gone. Reentrant, since a signal handler may
        # submit a task in the middle, in the same thread.
        self.table = threading.RLock()
        self._channel: RelayChannel | None = None
        self._parents: RelayChannel | None = None
        self._opening = threading.RLock()
        self._heard_at = 0.0
        self._pinged_at = 0.0  # 0 if no answer is due

    def carry(self, tasks: Tasks) -> None:
        """See ``Carrier.carry``."""
        super().carry(tasks)
        self._link = cast("LocalLink", tasks.link)

    def publish(self, handle: int, given: tuple[int, ...]) -> int:  # noqa: ARG002 - the record has all
        """Send a task to a live relay; finds or starts one."""
        tasks = self.tasks
        record = tasks.records + (handle & SLOT_MASK) * SLOT_RECORD_BYTES
        for _ in range(TRIES):
            if self._channel is None and (refused := self._connect()):
                return refused
            with self.table:
                channel = self._channel
                if channel is None:  # lost before this thread got here
                    continue
                if handle in tasks.lost:  # lost with the previous relay, which never had it
                    return handle
                try:
                    self._send(channel, handle, tasks.map[record : record + REQUEST_BYTES])
                except OSError as error:
                    why = error
                else:
                    return handle
            if not self._is_gone(channel, handle, why):
                break
        return tasks.refusals.refuse(
            Status.HB_DSP_RELAY_LOST, f"The relay of board {self._link.paths.name} cannot be reached."
        )

    @staticmethod
    def _send(channel: RelayChannel, handle: int, request: bytes) -> None:
        channel.submit(_NAMES.pack(SUBMIT_HEAD, channel.ticket, handle) + request)

    def _is_gone(self, channel: RelayChannel, unsent: int, error: OSError) -> bool:
        """End the tasks of a relay that accepted no message; returns whether it is gone, so another may be used."""
        is_gone = not isinstance(error, BlockingIOError)
        self._lose(channel, Status.HB_DSP_RELAY_LOST, self._has_gone(channel) if is_gone else TAKES_NO_MORE, unsent)
        return is_gone

    def _has_gone(self, channel: RelayChannel) -> str:
        return (
            f"The relay of board {self._link.paths.name} (process {channel.pid}) died, and the task with it; the "
            "board keeps running, and the next call starts or finds a new relay."
        )

    # -- the relay

    @property
    def relay_pid(self) -> int | None:
        """Process of the relay that receives the tasks; None if there is none now."""
        channel = self._channel
        return None if channel is None else channel.pid

    def _connect(self) -> int:
        """Connect to a live relay; finds or starts one. Returns 0, or the status of the failure."""
        with self._opening:
            if self._channel is not None:
                return 0
            try:
                channel = open_channel(self._link)
            except RequestRefusedError as error:
                return self.tasks.refusals.refuse(error.status, str(error))
            try:
                with self.table:
                    if self._channel is None:
                        self._pinged_at, self._heard_at = 0.0, time.monotonic()
                        channel.watch(lambda: self._on_death(channel), lambda: self._on_look(channel), BEAT_SECONDS)
                        self._channel = channel
            finally:
                if self._channel is not channel:  # interrupted, or a signal handler opened one meanwhile
                    channel.close()
            return 0

    def _take_in(self, channel: RelayChannel) -> bool:
        """Process one frame from the relay; returns False if there is none, or it ends the session."""
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
        if kind == RelayFrame.END:
            eventfd_write(self._link.doorbell, 1)  # a waiting thread reads the slot
        elif kind in {RelayFrame.GONE, RelayFrame.REFUSED}:
            is_board_lost = kind == RelayFrame.GONE and fields[0] == Status.HB_DSP_BOARD_LOST
            status = Status.HB_DSP_BOARD_LOST if is_board_lost else Status.HB_DSP_RELAY_LOST
            self._lose(channel, status, f"The relay has ended the session of this process. {fields[1]}")
            return False
        return True

    def _on_look(self, channel: RelayChannel) -> None:
        """Called by the channel's thread: process the relay's frames; ping a silent relay, and give up a dead one."""
        while self._take_in(channel):
            pass
        now = time.monotonic()
        if self._pinged_at:
            if now - self._pinged_at > LOST_SECONDS:
                why = f"The relay (process {channel.pid}) has not responded for {LOST_SECONDS:g} s."
                self._lose(channel, Status.HB_DSP_RELAY_LOST, why)
        elif now - self._heard_at >= BEAT_SECONDS and self._has_tasks():
            with self.table:
                if self._channel is channel:
                    self._pinged_at = now
                    with contextlib.suppress(zmq.ZMQError):  # it accepts no more; its silence will show in time
                        channel.send(encode(RelayFrame.PING, 0), _NOBLOCK)

    def _has_tasks(self) -> bool:
        tasks = self.tasks
        return any(handle and tasks.map[tasks.states + slot] < _DONE for slot, handle in enumerate(tasks.handles))

    def _on_death(self, channel: RelayChannel) -> None:
        while self._take_in(channel):
            pass  # its last messages
        self._lose(channel, Status.HB_DSP_RELAY_LOST, self._has_gone(channel))

    def _lose(self, channel: RelayChannel, status: int, why: str, unsent: int = 0) -> None:
        """End every pending task except any the relay never got, since it is unknown what it did with them."""
        tasks = self.tasks
        if status == Status.HB_DSP_BOARD_LOST:
            self._link.lose()
        elif self._link.is_lost():
            status, why = self._link.fault, self._link.why_faulty()
        end = Lost(status, why, Answer(-1, status, len(why.encode()), 0, 0, 0, monotonic_ns(), 0))
        slots: list[int] = []
        with self.table:
            if self._channel is not channel:
                return
            self._channel = None
            for slot, handle in enumerate(tasks.handles):
                is_under_way = handle and tasks.map[tasks.states + slot] < _DONE and not tasks.slots.is_held(slot)
                if is_under_way and handle != unsent and tasks.lose(handle, end):
                    slots.append(slot)
        eventfd_write(self._link.doorbell, 1)
        for slot in slots:
            if not self._link.fault:
                tasks.drop(slot)  # after the callers wake: a relay that was stopped may hold the claim lock
        channel.close()

    def close(self) -> None:
        """Like ``Carrier.close``; say goodbye to the relay."""
        with self.table:
            channel, self._channel = self._channel, None
            if channel is not None:
                with contextlib.suppress(zmq.ZMQError):  # the daemon informs a relay that accepts no more
                    channel.send(encode(RelayFrame.BYE), _NOBLOCK)
        if channel is not None:
            channel.close(BYE_LINGER_MS)

    def detach_in_child(self) -> None:
        """Like ``Carrier.detach_in_child``; the channel is the parent's."""
        self.table, self._opening = threading.RLock(), threading.RLock()
        self._parents, self._channel = self._channel, None  # kept: collecting it would close the parent's socket
