"""The gateway: one thread that accepts programs on other machines over TCP and passes their frames to handlers.

The thread never waits for a handler, the daemon or a program, so one slow program does not delay the others. ZeroMQ
does not report when a connection ends; connections.py watches for that. When a connection closes or its heartbeat
stops, the gateway drops it at once, with its handler, lease, memory and tasks. The gateway also ends a connection that
has too many unread bytes.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

import zmq

from dsp_server.clients import RELAY
from dsp_server.gateway.connections import MAX_UNREAD_BYTES, Connection, is_given
from dsp_server.gateway.handler import ConnectionHandler, SendQueue
from dsp_server.gateway.observer import Observer
from dsp_server.gateway.remote_client import RemoteClient, activity_of
from dsp_server.gateway.server import ListenOptions, Server, parse_endpoint
from dsp_server.process.event_loop import ended_by_signals
from dsp_server.process.intake import source_fd
from dsp_server.process.launch import raise_descriptor_limit, set_title
from dsp_server.relay.serve import serve_and_announce, write_log
from hbrt.attach.link import LocalLink
from hbrt.board.paths import BoardPaths
from hbrt.borders.printable import printable
from hbrt.errors import BoardError
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.remote import BEAT_SECONDS, PROGRAM_SAYS, RemoteFrame, decode, encode
from hbrt.status import Status

MAX_PROGRAMS = 64
MAX_OBSERVERS = 16
MAX_DRAINED = 1024
JOIN_SECONDS = 2.0  # for handlers' threads to end
DRAIN_SECONDS = 1.0  # for the last frame of a disconnected program to arrive
FLOOD_CHECK_SECONDS = 0.05  # between two counts of unread bytes while a program is connected
DRAIN_BEATS = 2  # number of heartbeats after which ZeroMQ knows which peers it can still reach
_NOBLOCK = int(zmq.NOBLOCK)


class _Served(NamedTuple):
    handler: ConnectionHandler
    connection: Connection


class _Draining:
    """A disconnected program: the gateway ignores what it sends, and ends the connection if the program does not."""

    def __init__(self, connection: Connection | None) -> None:
        self.connection = connection
        self.beats_left = DRAIN_BEATS


class Gateway(Server):
    """Serves the programs on other machines that use a board.

    Args:
        link: The gateway's own attachment, which ends with the board.
        options: Address and keys.
        log: Writes a sentence to the log.

    Raises:
        BoardError: the gateway cannot listen on the address.
    """

    def __init__(self, link: LocalLink, options: ListenOptions, log: Callable[[str], None]) -> None:
        super().__init__(options, log)
        self._link = link
        self._served: dict[bytes, _Served] = {}
        self._ending: list[ConnectionHandler] = []  # stopped handlers whose threads are still running
        self._draining: dict[bytes, _Draining] = {}
        self._drained: dict[bytes, None] = {}  # the most recently drained: ZeroMQ may still have messages from them
        self._send_queue = SendQueue()
        self._next_beat = 0.0
        self._flood_checked_at = 0.0
        self.watch(self._send_queue.fd, self._send_queued)
        self.watch(link.lease.fileno(), link.lose, zmq.POLLERR)  # answers are read elsewhere

    def run(self) -> None:
        """Serve until ``stop`` is called or the board ends."""
        while not self.is_stopping and not self._link.fault:
            is_idle = not (self._connections or self._pending)
            self._poll(BEAT_SECONDS if is_idle else FLOOD_CHECK_SECONDS)
            now = time.monotonic()
            if now >= self._flood_checked_at + FLOOD_CHECK_SECONDS:
                self._end_floods(MAX_UNREAD_BYTES, now - self._flood_checked_at)
                self._flood_checked_at = now
            if now >= self._next_beat:
                self._next_beat = now + BEAT_SECONDS
                self._beat()

    def close(self) -> None:
        """Stop listening, tell every program why, and end all handlers."""
        status = self._link.fault or Status.HB_DSP_RELAY_LOST
        why = self._link.why_faulty() if self._link.fault else "The relay was stopped."
        for identity, served in list(self._served.items()):
            served.handler.stop()
            self._send(identity, encode(RemoteFrame.GONE, int(status), why))
        handlers = [served.handler for served in self._served.values()] + self._ending
        self._drain_all()
        for identity in list(self._served):
            self._on_disconnected(identity)
        deadline = time.monotonic() + JOIN_SECONDS
        for handler in handlers:
            handler.join(max(0.0, deadline - time.monotonic()))
        super().close()
        if not any(handler.is_alive() for handler in handlers):
            self._send_queue.close()

    def _drain_all(self) -> None:
        """Wait until programs close their connections: closing one with unread bytes would discard what was sent."""
        for fd in set(self._handlers) - {self._socket, self._connections.fileno(), self._send_queue.fd}:
            self.unwatch(fd)
        self.watch(self._socket, lambda: self._socket.recv_multipart(_NOBLOCK))
        self.watch(self._send_queue.fd, self._send_queue.take_all)
        deadline = time.monotonic() + DRAIN_SECONDS
        while (self._served or self._draining) and (left := deadline - time.monotonic()) > 0:
            self._poll(left)

    # -- receiving

    def _on_message(self, identity: bytes, frame: zmq.Frame, *, is_more: bool) -> None:
        served = self._served.get(identity)
        known = served or self._draining.get(identity)
        if known is not None and known.connection is not None:
            known.connection.backlog.on_frame(len(frame))
        if identity in self._draining or identity in self._drained:
            return
        if is_more:
            self._disconnect(identity, frame, "A message must be one frame; got more.")
        elif served is None:
            self._on_first_frame(identity, frame)
        elif not served.handler.put(frame.bytes):
            self._disconnect(identity, frame, "It has sent more than it may without waiting for an answer.")

    def _on_first_frame(self, identity: bytes, frame: zmq.Frame) -> None:
        try:
            kind, fields = decode(frame.bytes, PROGRAM_SAYS)
        except MalformedMessageError as error:
            self._disconnect(identity, frame, str(error))
            return
        if not is_given(identity):
            self._disconnect(identity, frame, "It sets its own ZMQ_ROUTING_ID; only the relay may set it.")
        elif kind == RemoteFrame.HELLO:
            most = MAX_PROGRAMS
            if not self._is_full(identity, RemoteClient, most, f"serves {most} programs, the maximum; end some."):
                program, pid = fields
                self._admit(identity, frame, f"{program}:{pid}", RemoteClient)
        elif kind in {RemoteFrame.LOOK, RemoteFrame.LOG, RemoteFrame.TRACE}:
            most = MAX_OBSERVERS
            if not self._is_full(identity, Observer, most, f"answers {most} observers, the maximum; try again."):
                self._admit(identity, frame, "look", Observer)
        else:
            self._refuse(identity, Status.HB_DSP_RELAY_LOST, "The relay does not know this program, or no longer does.")

    def _is_full(self, identity: bytes, kind: type[ConnectionHandler], most: int, why: str) -> bool:
        self._ending = [handler for handler in self._ending if handler.is_alive()]
        handlers = [*self._ending, *(served.handler for served in self._served.values())]
        if sum(isinstance(handler, kind) for handler in handlers) < most:
            return False
        self._refuse(identity, Status.HB_DSP_NOT_RUNNING, f"The relay {why}")
        return True

    def _admit(self, identity: bytes, frame: zmq.Frame, program: str, kind: type[ConnectionHandler]) -> None:
        """Start a connection's handler. An observer's first frame is already a question."""
        connection = None
        try:
            connection = self._connections.claim(identity, source_fd(frame))
            if connection is None:
                return  # it has ended
            name = self._name(connection, frame, program)
            handler = kind(identity, name, self._link.paths, self._send_queue, self._log)
            if kind is Observer:
                handler.put(frame.bytes)
            handler.start()
        except (OSError, RuntimeError) as error:  # out of descriptors or threads: any peer of the port can use them up
            if connection is not None:
                self._connections.release(connection)
            why = error.strerror if isinstance(error, OSError) else str(error)
            self._log(printable(f"The relay cannot serve {program}: {why}."))
            self._refuse(identity, Status.HB_DSP_NOT_RUNNING, f"The relay cannot serve this program now: {why}.")
            return
        self._served[identity] = _Served(handler, connection)

    def _name(self, connection: Connection, frame: zmq.Frame, program: str) -> str:
        """Name a program on the board: by its key, its address, and its own name."""
        who = connection.peer
        if self._listener.has_keys:
            who = f"{self._listener.name_of(str(frame.get('User-Id')).encode()) or '?'}@{who}"
        return printable(f"{who} {program}"[:64])

    # -- sending

    def _send(self, identity: bytes, frame: bytes) -> None:
        """Send a frame; if the program does not read or is gone, disconnect it."""
        try:
            self._socket.send_multipart((identity, frame), _NOBLOCK, copy=len(frame) < 1 << 16)
        except zmq.Again:
            self._log(f"{self._served[identity].handler.program} does not read its answers; the relay disconnects it.")
            self._drain(identity)  # frames queued for it are dropped with its connection
        except zmq.ZMQError:
            self._on_disconnected(identity)

    def _send_queued(self) -> None:
        for identity, frame in self._send_queue.take_all():
            if identity not in self._served:
                continue
            if frame is None:
                self._drain(identity)
            else:
                self._send(identity, frame)

    def _refuse(self, identity: bytes, status: Status, why: str) -> None:
        with contextlib.suppress(zmq.ZMQError):  # it did not wait to be refused
            self._socket.send_multipart((identity, encode(RemoteFrame.REFUSED, int(status), why)), _NOBLOCK)

    def _disconnect(self, identity: bytes, frame: zmq.Frame, why: str) -> None:
        """Refuse a frame that breaks the protocol, and drain its connection."""
        connection = None
        if identity in self._served:
            handler = self._served[identity].handler
            if not handler.claim_violation():
                return  # the handler found another violation, and will disconnect the program
            who = handler.program
            connection = self._release(identity)
        else:
            with contextlib.suppress(OSError):  # out of descriptors: the connection stays, and its frames are ignored
                connection = self._connections.claim(identity, source_fd(frame))
            who = f"an unknown program{f' ({connection.peer})' if connection else ''}"
        self._log(printable(f"The relay disconnects {who}: {why}"))
        self._refuse(identity, Status.HB_DSP_INVALID_ARGUMENT, why)
        self._draining[identity] = _Draining(connection)

    # -- ends of connections

    def _beat(self) -> None:
        self._pending.end_silent()
        beat = self._beat_frame()
        for identity in list(self._served):
            self._send(identity, beat)
        self._ending = [handler for handler in self._ending if handler.is_alive()]
        for identity, draining in list(self._draining.items()):
            draining.beats_left -= 1
            if draining.beats_left > 0:
                continue
            has_ended = (
                self._connections.end(draining.connection)
                if draining.connection is not None
                else not self._is_reachable(identity)
            )
            if has_ended:
                self._on_drained(identity)

    def _on_flood(self, connection: Connection) -> None:
        identity = connection.identity
        if identity in self._served:
            who = self._served[identity].handler.program
            self._log(f"The relay disconnects {who}: more than {MAX_UNREAD_BYTES} of its bytes are unread.")
            self._drain(identity)

    def _beat_frame(self) -> bytes:
        return encode(RemoteFrame.BEAT, activity_of(self._link))

    def _on_end(self, connection: Connection) -> None:
        if connection.identity in self._draining:
            self._on_drained(connection.identity)
        else:
            self._on_disconnected(connection.identity)

    def _on_drained(self, identity: bytes) -> None:
        connection = self._draining.pop(identity).connection
        if connection is not None:
            self._connections.release(connection)
        self._drained[identity] = None
        if len(self._drained) > MAX_DRAINED:
            del self._drained[next(iter(self._drained))]

    def _on_disconnected(self, identity: bytes) -> None:
        if identity in self._served:
            self._connections.release(self._release(identity))

    def _drain(self, identity: bytes) -> None:
        self._draining[identity] = _Draining(self._release(identity))

    def _release(self, identity: bytes) -> Connection:
        """Stop a program's handler; return the connection, which stays open."""
        served = self._served[identity]
        served.handler.stop()
        self._ending.append(served.handler)  # before deleting it: the handler counts until its thread ends
        del self._served[identity]
        return served.connection


