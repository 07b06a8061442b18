"""The gate: lets programs of other machines in over TCP, and hands what they send to their deputies. One thread.

It never waits for a deputy, the daemon or a program, so that none of them keeps the others waiting. Each connection is
watched beside ZeroMQ, which does not tell of an end: one that was closed, or gives no sign of life, is let go at once,
and its deputy with its lease, memory and tasks.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable
from typing import Any

import zmq

from dsp_server.relay.remote.deputy import Deputy, activity_of
from dsp_server.relay.remote.listening import Door, Listen, peer_name
from dsp_server.relay.remote.outbox import Outbox
from hbrt.link import Link
from hbrt.remote_wire import BEAT_SECONDS, PROGRAM_SAYS, Kind, decode, encode
from hbrt.status import Status
from hbrt.wire import MalformedMessageError

MOST_PROGRAMS = 64
PARTING_SECONDS = 2.0
FAREWELL_SECONDS = 1.0  # for the refusal of who is cut off to arrive
_NOBLOCK = int(zmq.NOBLOCK)


class _Program:
    """A connected program: its deputy, and its connection."""

    def __init__(self, deputy: Deputy, connection: socket.socket) -> None:
        self.deputy = deputy
        self.connection = connection


class Gate:
    """A board's door for programs on other machines.

    Args:
        link: The gate's own attachment: it ends with the board.
        listen: Where, and for whom.
        say: Gets a sentence for the log.

    Raises:
        BoardError: it cannot listen there.
    """

    def __init__(self, link: Link, listen: Listen, say: Callable[[str], None]) -> None:
        self.is_stopping = False
        self._link = link
        self._say = say
        self._programs: dict[bytes, _Program] = {}
        self._parting: list[Deputy] = []
        self._leaving: dict[int, tuple[float, socket.socket]] = {}  # was told to go: when to end its connection
        self._shunned: dict[bytes, int] = {}  # whose connections those are: what else they have sent is not looked at
        self._outbox = Outbox()
        self._next_beat = 0.0
        self._handlers: dict[int, Callable[[], None]] = {}
        self._poller = zmq.Poller()
        self._ends = select.epoll()
        self._by_fd: dict[int, bytes] = {}
        self._context: zmq.Context[Any] = zmq.Context(io_threads=1)
        try:
            self._door = Door(self._context, listen)
        except BaseException:
            self._context.term()
            self._outbox.close()
            self._ends.close()
            raise
        self._socket = self._door.socket
        self.endpoint = self._door.endpoint
        self._poller.register(self._socket, zmq.POLLIN)
        self.watch(self._outbox.fd, self._deliver)
        self.watch(self._ends.fileno(), self._on_ends)
        self.watch(link.lease.fileno(), link.lose)

    @property
    def program_count(self) -> int:
        """Programs that are served now."""
        return len(self._programs)

    def watch(self, fd: int, handler: Callable[[], None], /) -> None:
        """Call ``handler`` while the descriptor is readable."""
        self._handlers[fd] = handler
        self._poller.register(fd, zmq.POLLIN)

    def unwatch(self, fd: int, /) -> None:
        """Undo ``watch``."""
        del self._handlers[fd]
        self._poller.unregister(fd)

    def stop(self) -> None:
        """Have ``run`` return soon; a signal handler may call it."""
        self.is_stopping = True

    def run(self) -> None:
        """Serve until told to stop, or the board has gone."""
        while not self.is_stopping and not self._link.fault:
            for ready, _ in self._poller.poll(int(BEAT_SECONDS * 1000)):
                if ready is self._socket:
                    self._take_in()
                elif (handler := self._handlers.get(ready)) is not None:
                    handler()
            now = time.monotonic()
            if now >= self._next_beat:
                self._next_beat = now + BEAT_SECONDS
                self._beat(now)

    def close(self) -> None:
        """Say why to everybody, let all deputies go, and listen no more."""
        status = self._link.fault or Status.HB_DSP_RELAY_LOST
        why = self._link.why_faulty() if self._link.fault else "The relay was stopped."
        for identity, program in list(self._programs.items()):
            program.deputy.stop()
            self._send(identity, encode(Kind.GONE, int(status), why))
        deputies = [program.deputy for program in self._programs.values()] + self._parting
        self._await_farewells()
        for identity in list(self._programs):
            self._forget(identity)
        deadline = time.monotonic() + PARTING_SECONDS
        for deputy in deputies:
            deputy.join(max(0.0, deadline - time.monotonic()))
        for _, connection in self._leaving.values():
            connection.close()
        for fd in list(self._handlers):
            self.unwatch(fd)
        self._poller.unregister(self._socket)
        self._door.close()
        self._context.term()
        self._ends.close()
        if not any(deputy.is_alive() for deputy in deputies):
            self._outbox.close()

    def _await_farewells(self) -> None:
        """Let programs close their connections first: one closed with something unread takes back what was sent."""
        deadline = time.monotonic() + FAREWELL_SECONDS
        while (self._programs or self._leaving) and (left := deadline - time.monotonic()) > 0:
            for ready, _ in self._poller.poll(int(left * 1000)):
                if ready is self._socket:
                    self._socket.recv_multipart(_NOBLOCK)
                elif ready == self._ends.fileno():
                    self._on_ends()
                elif ready == self._outbox.fd:
                    self._outbox.take_all()

    # -- coming in

    def _take_in(self) -> None:
        """Take in what has come, a little of it at a time."""
        for _ in range(64):
            try:
                identity = self._socket.recv(_NOBLOCK)
            except zmq.Again:
                return
            frame = self._socket.recv(_NOBLOCK, copy=False)
            is_more = frame.more
            while self._socket.rcvmore:
                self._socket.recv(_NOBLOCK)
            program = self._programs.get(identity)
            if identity in self._shunned:
                continue
            if is_more:
                self._cut_off(identity, frame, "A message is one frame; more came.")
            elif program is None:
                self._on_stranger(identity, frame)
            elif not program.deputy.put(frame.bytes):
                self._cut_off(identity, frame, "It has sent more than it may without waiting for an answer.")

    def _on_stranger(self, identity: bytes, frame: zmq.Frame) -> None:
        try:
            kind, fields = decode(frame.bytes, PROGRAM_SAYS)
        except MalformedMessageError as error:
            self._cut_off(identity, frame, str(error))
            return
        if kind != Kind.HELLO:
            self._refuse(identity, Status.HB_DSP_RELAY_LOST, "The relay does not know this program (any more).")
            return
        self._parting = [deputy for deputy in self._parting if deputy.is_alive()]
        if len(self._programs) + len(self._parting) >= MOST_PROGRAMS:
            self._refuse(
                identity,
                Status.HB_DSP_NOT_RUNNING,
                f"The relay serves {MOST_PROGRAMS} programs, which is the most; end some.",
            )
            return
        connection = _connection_of(frame)
        if connection is None:
            return  # it has gone again
        name = self._name(connection, frame, *fields)
        try:
            deputy = Deputy(identity, name, self._link.paths, self._outbox, self._say)
        except OSError as error:  # no descriptor left: whoever can reach the port can take them for some seconds
            connection.close()
            self._say(f"The relay cannot serve {name}: {error.strerror}.")
            self._refuse(identity, Status.HB_DSP_NOT_RUNNING, f"The relay cannot serve it now: {error.strerror}.")
            return
        self._programs[identity] = _Program(deputy, connection)
        self._by_fd[connection.fileno()] = identity
        self._ends.register(connection, select.EPOLLRDHUP)
        deputy.start()

    def _name(self, connection: socket.socket, frame: zmq.Frame, program: str, pid: int) -> str:
        """What the board is to call a program: whose key, from where, which one."""
        who = peer_name(connection)
        with contextlib.suppress(zmq.ZMQError):  # no keys, no name
            key = frame.get("User-Id")
            who = f"{self._door.name_of(str(key).encode()) or '?'}@{who}"
        # It is written to logs and shown on terminals, which must not take it for a command.
        return "".join(letter if letter.isprintable() else "?" for letter in f"{who} {program}:{pid}"[:64])

    # -- going out

    def _send(self, identity: bytes, frame: bytes) -> None:
        """Send, or let a program go that does not read what it is sent, or has gone."""
        try:
            self._socket.send_multipart((identity, frame), _NOBLOCK, copy=len(frame) < 1 << 16)
        except zmq.Again:
            self._say(f"{self._programs[identity].deputy.program} does not read its answers; the relay lets it go.")
            self._forget(identity)
        except zmq.ZMQError:
            self._forget(identity)  # it has gone

    def _deliver(self) -> None:
        for identity, frame in self._outbox.take_all():
            if identity not in self._programs:
                continue
            if frame is None:
                self._end_later(self._release(identity))
            else:
                self._send(identity, frame)

    def _refuse(self, identity: bytes, status: Status, why: str) -> None:
        with contextlib.suppress(zmq.ZMQError):  # it did not wait for its refusal
            self._socket.send_multipart((identity, encode(Kind.REFUSED, int(status), why)), _NOBLOCK)

    def _cut_off(self, identity: bytes, frame: zmq.Frame, why: str) -> None:
        """Refuse nonsense, and end its connection when the refusal has had its time."""
        connection = _connection_of(frame)
        who = self._programs[identity].deputy.program if identity in self._programs else "a program that is not known"
        self._say(f"The relay lets {who}{f' ({peer_name(connection)})' if connection else ''} go: {why}")
        self._refuse(identity, Status.HB_DSP_INVALID_ARGUMENT, why)
        self._forget(identity)
        if connection is not None:
            self._shunned[identity] = connection.fileno()
            self._end_later(connection)

    # -- ends

    def _beat(self, now: float) -> None:
        beat = encode(Kind.BEAT, activity_of(self._link))
        for identity in list(self._programs):
            self._send(identity, beat)
        self._parting = [deputy for deputy in self._parting if deputy.is_alive()]
        for fd, (deadline, connection) in list(self._leaving.items()):
            if deadline <= now:
                with contextlib.suppress(OSError):  # it has gone by itself
                    connection.shutdown(socket.SHUT_RDWR)
                self._drop(fd)

    def _on_ends(self) -> None:
        for fd, _ in self._ends.poll(0):
            if fd in self._leaving:
                self._drop(fd)
            else:
                self._forget(self._by_fd[fd])

    def _end_later(self, connection: socket.socket) -> None:
        """Give what was sent time to arrive; then end the connection, unless the other end has done so."""
        self._leaving[connection.fileno()] = (time.monotonic() + FAREWELL_SECONDS, connection)
        self._ends.register(connection, select.EPOLLRDHUP)

    def _drop(self, fd: int) -> None:
        self._ends.unregister(fd)
        self._leaving.pop(fd)[1].close()
        self._shunned = {identity: its for identity, its in self._shunned.items() if its != fd}

    def _forget(self, identity: bytes) -> None:
        """A program has gone, or is let go."""
        if identity in self._programs:
            self._release(identity).close()

    def _release(self, identity: bytes) -> socket.socket:
        """Let a program go; its connection is left."""
        program = self._programs.pop(identity)
        program.deputy.stop()
        self._parting.append(program.deputy)
        del self._by_fd[program.connection.fileno()]
        self._ends.unregister(program.connection)
        return program.connection


def _connection_of(frame: zmq.Frame) -> socket.socket | None:
    """The connection that a frame came over, by a descriptor of our own; None when it has been closed."""
    try:
        return socket.socket(fileno=os.dup(frame.get(zmq.MessageOption.SRCFD)))
    except (OSError, zmq.ZMQError):
        return None
