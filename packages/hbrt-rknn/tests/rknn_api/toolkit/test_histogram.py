"""The range that loses least, by squares and by entropy: an outlier is cut, numbers that fill their range are not."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from rknn_api.toolkit.histogram import Histogram


def loss(array: np.ndarray, low: float, high: float) -> float:
    scale = (high - low) / 255
    return float(((array - np.clip(np.rint(array / scale) * scale, low, high)) ** 2).mean())


def test_an_outlier_is_cut_where_that_loses_less() -> None:
    array = np.random.default_rng(3).standard_normal(200_000).astype(np.float32)
    array[7] = 60
    histogram = Histogram()
    for part in np.split(array, 20):
        histogram.add(part)
    low, high = float(array.min()), float(array.max())
    found = histogram.least_squares(low, high, 255)
    least = min(loss(array, low, high * share) for share in (0.3, 0.5, 0.7, 0.8, 0.9, 1.0))
    assert loss(array, *found) < 1.02 * least < 0.9 * loss(array, low, high)
    assert histogram.least_squares(low, high, 65535) == (low, high)


Best = Callable[[Histogram, float, float, int], tuple[float, float]]
BOTH = pytest.mark.parametrize("best", [Histogram.least_squares, Histogram.least_divergence])


@BOTH
@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_that_fill_their_range_keep_it(best: Best, sign: int) -> None:
    array = sign * np.linspace(0, 8, 10_000, dtype=np.float32)
    histogram = Histogram()
    histogram.add(array[:10])  # its range doubles for the others
    histogram.add(array)
    low, high = float(array.min()), float(array.max())
    assert best(histogram, low, high, 255) == (low, high)


def divergence(array: np.ndarray, most: float) -> float:
    """Of the magnitudes in 2048 bins and what 128 levels of (0, most) keep of them, by the definition."""
    bins = np.minimum((np.abs(array) / np.abs(array).max() * 2048).astype(int), 2047)
    real = np.bincount(np.minimum(bins, round(most * 2048) - 1), minlength=2048)
    inside = np.bincount(bins[bins < round(most * 2048)], minlength=2048)
    kept = np.zeros(2048)
    for level in np.array_split(np.arange(round(most * 2048)), 128):
        seen = level[inside[level] > 0]
        kept[seen] = inside[level].sum() / max(1, seen.size)
    where = real > 0
    share, other = real[where] / real.sum(), np.maximum(kept[where], 1e-4) / kept.sum()
    return float((share * np.log(share / other)).sum())


def test_the_range_of_least_divergence_cuts_an_outlier() -> None:
    array = np.random.default_rng(3).standard_normal(200_000).astype(np.float32)
    array[7] = 60
    histogram = Histogram()
    histogram.add(array)
    low, high = float(array.min()), 60.0
    found = histogram.least_divergence(low, high, 255)
    assert found[0] == max(low, -found[1])
    least = min(divergence(array, share / 64) for share in range(5, 65))
    assert divergence(array, found[1] / 60) < 1.1 * least < 0.5 * divergence(array, 1)
    assert histogram.least_divergence(low, high, 65535) == (low, high)


def test_the_zeros_of_a_relu_do_not_choose_its_range() -> None:
    array = np.maximum(np.random.default_rng(3).standard_normal(200_000).astype(np.float32) - 1, 0)
    histogram = Histogram()
    histogram.add(array)
    high = float(array.max())
    assert loss(array, *histogram.least_divergence(0.0, high, 255)) < 1.3 * loss(array, 0.0, high)


def test_a_first_sample_near_zero_costs_no_memory_and_no_time() -> None:
    array = np.random.default_rng(3).standard_normal(10_000).astype(np.float32)
    histogram = Histogram()
    histogram.add(array * np.float32(1e-30))
    tracemalloc.start()
    histogram.add(array)
    found = histogram.least_divergence(float(array.min()), float(array.max()), 255)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 1 < -found[0] <= 5
    assert 1 < found[1] <= 5
    assert peak < 1 << 20


@BOTH
def test_zeros_have_no_range(best: Best) -> None:
    histogram = Histogram()
    histogram.add(np.zeros(5, np.float32))
    assert best(histogram, 0.0, 0.0, 255) == (0.0, 0.0)
