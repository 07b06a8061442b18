"""Which item goes to which board, which is tried again, and in what order the results come out. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any

from hbrt_farm.result import Outcome, Result, Status, name_of

MAX_ATTEMPTS = 3


class Dispatch:
    """Items under way on boards, which are numbered.

    Items are drawn from their source only as they are needed, and no further than ``window`` ahead of the first whose
    result is still to come: what is kept does not grow with the number of items.
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
        """The item that a board is to take next, behind those that it has; None when there is none for now."""
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
        """How many items a board has."""
        return len(self._under_way[board])

    def ended(self, board: int, index: int, outcome: Outcome) -> None:
        """An item has come to its end on a board."""
        self._under_way[board].remove(index)
        self._settle(index, self._attempts[index] + 1, outcome)

    def lost(self, board: int, why: str) -> None:
        """A board has died with all that it had.

        It takes items in order, so the first is the one that it had begun: this attempt counts. The others are tried
        again as if nothing had been.
        """
        begun, *waiting = self._under_way.pop(board, deque()) or (None,)
        self._again.extendleft(reversed(waiting))
        if begun is not None:
            self.died(begun, why)

    def lost_at(self, board: int, index: int, why: str) -> None:
        """A board has died at an item, and there is a new one in its place, which has the others still."""
        self._under_way[board].remove(index)
        self.died(index, why)

    def died(self, index: int, why: str) -> None:
        """Count an attempt at whose end there was no board; the last one sets the item aside."""
        self._attempts[index] += 1
        if self._attempts[index] < MAX_ATTEMPTS:
            self._again.appendleft(index)
            return
        text = f"Set aside after {MAX_ATTEMPTS} attempts, at each of which its board died: {why}"
        self._settle(index, self._attempts[index], Outcome(Status.POISON, text=text))

    def results(self) -> Iterator[Result]:
        """The results whose turn it is, in the order of the items; each comes once."""
        while self._next_out in self._results:
            self._next_out += 1
            yield self._results.pop(self._next_out - 1)

    def _settle(self, index: int, attempts: int, outcome: Outcome) -> None:
        self._results[index] = Result(index, name_of(index, self._kept.pop(index)), attempts, outcome)
        self._attempts.pop(index, None)
