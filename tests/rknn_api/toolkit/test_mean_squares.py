"""The range of least squared error: an outlier is cut, numbers that fill their range are not."""

from __future__ import annotations

import numpy as np
import pytest

from rknn_api.toolkit.mean_squares import Histogram


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
    found = histogram.best(low, high, 255)
    least = min(loss(array, low, high * share) for share in (0.3, 0.5, 0.7, 0.8, 0.9, 1.0))
    assert loss(array, *found) < 1.02 * least < 0.9 * loss(array, low, high)
    assert histogram.best(low, high, 65535) == (low, high)


@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_that_fill_their_range_keep_it(sign: int) -> None:
    array = sign * np.linspace(0, 8, 10_000, dtype=np.float32)
    histogram = Histogram()
    histogram.add(array[:10])  # its range doubles for the others
    histogram.add(array)
    low, high = float(array.min()), float(array.max())
    assert histogram.best(low, high, 255) == (low, high)


def test_zeros_have_no_range() -> None:
    histogram = Histogram()
    histogram.add(np.zeros(5, np.float32))
    assert histogram.best(0.0, 0.0, 255) == (0.0, 0.0)
