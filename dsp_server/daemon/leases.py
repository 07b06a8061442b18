"""Attaching: a connection to attach.sock gets descriptors, and is the client's lease as long as it is open.

A lease also ends when its process dies, as a child forked by C code may keep the connection open.

A connection sends one hello packet and gets one answer; control requests follow on it, each with one answer. If no
hello arrives within HELLO_SECONDS, the daemon drops the connection; others are not delayed. While a client does not
read its answers, its requests wait. When a lease closes, the daemon cancels the client's queued tasks at once, and
reclaims its memory and slots as soon as no core is running one of its tasks.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import struct
from collections.abc import Callable, Iterable
from typing import Protocol

from dsp_server.clients import Client, Clients, NoRoomError
from dsp_server.memory.owners import BoardMemory
from dsp_server.process.event_loop import Loop, Timer
from dsp_server.process.journal import Journal, RunRecords
from hbrt.board.log_lines import EXIT_CODE
from hbrt.board.paths import BoardPaths
from hbrt.borders.printable import printable
from hbrt.ddr.claim_lock import ClaimLockError
from hbrt.findings.record import Finding
from hbrt.findings.text import MAX_PLACES, allocated_at, counted, submitted_at
from hbrt.protocol import control

HELLO_SECONDS = 5.0
HELLO_BYTES = 4096
MAX_NAME = 64
BACKLOG = 1024  # once the backlog is full, the kernel refuses connections immediately
RECLAIM_SECONDS = 0.02
NO_DESCRIPTORS = "The daemon has run out of descriptors for clients; end some of them."
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


class _RefusedError(Exception):
    """A process may not attach; the message says why."""


class Handle(Protocol):
    """Answers one control request from a client."""

    def __call__(self, raw: bytes, reply: Callable[[bytes], None], *, client: Client) -> None:
        """See ``Control.handle``."""


def _no_board(raw: bytes, reply: Callable[[bytes], None], *, client: Client) -> None:
    """Do nothing: no connections are accepted yet."""


class Leases:
    """The attach socket and the open leases.

    Args:
        paths: The board's files.
        loop: Watches the connections.
        journal: Receives a line for every refusal, and a finding for every client that left memory behind.
        clients: Client ids and slots.
        memory: Takes back the blocks of ended clients.
        shared_fds: The descriptors that every client gets besides its own doorbell: the DDR file, the cores' doorbells,
        and their urgent doorbells.
        add_client: Sends the cores the doorbell of a new client.
        remove_client: Makes the cores close the doorbell of an ended client.
        settle: Takes in the findings that cores have sent.
        is_private: Whether the board belongs to a program, so that findings without a client are that program's.
    """

    def __init__(
        self,
        paths: BoardPaths,
        loop: Loop,
        journal: Journal,
        clients: Clients,
        memory: BoardMemory,
        shared_fds: Iterable[int],
        add_client: Callable[[Client], None],
        remove_client: Callable[[Client], None],
        settle: Callable[[], None],
        *,
        is_private: bool,
    ) -> None:
        self._board = paths.name
        self._loop = loop
        self._journal = journal
        self._clients = clients
        self._memory = memory
        self._ddr_fd, *self._doorbells = shared_fds
        self._add_client = add_client
        self._remove_client = remove_client
        self._settle = settle
        self._is_private = is_private
        self._runs = RunRecords()
        self._awaiting_hello: dict[socket.socket, Timer] = {}  # connections that have not sent a hello
        self._connections: dict[int, socket.socket] = {}  # by client
        self._processes: dict[int, int] = {}  # pidfds, by client
        self._unsent: dict[int, list[bytes]] = {}  # answer packets that clients have not read yet
        self._handle: Handle = _no_board
        self._request = bytearray(control.HEAD.size + control.MAX_REQUEST_BYTES)
        self._ended: list[Client] = []  # clients with tasks that a core is still running
        self._reclaiming: Timer | None = None
        # The rest is for cores, control connections and files; a new descriptor's number shows how many are in use.
        self._highest_fd = resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 3 // 4
        self._spare_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.setblocking(False)
        self._listener.bind(paths.attach_address)
        paths.attach.chmod(0o600)
        self._listener.listen(BACKLOG)

    def open(self, handle: Handle) -> None:
        """Accept connections, which until now waited in the socket's queue. ``handle`` answers their requests."""
        self._handle = handle
        self._loop.watch(self._listener.fileno(), self._on_connection)

    def shut(self) -> None:
        """Stop accepting connections."""
        self._loop.unwatch(self._listener.fileno())
        self._listener.close()

    def close(self) -> None:
        """Close every lease."""
        for connection in [*self._awaiting_hello, *self._connections.values()]:
            self._close(connection)
        for client_id in list(self._processes):
            self._unwatch_process(client_id)
        for client in self._clients.by_id.values():
            self._part(client)
        self._close_spare()

    def detach(self, client: Client) -> list[Finding]:
        """Find what a client leaves behind while it still listens; its lease closes next.

        Returns:
            This client's findings, and those of no client, latest last.
        """
        self._find_tasks(client)
        self._find_blocks(client)
        if not self._clients.has_unfinished_tasks(client):  # queued tasks need their blocks until the lease closes
            self._memory.release_client(client.id)
            self._memory.reclaim()
        self._memory.look_at_free()
        return self._journal.of_program(client.id, client.attached_at)

    def reclaim_soon(self) -> None:
        """Try again shortly to reclaim slots and memory that wait for running tasks to end."""
        if self._reclaiming is None or not self._reclaiming.is_waiting:
            self._reclaiming = self._loop.later(RECLAIM_SECONDS, self._reclaim)

    # -- attaching

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
            self._awaiting_hello[connection] = self._loop.later(HELLO_SECONDS, lambda c=connection: self._on_silence(c))  # type: ignore[misc]
            self._loop.watch(connection.fileno(), lambda c=connection: self._on_hello(c))  # type: ignore[misc]

    def _turn_away(self, error: OSError) -> None:
        """Refuse a connection by means of the spare descriptor: otherwise the listener would stay readable."""
        self._journal.say(f"Cannot accept a connection; turned it away: {error.strerror}.")
        self._close_spare()
        with contextlib.suppress(OSError):
            connection, _ = self._listener.accept()
            _send_refusal(connection, NO_DESCRIPTORS)
            connection.close()
        with contextlib.suppress(OSError):  # the machine may be out of descriptors
            self._spare_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _close_spare(self) -> None:
        if self._spare_fd >= 0:
            os.close(self._spare_fd)
            self._spare_fd = -1

    def _on_silence(self, connection: socket.socket) -> None:
        self._refuse(connection, f"The process sent nothing for {HELLO_SECONDS:.0f} s after it connected.")

    def _on_hello(self, connection: socket.socket) -> None:
        try:
            pid, name, run = _hello_of(connection)
            client = self._clients.attach(pid, name)
        except ConnectionResetError:
            self._close(connection)  # closed without a hello: a probe for whether the board is there
            return
        except (OSError, control.MalformedMessageError, NoRoomError, _RefusedError) as error:
            self._refuse(connection, str(error))
            return
        self._awaiting_hello.pop(connection).cancel()
        self._loop.unwatch(connection.fileno())
        self._connections[client.id] = connection
        self._loop.watch(connection.fileno(), lambda: self._on_request(client))
        self._watch_process(client)
        if run:
            self._runs.join(client.id, run)
        self._add_client(client)
        answer = control.pack(
            ok=1,
            client=client.id,
            token=client.token,
            slots=client.slots,
            cores=self._clients.core_count,
            accelerators=len(self._doorbells) // 2 - self._clients.core_count,
            board=self._board,
            daemon=os.getpid(),
        )
        with contextlib.suppress(OSError):  # closed: the loop will report that next
            socket.send_fds(connection, [answer], [self._ddr_fd, client.doorbell, *self._doorbells])

    def _watch_process(self, client: Client) -> None:
        """End the lease when its process ends; if that cannot be watched, only its connection ends the lease."""
        try:
            fd = os.pidfd_open(client.pid)
        except OSError:  # too few descriptors, an old kernel, or a process in another container, which has no id here
            return
        if fd > self._highest_fd:
            os.close(fd)
            return
        self._processes[client.id] = fd
        self._loop.watch(fd, lambda: self._on_end(client))

    def _unwatch_process(self, client_id: int) -> None:
        fd = self._processes.pop(client_id, -1)
        if fd >= 0:
            self._loop.unwatch(fd)
            os.close(fd)

    # -- requests

    def _on_request(self, client: Client) -> None:
        connection = self._connections[client.id]
        try:
            size = connection.recv_into(self._request, 0, socket.MSG_TRUNC | socket.MSG_DONTWAIT)  # size of the packet
        except BlockingIOError:
            return
        except OSError:
            size = 0
        if not size:
            self._on_end(client)
            return
        packet = bytes(self._request[:size])
        number = control.HEAD.unpack_from(packet)[1] if size >= control.HEAD.size else 0
        raw = packet[control.HEAD.size :] if size <= len(self._request) else bytes(control.MAX_REQUEST_BYTES + 1)
        self._handle(raw, lambda answer: self._reply(client, number, answer), client=client)

    def _reply(self, client: Client, number: int, answer: bytes) -> None:
        """Send an answer, or keep it until the client reads; drop it if the client is gone."""
        if not client.has_gone:
            message, most = control.HEAD.pack(len(answer), number) + answer, control.PACKET_BYTES
            packets = self._unsent.setdefault(client.id, [])
            packets += [message[at : at + most] for at in range(0, len(message), most)]
            self._send(client)

    def _send(self, client: Client) -> None:
        packets, connection = self._unsent[client.id], self._connections[client.id]
        try:
            while packets:
                connection.send(packets[0], socket.MSG_NOSIGNAL)
                del packets[0]
        except BlockingIOError:
            self._loop.when_writable(connection.fileno(), lambda: self._send(client), is_read=False)
            return
        except OSError:  # closed: the loop will report that next
            pass
        del self._unsent[client.id]

    def _refuse(self, connection: socket.socket, why: str) -> None:
        self._journal.say(f"Refused to attach process {_peer(connection)[0]}: {why}")
        _send_refusal(connection, why)
        self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        timer = self._awaiting_hello.pop(connection, None)
        if timer is not None:
            timer.cancel()
        self._loop.unwatch(connection.fileno())
        connection.close()

    # -- detaching

    def _on_end(self, client: Client) -> None:
        """End a lease whose connection has closed or whose process has ended."""
        self._unwatch_process(client.id)
        self._unsent.pop(client.id, None)
        self._close(self._connections.pop(client.id))
        self._find_tasks(client)
        self._clients.note_end(client)
        self._ended.append(client)
        self._reclaim()

    def _reclaim(self) -> None:
        with contextlib.suppress(ClaimLockError):  # retried by a later call
            for client in list(self._ended):
                if self._clients.reclaim_tasks(client):
                    self._ended.remove(client)
                    self._discard(client)
        self._memory.reclaim()
        if self._memory.is_waiting or self._ended:
            self.reclaim_soon()

    def _discard(self, client: Client) -> None:
        self._find_blocks(client)
        self._memory.release_client(client.id)
        self._settle()
        self._part(client)
        self._remove_client(client)
        self._clients.discard(client)

    def _part(self, client: Client) -> None:
        found = self._journal.of_program(client.id, client.attached_at)
        ours = [one for one in found if one.client or self._is_private]
        is_heard = self._runs.part(client.id, ours)
        mistakes = sum(one.is_mistake for one in ours)
        if mistakes and not is_heard:
            self._journal.say(
                f"WARNING {EXIT_CODE}: Process {client.pid} ({client.name}) was ended by os._exit or a signal, so its "
                f"exit code does not reflect its {counted(mistakes, 'mistake')}. The exit code of 'hbrt run PROGRAM' "
                "does, no matter how the program ends."
            )

    def _find_tasks(self, client: Client) -> None:
        unreleased = () if client.has_left else self._clients.unreleased_places(client)
        client.has_left = True
        if unreleased:
            self._journal.find(
                "leak",
                f"Process {client.pid} ({client.name}) ended with {counted(len(unreleased), 'finished task')} not "
                f"released (hbDSPReleaseTask).{submitted_at(unreleased)}",
                *unreleased[:MAX_PLACES],
                client=client.id,
            )

    def _find_blocks(self, client: Client) -> None:
        """Report, once, what a client leaves behind."""
        left = () if client.has_left_blocks else self._memory.owned_places(client.id)
        how = "not freed, or not unregistered" if self._memory.has_imported(client.id) else "not freed"
        client.has_left_blocks = True
        blocks, size_bytes = len(left), sum(place.size_bytes or 0 for place in left)
        if blocks:
            self._journal.find(
                "leak",
                f"Process {client.pid} ({client.name}) ended with {counted(blocks, 'block')} "
                f"({counted(size_bytes, 'byte')}) {how}."
                f"{allocated_at(left)}",
                *left[:MAX_PLACES],
                client=client.id,
            )


