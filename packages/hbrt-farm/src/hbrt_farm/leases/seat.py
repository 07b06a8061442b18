"""One place for a board in a farm: a thread keeps a fresh board there, and checks whether it is alive and in use."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from hbrt.errors import BoardError, StatusError
from hbrt.settings import BadSettingError
from hbrt_farm.leases.hosted_board import HostedBoard

LOOK_SECONDS = 0.5
RETRY_SECONDS = (1.0, 5.0, 30.0)


class State(StrEnum):
    """State of a seat."""

    STARTING = "starting"
    FREE = "free"
    LEASED = "leased"
    FAILED = "failed"


class Event(NamedTuple):
    """What happened to a seat's board: its new state, FREE, STARTING (it was lost) or FAILED, and the reason."""

    seat: int
    life: int
    state: State
    why: str


class Seat:
    """A seat.

    Args:
        number: Its number.
        pool: Name of its pool.
        make: Starts a board.
        idle_seconds: A lessee whose board is idle for this long loses it; 0 for no limit.
        tell: Receives the events; called from any thread.
    """

    def __init__(
        self,
        number: int,
        pool: str,
        make: Callable[[], HostedBoard],
        idle_seconds: float,
        tell: Callable[[Event], None],
    ) -> None:
        self.number, self.pool = number, pool
        self.board: HostedBoard | None = None
        self.life = 0  # of its boards
        self.state, self.since, self.why = State.STARTING, time.monotonic(), ""
        self._make, self._idle_seconds, self._tell = make, idle_seconds, tell
        self._is_over = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"hbrt-seat-{number}", daemon=True)
        self._thread.start()

    # -- called by the server's thread

    def lease(self) -> None:
        """The board was leased."""
        self._set(State.LEASED)
        self._wake.set()

    def renew(self) -> None:
        """Stop the board, whatever it is doing, and start another."""
        self.life += 1
        self._set(State.STARTING)
        self._wake.set()

    def note(self, event: Event) -> None:
        """Apply an event from the thread if it concerns this board, not an earlier one."""
        if event.state is State.STARTING:
            self.renew()
        else:
            self._set(event.state, event.why)

    def stop(self) -> None:
        """Begin to end the board."""
        self._is_over.set()
        self._wake.set()

    def join(self, seconds: float) -> None:
        """Wait for the end of the board, after ``stop``."""
        self._thread.join(seconds)

    def _set(self, state: State, why: str = "") -> None:
        self.state, self.since, self.why = state, time.monotonic(), why

    # -- the seat's thread

    def _run(self) -> None:
        failures = 0
        while not self._is_over.is_set():
            self._wake.clear()
            life = self.life
            try:
                board = self._make()
            except (BoardError, StatusError, BadSettingError, OSError) as error:
                self._tell(Event(self.number, life, State.FAILED, str(error)))
                self._is_over.wait(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                failures += 1
                continue
            failures = 0
            self.board = board
            try:
                self._tell(Event(self.number, life, State.FREE, ""))
                why = self._watch(board, life)
                if why:
                    self._tell(Event(self.number, life, State.STARTING, why))
                    while self.life == life and not self._is_over.is_set():  # the lessee is notified first
                        self._wake.wait(LOOK_SECONDS)
            finally:
                self.board = None
                board.end()

    def _watch(self, board: HostedBoard, life: int) -> str:
        """Wait until the board is no longer used; returns why the board itself ended, or an empty text."""
        used_at, before = time.monotonic(), None
        while self.life == life and not self._is_over.is_set():
            self._wake.wait(LOOK_SECONDS)
            self._wake.clear()
            if not board.is_alive():
                return "Its daemon has ended."
            if not self._idle_seconds or self.state is not State.LEASED:
                used_at, before = time.monotonic(), None
                continue
            try:
                now = board.activity()
            except (BoardError, StatusError):  # it hangs, or has ended: the next check tells
                continue
            if now != before or now.under_way:
                used_at, before = time.monotonic(), now
            elif time.monotonic() - used_at >= self._idle_seconds:
                return f"No task arrived for {self._idle_seconds:g} s, the farm's --idle-timeout."
        return ""
