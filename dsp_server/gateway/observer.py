"""Answers an observer on another machine: status, ops, memory, log, trace.

An observer has no lease and changes nothing. It has a thread of its own, so that a daemon that hangs does not delay
other connections.
"""

from __future__ import annotations

import contextlib
import queue
import secrets
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from dsp_server.gateway.handler import ConnectionHandler, SendQueue, bounded_reply
from hbrt.board.log_file import bytes_since, tail
from hbrt.board.paths import BoardPaths
from hbrt.control.ask import ask
from hbrt.errors import BoardError
from hbrt.protocol.control import ControlReply, MalformedMessageError, decode_request
from hbrt.protocol.remote import LOOKS, MAX_LOG_BYTES, PROGRAM_SAYS, TRACE_BYTES, RemoteFrame, decode, encode
from hbrt.status import Status

DAEMON_SECONDS = 5.0  # how long the daemon may take: less than the observer waits for the gateway
IDLE_SECONDS = 30.0  # without a question: the number of observers is limited
MAX_UNREAD = 4  # number of questions: an observer waits for each answer before asking again


class Observer(ConnectionHandler):
    """Serves one observer; takes the arguments of ``ConnectionHandler``."""

    ROLE = "observer"

    def __init__(
        self, identity: bytes, name: str, paths: BoardPaths, send_queue: SendQueue, log: Callable[[str], None]
    ) -> None:
        super().__init__(identity, name, paths, send_queue, log)
        self._inbox: queue.Queue[bytes] = queue.Queue(MAX_UNREAD)
        self._trace: dict[str, Path] = {}  # files that this observer may read, by name
        self._ticket = 0  # number of the last answer; the next question repeats it to show that it was read

    def put(self, frame: bytes) -> bool:
        """Queue a question; False if MAX_UNREAD are queued already."""
        try:
            self._inbox.put_nowait(frame)
        except queue.Full:
            return False
        return True

    def stop(self) -> None:
        """Make the handler end soon."""
        self._is_over = True
        with contextlib.suppress(queue.Full):  # a full queue wakes the thread too
            self._inbox.put_nowait(b"")

    def _serve(self) -> None:
        try:
            frame = self._inbox.get(timeout=IDLE_SECONDS)
            while not self._is_over and self._on_frame(frame):
                frame = self._inbox.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            why = f"The relay disconnects observers that are idle for {IDLE_SECONDS:g} s; connect again."
            self._send(encode(RemoteFrame.GONE, int(Status.HB_DSP_RELAY_LOST), why))

    def _on_frame(self, raw: bytes) -> bool:
        """Answer a question; False if the observer sends BYE."""
        kind, fields = decode(raw, PROGRAM_SAYS)
        if kind == RemoteFrame.BYE:
            return False
        if kind not in {RemoteFrame.LOOK, RemoteFrame.LOG, RemoteFrame.TRACE}:
            raise MalformedMessageError(f"{RemoteFrame(kind).name} needs a connection that began with HELLO.")
        if fields[0] != self._ticket:
            raise MalformedMessageError(
                f"{RemoteFrame(kind).name} does not have the number of the last REPLY: read that first."
            )
        match kind:
            case RemoteFrame.LOOK:
                reply = self._ask(fields[1])
            case RemoteFrame.LOG:
                reply = self._read_log(*fields[1:])
            case _:
                reply = self._read_trace(*fields[1:])
        self._ticket = 1 + secrets.randbits(63)
        self._send(encode(RemoteFrame.REPLY, self._ticket, bounded_reply(reply)))
        return True

    def _ask(self, raw: bytes) -> ControlReply:
        request = decode_request(raw)
        if request.verb not in LOOKS:
            why = f"{request.verb} is not available to observers on another machine; use it on the board's own."
            return ControlReply(request.id, int(Status.HB_DSP_PERMISSION), why)
        try:
            return ControlReply(request.id, 0, "", ask(self._paths, request.verb, DAEMON_SECONDS, **request.args))
        except BoardError as error:
            return ControlReply(request.id, int(getattr(error, "status", Status.HB_DSP_NOT_RUNNING)), str(error))

    def _read_log(self, lines: int, since: int) -> ControlReply:
        try:
            log = self._paths.log
            part = tail(log, lines, MAX_LOG_BYTES) if since < 0 else bytes_since(log, since, MAX_LOG_BYTES)
        except OSError as error:
            why = f"Cannot read the log of board {self._paths.name}: {error.strerror}."
            return ControlReply(0, int(Status.HB_DSP_NOT_RUNNING), why)
        data = {"log": str(self._paths.log), "raw": part.raw, "next": part.end, "left_out": part.is_cut}
        return ControlReply(0, 0, "", data)

    def _read_trace(self, file: str, at: int) -> ControlReply:
        """Return the trace's file names, or part of a file; and the time here."""
        try:
            if not file:
                found = ask(self._paths, "trace", DAEMON_SECONDS, do="flush", events=0)
                self._trace = {path.name: path for path in Path(found["directory"]).iterdir() if path.is_file()}
                sizes = {name: path.stat().st_size for name, path in self._trace.items()}
                data = {"files": sizes, "is_on": found["was_on"]}
            else:
                with self._trace[file].open("rb") as source:
                    source.seek(at)
                    data = {"raw": zlib.compress(source.read(TRACE_BYTES), 1)}
        except BoardError as error:
            return ControlReply(0, int(getattr(error, "status", Status.HB_DSP_NOT_RUNNING)), str(error))
        except (OSError, KeyError):
            why = f"Cannot read the trace of board {self._paths.name}: it has ended, or another one has begun."
            return ControlReply(0, int(Status.HB_DSP_NOT_RUNNING), why)
        return ControlReply(0, 0, "", {**data, "now_ns": time.monotonic_ns()})