def _hello_of(connection: socket.socket) -> tuple[int, str, str]:
    """Read a connecting process's id and name, and the location of its run record.

    Raises:
        ConnectionResetError: it has closed. _RefusedError: another user. MalformedMessageError: invalid hello.
    """
    pid, uid, _ = _peer(connection)
    if uid != os.getuid():
        raise _RefusedError(f"This board belongs to user {os.getuid()}, but the process to user {uid}.")
    buffer = bytearray(HELLO_BYTES)
    size = connection.recv_into(buffer, HELLO_BYTES, socket.MSG_TRUNC)  # size of the packet, even if it is larger
    if not size:
        raise ConnectionResetError
    if size > HELLO_BYTES:
        raise control.MalformedMessageError(f"The hello has {size} bytes; the limit is {HELLO_BYTES}.")
    hello = control.unpack_map(bytes(buffer[:size]), HELLO_BYTES)
    name, run = hello.get("name", ""), hello.get("run", "")
    if not (isinstance(name, str) and isinstance(run, str)):
        raise control.MalformedMessageError(
            f"The name in the hello is {name!r:.80} and the run {run!r:.80}: both must be text."
        )
    return pid, printable(name)[:MAX_NAME], run


def _peer(connection: socket.socket) -> tuple[int, int, int]:
    pid, uid, gid = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid, gid


def _send_refusal(connection: socket.socket, why: str) -> None:
    with contextlib.suppress(OSError):  # it did not wait to be refused
        connection.send(control.pack(ok=0, text=why))
    with contextlib.suppress(OSError):  # unread data would make closing the connection discard the refusal
        connection.recv(1, socket.MSG_DONTWAIT)
