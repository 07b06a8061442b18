"""A farm's lease: a board for the life of a program, held by a connection that stays open."""

from __future__ import annotations

import os
import pwd
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hbrt import settings
from hbrt.board.paths import RemoteBoard
from hbrt.errors import RefusedError
from hbrt.protocol.control import MalformedMessageError, decode_reply
from hbrt.protocol.remote import PLACE_SECONDS, RemoteFrame, encode
from hbrt.remote.connection import ANSWER_SECONDS, RelayConnection
from hbrt.status import Status

SILENT_SECONDS = 6 * PLACE_SECONDS
SAY_SECONDS = 10.0  # between two messages about a changing place
LAST_WORD_SECONDS = 2.0  # longer than a farm needs to detect that a board has ended
_AT_ONCE_SECONDS = 0.001


class Lease:
    """A farm's board; waits in the farm's queue until one is free. Only ``hear`` is thread-safe.

    Args:
        farm: Its address.
        program: Name of this program.
        say: Receives a message about the place in the queue: initially, and when it changes, at most every SAY_SECONDS.

    Raises:
        RefusedError: no farm answers, it refuses this program, has no such pool, or has no free board within
            HBRT_LEASE_WAIT_S. BadSettingError: invalid setting.
    """

    def __init__(self, farm: RemoteBoard, program: str, say: Callable[[str], None]) -> None:
        self._farm = farm
        self._lock = threading.Lock()
        self._ended: tuple[int, str] | None = None
        self._connection = RelayConnection(farm)
        try:
            self.board = self._await_board(program, say)
        except BaseException:
            self._connection.close()
            raise

    def _await_board(self, program: str, say: Callable[[str], None]) -> RemoteBoard:
        patience = settings.integer("HBRT_LEASE_WAIT_S")
        deadline = time.monotonic() + patience if patience else float("inf")
        self._connection.send(encode(RemoteFrame.LEASE, program[:64], os.getpid(), _user(), self._farm.pool))
        said, said_at, place = 0, -SAY_SECONDS, 0
        while True:
            left = deadline - time.monotonic()
            try:
                kind, fields = self._connection.recv(max(0.0, min(SILENT_SECONDS, left)))
            except RefusedError as error:
                if error.status != Status.HB_DSP_TIMEOUT or left > SILENT_SECONDS:
                    raise
                where = f"place {place} in its queue" if place else "it has not answered"
                raise RefusedError(
                    Status.HB_DSP_TIMEOUT,
                    f"The {self._farm.server} had no free board within {patience} s (HBRT_LEASE_WAIT_S): "
                    f"{where}; 'hbrt farm status' shows who has them.",
                ) from None
            if kind == RemoteFrame.GRANTED:
                host, port = self._farm.host, fields[0]
                return RemoteBoard(Path(f"tcp:/{f'[{host}]' if ':' in host else host}:{port}"))
            if kind in {RemoteFrame.GONE, RemoteFrame.REFUSED}:
                raise RefusedError(fields[0], f"The {self._farm.server} refused this program: {fields[1]}")
            if kind != RemoteFrame.PLACE:
                raise RefusedError(Status.HB_DSP_RELAY_LOST, f"The {self._farm.server} said {RemoteFrame(kind).name}.")
            place = fields[0]
            if place != said and time.monotonic() >= said_at + SAY_SECONDS:
                say(f"Waiting for a board of {self._farm.name}: place {place} in its queue; {fields[1]}.")
                said, said_at = place, time.monotonic()

    @property
    def sources(self) -> tuple[Any, ...]:
        """Descriptor that is readable when ``hear`` has something to read."""
        return self._connection.socket, self._connection.monitor

    def hear(self, seconds: float = _AT_ONCE_SECONDS) -> None:
        """Check whether the farm ends the lease; any thread.

        Args:
            seconds: How long to wait for its message; otherwise only received ones count.

        Raises:
            RefusedError: it does, or is gone itself; says why, every time.
        """
        with self._lock:
            if self._ended is None and not self._connection.socket.closed:
                self._ended = self._listen(seconds)
        if self._ended is not None:
            raise RefusedError(*self._ended)

    def _listen(self, seconds: float) -> tuple[int, str] | None:
        try:
            kind, fields = self._connection.recv(seconds)
        except RefusedError as error:
            if error.status == Status.HB_DSP_TIMEOUT:
                return None
            return error.status, f"{error} Its board is released with the connection; connect again."
        if kind in {RemoteFrame.GONE, RemoteFrame.REFUSED}:
            return fields[0], f"The {self._farm.server} ended this program's lease. {fields[1]}"
        return None

    def close(self) -> None:
        """Return the board to the farm."""
        with self._lock:
            if not self._connection.socket.closed:
                self._connection.close()


def status_of(farm: RemoteBoard) -> Any:
    """Return a farm's boards, lessees and queue as plain data.

    Raises:
        RefusedError: no farm answers, or it refuses this program.
    """
    connection = RelayConnection(farm)
    try:
        connection.send(encode(RemoteFrame.QUEUE))
        kind, fields = connection.recv(ANSWER_SECONDS)
        if kind != RemoteFrame.REPLY:
            why = fields[1] if kind in {RemoteFrame.GONE, RemoteFrame.REFUSED} else f"It said {RemoteFrame(kind).name}."
            raise RefusedError(Status.HB_DSP_INVALID_ARGUMENT, f"The {farm.server} does not list its boards. {why}")
        try:
            return decode_reply(fields[1]).data
        except MalformedMessageError as error:
            raise connection.unreadable(error) from None
    finally:
        connection.close()


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name[:64]
    except KeyError:
        return str(os.getuid())
