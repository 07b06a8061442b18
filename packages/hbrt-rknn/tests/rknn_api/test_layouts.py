"""Layouts of tensors: the public tables, offsets, and converters for any number of images."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rknn_api import layouts
from rknn_api.layouts import from_native, native_offset, native_shape, rules_of, to_native

# RKNN SDK advanced guide, table 5-1: int8 and float16, 0 where the chip has no such layout.
C2 = {
    "rk2118": (0, 4), "rk3566": (8, 4), "rk3568": (8, 4), "rk3588": (16, 8), "rk3576": (16, 8), "rv1103b": (8, 0),
    "rv1106b": (8, 0), "rv1103": (16, 8), "rv1106": (16, 8), "rk3562": (16, 8),
}  # fmt: skip
NARROW = {"rv1103b", "rv1106b", "rk3566", "rk3568"}


@pytest.mark.parametrize("chip", sorted(C2))
def test_a_chip_has_the_c2_and_the_alignment_of_the_public_tables(chip: str) -> None:
    rules = rules_of(chip)
    assert (rules.c2["int8"], rules.c2["float16"]) == C2[chip]
    assert rules.c2["uint8"] == rules.c2["int8"]
    if chip != "rk2118":  # of which the tables say nothing
        assert (rules.width_align, rules.bytes_align) == ((8, 8) if chip in NARROW else (16, 16))


@pytest.mark.parametrize(
    ("shape", "c2", "native"),
    [
        ((1, 13, 4, 4), 8, (1, 2, 4, 4, 8)),
        ((1, 13, 2, 2), 8, (1, 2, 2, 2, 8)),
        ((1, 32, 1, 1), 8, (1, 4, 1, 1, 8)),
        ((3, 16, 5, 7), 16, (3, 1, 5, 7, 16)),
    ],
)
def test_a_native_shape(shape: tuple[int, ...], c2: int, native: tuple[int, ...]) -> None:
    assert native_shape(shape, c2) == native


@pytest.mark.parametrize(("channels", "side", "c1"), [(512, 7, 33), (1024, 7, 67)])
def test_a_chip_may_report_a_larger_c1(channels: int, side: int, c1: int) -> None:
    assert native_shape((1, channels, side, side), 16, element_bytes=1)[1] == c1


def test_offsets_in_elements() -> None:
    assert native_offset(0, 12, 3, 3, (1, 2, 4, 4, 8)) == 252
    assert native_offset(0, 8, 0, 1, (1, 2, 2, 2, 8)) == 40
    assert native_offset(2, 0, 0, 0, (3, 2, 4, 4, 8)) == 2 * 2 * 4 * 4 * 8  # where a loop over two images goes wrong


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 21), st.integers(1, 4), st.integers(1, 4)),
    st.sampled_from([4, 8, 16]),
    st.integers(0, 2),
)
def test_every_element_lies_where_its_offset_says_and_comes_back(
    shape: tuple[int, int, int, int], c2: int, more: int
) -> None:
    array = (np.arange(np.prod(shape)) % 251 + 1).astype(np.int16).reshape(shape)
    n, c1, h, w, _ = native_shape(shape, c2)
    native = (n, c1 + more, h, w, c2)
    made = to_native(array, native)
    assert made.shape == native
    flat = made.reshape(-1)
    for n, c, h, w in product(*map(range, shape)):
        assert flat[native_offset(n, c, h, w, native)] == array[n, c, h, w]
    assert np.count_nonzero(flat) == array.size  # the lanes without a channel are zeros
    poisoned = np.where(made == 0, -7, made)
    assert np.array_equal(from_native(poisoned, shape[1]), array)


def test_rows_and_images_with_strides() -> None:
    assert layouts.stride_of(750, 3, 16) == 752
    assert layouts.stride_of(750, 5, 16) == 750
    assert layouts.strided_bytes((1, 10, 750, 3), 752, 0, 1) == 22560
    pictures = np.arange(2 * 3 * 5 * 3, dtype=np.uint8).reshape(2, 3, 5, 3) + 1
    wide = layouts.with_strides(pictures, 8, 4)
    assert wide.size == layouts.strided_bytes(pictures.shape, 8, 4, 1) == 2 * 4 * 8 * 3
    assert np.count_nonzero(wide) == pictures.size
    wide[wide == 0] = 0xCD
    assert np.array_equal(layouts.without_strides(wide, pictures.shape, 8, 4), pictures)
    assert np.array_equal(layouts.without_strides(pictures.reshape(-1), pictures.shape, 0), pictures)
    assert layouts.rounded_bytes(17, 16) == 32
    assert layouts.nhwc_shape((1, 3, 4, 5)) == (1, 4, 5, 3)
