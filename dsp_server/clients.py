"""A board's clients: their ids, their task slots, and how their tasks end when they do."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import TypeAlias

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

RELAY = "dsp_relay_server"  # name of a relay's own client on boards, no matter how it was started
FIRST_SLOTS = 16
MAX_SLOTS = 1024
MAX_NAMES = 2 * CLIENT_COUNT
TaskKey: TypeAlias = tuple[int, int]  # slot, sequence


class Client:
    """One attached process."""

    def __init__(self, client_id: int, number: int, pid: int, name: str, doorbell: int) -> None:
        self.id = client_id
        self.number = number  # number of its attachment: ids are reused, and a core may learn of that late
        self.pid = pid
        self.name = name
        self.doorbell = doorbell
        self.token = os.urandom(TOKEN_BYTES)
        self.slots: list[int] = []
        self.attached_at = time.monotonic()
        self.has_left = self.has_left_blocks = False  # whether its leftover tasks, and blocks, have been looked for
        self.wait_report: str | None = None  # where it waits, once it has answered; see daemon/wait_look.py
        self.sram: list[tuple[int, int]] = []  # its ranges of the NPU's SRAM: start and size in bytes
        self.recording = ""  # the directory where cores record its calls
        self.has_gone = False  # its lease has closed; the record stays while a core runs one of its tasks


class NoRoomError(Exception):
    """The board has run out of client ids or slots; the message says how many there are."""


class Clients:
    """All of a board's clients, and the pool of task slots."""

    def __init__(self, mailbox: Mailbox, checks: int = 0) -> None:
        """``checks`` are on for the tasks of every client."""
        self._mailbox = mailbox
        self.core_count = mailbox.layout.core_count  # DSP cores: those that any kind of client may name
        self._checks = checks
        # The id that has been unused longest is assigned next, so that a late message does not reach another client.
        self._free_ids = deque(range(1, CLIENT_COUNT))
        self._attachments = 0  # total so far
        self._free_slots = list(range(SLOT_COUNT - 1, -1, -1))
        self.by_id: dict[int, Client] = {}
        self.names: dict[int, str] = {}  # of the processes that attached last, including those that are gone
        self.models: dict[int, str] = {}  # for these processes, the model that each has loaded; empty if several

    def attach(self, pid: int, name: str) -> Client:
        """Assign a process an id, a doorbell, a token and its first slots.

        Raises:
            NoRoomError: too many clients. OSError: no descriptor left for its doorbell.
        """
        if not self._free_ids:
            raise NoRoomError(f"The board already has {CLIENT_COUNT - 1} clients, the maximum; end some.")
        doorbell = os.eventfd(0, os.EFD_CLOEXEC)  # blocking: its owner may sleep in a read from it
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
        """Turn a check on or off for every client, including future ones."""
        self._checks = self._checks | check if is_on else self._checks & ~check
        mm, layout = self._mailbox.map, self._mailbox.layout
        for client in self.by_id.values():
            at = layout.client(client.id) + CLIENT_CHECKS
            kept = Check.HOOKS if client.recording else 0
            mm[at] = mm[at] | check if is_on else mm[at] & ~(check & ~kept)

    def hook(self, client: Client) -> None:
        """Make cores do more in a client's calls than run them; they have been told what."""
        self._mailbox.map[self._mailbox.layout.client(client.id) + CLIENT_CHECKS] |= Check.HOOKS

    def note_model(self, client: Client, name: str) -> None:
        """Remember the name of a model that a client loads: its tasks do not say which of several models they run."""
        if client.pid in self.names:  # names of long-ended processes are dropped, together with their models
            self.models[client.pid] = name if self.models.get(client.pid, name) == name else ""

    def lease_slots(self, client: Client, count: int) -> list[int]:
        """Lease more slots to a client; fewer than requested if few are left.

        Raises:
            NoRoomError: no slot is left, or the client already holds MAX_SLOTS.
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
            self._mailbox.note_site(slot, "")  # it was another program's
        client.slots.extend(leased)
        return leased

    def unreleased_tasks(self, client: Client) -> list[int]:
        """Slots of ended tasks that a client has not released; a running task may already be released."""
        mm, states = self._mailbox.map, self._mailbox.states
        return [slot for slot in client.slots if mm[states + slot] >= FIRST_END]

    def unreleased_places(self, client: Client) -> tuple[Place, ...]:
        """The same tasks, each with the line that submitted it if the client has checks on."""
        mailbox = self._mailbox
        has_sites = bool(mailbox.map[mailbox.layout.client(client.id) + CLIENT_CHECKS])
        return tuple(
            Place("submitted", (mailbox.site(slot) if has_sites else "") or None, cmd=mailbox.request(slot).cmd)
            for slot in self.unreleased_tasks(client)
        )

    def has_unfinished_tasks(self, client: Client) -> bool:
        """Whether a client has a task that is queued or running."""
        mm, states = self._mailbox.map, self._mailbox.states
        return any(State.EMPTY < mm[states + slot] < FIRST_END for slot in client.slots)

    def note_end(self, client: Client) -> None:
        """Record, also for the cores, that a client's lease has ended: a model running for it ends at its next node."""
        client.has_gone = True
        self._mailbox.map[self._mailbox.layout.client(client.id) + CLIENT_GONE] = 1

    def reclaim_tasks(self, client: Client) -> bool:
        """Cancel an ended client's queued tasks and reclaim its slots; True if none of its tasks is running.

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
        """Running tasks that may use a client's memory; exact if the caller holds the claim lock."""
        client = self.by_id.get(client_id)
        slots = client.slots if client is not None else ()
        running = ((slot, self._mailbox.request(slot)) for slot in self._mailbox.slots_in(State.RUNNING))
        # A slot's record is only its writer's claim: a task in one of the client's slots counts in any case.
        return frozenset((slot, task.sequence) for slot, task in running if task.client == client_id or slot in slots)

    def is_running(self, task: TaskKey) -> bool:
        """Whether a core is still running a task; its slot may hold another one by now."""
        slot, sequence = task
        mailbox = self._mailbox
        return mailbox.map[mailbox.states + slot] == State.RUNNING and mailbox.request(slot).sequence == sequence

    def discard(self, client: Client) -> None:
        """Reclaim the id and doorbell of an ended client that has no running tasks."""
        del self.by_id[client.id]
        record = self._mailbox.layout.client(client.id)
        self._mailbox.map[record + CLIENT_PID : record + CLIENT_PID + 4] = bytes(4)
        self._free_ids.append(client.id)
        os.close(client.doorbell)

    def ring(self, client_id: int) -> None:
        """Wake a client after failing one of its tasks; a client whose doorbell is full is already awake."""
        client = self.by_id.get(client_id)
        if client is not None and has_room(client.doorbell):
            ring(client.doorbell)

    def ring_all(self) -> None:
        """Wake every client: a dead core may have ended a task without ringing."""
        for client_id in self.by_id:
            self.ring(client_id)

    @property
    def free_slots(self) -> int:
        """Number of task slots that no client leases."""
        return len(self._free_slots)
