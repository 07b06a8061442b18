"""The range of an activation that its quantised numbers lose least with, by the mean of the squares ("mmse"). Pure.

Emulator: of 64 ends, evenly spaced, first the upper and then the lower one is chosen, by a histogram of 4096 bins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BINS: Final = 4096
_ENDS: Final = np.arange(1, 65) / 64


class Histogram:
    """How often numbers were seen. Its range doubles when one lies outside: its size stays."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BINS)
        self._most = 0.0

    def add(self, array: NDArray[Any]) -> None:
        """Count finite numbers."""
        peak = float(np.abs(array).max(initial=0))
        if not self._most:
            self._most = peak
        while peak > self._most:
            inner, quarter = self._counts.reshape(-1, 2).sum(1), _BINS // 4
            self._counts[:] = 0
            self._counts[quarter:-quarter] = inner
            self._most *= 2
        if self._most:
            self._counts += np.histogram(array, _BINS, range=(-self._most, self._most))[0]

    def best(self, low: float, high: float, levels: int) -> tuple[float, float]:
        """The range with the least error.

        Args:
            low: The least number that was seen.
            high: The largest.
            levels: Steps of the quantised numbers: 255 of int8.
        """
        if not self._most:
            return low, high
        is_seen = self._counts > 0
        centres = ((np.arange(_BINS) + 0.5) / _BINS * 2 - 1)[is_seen] * self._most
        counts = self._counts[is_seen]

        def error(one: tuple[float, float]) -> float:
            scale = (one[1] - one[0]) / levels
            kept = np.clip(np.rint(centres / scale) * scale, *one)
            return float((counts * (centres - kept) ** 2).sum())

        low, high = min(low, 0.0), max(high, 0.0)  # a range has the zero
        found = (low, high)
        if high > 0:
            found = min(((low, high * float(end)) for end in _ENDS[::-1]), key=error)
        if low < 0:
            found = min(((low * float(end), found[1]) for end in _ENDS[::-1]), key=error)
        return found
