"""Decide which board gets which item, which items are retried, and the order of the results. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any

from hbrt_farm.result import Outcome, Result, Status, name_of

MAX_ATTEMPTS = 3


class Dispatch:
    """Items in progress on numbered boards.

    Items are drawn from their source only when needed, at most ``window`` ahead of the first item without a result, so
    memory does not grow with the number of items.
    """

    def __init__(self, items: Iterable[Any], window: int, first: int = 0) -> None:
        """``first`` is the index of the first item."""
        self._items, self._window = enumerate(items, first), window
        self._again: deque[int] = deque()
        self._kept: dict[int, Any] = {}  # items that were drawn, and have no result
        self._attempts: dict[int, int] = defaultdict(int)
        self._under_way: dict[int, deque[int]] = defaultdict(deque)
        self._results: dict[int, Result] = {}
        self._next_out, self._next_in = first, first
        self._is_drawn = False

    @property
    def is_over(self) -> bool:
        """Whether each item has its result."""
        return self._is_drawn and not self._kept

    def draw(self, board: int) -> tuple[int, Any] | None:
        """The next item for a board, after those it already has; None if there is none for now."""
        if self._again:
            index = self._again.popleft()
        elif self._next_in - self._next_out >= self._window:
            return None
        elif (drawn := next(self._items, None)) is None:
            self._is_drawn = True
            return None
        else:
            index, self._kept[drawn[0]] = drawn
            self._next_in = index + 1
        self._under_way[board].append(index)
        return index, self._kept[index]

    def under_way(self, board: int) -> int:
        """Number of items that a board is working on."""
        return len(self._under_way[board])

    def ended(self, board: int, index: int, outcome: Outcome) -> None:
        """Record that a board finished an item."""
        self._under_way[board].remove(index)
        self._settle(index, self._attempts[index] + 1, outcome)

    def lost(self, board: int, why: str) -> None:
        """Record that a board died with all its items.

        It takes items in order, so only the first had been started, and only that attempt counts. The others are
        retried without counting an attempt.
        """
        begun, *waiting = self._under_way.pop(board, deque()) or (None,)
        self._again.extendleft(reversed(waiting))
        if begun is not None:
            self.died(begun, why)

    def lost_at(self, board: int, index: int, why: str) -> None:
        """Record that a board died while processing an item; its replacement keeps the others."""
        self._under_way[board].remove(index)
        self.died(index, why)

    def died(self, index: int, why: str) -> None:
        """Count an attempt that lost its board; after the last attempt the item is set aside."""
        self._attempts[index] += 1
        if self._attempts[index] < MAX_ATTEMPTS:
            self._again.appendleft(index)
            return
        text = f"Set aside after {MAX_ATTEMPTS} attempts; each time, its board died: {why}"
        self._settle(index, self._attempts[index], Outcome(Status.POISON, text=text))

    def results(self) -> Iterator[Result]:
        """The results that are next in item order; each is returned once."""
        while self._next_out in self._results:
            self._next_out += 1
            yield self._results.pop(self._next_out - 1)

    def _settle(self, index: int, attempts: int, outcome: Outcome) -> None:
        self._results[index] = Result(index, name_of(index, self._kept.pop(index)), attempts, outcome)
        self._attempts.pop(index, None)
