"""The connection to a board's relay on another machine, and the thread that maintains it.

Only this thread uses the sockets: it sends what others queue, delivers what arrives, and reports the end of the
connection, which ZeroMQ detects by heartbeats even while this program computes and no Python runs.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import zmq

from hbrt.board.paths import RemoteBoard
from hbrt.errors import RefusedError
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.frames import Message
from hbrt.protocol.remote import BEAT_SECONDS, RELAY_SAYS, RemoteFrame, decode, encode
from hbrt.remote.connection import RelayConnection
from hbrt.remote.send_window import FrameSource, SendWindow
from hbrt.status import Status

WELCOME_SECONDS = 15.0  # longer than the relay waits for a hung daemon, so that it can report it
CLOCK_SAMPLES = 4
SILENT_BEATS = 10  # of silence until the relay counts as lost: it hangs, though its machine answers
BYE_LINGER_MS = 500
_NOBLOCK = int(zmq.NOBLOCK)


class RemoteChannel:
    """A connection to a relay.

    Args:
        board: The relay's board.
        program: Name of this program shown on the board.

    Raises:
        RefusedError: nothing listens at that address, or the relay refuses this program; says why.
    """

    def __init__(self, board: RemoteBoard, program: str) -> None:
        self._board = board
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            self._connection = RelayConnection(board)
        except BaseException:
            os.close(self._bell)
            raise
        self._socket = self._connection.socket
        self.send_queue: deque[FrameSource] = deque()
        self._window = SendWindow()
        # Never ring a closed descriptor; a signal handler may ring in the middle of ringing.
        self._bell_lock = threading.RLock()
        self._is_closing = False
        self._thread: threading.Thread | None = None
        try:
            self.welcome = self._greet(program)
            self.clock_ns = self._compare_clocks()
        except BaseException:
            self._end(0)
            raise

    def start(
        self,
        on_message: Callable[[Message], None],
        on_lost: Callable[[int, str], None],
        watched: Mapping[Any, Callable[[], None]] = MappingProxyType({}),
    ) -> None:
        """Start the thread, which delivers messages and reports the end once.

        Args:
            on_message: Receives a message from the relay.
            on_lost: Receives status and reason of the end.
            watched: Another source to poll, and a function called when it is readable, before the relay's messages; its
                RefusedError becomes the reason of the end.
        """
        words = (on_message, on_lost, watched)
        self._thread = threading.Thread(target=self._run, args=words, name="hbrt-remote", daemon=True)
        self._thread.start()

    @property
    def is_carrier(self) -> bool:
        """Whether this is the thread of this connection."""
        return self._thread is threading.current_thread()

    def send(self, frame: bytes) -> None:
        """Queue a frame, sent in call order; from any thread."""
        self.put(iter([(0, frame)]))

    def put(self, source: FrameSource) -> None:
        """Have this connection's thread create and send a source's frames; from any thread."""
        self.send_queue.append(source)
        self.ring()

    def ring(self) -> None:
        """Wake this connection's thread to read ``send_queue``."""
        with self._bell_lock:
            if self._bell >= 0:  # otherwise the thread has ended and reported it
                os.eventfd_write(self._bell, 1)

    def close(self) -> None:
        """Say goodbye, and end the thread; unsent frames get BYE_LINGER_MS."""
        self._is_closing = True
        self.send(encode(RemoteFrame.BYE))
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    # -- coming in

    def _greet(self, program: str) -> list[Any]:
        self._connection.send(encode(RemoteFrame.HELLO, program[:64], os.getpid()))
        kind, fields = self._connection.recv(WELCOME_SECONDS)
        if kind == RemoteFrame.WELCOME:
            return fields
        if kind in {RemoteFrame.REFUSED, RemoteFrame.GONE}:
            raise RefusedError(fields[0], f"The relay at {self._board.name} refused this program: {fields[1]}")
        raise RefusedError(Status.HB_DSP_RELAY_LOST, f"The relay at {self._board.name} did not send its greeting.")

    def _compare_clocks(self) -> int:
        """Return how many ns the board's monotonic clock is ahead of this machine's, from the fastest answer."""
        found: list[tuple[int, int]] = []
        for number in range(CLOCK_SAMPLES):
            sent_ns = time.monotonic_ns()
            self._connection.send(encode(RemoteFrame.CLOCK, number))
            kind, fields = self._connection.recv(WELCOME_SECONDS)
            if kind != RemoteFrame.NOW:
                raise RefusedError(Status.HB_DSP_RELAY_LOST, f"The relay at {self._board.name} died again.")
            back_ns = time.monotonic_ns()
            found.append((back_ns - sent_ns, fields[1] - (sent_ns + back_ns) // 2))
        return min(found)[1]

    # -- the thread

    def _run(
        self,
        on_message: Callable[[Message], None],
        on_lost: Callable[[int, str], None],
        watched: Mapping[Any, Callable[[], None]],
    ) -> None:
        status, why = int(Status.HB_DSP_RELAY_LOST), ""
        try:
            why = self._talk(on_message, watched)
        except RefusedError as error:
            status, why = int(error.status), str(error)
        except MalformedMessageError as error:
            why = f"The relay at {self._board.name} broke the protocol. {error}"
        except Exception as error:  # noqa: BLE001 - a caller must not wait for a thread that has failed
            import traceback

            traceback.print_exc()
            why = f"The connection to {self._board.name} failed; this is a bug in hbrt: {error!r}"
        finally:
            on_lost(status, why)
            self._end(BYE_LINGER_MS if self._is_closing else 0)

    def _talk(  # noqa: C901 - one loop
        self, on_message: Callable[[Message], None], watched: Mapping[Any, Callable[[], None]]
    ) -> str:
        """Send and receive until the end; returns why it came."""
        socket, monitor, bell = self._socket, self._connection.monitor, self._bell
        poller = zmq.Poller()
        for source in (socket, monitor, bell, *watched):
            poller.register(source, zmq.POLLIN)
        silent_seconds = 0.0
        while True:
            asleep_at = time.monotonic()
            ready = dict(poller.poll(int(BEAT_SECONDS * 1000)))
            # At most one beat of each sleep counts, since a stopped program has not listened.
            slept_seconds = min(time.monotonic() - asleep_at, BEAT_SECONDS)
            silent_seconds = 0.0 if socket in ready else silent_seconds + slept_seconds
            for source, on_word in watched.items():
                if source in ready:
                    on_word()
            if bell in ready:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(bell)
                while self.send_queue:
                    self._window.add(self.send_queue.popleft())
            with contextlib.suppress(zmq.Again):
                while True:
                    self._take_in(decode(socket.recv(_NOBLOCK), RELAY_SAYS), on_message)
            try:
                for frame in self._window.frames():
                    socket.send(frame, _NOBLOCK)
            except zmq.Again:
                return self._gone()
            if self._is_closing:
                return "This process has detached."
            if monitor in ready:
                return self._gone()
            if silent_seconds >= SILENT_BEATS * BEAT_SECONDS:
                return f"The relay at {self._board.name} has not responded for {SILENT_BEATS * BEAT_SECONDS:g} s."

    def _take_in(self, message: Message, on_message: Callable[[Message], None]) -> None:
        kind, fields = message
        if kind == RemoteFrame.TAKEN:
            self._window.on_taken(fields[0])
        elif kind in {RemoteFrame.GONE, RemoteFrame.REFUSED}:
            raise RefusedError(fields[0], f"The relay at {self._board.name} closed the connection: {fields[1]}")
        on_message(message)
        if kind in {RemoteFrame.DATA, RemoteFrame.REPLY} and fields[0]:
            self._socket.send(encode(RemoteFrame.ACK, fields[0]), _NOBLOCK)  # a relay waiting for room waits for this

    def _gone(self) -> str:
        return f"The relay at {self._board.name} died or is no longer reachable; connect again."

    def _end(self, linger_ms: int) -> None:
        self._connection.close(linger_ms)
        with self._bell_lock:
            os.close(self._bell)
            self._bell = -1
