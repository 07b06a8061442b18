"""Requests to a board on another machine, through its relay and without a lease, for the verbs."""

from __future__ import annotations

import itertools
import time
import zlib
from pathlib import Path
from typing import Any, NamedTuple, Self

from hbrt.board.paths import RemoteBoard
from hbrt.errors import RefusedError, WrongUseError
from hbrt.protocol.control import ControlReply, ControlRequest, MalformedMessageError, decode_reply, encode_request
from hbrt.protocol.remote import TRACE_BYTES, RemoteFrame, encode
from hbrt.remote.connection import ANSWER_SECONDS, RelayConnection
from hbrt.status import Status


class LogPart(NamedTuple):
    """A piece of a board's log.

    Args:
        path: Path of the log on the board's machine.
        raw: Its bytes.
        end: The ``since`` for what comes next.
        is_cut: Whether older lines were dropped because they exceed one answer.
    """

    path: str
    raw: bytes
    end: int
    is_cut: bool


class FetchedTrace(NamedTuple):
    """Facts about a trace whose files were fetched.

    Args:
        is_on: Whether the board is traced; otherwise the files only have the history of its tasks.
        ahead_ns: How far CLOCK_MONOTONIC of the board's machine is ahead of this one's.
        error_ns: Possible error of that: half of the shortest round trip.
    """

    is_on: bool
    ahead_ns: int
    error_ns: int


class Observer:
    """A read-only connection to a relay's board; a context manager. One thread at a time.

    Args:
        board: The relay's board.

    Raises:
        WrongUseError: a farm's address does not name a board.
        RefusedError: nothing listens there (HB_DSP_NOT_RUNNING), or keys are missing (HB_DSP_PERMISSION).
    """

    def __init__(self, board: RemoteBoard) -> None:
        if board.is_leased:
            raise WrongUseError(
                f"{board.name} leases boards to programs but is not a board: 'hbrt farm status' lists its boards."
            )
        self._board = board
        self._ticket = 0
        self._numbers = itertools.count(1)
        self._connection = RelayConnection(board)

    def request(self, verb: str, timeout_s: float = ANSWER_SECONDS, **args: Any) -> Any:
        """Request ``status``, ``ops`` or ``mem``; like ``hbrt.control.ask.Daemon.request``.

        Raises:
            RefusedError: the relay or the daemon refused, is gone or took too long (HB_DSP_TIMEOUT).
        """
        raw = encode_request(ControlRequest(next(self._numbers), verb, args))
        return self._ask(encode(RemoteFrame.LOOK, self._ticket, raw), timeout_s, verb)

    def log(self, lines: int, since: int = -1) -> LogPart:
        """Return the last ``lines`` lines of the log, or what follows the offset ``since``.

        Raises:
            RefusedError: as for ``request``.
        """
        data = self._ask(encode(RemoteFrame.LOG, self._ticket, lines, since), ANSWER_SECONDS, "log")
        try:
            return LogPart(data["log"], bytes(data["raw"]), int(data["next"]), bool(data["left_out"]))
        except (KeyError, TypeError, ValueError):
            raise RefusedError(
                Status.HB_DSP_RELAY_LOST, f"The relay at {self._board.name} sent something that is not part of a log."
            ) from None

    def fetch_trace(self, directory: Path) -> FetchedTrace:
        """Copy the files of the board's trace into a directory of this machine.

        Raises:
            RefusedError: as for ``request``. OSError: they cannot be written.
        """
        ways: list[tuple[int, int]] = []  # each round trip's time, and the clock difference

        def part(file: str, at: int) -> Any:
            asked_ns = time.monotonic_ns()
            data = self._ask(encode(RemoteFrame.TRACE, self._ticket, file, at), ANSWER_SECONDS, "trace")
            took_ns = time.monotonic_ns() - asked_ns
            ways.append((took_ns, data["now_ns"] - asked_ns - took_ns // 2))
            return data

        try:
            listing = part("", 0)
            for name, size in listing["files"].items():
                with (directory / Path(name).name).open("xb") as file:
                    for at in range(0, size, TRACE_BYTES):
                        raw = zlib.decompressobj().decompress(part(name, at)["raw"], TRACE_BYTES)
                        if raw.strip(b"\0"):  # the rest stays a hole
                            file.seek(at)
                            file.write(raw)
                    file.truncate(size)
            took_ns, ahead_ns = min(ways)
            return FetchedTrace(bool(listing["is_on"]), ahead_ns, took_ns // 2)
        except (KeyError, TypeError, ValueError, AttributeError, zlib.error):
            raise RefusedError(
                Status.HB_DSP_RELAY_LOST, f"The relay at {self._board.name} sent something that is not part of a trace."
            ) from None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, frame: bytes, timeout_s: float, what: str) -> Any:
        reply = self._reply_to(frame, timeout_s, what)
        if reply.status:
            raise RefusedError(reply.status, reply.text)
        return reply.data

    def _reply_to(self, frame: bytes, timeout_s: float, what: str) -> ControlReply:
        where = f"The relay at {self._board.name}"
        self._connection.send(frame)
        kind, fields = self._connection.recv(timeout_s)
        if kind == RemoteFrame.REPLY:
            self._ticket = fields[0]
            return self._decoded(fields[1])
        if kind in {RemoteFrame.REFUSED, RemoteFrame.GONE}:
            raise RefusedError(fields[0], f"{where} refused {what!r}: {fields[1]}")
        raise RefusedError(Status.HB_DSP_RELAY_LOST, f"{where} answered {what!r} with {RemoteFrame(kind).name}.")

    def _decoded(self, raw: bytes) -> ControlReply:
        try:
            return decode_reply(raw)
        except MalformedMessageError as error:
            raise self._connection.unreadable(error) from None
