"""The connection to a board's relay: find or start it, identify this process, send tasks, and detect its end."""

from __future__ import annotations

import os
import secrets
import select
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zmq

from hbrt.board.descriptors import check_free
from hbrt.board.files import lock_holder
from hbrt.board.paths import BoardPaths, socket_path
from hbrt.errors import BoardError, RequestRefusedError
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.relay import MAX_FRAME_BYTES, RELAY_SAYS, RelayFrame, decode, encode
from hbrt.status import Status

if TYPE_CHECKING:
    from hbrt.attach.link import LocalLink

PROGRAM = "dsp_relay_server"
START_SECONDS = 30.0
WELCOME_SECONDS = 10.0
LOOK_MS = 50
RECONNECT_MS = 5
MAX_UNREAD = 8192  # frames each way; more than the tasks that one process may have pending
_TRIES = 3
_MAX_DESCRIPTORS = 16  # 5 for a context, 2 for each of two sockets, 2 for the channel, the rest to start a relay
# Plain integers: pyzmq's are enum members, and this is the hot path.
_EVENTS, _NOBLOCK, _POLLIN = int(zmq.EVENTS), int(zmq.NOBLOCK), int(zmq.POLLIN)
_NO_SIGNAL = int(socket.MSG_NOSIGNAL)


class RelayChannel:
    """A connection to a relay that has accepted this process. Not for several threads at once.

    The channel's own thread watches the relay: its last messages, its end, its silence.
    """

    def __init__(
        self, context: zmq.Context[Any], socket: zmq.Socket[bytes], tasks: TaskStream, pid: int, ticket: int
    ) -> None:
        self._context = context
        self._socket = socket
        self._tasks = tasks
        self.pid = pid
        self.ticket = ticket  # shown by a SUBMIT
        self._pidfd = os.pidfd_open(pid)
        self._closing = os.eventfd(0, os.EFD_CLOEXEC)
        self._lock = threading.Lock()
        self._has_descriptors = True
        self._watcher: threading.Thread | None = None
        self.fd = int(socket.getsockopt(zmq.FD))
        self.send = socket.send
        self.submit = tasks.send
        self._get, self._recv = socket.getsockopt, socket.recv

    def take(self) -> bytes | None:
        """Return one received frame, or None."""
        return self._recv(_NOBLOCK) if self._get(_EVENTS) & _POLLIN else None  # type: ignore[operator]

    def watch(self, on_death: Callable[[], None], on_look: Callable[[], None], beat_seconds: float) -> None:
        """Start its thread, which calls back until the channel is closed.

        Args:
            on_death: Called once, when the relay's process ends.
            on_look: Called when something may have arrived, and after ``beat_seconds`` without anything.
            beat_seconds: A send may consume the sign that something arrived; it is found at the next beat.
        """
        arguments = (on_death, on_look, beat_seconds * 1000)
        self._watcher = threading.Thread(target=self._watch, args=arguments, name="hbrt-relay", daemon=True)
        self._watcher.start()

    def _watch(self, on_death: Callable[[], None], on_look: Callable[[], None], beat_ms: float) -> None:
        poller = select.poll()
        for fd in (self._pidfd, self._closing, self.fd):
            poller.register(fd, select.POLLIN)
        while True:
            events = dict(poller.poll(beat_ms))
            if self._closing in events:
                break
            if self._pidfd in events:
                on_death()
                break
            on_look()
        self._close_descriptors()

    def close(self, linger_ms: int = 0) -> None:
        """Close the connection; unsent frames get ``linger_ms``."""
        self._tasks.close()
        self._socket.close(linger_ms)
        self._context.term()
        with self._lock:
            if self._has_descriptors:
                os.eventfd_write(self._closing, 1)
        if self._watcher is None:
            self._close_descriptors()
        elif self._watcher is not threading.current_thread():
            self._watcher.join()

    def _close_descriptors(self) -> None:
        with self._lock:
            self._has_descriptors = False
            os.close(self._pidfd)
            os.close(self._closing)


def open_channel(link: LocalLink) -> RelayChannel:
    """Open a channel to a board's relay, starting one if none is running.

    Raises:
        RequestRefusedError: none can be started, or it refuses this process: HB_DSP_RELAY_LOST or its own status. If
            the board is gone, that is the reason given, whatever a relay of the next board in the same directory says.
    """
    try:
        return _find_or_start(link)
    except (RequestRefusedError, OSError, zmq.ZMQError) as error:
        if link.is_lost():
            raise RequestRefusedError(link.fault, link.why_faulty()) from None
        if isinstance(error, RequestRefusedError):
            raise
        why = f"Cannot connect to the relay of board {link.paths.name}: {error}."
        raise RequestRefusedError(Status.HB_DSP_RELAY_LOST, why) from None


