"""The clients of a board: leases, their task slots, and what happens to both when a client goes."""

from __future__ import annotations

import os
import secrets
import socket
import time
from dataclasses import dataclass, field

from hbrt.layout import CLIENT_COUNT, CLIENT_PID, CLIENT_RECORD_BYTES, SLOT_COUNT
from hbrt.mailbox import Actor, Mailbox, State
from hbrt.wire import TOKEN_BYTES

FIRST_SLOTS = 16
MOST_SLOTS = 1024


@dataclass(slots=True, eq=False)
class Client:
    """One attached process; its open connection is its lease."""

    id: int
    connection: socket.socket
    pid: int
    name: str
    token: bytes
    doorbell: int
    slots: list[int] = field(default_factory=list)
    attached_at: float = field(default_factory=time.time)
    has_gone: bool = False


class NoRoomError(Exception):
    """The board has no client id or no slots left; the message says how many there are."""


class Clients:
    """All leases of a board and the pool of task slots."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._free_ids = list(range(CLIENT_COUNT - 1, 0, -1))
        self._free_slots = list(range(SLOT_COUNT - 1, -1, -1))
        self.by_id: dict[int, Client] = {}

    def attach(self, connection: socket.socket, pid: int, name: str) -> Client:
        """Give a process an id, a doorbell, a token and its first slots.

        Raises:
            NoRoomError: too many clients, or no slot left.
        """
        if not self._free_ids:
            raise NoRoomError(f"The board serves {CLIENT_COUNT - 1} clients and all are attached; end some.")
        client_id = self._free_ids.pop()
        doorbell = os.eventfd(0, os.EFD_CLOEXEC)  # blocking: its owner may sleep in a read of it
        client = Client(client_id, connection, pid, name, secrets.token_bytes(TOKEN_BYTES), doorbell)
        self.by_id[client_id] = client
        record = self._mailbox.layout.client(client_id)
        self._mailbox.map[record : record + CLIENT_RECORD_BYTES] = bytes(CLIENT_RECORD_BYTES)
        self._mailbox.map[record + CLIENT_PID : record + CLIENT_PID + 4] = pid.to_bytes(4, "little")
        try:
            self.lease_slots(client, FIRST_SLOTS)
        except NoRoomError:
            self.forget(client)
            raise
        return client

    def lease_slots(self, client: Client, count: int) -> list[int]:
        """More slots for a client; fewer than asked when few are left.

        Raises:
            NoRoomError: none left, or the client has as many as one may have.
        """
        count = min(count, MOST_SLOTS - len(client.slots), len(self._free_slots))
        if count <= 0:
            raise NoRoomError(
                f"Client {client.id} holds {len(client.slots)} task slots (the most is {MOST_SLOTS}) and the board has "
                f"{len(self._free_slots)} of {SLOT_COUNT} left; release finished tasks with hbDSPReleaseTask."
            )
        leased = [self._free_slots.pop() for _ in range(count)]
        client.slots.extend(leased)
        return leased

    def withdraw_tasks(self, client: Client) -> bool:
        """Cancel what a gone client has queued and empty what has ended; True when nothing of it runs any more."""
        mailbox = self._mailbox
        with mailbox.claim_lock:
            for slot in client.slots:
                if mailbox.state(slot) is State.READY:
                    mailbox.move(slot, State.CANCELLED, Actor.SUPERVISOR)
        running = []
        for slot in client.slots:
            state = mailbox.state(slot)
            if state is State.RUNNING:
                running.append(slot)
            else:
                if state is not State.EMPTY:
                    mailbox.move(slot, State.EMPTY, Actor.SUPERVISOR)
                self._free_slots.append(slot)
        client.slots = running
        return not running

    def forget(self, client: Client) -> None:
        """Give back a client's id and doorbell, once nothing of it runs."""
        self.by_id.pop(client.id, None)
        self._free_ids.insert(
            0, client.id
        )  # the longest-unused id next: a late message finds nobody, not somebody else
        self._free_slots.extend(client.slots)
        client.slots = []
        os.close(client.doorbell)
        client.connection.close()

    def ring(self, client_id: int) -> None:
        """Wake a client whose task was settled for it."""
        client = self.by_id.get(client_id)
        if client is not None:
            os.eventfd_write(client.doorbell, 1)
