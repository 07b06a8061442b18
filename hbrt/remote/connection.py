"""A connection to a relay on another machine: keys, the socket, and the first answers."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import zmq

from hbrt.board.descriptors import check_free
from hbrt.board.paths import RemoteBoard
from hbrt.errors import RefusedError
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.frames import Message
from hbrt.protocol.remote import HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS, MAX_FRAME_BYTES, RELAY_SAYS, RemoteFrame, decode
from hbrt.remote.keys import KeysError, ProgramKeys, default_directory, program_keys
from hbrt.remote.monitor import next_event
from hbrt.remote.probe import mechanism
from hbrt.settings import text
from hbrt.status import Status

ANSWER_SECONDS = 10.0
_MAX_DESCRIPTORS = 12  # 5 for a context, 2 for the socket, 3 for its monitor, and one for name lookup
_EVENTS = (
    int(zmq.EVENT_DISCONNECTED)
    | int(zmq.EVENT_HANDSHAKE_FAILED_AUTH)
    | int(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
    | int(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
)


class RelayConnection:
    """A connection to a relay, established or in progress. Not for several threads at once.

    Args:
        board: The relay's board.

    Raises:
        RefusedError: nothing listens there, or keys are missing; says which.
    """

    def __init__(self, board: RemoteBoard) -> None:
        self._board = board
        self._keys = keys_for(board)
        self._was_heard = False  # and so was accepted
        check_free(_MAX_DESCRIPTORS, "the connection to the relay")
        self._context: zmq.Context[Any] = zmq.Context(io_threads=1)
        self.socket: zmq.Socket[bytes] = self._context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.maxmsgsize = MAX_FRAME_BYTES
        self.socket.sndhwm = self.socket.rcvhwm = 0  # both sides' windows bound the data in flight
        self.socket.reconnect_ivl = -1  # a new connection would be a new program to the relay
        self.socket.heartbeat_ivl, self.socket.heartbeat_timeout = HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS
        self.socket.ipv6 = int(":" in board.host)
        if self._keys is not None:
            self.socket.curve_publickey, self.socket.curve_secretkey = self._keys.own
            self.socket.curve_serverkey = self._keys.server
        self.monitor = self.socket.get_monitor_socket(_EVENTS)
        try:
            self.socket.connect(board.endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise RefusedError(
                Status.HB_DSP_NOT_RUNNING, f"Cannot reach the {board.server}: {zmq.strerror(error.errno or 0)}."
            ) from None

    def send(self, frame: bytes) -> None:
        """Send a frame. If the relay has ended, ``recv`` raises."""
        with contextlib.suppress(zmq.Again):  # without a connection ZeroMQ would wait forever for another
            self.socket.send(frame, int(zmq.NOBLOCK))

    def recv(self, seconds: float) -> Message:
        """Receive the next message. Skips heartbeats, which do not extend the time limit.

        Raises:
            RefusedError: none came (HB_DSP_TIMEOUT), the relay is gone or sent garbage (HB_DSP_RELAY_LOST), or rejects
                these keys (HB_DSP_PERMISSION); says why.
        """
        poller = zmq.Poller()
        poller.register(self.socket, zmq.POLLIN)
        poller.register(self.monitor, zmq.POLLIN)
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            ready = dict(poller.poll(int(left * 1000))) if left > 0 else {}
            if self.socket not in ready:
                event = next_event(self.monitor)[0] if self.monitor in ready else None
                raise RefusedError(*self._why_not_in(event, seconds))
            try:
                message = decode(self.socket.recv(), RELAY_SAYS)
            except MalformedMessageError as error:
                raise self.unreadable(error) from None
            self._was_heard = True
            if message.kind != RemoteFrame.BEAT:
                return message

    def unreadable(self, error: MalformedMessageError) -> RefusedError:
        """Return the error for a relay message that violates the protocol."""
        where = f"the {self._board.server}"
        return RefusedError(Status.HB_DSP_RELAY_LOST, f"Invalid message from {where}. {error}")

    def _why_not_in(self, event: int | None, seconds: float) -> tuple[int, str]:
        where = f"The {self._board.server}"
        if event is None:
            return Status.HB_DSP_TIMEOUT, f"{where} did not answer within {seconds:g} s."
        if self._keys is None or self._was_heard:
            return Status.HB_DSP_RELAY_LOST, f"{where} closed the connection."
        if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            return Status.HB_DSP_PERMISSION, (
                f"{where} does not know this program's key {self._keys.own.public.decode()} ({default_directory()}): "
                "put it into the clients/ directory of the relay's keys."
            )
        return Status.HB_DSP_PERMISSION, (
            f"{where} closed the connection: the server.key in {default_directory()} does not belong to that relay; "
            "copy it from the relay's keys."
        )

    def close(self, linger_ms: int = 0) -> None:
        """Close the connection; unsent frames get this many milliseconds."""
        self.socket.disable_monitor()
        self.monitor.close(0)
        self.socket.close(linger_ms)
        self._context.term()


def keys_for(board: RemoteBoard) -> ProgramKeys | None:
    """Return the keys to use with the relay at an address, None for a relay without keys.

    Raises:
        RefusedError: it requires keys and there are none, or it has none and some were requested.
    """
    wants = mechanism(board)
    directory, is_named = default_directory(), bool(text("HBRT_KEYS"))
    if wants == "CURVE":
        try:
            return program_keys(directory)
        except KeysError as error:
            raise RefusedError(Status.HB_DSP_PERMISSION, f"The {board.server} requires a key. {error}") from None
    if is_named:
        raise RefusedError(
            Status.HB_DSP_PERMISSION,
            f"The {board.server} has no keys, but HBRT_KEYS requires them: start it with --keys, or unset HBRT_KEYS.",
        )
    return None