def _find_or_start(link: LocalLink) -> RelayChannel:
    check_free(_MAX_DESCRIPTORS, "the connection to the relay")
    for _ in range(_TRIES):
        if _holder(link.paths) is None:
            _start(link.paths)
        channel = _connect(link)
        if channel is not None:
            return channel
    raise RequestRefusedError(
        Status.HB_DSP_RELAY_LOST,
        f"The relay of board {link.paths.name} ended {_TRIES} times before it answered; see 'hbrt log'.",
    )


def _holder(paths: BoardPaths) -> int | None:
    try:
        return lock_holder(paths.relay_lock)
    except BoardError as error:
        raise RequestRefusedError(Status.HB_DSP_RELAY_LOST, str(error)) from None


def _connect(link: LocalLink) -> RelayChannel | None:
    """Open a channel to the running relay; None if it ended before it answered."""
    context: zmq.Context[Any] = zmq.Context(io_threads=1)
    socket = context.socket(zmq.DEALER)
    tasks = channel = None
    try:
        socket.linger = 0
        socket.maxmsgsize = MAX_FRAME_BYTES
        socket.reconnect_ivl = RECONNECT_MS  # a starting relay takes its lock before it opens its socket
        socket.sndhwm = socket.rcvhwm = MAX_UNREAD
        socket.connect(link.paths.relay_endpoint)
        nonce = secrets.token_hex(16)
        socket.send(encode(RelayFrame.HELLO, link.client_id, nonce, link.proof(nonce)))
        welcome = _await_welcome(link, socket)
        if welcome is not None:
            tasks = TaskStream(socket_path(link.paths.relay_tasks), WELCOME_SECONDS)
            channel = RelayChannel(context, socket, tasks, *welcome)
    except (ProcessLookupError, ConnectionError, FileNotFoundError):
        pass  # it ended right after its welcome
    finally:
        if channel is None:
            if tasks is not None:
                tasks.close()
            socket.close()
            context.term()
    return channel


def _await_welcome(link: LocalLink, socket: zmq.Socket[bytes]) -> tuple[int, int] | None:
    """Return the relay's process and its ticket; None if it ended before it answered."""
    deadline = time.monotonic() + WELCOME_SECONDS
    while time.monotonic() < deadline:
        if socket.poll(LOOK_MS):
            try:
                kind, fields = decode(socket.recv(), RELAY_SAYS)
            except MalformedMessageError as error:
                raise RequestRefusedError(Status.HB_DSP_RELAY_LOST, f"The relay's welcome: {error}") from None
            if kind == RelayFrame.WELCOME:
                return fields[0], fields[1]
            if kind == RelayFrame.REFUSED:
                raise RequestRefusedError(fields[0], f"The relay of board {link.paths.name} refused: {fields[1]}")
            return None
        if link.is_lost():
            raise RequestRefusedError(link.fault, link.why_faulty())
        if _holder(link.paths) is None:
            return None
    raise RequestRefusedError(
        Status.HB_DSP_RELAY_LOST,
        f"The relay of board {link.paths.name} (process {_holder(link.paths)}) did not answer within "
        f"{WELCOME_SECONDS:g} s; end that process, and the next call starts a new one.",
    )


def _start(paths: BoardPaths) -> None:
    """Start a relay, unless another process has just done so."""
    found = shutil.which(PROGRAM)
    root = str(Path(__file__).resolve().parents[2])
    program = f"import sys; sys.path.append({root!r}); from dsp_server.commands.relay import main; main()"
    command = [found] if found else [sys.executable, "-P", "-c", program]
    try:
        done = subprocess.run(
            [*command, "--board", str(paths.path), "--detach"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=START_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RequestRefusedError(Status.HB_DSP_RELAY_LOST, f"Cannot start the relay {command[0]}: {error}.") from None
    if done.returncode:
        why = done.stderr.decode("utf-8", "replace").strip()
        raise RequestRefusedError(
            Status.HB_DSP_RELAY_LOST, f"The relay of board {paths.name} failed to start ({command[0]}). {why}".strip()
        )


class TaskStream:
    """Connect to a relay's task socket.

    Args:
        path: The socket's file.
        patience_s: How long each task waits for a relay that does not read.

    Raises:
        OSError: nothing is listening there.
    """

    def __init__(self, path: str, patience_s: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            # The kernel's timeout: Python's would cost one more call per task.
            patience = struct.pack("@ll", int(patience_s), 0)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
            self._socket.connect(path)
        except BaseException:
            self.close()
            raise
        self._send = self._socket.send

    def send(self, message: bytes) -> None:
        """Send a message atomically.

        Raises:
            BlockingIOError: the relay has read nothing within its patience.
            OSError: it has closed the connection.
        """
        self._send(message, _NO_SIGNAL)

    def close(self) -> None:
        """Close the connection; messages already sent still arrive."""
        self._socket.close()
