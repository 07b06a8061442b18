"""Who answers somebody that looks at a board from another machine and is no client of it: status, ops, memory, log.

It has no lease and changes nothing. A thread of its own, so that a daemon that hangs keeps nobody else waiting.
"""

from __future__ import annotations

import contextlib
import queue
import secrets
from collections.abc import Callable

from dsp_server.gateway.handler import Attendant, bounded_reply
from dsp_server.gateway.send_queue import Outbox
from hbrt.board.log_file import bytes_since, tail
from hbrt.board.paths import BoardPaths
from hbrt.control.ask import ask
from hbrt.errors import BoardError
from hbrt.protocol.control import ControlReply, MalformedMessageError, decode_request
from hbrt.protocol.remote import LOOKS, MAX_LOG_BYTES, PROGRAM_SAYS, Kind, decode, encode
from hbrt.status import Status

DAEMON_SECONDS = 5.0  # for its answer: less than who looks waits for this one's
IDLE_SECONDS = 30.0  # without a question: there are few places
MOST_UNREAD = 4  # questions: each waits for the answer to the one before


class Looker(Attendant):
    """One that looks; arguments as of ``Attendant``."""

    def __init__(
        self, identity: bytes, name: str, paths: BoardPaths, outbox: Outbox, say: Callable[[str], None]
    ) -> None:
        super().__init__(identity, name, paths, outbox, say)
        self._inbox: queue.Queue[bytes] = queue.Queue(MOST_UNREAD)
        self._ticket = 0  # number of the last answer, which the next question shows: it was read

    def put(self, frame: bytes) -> bool:
        """A question; False when there are more than one may ask."""
        try:
            self._inbox.put_nowait(frame)
        except queue.Full:
            return False
        return True

    def stop(self) -> None:
        """Have it end soon."""
        self._is_over = True
        with contextlib.suppress(queue.Full):  # then it has something to wake up for
            self._inbox.put_nowait(b"")

    def _serve(self) -> None:
        """Answer, one question after the other."""
        try:
            frame = self._inbox.get(timeout=IDLE_SECONDS)
            while not self._is_over and self._on_frame(frame):
                frame = self._inbox.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            why = f"The relay keeps who looks and asks nothing for {IDLE_SECONDS:g} s; connect again."
            self._send(encode(Kind.GONE, int(Status.HB_DSP_RELAY_LOST), why))

    def _on_frame(self, raw: bytes) -> bool:
        """Answer a question; False when it was the last word."""
        kind, fields = decode(raw, PROGRAM_SAYS)
        if kind == Kind.BYE:
            return False
        if kind not in {Kind.LOOK, Kind.LOG}:
            raise MalformedMessageError(f"{Kind(kind).name} is for who said HELLO; this connection looks.")
        if fields[0] != self._ticket:
            raise MalformedMessageError(f"{Kind(kind).name} does not show the number of the last REPLY: read it first.")
        reply = self._look(fields[1]) if kind == Kind.LOOK else self._log(*fields[1:])
        self._ticket = 1 + secrets.randbits(63)
        self._send(encode(Kind.REPLY, self._ticket, bounded_reply(reply)))
        return True

    def _look(self, raw: bytes) -> ControlReply:
        request = decode_request(raw)
        if request.verb not in LOOKS:
            why = f"{request.verb} is not for who looks from another machine; call it on the board's own."
            return ControlReply(request.id, int(Status.HB_DSP_PERMISSION), why)
        try:
            return ControlReply(request.id, 0, "", ask(self._paths, request.verb, DAEMON_SECONDS, **request.args))
        except BoardError as error:
            return ControlReply(request.id, int(getattr(error, "status", Status.HB_DSP_NOT_RUNNING)), str(error))

    def _log(self, lines: int, since: int) -> ControlReply:
        try:
            log = self._paths.log
            part = tail(log, lines, MAX_LOG_BYTES) if since < 0 else bytes_since(log, since, MAX_LOG_BYTES)
        except OSError as error:
            why = f"The log of board {self._paths.name} cannot be read: {error.strerror}."
            return ControlReply(0, int(Status.HB_DSP_NOT_RUNNING), why)
        data = {"log": str(self._paths.log), "raw": part.raw, "next": part.end, "left_out": part.is_cut}
        return ControlReply(0, 0, "", data)
