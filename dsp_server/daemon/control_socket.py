"""The daemon's ZeroMQ socket: messages in and out, with a limit on the number of connections."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import struct
from collections.abc import Callable

import zmq

from dsp_server.process.event_loop import Loop, Timer
from dsp_server.process.intake import Intake
from dsp_server.process.journal import Journal
from hbrt.board.paths import BoardPaths
from hbrt.protocol import control

# Larger than any valid request: up to this size the sender is told what is wrong; beyond it ZeroMQ disconnects.
RECEIVE_BYTES = 16 * control.MAX_REQUEST_BYTES
# Per peer; a peer that sends requests but reads no replies loses further ones. The limit is far above what is usual,
# because ZeroMQ learns of read messages only after some milliseconds and drops replies above the limit.
QUEUED_REPLIES = 1000
WAITING_REQUESTS = 1000  # per process, as long as it gets no answer
LINGER_MS = 200
REOPEN_SECONDS = 0.2
_EVENT = struct.Struct("=HI")  # from the socket monitor: event, descriptor


class ControlSocket:
    """A ROUTER socket in the daemon's loop."""

    def __init__(self, paths: BoardPaths, loop: Loop, journal: Journal) -> None:
        self._paths = paths
        self._loop = loop
        self._journal = journal
        self._handle: Callable[[bytes, Callable[[bytes], None], bytes], None] = lambda *_: None
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.linger = LINGER_MS
        self._socket.maxmsgsize = RECEIVE_BYTES
        self._socket.sndhwm = QUEUED_REPLIES
        self._intake = Intake(self._socket, paths.control_endpoint, WAITING_REQUESTS, journal.say)
        # libzmq aborts the process when accept() runs out of descriptors. So when a new connection's descriptor number
        # shows that half of them are in use, the socket's file is hidden for a while: no process finds the socket, and
        # open connections stay. (Unbinding would close them and lose their replies.)
        self._monitor = self._socket.get_monitor_socket(zmq.EVENT_ACCEPTED)
        self._highest_fd = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2
        self._is_hidden = False
        self._drain: Timer | None = None
        self._socket.bind(paths.control_endpoint)
        paths.control.chmod(0o600)

    def open(self, handle: Callable[[bytes, Callable[[bytes], None], bytes], None]) -> None:
        """Pass every message to ``handle``, with a function that sends the answer and the sender's identity."""
        self._handle = handle
        self._loop.watch(int(self._socket.fd), self._on_messages)
        self._loop.watch(int(self._monitor.fd), self._on_connections)
        self._on_messages()
        self._on_connections()

    def _reply(self, identity: bytes, raw: bytes) -> None:
        """Send a reply to a peer; if the peer is gone or does not read, the reply is lost."""
        with contextlib.suppress(zmq.ZMQError):
            self._socket.send_multipart([identity, raw], zmq.NOBLOCK)
        # The socket's descriptor signals a change once. A send may have consumed that, with messages still waiting.
        if self._drain is None or not self._drain.is_waiting:
            self._drain = self._loop.later(0.0, self._on_messages)

    def close(self) -> None:
        """Send queued replies, close the connections, and delete the socket's file."""
        self._loop.unwatch(int(self._socket.fd))
        self._loop.unwatch(int(self._monitor.fd))
        self._socket.disable_monitor()
        self._monitor.close()
        self._socket.close()
        self._context.term()

    def _on_messages(self) -> None:
        while messages := self._intake.take_all():
            for identity, *frames in messages:
                self._handle(b"".join(frames), functools.partial(self._reply, identity), identity)

    def _on_connections(self) -> None:
        while True:
            try:
                event = self._monitor.recv_multipart(zmq.NOBLOCK)[0]
            except zmq.Again:
                return
            _, fd = _EVENT.unpack(event)
            if fd > self._highest_fd and not self._is_hidden:
                self._journal.say(f"Descriptor {fd} is in use: no new control connections until some are closed.")
                self._paths.control.rename(self._paths.hidden_control)
                self._is_hidden = True
                self._loop.later(REOPEN_SECONDS, self._reopen)

    def _reopen(self) -> None:
        with contextlib.suppress(OSError):
            fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            os.close(fd)
            if fd <= self._highest_fd:
                self._paths.hidden_control.rename(self._paths.control)
                self._is_hidden = False
                self._journal.say("Control connections are accepted again.")
                return
        self._loop.later(REOPEN_SECONDS, self._reopen)
