"""What Ray runs in its own process: a private board, and a function called with it for one item after another."""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from hbrt.borders import guests
from hbrt.errors import BoardError
from hbrt_farm.result import Compared, Outcome, Status, digests_of

if TYPE_CHECKING:
    from arm_client.client import Board


_OURS = tuple(guests.folders())


class BoardChoice(NamedTuple):
    """How each board of a farm is created: as for ``private_board``; ``environment`` has the farm's settings."""

    image: str | None = None
    cores: int | None = None
    ddr_bytes: int | None = None
    check: str | None = None
    profile: str = ""
    environment: Mapping[str, str] = {}


class Died(NamedTuple):
    """The result of an item whose board has died, but not its process."""

    why: str


class Worker:
    """A board, its process, and the function that processes items."""

    def __init__(self, choice: BoardChoice) -> None:
        os.environ.pop("PYTHONBREAKPOINT", None)  # Ray's, which ops of the board cannot reach
        os.environ.update(choice.environment)
        self._choice = choice
        self._board: Board | None = None
        self._stack = ExitStack()
        self._function: Callable[[Any, Any], Any] | None = None
        self._cycles = 0

    def begin(self, function: Callable[[Any, Any], Any]) -> str:
        """Accept a function and start a board; returns why the board cannot be started, or an empty text."""
        self._close_function()
        self._function = function
        try:
            self._have_board()
        except BoardError as error:
            return str(error)
        return ""

    def run(self, item: Any) -> Outcome | Died:
        """Call the function with the board and an item."""
        try:
            board = self._have_board()
        except BoardError as error:
            return Died(str(error))
        assert self._function is not None  # noqa: S101 - begin came before
        start = time.perf_counter_ns()
        try:
            value = self._function(board, item)
            failure = ""
        except (Exception, SystemExit) as error:  # noqa: BLE001 - an exception of the user's function is the item's result
            value, failure = None, _sentence(error)
        took = time.perf_counter_ns() - start
        if board.session.link.is_lost():
            return Died("the daemon of its board has ended")
        try:
            findings, cycles = self._told(board)
        except Exception as error:  # noqa: BLE001 - the daemon has ended in the meantime
            return Died(str(error))
        compared = value if isinstance(value, Compared) else Compared(_outputs(value), value=value)
        failure = failure or compared.failure
        return Outcome(
            Status.FAILED if failure else Status.GOOD,
            took,
            cycles,
            findings,
            digests_of(compared.outputs),
            compared.error,
            failure,
            _plain(compared.value),
        )

    def end(self) -> None:
        """End the board."""
        self._close_function()
        self._stack.close()
        self._board = None

    def _close_function(self) -> None:
        close = getattr(self._function, "close", None)
        self._function = None
        if close is not None:
            close()

    def _have_board(self) -> Board:
        if self._board is not None and not self._board.session.link.is_lost():
            return self._board
        from arm_client.client import private_board

        if self._board is not None:
            with contextlib.suppress(Exception):  # it has died
                self._stack.close()
            self._board = None
        chosen = {name: value for name, value in self._choice._asdict().items() if name != "environment"}
        self._board = self._stack.enter_context(private_board(**chosen))
        self._board.session.is_silent = True  # the farm's results have the findings
        self._cycles = 0
        return self._board

    def _told(self, board: Board) -> tuple[tuple[str, ...], int | None]:
        """The board's findings and modeled cycles since the last call."""
        status = board.status()
        findings = tuple(f"{found['kind']}: {found['text']}" for found in status["findings"])
        if findings:
            board.session.link.request("forget")
        before, self._cycles = self._cycles, sum(core["cycles"] for core in status["cores"])
        return findings, self._cycles - before if self._cycles >= before else None


def _outputs(value: Any) -> tuple[Any, ...]:
    """The arrays and bytes in a function's return value."""
    import numpy as np

    values = value if isinstance(value, tuple | list) else (value,)
    return tuple(one for one in values if isinstance(one, bytes | np.ndarray))


def _plain(value: Any) -> Any:
    """A value without the board: its arrays become plain numpy arrays, which a process without that board can hold."""
    import numpy as np

    from arm_client.arrays import BoardArray

    if isinstance(value, BoardArray):
        return np.array(value)
    if isinstance(value, tuple | list) and any(isinstance(one, BoardArray) for one in value):
        return type(value)([_plain(one) for one in value])
    return value


def _sentence(error: BaseException) -> str:
    """The exception raised by a function, with the line in the function."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.strerror}: {error.filename}."
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is in this file
    user = next((frame for frame in reversed(frames) if not frame.filename.startswith(_OURS)), None)
    where = f" ({user.filename}:{user.lineno})" if user else ""
    return f"{type(error).__name__}: {error}{where}"
