"""The range of an activation with the smallest quantization loss: by squares ("mmse"), or by entropy. Pure.

Emulator: a histogram of 4096 bins for any dataset; one of 64 evenly spaced ends is chosen: by squares, first the upper
and then the lower one; by entropy, one for both sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BINS: Final = 4096
_ENDS: Final = np.arange(1, 65) / 64
_MIN_COUNT: Final = 1e-4
"""For a bin that no quantized number falls into: its divergence would be infinite."""


class Histogram:
    """Counts of numbers. The range doubles for a value outside it; the number of bins stays the same."""

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

    def least_squares(self, low: float, high: float, levels: int) -> tuple[float, float]:
        """The range with the smallest mean squared error.

        Args:
            low: The smallest number seen.
            high: The largest number seen.
            levels: Steps of the quantized numbers: 255 for int8.
        """
        if not self._most:
            return low, high
        is_seen = self._counts > 0
        centers = ((np.arange(_BINS) + 0.5) / _BINS * 2 - 1)[is_seen] * self._most
        counts = self._counts[is_seen]

        def error(one: tuple[float, float]) -> float:
            scale = (one[1] - one[0]) / levels
            kept = np.clip(np.rint(centers / scale) * scale, *one)
            return float((counts * (centers - kept) ** 2).sum())

        low, high = min(low, 0.0), max(high, 0.0)  # a range includes 0
        found = (low, high)
        if high > 0:
            found = min(((low, high * float(end)) for end in _ENDS[::-1]), key=error)
        if low < 0:
            found = min(((low * float(end), found[1]) for end in _ENDS[::-1]), key=error)
        return found

    def least_divergence(self, low: float, high: float, levels: int) -> tuple[float, float]:
        """The range with the smallest Kullback-Leibler divergence between the numbers and the quantized ones.

        Args:
            low: The smallest number seen.
            high: The largest number seen.
            levels: Steps of the quantized numbers: 255 for int8.

        Source: Migacz, 8-bit Inference with TensorRT (GTC 2017), entropy calibration,
        https://on-demand.gputechconf.com/gtc/2017/presentation/s7310-8-bit-inference-with-tensorrt.pdf; NVIDIA's
        pytorch-quantization, calib.histogram, for the first bin and for numbers of one sign
        """
        half, groups = _BINS // 2, (levels + 1) // (2 if low < 0 < high else 1)
        magnitudes = self._counts[half:] + self._counts[half - 1 :: -1]
        magnitudes[0] = magnitudes[1]  # the many zeros of a ReLU are exact in any range: they must not choose it
        peak = max(-low, high)
        ends = [peak * float(end) for end in _ENDS[::-1]]
        bins = [min(half, round(end / self._most * half)) for end in ends] if self._most else []
        kept = {count: end for end, count in zip(ends, bins, strict=False) if count > groups}
        if not kept:  # as many levels as bins: the whole range is lossless
            return low, high
        end = kept[min(kept, key=lambda count: _divergence(magnitudes, count, groups))]
        return max(low, -end), min(high, end)


def _divergence(counts: NDArray[Any], kept: int, groups: int) -> float:
    """Divergence if the first bins are kept, merged into groups, and the others' numbers are added to the last."""
    inside = counts[:kept]
    real = inside.copy()
    real[-1] += counts[kept:].sum()
    starts = np.arange(groups) * kept // groups
    sizes = np.diff(starts, append=kept)
    is_seen = inside > 0
    means = np.add.reduceat(inside, starts) / np.maximum(np.add.reduceat(is_seen, starts, dtype=np.int64), 1)
    merged = np.where(is_seen, np.repeat(means, sizes), 0)
    total = merged.sum()
    if not total:
        return float("inf")
    known = real > 0
    share, other = real[known] / real.sum(), np.maximum(merged[known], _MIN_COUNT) / total
    return float((share * np.log(share / other)).sum())