READY_FD = 3


def serve(paths: BoardPaths, options: ListenOptions, on_running: Callable[[str], None]) -> None:
    """Serve programs on other machines until a signal or the end of the board.

    Args:
        paths: The board.
        options: Address and keys.
        on_running: Called once, with the endpoint, when the gateway is listening.

    Raises:
        BoardError: the gateway cannot listen; no daemon serves the board, or it refused.
    """
    raise_descriptor_limit()
    link = LocalLink(paths, RELAY)
    try:
        gateway = Gateway(link, options, write_log)
        try:
            with ended_by_signals(gateway, gateway.stop):
                write_log(f"The relay listens at {gateway.endpoint}, {'with' if options.keys else 'without'} keys.")
                on_running(gateway.endpoint)
                set_title("gateway", paths.name)
                gateway.run()
        finally:
            gateway.close()
    finally:
        link.close()


def main() -> NoReturn:
    """Run a gateway started by a daemon; arguments: ``directory endpoint keys daemon_pid``; ``keys`` may be empty."""
    directory, endpoint, keys, daemon = sys.argv[1:]
    os.set_inheritable(READY_FD, False)

    def body(announce: Callable[[str], None]) -> None:
        def on_running(listens_at: str) -> None:
            if os.getppid() != int(daemon):  # the board's next daemon does not know this process
                raise BoardError("The daemon that started this relay has ended.")
            announce(listens_at)

        serve(BoardPaths(Path(directory)), parse_endpoint(endpoint, Path(keys) if keys else None), on_running)

    sys.exit(serve_and_announce(body, READY_FD))
