"""The gate: lets programs of other machines in over TCP, and hands what they send to their deputies. One thread.

It never waits for a deputy, the daemon or a program, so that none of them keeps the others waiting. Each connection is
watched beside ZeroMQ, which does not tell of an end (connections.py): one that was closed, or gives no sign of life, is
let go at once, and its deputy with its lease, memory and tasks. One that sends more than is read is ended (backlog.py).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import zmq

from dsp_server.gateway.backlog import MOST_UNREAD_BYTES
from dsp_server.gateway.connections import Connection, Connections, is_given, reset_when_closed
from dsp_server.gateway.handler import Attendant
from dsp_server.gateway.listening import Door, Listen
from dsp_server.gateway.observer import Looker
from dsp_server.gateway.pending import Newcomers
from dsp_server.gateway.remote_client import Deputy, activity_of
from dsp_server.gateway.send_queue import Outbox, printable
from dsp_server.process.intake import source_fd
from hbrt.attach.link import Link
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.remote import BEAT_SECONDS, PROGRAM_SAYS, Kind, decode, encode
from hbrt.status import Status

MOST_PROGRAMS = 64
MOST_LOOKERS = 16
PARTING_SECONDS = 2.0
FAREWELL_SECONDS = 1.0  # for the last word to who is let go to arrive
LOOK_SECONDS = 0.05  # while somebody is connected: how often the gate looks for what is unread
FAREWELL_BEATS = 2  # so many seconds of this process running: ZeroMQ knows by then whom it can still reach
_NOBLOCK = int(zmq.NOBLOCK)


class _Program(NamedTuple):
    """A connected program: its deputy or who answers its looks, and its connection."""

    attendant: Attendant
    connection: Connection


class _Leaving:
    """Who was told to go: what else it sends is not looked at, and its connection is ended when it does not do so."""

    def __init__(self, connection: Connection | None) -> None:
        self.connection = connection
        self.beats_left = FAREWELL_BEATS


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
        self._parting: list[Attendant] = []
        self._leaving: dict[bytes, _Leaving] = {}
        self._outbox = Outbox()
        self._next_beat = 0.0
        self._looked_at = 0.0
        self._handlers: dict[int, Callable[[], None]] = {}
        self._poller = zmq.Poller()
        self._context: zmq.Context[Any] = zmq.Context(io_threads=1)
        try:
            self._door = Door(self._context, listen)
        except BaseException:
            self._context.term()
            self._outbox.close()
            raise
        self._socket = self._door.socket
        self.endpoint = self._door.endpoint
        self._poller.register(self._socket, zmq.POLLIN)
        port = int(self.endpoint.rpartition(":")[2])
        self._connections = Connections(port, self._is_reachable, has_keys=self._door.has_keys)
        self._newcomers = Newcomers(self._door.accepted, self._connections, self._say)
        self._poller.register(self._door.accepted, zmq.POLLIN)
        self.watch(self._outbox.fd, self._deliver)
        self.watch(self._connections.fileno(), self._on_ends)
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
            is_alone = not (self._connections or self._newcomers)
            for ready, _ in self._poller.poll(int((BEAT_SECONDS if is_alone else LOOK_SECONDS) * 1000)):
                if ready is self._socket:
                    self._take_in()
                elif ready is self._door.accepted:
                    self._newcomers.take_in()
                elif (handler := self._handlers.get(ready)) is not None:
                    handler()
            now = time.monotonic()
            if now >= self._looked_at + LOOK_SECONDS:
                self._end_floods(now - self._looked_at)
                self._looked_at = now
            if now >= self._next_beat:
                self._next_beat = now + BEAT_SECONDS
                self._beat()

    def close(self) -> None:
        """Say why to everybody, let all deputies go, and listen no more."""
        status = self._link.fault or Status.HB_DSP_RELAY_LOST
        why = self._link.why_faulty() if self._link.fault else "The relay was stopped."
        for identity, program in list(self._programs.items()):
            program.attendant.stop()
            self._send(identity, encode(Kind.GONE, int(status), why))
        self._poller.unregister(self._door.accepted)
        attendants = [program.attendant for program in self._programs.values()] + self._parting
        self._await_farewells()
        for identity in list(self._programs):
            self._forget(identity)
        deadline = time.monotonic() + PARTING_SECONDS
        for attendant in attendants:
            attendant.join(max(0.0, deadline - time.monotonic()))
        for fd in list(self._handlers):
            self.unwatch(fd)
        self._poller.unregister(self._socket)
        self._door.close()
        self._context.term()
        self._connections.close()
        if not any(attendant.is_alive() for attendant in attendants):
            self._outbox.close()

    def _await_farewells(self) -> None:
        """Let programs close their connections first: one closed with something unread takes back what was sent."""
        deadline = time.monotonic() + FAREWELL_SECONDS
        while (self._programs or self._leaving) and (left := deadline - time.monotonic()) > 0:
            for ready, _ in self._poller.poll(int(left * 1000)):
                if ready is self._socket:
                    self._socket.recv_multipart(_NOBLOCK)
                elif ready == self._connections.fileno():
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
            served = program or self._leaving.get(identity)
            if served is not None and served.connection is not None:
                served.connection.backlog.on_frame(len(frame))
            if identity in self._leaving:
                continue
            if is_more:
                self._cut_off(identity, frame, "A message is one frame; more came.")
            elif program is None:
                self._on_stranger(identity, frame)
            elif not program.attendant.put(frame.bytes):
                self._cut_off(identity, frame, "It has sent more than it may without waiting for an answer.")

    def _on_stranger(self, identity: bytes, frame: zmq.Frame) -> None:
        try:
            kind, fields = decode(frame.bytes, PROGRAM_SAYS)
        except MalformedMessageError as error:
            self._cut_off(identity, frame, str(error))
            return
        if not is_given(identity):
            self._cut_off(identity, frame, "It names its own connection (ZMQ_ROUTING_ID); leave that to the relay.")
        elif kind == Kind.HELLO:
            if not self._is_full(identity, Deputy, MOST_PROGRAMS, "serves {} programs, which is the most; end some."):
                program, pid = fields
                self._let_in(identity, frame, f"{program}:{pid}", Deputy)
        elif kind in {Kind.LOOK, Kind.LOG}:
            if not self._is_full(identity, Looker, MOST_LOOKERS, "answers {} that look, which is the most; try again."):
                self._let_in(identity, frame, "look", Looker)
        else:
            self._refuse(identity, Status.HB_DSP_RELAY_LOST, "The relay does not know this program (any more).")

    def _is_full(self, identity: bytes, kind: type[Attendant], most: int, why: str) -> bool:
        self._parting = [one for one in self._parting if one.is_alive()]
        served = [*self._parting, *(program.attendant for program in self._programs.values())]
        if sum(isinstance(one, kind) for one in served) < most:
            return False
        self._refuse(identity, Status.HB_DSP_NOT_RUNNING, f"The relay {why.format(most)}")
        return True

    def _let_in(self, identity: bytes, frame: zmq.Frame, program: str, kind: type[Attendant]) -> None:
        """Start who serves a program, or answers one that looks: that one's first frame is a question already."""
        connection = None
        try:
            connection = self._connections.claim(identity, source_fd(frame))
            if connection is None:
                return  # it has gone again
            name = self._name(connection, frame, program)
            attendant = kind(identity, name, self._link.paths, self._outbox, self._say)
            if kind is Looker:
                attendant.put(frame.bytes)
            attendant.start()
        except (OSError, RuntimeError) as error:  # no descriptor or thread left: who can reach the port can take them
            if connection is not None:
                self._connections.release(connection)
            why = error.strerror if isinstance(error, OSError) else str(error)
            self._say(printable(f"The relay cannot serve {program}: {why}."))
            self._refuse(identity, Status.HB_DSP_NOT_RUNNING, f"The relay cannot serve it now: {why}.")
            return
        self._programs[identity] = _Program(attendant, connection)

    def _name(self, connection: Connection, frame: zmq.Frame, program: str) -> str:
        """What the board is to call a program: whose key, from where, which one."""
        who = connection.peer
        if self._door.has_keys:
            who = f"{self._door.name_of(str(frame.get('User-Id')).encode()) or '?'}@{who}"
        return printable(f"{who} {program}"[:64])

    # -- going out

    def _send(self, identity: bytes, frame: bytes) -> None:
        """Send, or let a program go that does not read what it is sent, or has gone."""
        try:
            self._socket.send_multipart((identity, frame), _NOBLOCK, copy=len(frame) < 1 << 16)
        except zmq.Again:
            self._say(f"{self._programs[identity].attendant.program} does not read its answers; the relay lets it go.")
            self._leaving[identity] = _Leaving(self._release(identity))  # what waits for it goes with its connection
        except zmq.ZMQError:
            self._forget(identity)  # it has gone

    def _deliver(self) -> None:
        for identity, frame in self._outbox.take_all():
            if identity not in self._programs:
                continue
            if frame is None:
                self._leaving[identity] = _Leaving(self._release(identity))
            else:
                self._send(identity, frame)

    def _refuse(self, identity: bytes, status: Status, why: str) -> None:
        with contextlib.suppress(zmq.ZMQError):  # it did not wait for its refusal
            self._socket.send_multipart((identity, encode(Kind.REFUSED, int(status), why)), _NOBLOCK)

    def _cut_off(self, identity: bytes, frame: zmq.Frame, why: str) -> None:
        """Refuse nonsense, and end its connection when the refusal has had its time."""
        connection = None
        if identity in self._programs:
            if not self._programs[identity].attendant.blame():
                return  # its deputy has just found a mistake, too, and lets it go
            who = self._programs[identity].attendant.program
            connection = self._release(identity)
        else:
            with contextlib.suppress(OSError):  # no descriptor left: it is not ended, and not looked at either
                connection = self._connections.claim(identity, source_fd(frame))
            who = f"a program that is not known{f' ({connection.peer})' if connection else ''}"
        self._say(printable(f"The relay lets {who} go: {why}"))
        self._refuse(identity, Status.HB_DSP_INVALID_ARGUMENT, why)
        self._leaving[identity] = _Leaving(connection)

    # -- ends

    def _beat(self) -> None:
        self._newcomers.end_silent()
        beat = self._beat_frame()
        for identity in list(self._programs):
            self._send(identity, beat)
        self._parting = [one for one in self._parting if one.is_alive()]
        for identity, leaving in list(self._leaving.items()):
            leaving.beats_left -= 1
            if leaving.beats_left > 0:
                continue
            has_gone = (
                self._connections.end(leaving.connection)
                if leaving.connection is not None
                else not self._is_reachable(identity)
            )
            if has_gone:
                self._drop(identity)

    def _end_floods(self, seconds: float) -> None:
        """End connections that have sent more than a program may before the gate reads it; no word would get there."""
        self._newcomers.end_floods()
        for connection in self._connections.flooding(MOST_UNREAD_BYTES, seconds):
            identity = connection.identity
            if identity in self._programs:
                who = self._programs[identity].attendant.program
                self._say(f"The relay lets {who} go: more than {MOST_UNREAD_BYTES} bytes of it wait unread.")
                self._leaving[identity] = _Leaving(self._release(identity))
            reset_when_closed(connection.socket)
            self._connections.end(connection)

    def _is_reachable(self, identity: bytes) -> bool:
        """Whether ZeroMQ still routes to an identity."""
        try:
            self._socket.send_multipart((identity, self._beat_frame()), _NOBLOCK)
        except zmq.Again:
            return True  # it does, and the other end reads nothing
        except zmq.ZMQError:
            return False
        return True

    def _beat_frame(self) -> bytes:
        return encode(Kind.BEAT, activity_of(self._link))

    def _on_ends(self) -> None:
        for connection in self._connections.ended():
            if connection.identity in self._leaving:
                self._drop(connection.identity)
            else:
                self._forget(connection.identity)

    def _drop(self, identity: bytes) -> None:
        """Who was told to go has gone."""
        connection = self._leaving.pop(identity).connection
        if connection is not None:
            self._connections.release(connection)

    def _forget(self, identity: bytes) -> None:
        """A program has gone."""
        if identity in self._programs:
            self._connections.release(self._release(identity))

    def _release(self, identity: bytes) -> Connection:
        """Let a program go; its connection is left."""
        program = self._programs[identity]
        program.attendant.stop()
        self._parting.append(program.attendant)  # before it is no program: it has a place until its thread ends
        del self._programs[identity]
        return program.connection
