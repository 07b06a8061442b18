"""What serves one connection of the gate: a thread that takes its frames, answers them, and lets it go."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from dsp_server.gateway.send_queue import Outbox, printable
from hbrt.board.paths import BoardPaths
from hbrt.errors import BoardError
from hbrt.protocol.control import ControlReply, MalformedMessageError, encode_reply
from hbrt.protocol.remote import MAX_REPLY_BYTES, Kind, encode
from hbrt.settings import BadSettingError
from hbrt.status import Status


class Attendant(threading.Thread, ABC):
    """Serves one connection.

    Args:
        identity: Of the connection, on the gate's socket.
        name: Who is there: what the board and the log call it.
        paths: The board.
        outbox: Takes what it has to say.
        say: Gets a sentence for the log.
    """

    def __init__(
        self, identity: bytes, name: str, paths: BoardPaths, outbox: Outbox, say: Callable[[str], None]
    ) -> None:
        super().__init__(name=f"hbrt-{type(self).__name__.lower()}-{name}", daemon=True)
        self.identity = identity
        self.program = name
        self._paths = paths
        self._outbox = outbox
        self._say = say
        self._is_over = False
        self._blame = threading.Lock()

    # -- for the gate's thread

    @abstractmethod
    def put(self, frame: bytes) -> bool:
        """A frame that came; False when more have come than may."""

    @abstractmethod
    def stop(self) -> None:
        """Have it let its connection go soon."""

    def blame(self) -> bool:
        """Whether the caller is the first to let this one go for a mistake: that is told and logged once."""
        return self._blame.acquire(blocking=False)

    def start(self) -> None:
        """Begin.

        Raises:
            RuntimeError: this process has no thread left; nothing stays open.
        """
        try:
            super().start()
        except RuntimeError:
            self._close()
            raise

    # -- its own thread

    def run(self) -> None:
        """Serve, and let go: what is wrong costs this connection alone, and is told."""
        try:
            self._serve()
        except (BoardError, BadSettingError) as error:
            self._send(encode(Kind.REFUSED, int(Status.HB_DSP_NOT_RUNNING), str(error)))
        except MalformedMessageError as error:
            if not self.blame():
                return
            self._say(printable(f"The relay lets {self.program} go, which broke the protocol: {error}"))
            self._send(encode(Kind.GONE, int(Status.HB_DSP_INVALID_ARGUMENT), f"The relay was sent nonsense: {error}"))
        except Exception:  # noqa: BLE001 - a defect here must not end the relay
            import traceback

            what = type(self).__name__.lower()
            self._say(f"The {what} of {self.program} failed, which is a defect of it:\n{traceback.format_exc()}")
            self._send(encode(Kind.GONE, int(Status.HB_DSP_RELAY_LOST), "The relay failed; its log has the traceback."))
        finally:
            self._close()
            self._outbox.part(self.identity)

    @abstractmethod
    def _serve(self) -> None:
        """Answer until the end."""

    def _close(self) -> None:
        """Close what it has opened."""

    def _send(self, frame: bytes) -> None:
        self._outbox.put(self.identity, frame)


def bounded_reply(reply: ControlReply) -> bytes:
    """Bytes of a reply, or of the refusal of one that is larger than MAX_REPLY_BYTES."""
    raw = encode_reply(reply)
    if len(raw) <= MAX_REPLY_BYTES:
        return raw
    why = f"The answer has {len(raw)} bytes; {MAX_REPLY_BYTES} travel to another machine at most. Ask for less."
    return encode_reply(ControlReply(reply.id, int(Status.HB_SYS_INVALID_ARGUMENT), why))
