"""The thread that serves one gateway connection: takes frames, answers them, and ends the connection.

It queues what it sends, because only the gateway's thread may use the socket.
"""

from __future__ import annotations

import contextlib
import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

from hbrt.board.paths import BoardPaths
from hbrt.borders.printable import printable
from hbrt.errors import BoardError
from hbrt.protocol.control import ControlReply, MalformedMessageError, encode_reply
from hbrt.protocol.remote import MAX_REPLY_BYTES, RemoteFrame, encode
from hbrt.settings import BadSettingError
from hbrt.status import Status


class ConnectionHandler(threading.Thread, ABC):
    """Serves one connection.

    Args:
        identity: The connection's identity on the gateway's socket.
        name: The program's name on the board and in the log.
        paths: The board.
        send_queue: Receives the frames that this handler sends.
        log: Writes a sentence to the log.
    """

    ROLE: str  # name of this kind of handler in the log

    def __init__(
        self, identity: bytes, name: str, paths: BoardPaths, send_queue: SendQueue, log: Callable[[str], None]
    ) -> None:
        super().__init__(name=f"hbrt-{self.ROLE.replace(' ', '-')}-{name}", daemon=True)
        self.identity = identity
        self.program = name
        self._paths = paths
        self._send_queue = send_queue
        self._log = log
        self._is_over = False
        self._violation = threading.Lock()

    # -- the gateway's thread calls these

    @abstractmethod
    def put(self, frame: bytes) -> bool:
        """Queue a received frame; False if the queue is full."""

    @abstractmethod
    def stop(self) -> None:
        """Make the handler end soon."""

    def claim_violation(self) -> bool:
        """Whether the caller is the first to detect that the program broke the protocol; only the first reports it."""
        return self._violation.acquire(blocking=False)

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: this process is out of threads; nothing stays open.
        """
        try:
            super().start()
        except RuntimeError:
            self._close()
            raise

    # -- its own thread

    def run(self) -> None:
        """Serve until the end. An error ends only this connection, and is reported to its program."""
        try:
            self._serve()
        except (BoardError, BadSettingError) as error:
            self._send(encode(RemoteFrame.REFUSED, int(Status.HB_DSP_NOT_RUNNING), str(error)))
        except MalformedMessageError as error:
            if not self.claim_violation():
                return
            self._log(printable(f"The relay disconnects {self.program}, which broke the protocol: {error}"))
            why = f"The relay received a malformed message: {error}"
            self._send(encode(RemoteFrame.GONE, int(Status.HB_DSP_INVALID_ARGUMENT), why))
        except Exception:  # noqa: BLE001 - a bug here must not end the relay
            import traceback

            self._log(f"The {self.ROLE} of {self.program} failed; this is a bug in hbrt:\n{traceback.format_exc()}")
            self._send(
                encode(RemoteFrame.GONE, int(Status.HB_DSP_RELAY_LOST), "The relay failed; its log has the traceback.")
            )
        finally:
            self._close()
            self._send_queue.disconnect(self.identity)

    @abstractmethod
    def _serve(self) -> None:
        """Answer frames until the end."""

    def _close(self) -> None:
        """Close what the constructor opened."""

    def _send(self, frame: bytes) -> None:
        self._send_queue.put(self.identity, frame)


def bounded_reply(reply: ControlReply) -> bytes:
    """Pack a reply; one larger than MAX_REPLY_BYTES becomes a refusal."""
    raw = encode_reply(reply)
    if len(raw) <= MAX_REPLY_BYTES:
        return raw
    why = f"The answer has {len(raw)} bytes; the limit to another machine is {MAX_REPLY_BYTES}. Ask for less."
    return encode_reply(ControlReply(reply.id, int(Status.HB_SYS_INVALID_ARGUMENT), why))


class SendQueue:
    """Frames for programs, from any thread; its descriptor is readable while it has any."""

    def __init__(self) -> None:
        self._frames: deque[tuple[bytes, bytes | None]] = deque()
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def put(self, identity: bytes, frame: bytes) -> None:
        """Queue a frame for a program."""
        self._put(identity, frame)

    def disconnect(self, identity: bytes) -> None:
        """Disconnect a program once its queued frames have been sent."""
        self._put(identity, None)

    def _put(self, identity: bytes, frame: bytes | None) -> None:
        self._frames.append((identity, frame))
        os.eventfd_write(self.fd, 1)

    def take_all(self) -> list[tuple[bytes, bytes | None]]:
        """Remove and return all frames and their identities; None in place of a frame disconnects the program."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.fd)
        taken = []
        while self._frames:
            taken.append(self._frames.popleft())
        return taken

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)
