"""The relay dispatcher: makes the tasks that programs have sent READY, and ends the tasks that it refuses.

A task is queued only if its slot is SENT and holds exactly the descriptor that arrived; C checks both under the claim
lock (``hbrt_relay``). An owner that cancels a task, and a daemon that reclaims a dead client's slots, also hold it.
A frame that arrives later is stale and changes nothing, no matter which client has the slot by then.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING

from dsp_server.relay.peers import Peer
from hbrt.attach.link import Link
from hbrt.attach.tasks import new_client
from hbrt.ddr.layout import SLOT_RECORD_BYTES
from hbrt.mailbox.handle import slot_of
from hbrt.mailbox.native import LOCKED, NOTHING, native
from hbrt.mailbox.submission import MAX_CMD, MAX_PRIORITY, number_refusal, unserved
from hbrt.mailbox.table import REQUEST, Actor, Answer, Request, State
from hbrt.protocol.relay import REQUEST_AT, SUBMIT_HEAD
from hbrt.trace.kinds import EventKind

if TYPE_CHECKING:
    from hbrt.trace.ring import Ring

# In a SUBMIT: its head, ticket and task handle, then the checked fields of its REQUEST: command, priority, core mask,
# owner, client.
_CHECKED = struct.Struct(f"<{len(SUBMIT_HEAD)}sQQ16xIHHII32x")
_HEAD = SUBMIT_HEAD
_REQUEST_BYTES = REQUEST.size
_EMPTY, _SENT = int(State.EMPTY), int(State.SENT)


class Result(Enum):
    """The result of a submission."""

    QUEUED = "the task is READY"
    STALE = "the slot does not hold that task; nothing was changed"
    REFUSED = "the task has ended with a status"
    MALFORMED = "the frame is not a SUBMIT"
    UNKNOWN = "no process has that ticket"
    FOREIGN = "the task names another client; nothing was changed"


class RelayDispatcher:
    """Queues other clients' tasks.

    Args:
        link: The relay's own attachment, which has the cores' doorbells.
        peers: The processes that may send, by ticket.
        has_ended: Whether the relay is stopping or its board has ended; then the dispatcher stops waiting for the lock.
    """

    def __init__(self, link: Link, peers: dict[int, Peer], has_ended: Callable[[], bool]) -> None:
        self._peer_of = peers.get
        self._has_ended = has_ended
        self._core_count = link.core_count
        layout = link.ddr.layout
        self._mailbox = link.mailbox
        self._map = link.ddr.map
        self._states, self._records = layout.states, layout.records
        self._relay = native().lib.hbrt_relay
        self._client, self._place = new_client(link)
        dsp, cores = 1 << layout.core_count, 1 << len(link.core_doorbells)
        self._masks = frozenset((*range(dsp), *range(dsp, cores, dsp)))  # no task is for both kinds of cores
        self.is_stream = False  # the latest task is from a program that has other tasks in progress
        self.trace: Ring | None = None

    def dispatch(self, raw: bytes) -> Result:
        """Queue a task.

        Args:
            raw: The frame.

        Raises:
            ClaimLockHeldError: the relay ended while another process held the claim lock; nothing was changed.
        """
        start_ns = 0 if self.trace is None else time.monotonic_ns()
        try:
            head, ticket, handle, cmd, priority, core_mask, owner, user = _CHECKED.unpack(raw)
        except struct.error:
            return Result.MALFORMED
        peer, has_cores = self._peer_of(ticket), core_mask in self._masks
        if peer is None or not has_cores or head != _HEAD or priority > MAX_PRIORITY or cmd > MAX_CMD:
            return self._refuse_invalid(raw)
        if owner != peer.client or user != owner:
            return Result.FOREIGN
        peer.was_active = True
        slot = slot_of(handle)
        self.is_stream = slot != peer.last_slot and self._map[self._states + peer.last_slot] != _EMPTY
        peer.last_slot = slot
        found = self._relay(self._client, slot, raw[REQUEST_AT:])
        if found == LOCKED:
            with self._locked():
                found = self._relay(self._client, slot, raw[REQUEST_AT:])  # the lock is recursive
        if found != 1:
            return Result.STALE if found == NOTHING else self._refuse(raw, *unserved(self._core_count))
        if (trace := self.trace) is not None:
            request = Request(*REQUEST.unpack_from(raw, REQUEST_AT))
            passed = request.sequence, len(raw), 0, request.client
            trace.note(EventKind.HOP, start_ns, time.monotonic_ns(), *passed, trace.text("relay"))
        return Result.QUEUED

    def _refuse_invalid(self, raw: bytes) -> Result:
        """Find what is wrong with a frame, or with its task."""
        head, ticket, _, _, _, _, owner, user = _CHECKED.unpack(raw)
        if head != _HEAD:
            return Result.MALFORMED
        peer = self._peer_of(ticket)
        if peer is None:
            return Result.UNKNOWN
        if not owner == user == peer.client:
            return Result.FOREIGN
        found = number_refusal(self._core_count, Request(*REQUEST.unpack_from(raw, REQUEST_AT)))
        return Result.MALFORMED if found is None else self._refuse(raw, *found)

    def _refuse(self, raw: bytes, status: int, why: str) -> Result:
        """Fail a task if its slot still holds it."""
        slot = slot_of(_CHECKED.unpack(raw)[2])
        mm, record = self._map, self._records + slot * SLOT_RECORD_BYTES
        with self._locked():
            if mm[self._states + slot] != _SENT or mm[record : record + _REQUEST_BYTES] != raw[REQUEST_AT:]:
                return Result.STALE
            self._mailbox.write_answer(slot, Answer(-1, status, 0, 0, 0, 0, time.monotonic_ns(), 0), why)
            self._mailbox.move(slot, State.FAILED, Actor.RELAY)
        return Result.REFUSED

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the claim lock, however long that takes."""
        lock = self._mailbox.claim_lock
        if refusal := lock.try_acquire(lock.handle):
            lock.acquire_slowly(refusal, self._has_ended)
        try:
            yield
        finally:
            lock.release(lock.handle)
