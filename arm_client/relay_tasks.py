"""The life of a task on the caller's side in relay mode: as ``hbrt.tasks``, but a relay writes the slots.

The process keeps a task table of its own, laid out like the board's: submitting marks a slot there READY and sends the
descriptor to the relay; the relay's answer is written into it as a core writes into the board's. What looks at tasks
(futures, callbacks, the C names) finds them there and knows no difference.

Whoever waits also reads what the relay sends. A relay that dies is noticed by its process's end, one that hangs by a
beat that it does not answer; either way every task under way ends as HB_DSP_RELAY_LOST at once, and the next submission
finds or starts another relay.
"""

from __future__ import annotations

import contextlib
import itertools
import mmap
import threading
import time
from os import eventfd_write
from time import monotonic_ns
from typing import TYPE_CHECKING

import zmq

from arm_client.relay_channel import RelayChannel, open_channel
from hbrt.layout import SLOT_COUNT, SLOT_RECORD_BYTES, SLOT_TEXT, Layout
from hbrt.mailbox import ANSWER, ANSWER_OFFSET, FIRST_END, Answer, Mailbox, State
from hbrt.refusal import RequestRefusedError
from hbrt.relay_wire import RELAY_SAYS, TASK_END, Kind, Message, decode, encode, encode_submit
from hbrt.status import Status
from hbrt.tasks import Tasks
from hbrt.wire import MalformedMessageError

if TYPE_CHECKING:
    from hbrt.link import Link

MOST_TASKS = 1024  # as many as the slots that one client of a board may lease
BEAT_SECONDS = 1.0
LOST_SECONDS = 10.0
ASK_MS = LOST_SECONDS * 1000
BYE_LINGER_MS = 200
_SLOT_BITS = 12
_OFFLINE = 3
_READY, _DONE, _LAST_END = int(State.READY), int(FIRST_END), int(max(State))
_END = int(Kind.END)
_NOBLOCK = int(zmq.NOBLOCK)


