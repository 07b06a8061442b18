"""The clients of a board: their ids, their task slots, and the end of their tasks when they end."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import NamedTuple, TypeAlias

from hbrt.ddr.layout import (
    CLIENT_CHECKS,
    CLIENT_COUNT,
    CLIENT_GONE,
    CLIENT_NUMBER,
    CLIENT_PID,
    CLIENT_RECORD_BYTES,
    SLOT_COUNT,
)
from hbrt.findings.checks import Check
from hbrt.findings.record import Place
from hbrt.mailbox.doorbell import has_room, ring
from hbrt.mailbox.table import FIRST_END, Actor, Mailbox, State
from hbrt.protocol.control import TOKEN_BYTES

RELAY = "dsp_relay_server"  # what boards call a relay's own client, however it was started
FIRST_SLOTS = 16
MAX_SLOTS = 1024
MAX_NAMES = 2 * CLIENT_COUNT
TaskKey: TypeAlias = tuple[int, int]  # slot, sequence


class Recording(NamedTuple):
    """Where cores record the calls of a client, and how many bytes each of them may write."""

    directory: str
    limit: int


class Client:
    """One attached process."""

    def __init__(self, client_id: int, number: int, pid: int, name: str, doorbell: int) -> None:
        self.id = client_id
        self.number = number  # of its attachment: an id is used again, and a core may hear of that late
        self.pid = pid
        self.name = name
        self.doorbell = doorbell
        self.token = os.urandom(TOKEN_BYTES)
        self.slots: list[int] = []
        self.attached_at = time.monotonic()
        self.has_left = self.has_left_blocks = False  # the tasks, and blocks, that it leaves were looked for
        self.wait_report: str | None = None  # where it waits, since it was asked; see daemon/wait_look.py
        self.sram: list[tuple[int, int]] = []  # what it has of the NPU's SRAM: start and size in bytes
        self.recording: Recording | None = None  # of its calls, while they are recorded
        self.has_gone = False  # its lease has closed; the record stays while a core runs one of its tasks


class NoRoomError(Exception):
    """The board has no client id or no slots left; the message says how many there are."""


class Clients:
    """All clients of a board and the pool of task slots."""

    def __init__(self, mailbox: Mailbox, checks: int = 0) -> None:
        """``checks`` are watched in the tasks of every client."""
        self._mailbox = mailbox
        self.core_count = mailbox.layout.core_count  # DSP cores: those that a client of any kind may name
        self._checks = checks
        # The longest-unused id is given next: so a late message does not reach another client.
        self._free_ids = deque(range(1, CLIENT_COUNT))
        self._attachments = 0  # how many there were
        self._free_slots = list(range(SLOT_COUNT - 1, -1, -1))
        self.by_id: dict[int, Client] = {}
        self.names: dict[int, str] = {}  # of the processes that attached last, also of those that are gone
        self.models: dict[int, str] = {}  # of these processes, the model that each has loaded; empty for several

    def attach(self, pid: int, name: str) -> Client:
        """Give a process an id, a doorbell, a token and its first slots.

        Raises:
            NoRoomError: too many clients. OSError: no descriptor left for its doorbell.
        """
        if not self._free_ids:
            raise NoRoomError(f"The board serves {CLIENT_COUNT - 1} clients and all are attached; end some.")
        doorbell = os.eventfd(0, os.EFD_CLOEXEC)  # blocking: its owner may sleep in a read of it
        client = Client(self._free_ids[0], self._attachments + 1, pid, name, doorbell)
        self._free_ids.popleft()
        self._attachments += 1
        self.lease_slots(client, FIRST_SLOTS)
        self.by_id[client.id] = client
        self.names.pop(pid, None)
        self.models.pop(pid, None)
        self.names[pid] = name
        if len(self.names) > MAX_NAMES:
            oldest = next(iter(self.names))
            del self.names[oldest]
            self.models.pop(oldest, None)
        record = self._mailbox.layout.client(client.id)
        self._mailbox.map[record : record + CLIENT_RECORD_BYTES] = bytes(CLIENT_RECORD_BYTES)
        self._mailbox.map[record + CLIENT_CHECKS] = self._checks
        self._mailbox.map[record + CLIENT_PID : record + CLIENT_PID + 4] = pid.to_bytes(4, "little")
        self._mailbox.map[record + CLIENT_NUMBER : record + CLIENT_NUMBER + 4] = client.number.to_bytes(4, "little")
        return client

    def check(self, check: int, *, is_on: bool) -> None:
        """Turn a check on or off for every client, those that come too."""
        self._checks = self._checks | check if is_on else self._checks & ~check
        mm, layout = self._mailbox.map, self._mailbox.layout
        for client in self.by_id.values():
            at = layout.client(client.id) + CLIENT_CHECKS
            kept = Check.HOOKS if client.recording else 0
            mm[at] = mm[at] | check if is_on else mm[at] & ~(check & ~kept)

    def hook(self, client: Client) -> None:
        """Have cores do more in a client's calls than run them; they were told what."""
        self._mailbox.map[self._mailbox.layout.client(client.id) + CLIENT_CHECKS] |= Check.HOOKS

    def note_model(self, client: Client, name: str) -> None:
        """Keep the name of a model that a client loads, for its tasks: they do not say which of several they run."""
        if client.pid in self.names:  # where what ended long ago goes, so do its models
            self.models[client.pid] = name if self.models.get(client.pid, name) == name else ""

    def lease_slots(self, client: Client, count: int) -> list[int]:
        """Lease more slots to a client; fewer than requested when few are left.

        Raises:
            NoRoomError: no slot is left, or the client holds MAX_SLOTS.
        """
        left = len(self._free_slots) - len(self._free_ids)  # one stays reserved for each possible client
        count = min(count, MAX_SLOTS - len(client.slots), left)
        if count <= 0:
            raise NoRoomError(
                f"Client {client.id} holds {len(client.slots)} task slots (the maximum is {MAX_SLOTS}) and the board "
                f"has {left} of {SLOT_COUNT} left; release finished tasks with hbDSPReleaseTask."
            )
        leased = [self._free_slots.pop() for _ in range(count)]
        for slot in leased:
            self._mailbox.note_site(slot, "")  # another program's
        client.slots.extend(leased)
        return leased

    def unreleased_tasks(self, client: Client) -> list[int]:
        """Slots of a client's ended tasks that it has not released; a running one may be released already."""
        mm, states = self._mailbox.map, self._mailbox.states
        return [slot for slot in client.slots if mm[states + slot] >= FIRST_END]

    def unreleased_places(self, client: Client) -> tuple[Place, ...]:
        """These tasks, each with the line that submitted it when the client has checks."""
        mailbox = self._mailbox
        has_sites = bool(mailbox.map[mailbox.layout.client(client.id) + CLIENT_CHECKS])
        return tuple(
            Place("submitted", (mailbox.site(slot) if has_sites else "") or None, cmd=mailbox.request(slot).cmd)
            for slot in self.unreleased_tasks(client)
        )

    def has_unfinished_tasks(self, client: Client) -> bool:
        """Whether a task of a client is queued or runs."""
        mm, states = self._mailbox.map, self._mailbox.states
        return any(State.EMPTY < mm[states + slot] < FIRST_END for slot in client.slots)

    def note_end(self, client: Client) -> None:
        """Keep that a client's lease has ended, also for the cores: a model that runs for it ends at its next node."""
        client.has_gone = True
        self._mailbox.map[self._mailbox.layout.client(client.id) + CLIENT_GONE] = 1

    def reclaim_tasks(self, client: Client) -> bool:
        """Cancel the queued tasks of an ended client and take its slots back; True when none of its tasks runs.

        Raises:
            ClaimLockError: the lock is not available; nothing was changed.
        """
        mailbox, mm, states = self._mailbox, self._mailbox.map, self._mailbox.states
        with mailbox.claim_lock:
            for slot in client.slots:
                if mm[states + slot] in {State.SENT, State.READY}:
                    mailbox.move(slot, State.CANCELLED, Actor.SUPERVISOR)
        running = []
        for slot in client.slots:
            if mm[states + slot] == State.RUNNING:
                running.append(slot)
                continue
            mm[states + slot] = State.EMPTY  # whatever its owner left there: no other process writes it now
            self._free_slots.append(slot)
        client.slots = running
        return not running

    def running_tasks(self, client_id: int) -> frozenset[TaskKey]:
        """Running tasks that may use a client's memory; exact while the caller holds the claim lock."""
        client = self.by_id.get(client_id)
        slots = client.slots if client is not None else ()
        running = ((slot, self._mailbox.request(slot)) for slot in self._mailbox.slots_in(State.RUNNING))
        # A slot's record is only its writer's claim: a task in a slot of the client counts in any case.
        return frozenset((slot, task.sequence) for slot, task in running if task.client == client_id or slot in slots)

    def is_running(self, task: TaskKey) -> bool:
        """Whether a core still runs a task; its slot may hold another one by now."""
        slot, sequence = task
        mailbox = self._mailbox
        return mailbox.map[mailbox.states + slot] == State.RUNNING and mailbox.request(slot).sequence == sequence

    def discard(self, client: Client) -> None:
        """Take back the id and doorbell of an ended client without running tasks."""
        del self.by_id[client.id]
        record = self._mailbox.layout.client(client.id)
        self._mailbox.map[record + CLIENT_PID : record + CLIENT_PID + 4] = bytes(4)
        self._free_ids.append(client.id)
        os.close(client.doorbell)

    def ring(self, client_id: int) -> None:
        """Wake a client whose task was failed for it; a client with a full doorbell is awake."""
        client = self.by_id.get(client_id)
        if client is not None and has_room(client.doorbell):
            ring(client.doorbell)

    def ring_all(self) -> None:
        """Wake every client: a dead core may have ended a task without a ring."""
        for client_id in self.by_id:
            self.ring(client_id)

    @property
    def free_slots(self) -> int:
        """Task slots that no client leases."""
        return len(self._free_slots)
