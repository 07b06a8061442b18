"""Free ranges of pages: best fit, with adjacent free ranges merged. Arithmetic only.

The ranges are in a sorted list with the key (pages, first page): the first key at or after the wanted length is the
best fit and, among equal lengths, the lowest. Two dictionaries, by first page and by the page after the last, find the
neighbors of a range that is returned, so that no two free ranges ever touch. Each
call costs O(log n).
"""

from __future__ import annotations

from collections.abc import Iterator

from sortedcontainers import SortedList


class FreeRanges:
    """Free half-open ranges `[start, end)` of page numbers below `end_page`."""

    def __init__(self, end_page: int) -> None:
        self._shift = end_page.bit_length()
        self._start_mask = (1 << self._shift) - 1
        self._keys: SortedList[int] = SortedList()  # pages << shift | start: compares faster than a tuple
        self._end_of: dict[int, int] = {}
        self._start_of: dict[int, int] = {}
        self.pages = 0

    def take(self, pages: int) -> int | None:
        """Take `pages` from the low end of the smallest range that is large enough; return the first page, or None."""
        key: int | None = next(self._keys.irange(pages << self._shift), None)
        if key is None:
            return None
        start = key & self._start_mask
        end = self._remove(start)
        if start + pages < end:
            self._insert(start + pages, end)
        return start

    def take_at(self, start: int, pages: int) -> bool:
        """Take these pages out of the range that contains them; False if none does. Looks at every range."""
        for first, end in self:
            if first <= start and start + pages <= end:
                self._remove(first)
                if first < start:
                    self._insert(first, start)
                if start + pages < end:
                    self._insert(start + pages, end)
                return True
        return False

    def give(self, start: int, end: int) -> None:
        """Return a range, and merge it with the free ranges that it touches."""
        before = self._start_of.get(start)
        if before is not None:
            self._remove(before)
            start = before
        if end in self._end_of:
            end = self._remove(end)
        self._insert(start, end)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Iterate over the ranges by start."""
        return iter(sorted(self._end_of.items()))

    def _insert(self, start: int, end: int) -> None:
        self._end_of[start] = end
        self._start_of[end] = start
        self._keys.add((end - start) << self._shift | start)
        self.pages += end - start

    def _remove(self, start: int) -> int:
        end = self._end_of.pop(start)
        del self._start_of[end]
        self._keys.remove((end - start) << self._shift | start)
        self.pages -= end - start
        return end
