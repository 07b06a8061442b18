"""One value a channel, for the elements of any tile."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Value = TypeVar("Value", bound=np.generic)

LONGEST_PERIOD = 1 << 18
LONGEST_TILE = 1 << 15


class Channels(Generic[Value]):
    """values[(i // inner) % len(values)] for the elements i of a tensor; a single value stands for them all.

    Args:
        values: (channels,).
        inner: Elements of a channel that lie next to each other: the product of the dimensions after the axis.
        count: Elements of the tensor.
    """

    def __init__(self, values: NDArray[Value], inner: int, count: int) -> None:
        self.values = values
        self._inner = inner
        self._period = len(values) * inner
        self._written: NDArray[Value] | None = None
        if len(values) > 1 and 0 < self._period <= LONGEST_PERIOD:  # 0: a dimension after the axis is empty
            # Written out once, and longer than the period by a tile, so that every tile is a slice of it.
            longest = min(count, LONGEST_TILE)
            self._written = np.tile(np.repeat(values, inner), 1 + -(-longest // self._period))

    def of(self, first: int, count: int) -> NDArray[Value]:
        """Values of the elements [first, first + count): (count,), or (1,) when there is only one value."""
        if len(self.values) == 1:
            return self.values
        if self._written is not None and count <= LONGEST_TILE:
            at = first % self._period
            return self._written[at : at + count]
        runs = np.arange(first // self._inner, (first + count - 1) // self._inner + 1)
        begins = np.maximum(runs * self._inner, first)
        ends = np.minimum((runs + 1) * self._inner, first + count)
        return np.repeat(self.values[runs % len(self.values)], ends - begins)
