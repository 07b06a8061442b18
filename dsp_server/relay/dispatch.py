"""The relay's hand on the task table: it makes tasks READY that their owners have sent, and ends those it refuses.

A task is placed only while its slot is SENT and holds the very descriptor that came, both looked at under the claim
lock. An owner that takes a task back, and a daemon that takes the slots of a gone client back, hold that lock too: what
a relay still has of them afterwards is stale, and changes nothing, whoever has the slot by then.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from enum import Enum

from dsp_server.relay.peers import Peer
from hbrt.attach.link import Link
from hbrt.ddr.layout import (
    SLOT_RECORD_BYTES,
)
from hbrt.mailbox.handle import slot_of
from hbrt.mailbox.schedule import PRIORITY_PREEMPT
from hbrt.mailbox.table import REQUEST, Actor, Answer, State
from hbrt.mailbox.wake_targets import Served, is_served, ring, ring_urgently, targets
from hbrt.protocol.relay import REQUEST_AT, SUBMIT_HEAD
from hbrt.status import Status

# Of a SUBMIT: its head, ticket, the task's handle, then what is looked at of its REQUEST: command, priority, core mask,
# owner, client.
_LOOK = struct.Struct(f"<{len(SUBMIT_HEAD)}sQQ16xIHHII32x")
_HEAD = SUBMIT_HEAD
_REQUEST_BYTES = REQUEST.size
_SENT, _READY = int(State.SENT), int(State.READY)
_MOST_PRIORITY, _MOST_CMD = 255, 0xFFFF


class Placed(Enum):
    """What became of a submission."""

    QUEUED = "the task is READY"
    STALE = "the slot does not hold that task; nothing was changed"
    REFUSED = "the task has ended with a status"
    NONSENSE = "the frame is no SUBMIT"
    UNKNOWN = "nobody has that ticket"
    FOREIGN = "it is in another client's name; nothing was changed"


class Placer:
    """Places the tasks of other clients.

    Args:
        link: The relay's own attachment; it has the cores' doorbells.
        peers: Who may send, by ticket.
        has_ended: Whether the relay is to stop, or its board has gone: it then waits for the claim lock no longer.
    """

    def __init__(self, link: Link, peers: dict[int, Peer], has_ended: Callable[[], bool]) -> None:
        self._peer_of = peers.get
        self._has_ended = has_ended
        layout = link.ddr.layout
        self._mailbox = link.mailbox
        self._map = link.ddr.map
        self._lock = link.mailbox.claim_lock
        self._try_lock, self._unlock, self._mutex = self._lock.try_acquire, self._lock.release, self._lock.handle
        self._states, self._records = layout.states, layout.records
        self._targets = targets(layout, link.core_doorbells, link.urgent_bells)

    def place(self, raw: bytes) -> Placed:
        """Queue a task.

        Args:
            raw: The frame.

        Raises:
            ClaimLockHeldError: the relay has ended while somebody else kept the claim lock; nothing was changed.
        """
        try:
            head, ticket, handle, cmd, priority, core_mask, owner, user = _LOOK.unpack(raw)
        except struct.error:
            return Placed.NONSENSE
        peer, wanted = self._peer_of(ticket), self._targets.get(core_mask)
        if peer is None or wanted is None or head != _HEAD or priority > _MOST_PRIORITY or cmd > _MOST_CMD:
            return self._judge(raw)
        if owner != peer.client or user != owner:
            return Placed.FOREIGN
        peer.is_heard = True
        slot = slot_of(handle)
        mm, mutex = self._map, self._mutex
        at, record = self._states + slot, self._records + slot * SLOT_RECORD_BYTES
        if refusal := self._try_lock(mutex):
            self._lock.acquire_slowly(refusal, self._has_ended)
        if mm[at] != _SENT or mm[record : record + _REQUEST_BYTES] != raw[REQUEST_AT:]:
            self._unlock(mutex)
            return Placed.STALE
        # Under the lock: when cores go offline, the daemon takes it before it ends what none may run any more.
        if not is_served(mm, wanted):
            self._unlock(mutex)
            return self._refuse(
                raw,
                Status.HB_DSP_NOT_RUNNING,
                "No core that may run the task is running; see 'hbrt status', then 'hbrt restart'.",
            )
        mm[at] = _READY
        for announced in wanted.announced:
            mm[announced + slot] = 1
        self._unlock(mutex)  # it is the fence, too
        if ring(mm, wanted) is Served.LATER and priority == PRIORITY_PREEMPT:
            ring_urgently(wanted)
        return Placed.QUEUED

    def _judge(self, raw: bytes) -> Placed:
        """Say what is wrong with a frame, or with the task in it."""
        head, ticket, _, cmd, priority, core_mask, owner, user = _LOOK.unpack(raw)
        if head != _HEAD:
            return Placed.NONSENSE
        peer = self._peer_of(ticket)
        if peer is None:
            return Placed.UNKNOWN
        if not owner == user == peer.client:
            return Placed.FOREIGN
        status, what = Status.HB_DSP_INVALID_ARGUMENT, f"command {cmd:#x}"
        if core_mask not in self._targets:
            status, what = Status.HB_DSP_INVALID_CORE, f"core mask {core_mask:#x}"
        elif priority > _MOST_PRIORITY:
            status, what = Status.HB_DSP_INVALID_PRIORITY, f"priority {priority}"
        return self._refuse(raw, status, f"The relay was sent a task with {what}, which this board does not have.")

    def _refuse(self, raw: bytes, status: Status, why: str) -> Placed:
        """End a task in its slot, when it is still there."""
        slot = slot_of(_LOOK.unpack(raw)[2])
        mm, record = self._map, self._records + slot * SLOT_RECORD_BYTES
        if refusal := self._try_lock(self._mutex):
            self._lock.acquire_slowly(refusal, self._has_ended)
        try:
            if mm[self._states + slot] != _SENT or mm[record : record + _REQUEST_BYTES] != raw[REQUEST_AT:]:
                return Placed.STALE
            self._mailbox.write_answer(slot, Answer(-1, status, 0, 0, 0, 0, time.monotonic_ns(), 0), why)
            self._mailbox.move(slot, State.FAILED, Actor.RELAY)
        finally:
            self._unlock(self._mutex)
        return Placed.REFUSED
