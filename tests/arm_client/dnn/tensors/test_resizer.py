"""Limits and arithmetic of the resizer, against the manual's formula and a bilinear scaling in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from arm_client.dnn.errors import ModelError
from arm_client.dnn.tensors.pictures import Picture, Plane
from arm_client.dnn.tensors.resizer import (
    MAX_SIDE,
    MAX_STEP,
    ONE,
    Region,
    bilinear,
    check_region,
    data_batch,
    largest_source,
    output_batch,
    resize,
    step_of,
)
from hbrt.dnn_types import hbDNNDataType
from hbrt.status import Status
from tests.each import each

NV12 = hbDNNDataType.HB_DNN_IMG_TYPE_NV12


def picture(width: int = 4096, height: int = 5000, stride: int = 4096) -> Picture:
    return Picture(
        NV12, height, width, (Plane(0x8000_0000, height, width, stride), Plane(0x9000_0000, height // 2, width, stride))
    )


def test_the_manuals_example() -> None:
    # 3 inputs, 2 of them of the resizer, 6 regions, a model of batch 2.
    batch = data_batch(2, 6)
    assert batch == 3
    assert output_batch(batch, 2) == 4


@each(
    "resizers, rois, says",
    [
        (0, 1, "has no resizer input"),
        (2, 1, "roiCount is 1"),
        (2, 3, "roiCount is 3"),
        (1, 0, "roiCount is 0"),
        (1, -1, "roiCount is -1"),
        (1, 256, "a batch of 256; at most 255"),
        (2, 512, "a batch of 256; at most 255"),
    ],
)
def test_counts_that_do_not_fit(resizers: int, rois: int, says: str) -> None:
    with pytest.raises(ModelError, match=says) as error:
        data_batch(resizers, rois)
    assert error.value.status == Status.HB_DNN_INVALID_ARGUMENT


@each("target, largest", [(128, 508), (224, 892), (256, 1020), (2, 4)])
def test_largest_regions_as_the_reference_has_them(target: int, largest: int) -> None:
    assert largest_source(target) == largest


def test_the_largest_region_is_where_the_step_ends() -> None:
    for target in range(2, 1100):
        largest = largest_source(target)
        assert step_of(largest, target) <= MAX_STEP
        assert largest == MAX_SIDE or step_of(largest + 1, target) > MAX_STEP


def test_steps() -> None:
    assert step_of(224, 224) == ONE
    assert step_of(2, 3) == ONE // 2
    assert step_of(4, 2) == 3 * ONE
    assert step_of(1, 5) == 0


OK = Region(0, 0, 99, 99)


@each(
    "region, source, target, says",
    [
        (Region(0, 0, 0, 99), picture(), (64, 64), "1 pixels wide"),
        (Region(0, 5, 99, 5), picture(), (64, 64), "1 pixels high"),
        (Region(0, 0, 99, 4096), picture(), (2048, 64), "4097 pixels high"),
        (Region(9, 0, 3, 99), picture(), (64, 64), "-5 pixels wide"),
        (Region(-1, 0, 98, 99), picture(), (64, 64), "exceeds its picture"),
        (Region(0, 0, 64, 9), picture(64, 64, 64), (64, 64), "0..63 by 0..63"),
        (Region(0, 0, 9, 64), picture(64, 64, 64), (64, 64), "exceeds its picture"),
        (Region(0, 0, 508, 99), picture(), (128, 128), "at most 508 pixels"),
        (Region(0, 0, 99, 508), picture(), (128, 128), "a height of 509 to 128"),
        (OK, picture(4098, 100, 4112), (64, 64), "4098 pixels wide"),
        (OK, picture(100, 100, 100), (64, 64), "rows of 100 bytes"),
        (OK, picture(100, 100, 131088), (64, 64), "rows of 131088 bytes"),
        (Region(0, 0, 5, 5), picture(8, 8, 8), (4, 4), "rows of 8 bytes"),
        (OK, picture(), (1, 64), "1 rows and 64 columns"),
        (OK, picture(), (64, 1), "64 rows and 1 columns"),
    ],
)
def test_limits(region: Region, source: Picture, target: tuple[int, int], says: str) -> None:
    with pytest.raises(ModelError, match=says) as error:
        check_region("x", region, source, target)
    assert error.value.status == Status.HB_DNN_INVALID_ARGUMENT


@each(
    "region, source, target",
    [
        (Region(3, 4, 4, 5), picture(), (64, 64)),
        (Region(0, 0, 4095, 4095), picture(), (1025, 1025)),
        (Region(0, 0, 507, 507), picture(), (128, 128)),
        (Region(60, 60, 63, 63), picture(64, 64, 64), (2, 2)),
        (OK, picture(100, 100, 131072), (64, 64)),
        (Region(0, 0, 1, 1), picture(2, 2, 16), (2, 2)),
    ],
)
def test_at_the_limits(region: Region, source: Picture, target: tuple[int, int]) -> None:
    check_region("x", region, source, target)


def exact(pixels: NDArray[np.uint8], height: int, width: int) -> NDArray[np.int64]:
    """Bilinear scaling in fractions, from the step formula alone."""

    def taps(source: int, target: int) -> list[tuple[int, int, Fraction]]:
        found = []
        for index in range(target):
            step = Fraction(((source - 1) * 65536 + (target - 1) // 2) // (target - 1), 65536) if target > 1 else 0
            position = min(Fraction(index * step), Fraction(source - 1))
            near = position.numerator // position.denominator
            found.append((near, min(near + 1, source - 1), position - near))
        return found

    result = np.empty((height, width), np.int64)
    for row, (top, bottom, down) in enumerate(taps(pixels.shape[0], height)):
        for column, (left, right, across) in enumerate(taps(pixels.shape[1], width)):
            upper = int(pixels[top, left]) * (1 - across) + int(pixels[top, right]) * across
            lower = int(pixels[bottom, left]) * (1 - across) + int(pixels[bottom, right]) * across
            result[row, column] = (upper * (1 - down) + lower * down + Fraction(1, 2)) // 1
    return result


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12), st.integers(1, 12), st.integers(0, 1 << 32))
def test_bilinear_is_exact_but_for_one_rounding(rows: int, columns: int, height: int, width: int, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (rows, columns), np.uint8)
    np.testing.assert_array_equal(bilinear(pixels[:, :, None], height, width)[:, :, 0], exact(pixels, height, width))


def random_nv12(rows: int, columns: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    rng = np.random.default_rng(rows * columns)
    return rng.integers(0, 256, (rows, columns), np.uint8), rng.integers(0, 256, (rows // 2, columns), np.uint8)


def test_a_region_of_the_models_own_size_is_cut_out_as_it_is() -> None:
    luma, pairs = random_nv12(20, 32)
    cut = resize((luma, pairs), Region(4, 6, 13, 11), (6, 10))
    np.testing.assert_array_equal(cut[0], luma[6:12, 4:14])
    np.testing.assert_array_equal(cut[1], pairs[3:6, 4:14])


def test_chroma_of_odd_corners_and_of_the_smallest_result() -> None:
    luma, pairs = random_nv12(8, 16)
    found = resize((luma, pairs), Region(3, 1, 4, 2), (2, 2))
    np.testing.assert_array_equal(found[0], luma[1:3, 3:5])
    np.testing.assert_array_equal(found[1], pairs[0:1, 2:4])  # the first of the pairs that the pixels touch
    wide = resize((luma, pairs), Region(3, 1, 4, 2), (2, 4))
    np.testing.assert_array_equal(wide[1], pairs[0:1, 2:6])
