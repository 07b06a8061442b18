"""Many boards that process items in parallel, from Python."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from hbrt.errors import BoardError, WrongUseError
from hbrt_farm.dispatch import Dispatch
from hbrt_farm.engine import carried, engine
from hbrt_farm.result import Outcome, Result, Status
from hbrt_farm.worker import BoardChoice, Died, Worker

DEPTH = 2  # items per board: the next one is ready when one ends
WINDOW = 32  # items per board that may be ahead of the first one without a result
_MANY = 32
_IDLE_SECONDS = 0.5
_MAX_STARTS = 3
_ROOM_SECONDS = 60.0


class Farm:
    """Private boards in their own processes, placed by Ray; a context manager.

    Args:
        boards: Number of boards.
        image: Image file of each board; None for the default image. A cluster's machines read it from the same path.
        cores: DSP cores of each board; None for HBRT_CORES or, if unset, the profile's number.
        ddr_bytes: DDR size of each board; None for HBRT_DDR.
        check: The checks to run, as words of HBRT_CHECK; None for HBRT_CHECK.
        profile: The board to model; empty for HBRT_PROFILE.
        address: HOST:PORT of a Ray cluster; None for the cluster that this process is connected to or, without one,
            this machine.
    """

    def __init__(
        self,
        boards: int = 2,
        image: str | os.PathLike[str] | None = None,
        *,
        cores: int | None = None,
        ddr_bytes: int | None = None,
        check: str | None = None,
        profile: str = "",
        address: str | None = None,
    ) -> None:
        if boards < 1:
            raise WrongUseError(f"Invalid number of boards {boards}: must be 1 or more.")
        file = str(Path(image).absolute()) if image else None
        self._choice = BoardChoice(file, cores, ddr_bytes, check, profile, carried("PYTHONBREAKPOINT"))
        self._boards, self._address = boards, address
        self._stack = ExitStack()
        self._workers: list[Any] = []
        self._ray: Any = None

    def __enter__(self) -> Self:
        self._ray = self._stack.enter_context(engine(self._boards, self._address))
        self._actor = self._ray.remote(num_cpus=1, max_restarts=0)(Worker)
        self._workers = [self._actor.remote(self._choice) for _ in range(self._boards)]
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._ray.wait([worker.end.remote() for worker in self._workers], num_returns=len(self._workers), timeout=5)
            for worker in self._workers:
                self._ray.kill(worker)
        finally:
            self._workers = []
            self._stack.close()

    def map(self, function: Callable[[Any, Any], Any], items: Iterable[Any], *, first: int = 0) -> Iterator[Result]:
        """Call ``function(board, item)`` for each item, on whichever board is free; results in item order.

        An exception fails only its own item. An item whose board or process died is retried on another board and set
        aside after three attempts. Items are drawn on demand. Pass a large item as a path, or as a reference from
        ``ray.put``.

        Args:
            function: An ordinary function. It is copied to the boards' processes, with everything it refers to. If it
                has a
                method ``close``, that is called there, before the next function and at the farm's end.
            items: The items, passed one by one.
            first: Index of the first.

        Yields:
            One ``Result`` per item.

        Raises:
            BoardError: boards do not start, for example because the image does not load.
        """
        for result in self.stream(function, items, first=first):
            if result is not None:
                yield result

    def stream(
        self, function: Callable[[Any, Any], Any], items: Iterable[Any], *, first: int = 0
    ) -> Iterator[Result | None]:
        """Like ``map``, but yields None whenever no result has arrived for half a second."""
        if self._ray is None or not self._workers:
            raise WrongUseError("This farm has no boards: use it in a with statement.")
        run = _Run(self._ray, self._workers, lambda: self._actor.remote(self._choice), function)
        yield from run.results(Dispatch(items, WINDOW * self._boards, first))


class _Run:
    """One map: its open requests to the workers."""

    def __init__(
        self, ray: Any, workers: list[Any], make: Callable[[], Any], function: Callable[[Any, Any], Any]
    ) -> None:
        self._ray, self._workers, self._make = ray, workers, make
        self._function = ray.put(function)
        self._asked: dict[Any, tuple[int, int | None]] = {}  # pending answer -> worker and item; None is its start
        self._starts = [0] * len(workers)  # in a row that came to nothing
        self._ready: set[int] = set()
        self._room_until = time.monotonic() + _ROOM_SECONDS

    def results(self, dispatch: Dispatch) -> Iterator[Result | None]:
        for at in range(len(self._workers)):
            self._begin(at)
        while True:
            for at in self._ready:
                self._fill(at, dispatch)
            yield from dispatch.results()
            if dispatch.is_over:
                return
            done, rest = self._ray.wait(list(self._asked), num_returns=1, timeout=_IDLE_SECONDS)
            if done and len(rest) >= _MANY:  # a wait takes longer the more it waits for: one wait for everything
                done += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0]
            if not done:
                self._check_room()
                yield None
            for answer in done:
                self._take(answer, dispatch)

    def _check_room(self) -> None:
        """Do not wait forever for a CPU."""
        late = time.monotonic() > self._room_until and not self._ready
        if late and self._ray.available_resources().get("CPU", 0) < 1:
            raise BoardError(
                f"No CPU of the cluster has been free for a board for {_ROOM_SECONDS:.0f} s, and each board takes one: "
                "try again when other work has ended, or add machines."
            )

    def _begin(self, at: int) -> None:
        self._asked[self._workers[at].begin.remote(self._function)] = at, None

    def _fill(self, at: int, dispatch: Dispatch) -> None:
        while dispatch.under_way(at) < DEPTH and (drawn := dispatch.draw(at)) is not None:
            self._asked[self._workers[at].run.remote(drawn[1])] = at, drawn[0]

    def _take(self, answer: Any, dispatch: Dispatch) -> None:
        at, index = self._asked.pop(answer)
        try:
            told = self._ray.get(answer)
        except self._ray.exceptions.RayTaskError as error:  # the return value could not be sent
            if index is None:
                raise BoardError(f"The function cannot be copied to the boards' processes: {error.cause}.") from None
            dispatch.ended(at, index, Outcome(Status.FAILED, text=f"{type(error.cause).__name__}: {error.cause}"))
            return
        except self._ray.exceptions.RayError as error:
            self._replace(at, dispatch, _why(error))
            return
        if index is None:
            if told:
                raise BoardError(told)
            self._starts[at] = 0
            self._ready.add(at)
        else:
            self._settle(at, index, told, dispatch)

    def _settle(self, at: int, index: int, told: Outcome | Died, dispatch: Dispatch) -> None:
        if isinstance(told, Died):
            dispatch.lost_at(at, index, told.why)
        else:
            dispatch.ended(at, index, told)

    def _replace(self, at: int, dispatch: Dispatch, why: str) -> None:
        """Replace a dead process."""
        self._starts[at] += 1
        if self._starts[at] > _MAX_STARTS:
            raise BoardError(f"Process {at} of the farm died {self._starts[at]} times before its board ran: {why}")
        for answer in [answer for answer, asked in self._asked.items() if asked[0] == at]:
            _, index = self._asked.pop(answer)
            with contextlib.suppress(self._ray.exceptions.RayError):  # otherwise it answered before it died
                told = self._ray.get(answer, timeout=0)
                if index is not None:
                    self._settle(at, index, told, dispatch)
        self._ready.discard(at)
        dispatch.lost(at, why)
        self._ray.kill(self._workers[at])
        self._workers[at] = self._make()
        self._begin(at)


def _why(error: Exception) -> str:
    """Ray's message about a dead process, as one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = next((line for line in lines if line.startswith("The actor")), lines[0] if lines else type(error).__name__)
    return f"its process has ended ({told[:300]})"