class _OwnTable:
    """A task table in this process's own memory; untouched pages cost nothing."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.map = mmap.mmap(-1, layout.pages)


class RelayTasks(Tasks):
    """The tasks of this process on one board, carried by its relay."""

    def __init__(self, link: Link) -> None:
        super().__init__(link, Mailbox(_OwnTable(link.ddr.layout)), spins=False)
        self._free = list(reversed(range(MOST_TASKS)))
        self._ddr_map = link.ddr.map
        self._channel: RelayChannel | None = None
        self._parents: RelayChannel | None = None
        self._io = threading.Lock()  # the channel, and what it tells the table
        self._opening = threading.Lock()
        self._beat = (BEAT_SECONDS, self._on_beat)
        self._look = self._take_one  # also for who sleeps since before the first relay
        self._heard_at = 0.0
        self._pinged_at = 0.0  # 0 when no beat is owed
        self._numbers = itertools.count(1)
        self._told: dict[int, int] = {}  # answers to CANCEL, ASK and DROP by number

    # -- submit

    def submit(
        self,
        cmd: int,
        priority: int,
        core_mask: int,
        custom_id: int,
        input_phy: int,
        input_bytes: int,
        output_phy: int,
        output_bytes: int,
        client: int = 0,  # noqa: ARG002 - the relay's own; a process submits for itself
    ) -> int:
        """Hand a task to the relay; as ``Tasks.submit``. HB_DSP_RELAY_LOST when no relay can be had."""
        targets = self._targets.get(core_mask)
        if self._link.fault or targets is None or not (0 <= priority <= 255 and 0 <= cmd <= 0xFFFF):
            return self._refuse_submit(cmd, priority, core_mask)
        known = self._known
        if known.get(input_phy, -1) < input_bytes or known.get(output_phy, -1) < output_bytes:
            refused = self._refuse_range("input", input_phy, input_bytes) or self._refuse_range(
                "output", output_phy, output_bytes
            )
            if refused:
                return refused
        for activity, _ in targets[1]:
            if self._ddr_map[activity] != _OFFLINE:
                break
        else:
            return self._say_no_core()
        us = self._client_id
        blocks = (input_phy, input_bytes, output_phy, output_bytes)
        try:
            slot = self._free.pop()
        except IndexError:
            slot = self._more_slots()
            if slot < 0:
                return slot
        self._serial += 1
        handle = self._handle_base + (self._serial << _SLOT_BITS) + slot
        try:
            raw = encode_submit(handle, monotonic_ns(), custom_id, cmd, priority, core_mask, us, us, *blocks)
            refused = self._give(slot, handle, raw)
        except BaseException:
            self._free.append(slot)
            raise
        if refused:
            self._free.append(slot)
            return refused
        return handle

    def _give(self, slot: int, handle: int, raw: bytes) -> int:
        """Send a submission to a relay that lives; 0, or the status why there is none."""
        for _ in range(2):
            channel = self._channel
            if channel is None:
                try:
                    channel = self._connect()
                except RequestRefusedError as error:
                    return self._say(error.status, str(error))
            with self._io:
                if self._channel is not channel:
                    continue  # it was lost while this thread came here
                try:
                    channel.send(raw, _NOBLOCK)
                except zmq.ZMQError:
                    pass
                else:
                    self._handles[slot] = handle
                    self._map[self._states + slot] = _READY
            if self._handles[slot] == handle:
                self._after_send()
                return 0
            self._lose(channel, Status.HB_DSP_RELAY_LOST, "The relay takes no more messages of this process.")
        return self._say(Status.HB_DSP_RELAY_LOST, f"The relay of board {self._link.paths.name} cannot be reached.")

    def _more_slots(self) -> int:
        self.release_abandoned()
        if self._free:
            return self._free.pop()
        return self._say(
            Status.HB_DSP_TASK_NUM_EXCEED_LIMIT,
            f"Client {self._client_id} has {MOST_TASKS} tasks, which is the most of one process; release finished "
            "tasks with hbDSPReleaseTask.",
        )

    # -- the relay

    def _connect(self) -> RelayChannel:
        """A channel to a relay that lives; finds or starts one.

        Raises:
            RequestRefusedError: there is none to be had.
        """
        with self._opening:
            if self._channel is not None:
                return self._channel
            channel = open_channel(self._link)
            with self._io:
                self._pinged_at, self._heard_at = 0.0, time.monotonic()
                self._channel = channel
                self.look_with(channel.fd, self._take_one)
            channel.watch(self._on_death)
            return channel

    def _send(self, raw: bytes) -> bool:
        """Send to the relay that there is; False when there is none."""
        with self._io:
            if self._channel is None:
                return False
            try:
                self._channel.send(raw, _NOBLOCK)
            except zmq.ZMQError:
                return False
        self._after_send()
        return True

    def _after_send(self) -> None:
        """Sending may have taken note of what has come: who sleeps for it would not be woken by the socket any more."""
        if self._leading.locked():
            eventfd_write(self._link.doorbell, 1)

    def _take_one(self) -> bool:
        """Take in one frame of the relay; False when none has come."""
        with self._io:
            channel = self._channel
            if channel is None:
                return False
            raw = channel.take()
            if raw is None:
                return False
            self._pinged_at = 0.0
            try:
                self._take_in(channel, decode(raw, RELAY_SAYS))
            except MalformedMessageError as error:
                channel.gone = (Status.HB_DSP_RELAY_LOST, f"The relay broke the protocol. {error}")
        if channel.gone is not None:
            self._lose(channel, *channel.gone)
        return True

    def _take_in(self, channel: RelayChannel, message: Message) -> None:
        kind, fields = message
        if kind == _END:
            handle, state, answer = TASK_END.unpack(fields[0])
            slot = handle & SLOT_COUNT - 1
            if self._handles[slot] == handle and _DONE <= state <= _LAST_END:
                record = self._records + slot * SLOT_RECORD_BYTES
                self._map[record + ANSWER_OFFSET : record + ANSWER_OFFSET + ANSWER.size] = answer
                if text := fields[1]:
                    self._map[record + SLOT_TEXT : record + SLOT_TEXT + len(text)] = text
                self._map[self._states + slot] = state
        elif kind == Kind.STATE:
            self._told[fields[0]] = fields[2]
        elif kind in {Kind.GONE, Kind.REFUSED}:
            is_board_lost = kind == Kind.GONE and fields[0] == Status.HB_DSP_BOARD_LOST
            status = Status.HB_DSP_BOARD_LOST if is_board_lost else Status.HB_DSP_RELAY_LOST
            channel.gone = (status, f"The relay has let go of this process. {fields[1]}")

    def _on_death(self, channel: RelayChannel) -> None:
        while self._channel is channel and self._take_one():
            pass  # its last words
        self._lose(
            channel,
            Status.HB_DSP_RELAY_LOST,
            f"The relay of board {self._link.paths.name} (process {channel.pid}) has gone, and the task with it; the "
            "board goes on, and the next call starts or finds a new relay.",
        )

    def _lose(self, channel: RelayChannel, status: int, why: str) -> None:
        """End every task under way, since nobody carries it any more."""
        if status == Status.HB_DSP_BOARD_LOST:
            self._link.lose()
        elif self._link.is_lost():
            status, why = self._link.fault, self._link.why_faulty()
        with self._io:
            if self._channel is not channel:
                return
            self._channel = None
            self.unwatch(channel.fd)
            answer = Answer(-1, status, 0, 0, 0, 0, time.monotonic_ns(), 0)
            for slot, handle in enumerate(self._handles):
                if handle and self._map[self._states + slot] < _DONE:
                    self.mailbox.write_answer(slot, answer, why)
                    self._map[self._states + slot] = State.LOST
        eventfd_write(self._link.doorbell, 1)
        channel.close()

    def _on_beat(self) -> None:
        """By whoever waits: ask a silent relay for a sign of life, and let go of one that gives none."""
        channel, now = self._channel, time.monotonic()
        if channel is None:
            return
        if self._pinged_at:
            if now - self._pinged_at > LOST_SECONDS:
                self._lose(
                    channel,
                    Status.HB_DSP_RELAY_LOST,
                    f"The relay (process {channel.pid}) has given no sign of life for {LOST_SECONDS:g} s.",
                )
        elif now - self._heard_at >= BEAT_SECONDS:
            self._pinged_at = self._heard_at = now
            self._send(encode(Kind.PING, 0))

    def _ask(self, kind: Kind, handle: int) -> State | None:
        """What the relay says of a task, once it has done what it was told; None when there is no relay."""
        number, channel, told = next(self._numbers), self._channel, self._told
        if not self._send(encode(kind, number, handle)):
            return None
        self.sleep_until(lambda: number in told or self._channel is not channel, ASK_MS)
        state = told.pop(number, None)
        return None if state is None else State(state)

    # -- wait, look, release

    def _sleep_alone(self, slot: int, handle: int) -> bool:
        mm, at, handles = self._map, self._states + slot, self._handles
        return self.sleep_until(lambda: mm[at] >= _DONE or handles[slot] != handle)

    def state(self, handle: int) -> State | None:
        """State of a task, None when the handle is not a live one; asks the relay about one that has not ended."""
        state = super().state(handle)
        if state is not State.READY or self._link.fault:
            return state
        told = self._ask(Kind.ASK, handle)
        state = super().state(handle)
        return told if state is State.READY and told is State.RUNNING else state

    def _cancel(self, slot: int) -> bool:
        at = self._states + slot
        if self._map[at] != _READY or self._link.fault:
            return False
        self._ask(Kind.CANCEL, self._handles[slot])
        return self._map[at] == State.CANCELLED

    def release(self, handle: int) -> int:
        """Let a task go; as ``Tasks.release``."""
        slot = handle & SLOT_COUNT - 1
        if self._handles[slot] != handle:
            return self._refuse_handle(handle)
        with self._io:
            has_ended = self._map[self._states + slot] >= _DONE
            self._handles[slot] = 0
            self._map[self._states + slot] = State.EMPTY
        if not has_ended and not self._link.fault:
            self._ask(Kind.DROP, handle)  # and wait for it: a queued task must not run any more from here on
            if self._leading.locked():
                eventfd_write(self._link.doorbell, 1)  # who waits for it must hear that there is nothing to wait for
        self._free.append(slot)
        return 0

    def close(self) -> None:
        """Say goodbye to the relay, and close what this object opened."""
        with self._io:
            channel, self._channel = self._channel, None
            if channel is not None:
                self.unwatch(channel.fd)
                with contextlib.suppress(zmq.ZMQError):  # a relay that takes no more hears of it from the daemon
                    channel.send(encode(Kind.BYE), _NOBLOCK)
        if channel is not None:
            channel.close(BYE_LINGER_MS)
        super().close()

    def abandon_in_child(self) -> None:
        """In a fork's child: as ``Tasks.abandon_in_child``; the channel is the parent's."""
        super().abandon_in_child()
        self._io, self._opening = threading.Lock(), threading.Lock()
        self._parents, self._channel = self._channel, None  # kept: what collects it would close the parent's socket
