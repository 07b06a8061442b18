"""Attaching: a connection to attach.sock gets descriptors, and is its client's lease for as long as it is open.

A connection says hello in one packet and gets one back. One that does not speak is dropped after HELLO_SECONDS and
keeps nobody waiting meanwhile. When a lease closes, however it closes, its client's queued tasks are cancelled at once,
and its memory and slots come back as soon as no core runs a task for it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import struct
from collections.abc import Callable, Iterable

from dsp_server.clients import Client, Clients, NoRoomError
from dsp_server.memory.owners import Memory
from dsp_server.process.event_loop import Loop, Timer
from dsp_server.process.journal import Journal
from hbrt.board.paths import BoardPaths
from hbrt.ddr.claim_lock import ClaimLockError
from hbrt.findings.text import MOST_PLACES, allocated_at
from hbrt.protocol import control

HELLO_SECONDS = 5.0
HELLO_BYTES = 4096
MOST_NAME = 64
BACKLOG = 1024  # a connect that finds it full is refused by the kernel at once
SETTLE_SECONDS = 0.02
NO_DESCRIPTORS = "The daemon has no descriptors left for another client; end some."
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


class _RefusedError(Exception):
    """A process may not attach; the message says why."""


class Leases:
    """The attach socket and the open leases.

    Args:
        paths: The board's files.
        loop: Watches the connections.
        journal: Gets a line on every refusal, and a finding on every client that left memory behind.
        clients: Ids and slots.
        memory: Takes a gone client's blocks back.
        shared_fds: What every client gets besides its own doorbell: the DDR file first, then the cores' doorbells, then
            their urgent bells.
        tell_of: Tells the cores of a new client.
        tell_gone: Tells the cores of a client whose doorbell is about to close.
    """

    def __init__(
        self,
        paths: BoardPaths,
        loop: Loop,
        journal: Journal,
        clients: Clients,
        memory: Memory,
        shared_fds: Iterable[int],
        tell_of: Callable[[Client], None],
        tell_gone: Callable[[Client], None],
    ) -> None:
        self._board = paths.name
        self._loop = loop
        self._journal = journal
        self._clients = clients
        self._memory = memory
        self._ddr_fd, *self._bells = shared_fds
        self._tell_of = tell_of
        self._tell_gone = tell_gone
        self._greeting: dict[socket.socket, Timer] = {}  # connections that have not spoken yet
        self._connections: dict[int, socket.socket] = {}  # by client
        self._parting: list[Client] = []  # gone, but a core still runs a task of theirs
        self._settling: Timer | None = None
        # The rest is for cores, control connections and files; a descriptor's number says how many are in use.
        self._highest_fd = resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 3 // 4
        self._spare_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.setblocking(False)
        self._listener.bind(paths.attach_address)
        paths.attach.chmod(0o600)
        self._listener.listen(BACKLOG)

    def open(self) -> None:
        """Let in who waits; until now they have waited in the socket's queue."""
        self._loop.watch(self._listener.fileno(), self._on_connection)

    def shut(self) -> None:
        """Nobody comes in any more."""
        self._loop.unwatch(self._listener.fileno())
        self._listener.close()

    def close(self) -> None:
        """Close every lease."""
        for connection in [*self._greeting, *self._connections.values()]:
            self._drop(connection)
        self._close_spare()

    def settle_soon(self) -> None:
        """Look again in a moment at what waits for running tasks to end: parting clients, freed memory."""
        if self._settling is None or not self._settling.is_waiting:
            self._settling = self._loop.later(SETTLE_SECONDS, self._settle)

    # -- coming in

    def _on_connection(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                self._turn_away(error)
                return
            if connection.fileno() > self._highest_fd:
                self._refuse(connection, NO_DESCRIPTORS)
                continue
            connection.setblocking(False)
            self._greeting[connection] = self._loop.later(HELLO_SECONDS, lambda c=connection: self._on_silence(c))  # type: ignore[misc]
            self._loop.watch(connection.fileno(), lambda c=connection: self._on_hello(c))  # type: ignore[misc]

    def _turn_away(self, error: OSError) -> None:
        """No descriptor is left: use the spare one to close the connection, or it would be ready for ever."""
        self._journal.say(f"A connection cannot be accepted and is turned away: {error.strerror}.")
        self._close_spare()
        with contextlib.suppress(OSError):
            connection, _ = self._listener.accept()
            _send_refusal(connection, NO_DESCRIPTORS)
            connection.close()
        with contextlib.suppress(OSError):  # the machine may have none left at all
            self._spare_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _close_spare(self) -> None:
        if self._spare_fd >= 0:
            os.close(self._spare_fd)
            self._spare_fd = -1

    def _on_silence(self, connection: socket.socket) -> None:
        self._refuse(connection, f"The process said nothing for {HELLO_SECONDS:.0f} s after it connected.")

    def _on_hello(self, connection: socket.socket) -> None:
        try:
            pid, name = _hello_of(connection)
            client = self._clients.attach(pid, name)
        except ConnectionResetError:
            self._drop(connection)  # it has gone without a word: somebody looked whether the board is there
            return
        except (OSError, control.MalformedMessageError, NoRoomError, _RefusedError) as error:
            self._refuse(connection, str(error))
            return
        self._greeting.pop(connection).cancel()
        self._loop.unwatch(connection.fileno())
        self._connections[client.id] = connection
        self._loop.watch(connection.fileno(), lambda: self._on_end(client))
        self._tell_of(client)
        answer = control.pack(
            ok=1,
            client=client.id,
            token=client.token,
            slots=client.slots,
            cores=len(self._bells) // 2,
            board=self._board,
            daemon=os.getpid(),
        )
        with contextlib.suppress(OSError):  # it has gone: the loop says so next
            socket.send_fds(connection, [answer], [self._ddr_fd, client.doorbell, *self._bells])

    def _refuse(self, connection: socket.socket, why: str) -> None:
        self._journal.say(f"Refused to attach process {_peer(connection)[0]}: {why}")
        _send_refusal(connection, why)
        self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        timer = self._greeting.pop(connection, None)
        if timer is not None:
            timer.cancel()
        self._loop.unwatch(connection.fileno())
        connection.close()

    # -- going

    def _on_end(self, client: Client) -> None:
        """A lease is readable when it closes; whatever a client sends over it ends it as well."""
        self._drop(self._connections.pop(client.id))
        if unreleased := self._clients.unreleased_tasks(client):
            self._journal.find(
                "leak",
                f"Process {client.pid} ({client.name}) ended with {unreleased} finished tasks not released "
                "(hbDSPReleaseTask).",
                client=client.id,
            )
        client.has_gone = True
        self._parting.append(client)
        self._settle()

    def _settle(self) -> None:
        with contextlib.suppress(ClaimLockError):  # later: what has gone is nobody's until then
            for client in list(self._parting):
                if self._clients.withdraw_tasks(client):
                    self._parting.remove(client)
                    self._forget(client)
        self._memory.settle()
        if self._memory.is_waiting or self._parting:
            self.settle_soon()

    def _forget(self, client: Client) -> None:
        left = self._memory.owned_places(client.id)
        blocks, size_bytes = self._memory.release_client(client.id)
        if blocks:
            self._journal.find(
                "leak",
                f"Process {client.pid} ({client.name}) ended with {blocks} blocks ({size_bytes} bytes) not freed."
                f"{allocated_at(left)}",
                *left[:MOST_PLACES],
                client=client.id,
            )
        self._tell_gone(client)
        self._clients.forget(client)


def _hello_of(connection: socket.socket) -> tuple[int, str]:
    """Process id and name of who connects.

    Raises:
        ConnectionResetError: it has gone. _RefusedError: another user. MalformedMessageError: no hello.
    """
    pid, uid, _ = _peer(connection)
    if uid != os.getuid():
        raise _RefusedError(f"This board belongs to user {os.getuid()}, not to user {uid}.")
    buffer = bytearray(HELLO_BYTES)
    size = connection.recv_into(buffer, HELLO_BYTES, socket.MSG_TRUNC)  # the packet's size, also when it is larger
    if not size:
        raise ConnectionResetError
    if size > HELLO_BYTES:
        raise control.MalformedMessageError(f"The hello has {size} bytes; the limit is {HELLO_BYTES}.")
    hello = control.unpack_map(bytes(buffer[:size]), HELLO_BYTES)
    name = hello.get("name", "")
    if not isinstance(name, str):
        raise control.MalformedMessageError(f"The name in the hello is a {type(name).__name__}, not text.")
    # It is shown on terminals, which must not take it for a command.
    return pid, "".join(letter if letter.isprintable() else "?" for letter in name[:MOST_NAME])


def _peer(connection: socket.socket) -> tuple[int, int, int]:
    pid, uid, gid = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid, gid


def _send_refusal(connection: socket.socket, why: str) -> None:
    with contextlib.suppress(OSError):  # it did not wait for its refusal
        connection.send(control.pack(ok=0, text=why))
    with contextlib.suppress(OSError):  # what is not read when the connection closes would take the refusal with it
        connection.recv(1, socket.MSG_DONTWAIT)
