"""A program that speaks ZeroMQ's protocol (ZMTP 3.0, without keys) by itself: it need not read, or behave."""

from __future__ import annotations

import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from hbrt.board.paths import RemoteBoard, board_ref
from hbrt.protocol.frames import Message
from hbrt.protocol.remote import RELAY_SAYS, RemoteFrame, decode
from tests.limits import PATIENCE_S

_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
_COMMAND, _LARGE = 4, 2


class RawPeer:
    """A connection to a relay or a daemon, by bytes; a context manager.

    Args:
        address: ``tcp://HOST:PORT``, or the file of a socket of this machine.
        identity: Routing id to bring along.
        window_bytes: Room of the socket for what is not read; 0 for the kernel's choice.
        kind: What kind of ZeroMQ socket it says that it is.
    """

    def __init__(
        self, address: str | Path, identity: bytes = b"", window_bytes: int = 0, kind: bytes = b"DEALER"
    ) -> None:
        self.socket = socket.socket(socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET)
        if window_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window_bytes)
        self.socket.settimeout(PATIENCE_S)
        if isinstance(address, Path):
            self.socket.connect(str(address))
        else:
            board = board_ref(address)
            assert isinstance(board, RemoteBoard)
            self.socket.connect((board.host, board.port))
        self.socket.sendall(_GREETING)
        self._take(64)
        ready = b"\x05READY" + _property(b"Socket-Type", kind) + _property(b"Identity", identity)
        self.socket.sendall(_frame(ready, _COMMAND))
        flags, body = self.hear_frame()
        assert flags & _COMMAND
        assert body.startswith(b"\x05READY")

    def say(self, *frames: bytes) -> None:
        """Send messages of one frame each."""
        self.socket.sendall(b"".join(_frame(frame) for frame in frames))

    def say_bytes(self, raw: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(raw)

    def hear_frame(self) -> tuple[int, bytes]:
        """Flags and body of the next frame, or command."""
        (flags,) = self._take(1)
        size = int.from_bytes(self._take(8 if flags & _LARGE else 1), "big")
        return flags, self._take(size)

    def hear(self) -> Message:
        """The next message that is not a beat; answers signs of life that are asked for."""
        while True:
            flags, body = self.hear_frame()
            if flags & _COMMAND:
                if body.startswith(b"\x04PING"):
                    self.pong(body[7:])
            elif (message := decode(body, RELAY_SAYS)).kind != RemoteFrame.BEAT:
                return message

    def pong(self, context: bytes = b"") -> None:
        """Give a sign of life, asked for or not."""
        self.socket.sendall(_frame(b"\x04PONG" + context, _COMMAND))

    def is_ended(self) -> bool:
        """Whether the relay ends the connection; what it still says is read."""
        try:
            while True:
                self.hear_frame()
        except (ConnectionError, EOFError):
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def _take(self, count: int) -> bytes:
        taken = bytearray()
        while len(taken) < count:
            more = self.socket.recv(count - len(taken))
            if not more:
                raise EOFError
            taken += more
        return bytes(taken)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _property(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value


def _frame(body: bytes, flags: int = 0) -> bytes:
    if len(body) > 255:
        return bytes([flags | _LARGE]) + len(body).to_bytes(8, "big") + body
    return bytes([flags, len(body)]) + body
