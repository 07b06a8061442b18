"""A softmax of intrinsics against float64: any length, any alignment, and nothing written next to it."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.native.ivp.conftest import Load

FLOATS = ctypes.POINTER(ctypes.c_float)
SPARE = 24
LIMIT = 2e-7  # of the guide's row
ANY_ROW = 5e-7  # the worst of 150 000 rows is off by 3.7e-7: sums and powers of float32 are rounded
GUIDE_TEXT = "HBRT_GUIDE_TEXT"
REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def library(load: Load) -> ctypes.CDLL:
    library = load("softmax")
    library.total.restype = library.maximum.restype = ctypes.c_float
    library.cycles.restype = ctypes.c_uint64
    library.power.argtypes = [FLOATS, FLOATS, ctypes.c_int, ctypes.c_float]
    return library


def pointer(array: np.ndarray, offset: int = 0) -> object:
    return array[offset:].ctypes.data_as(FLOATS)


def softmax_f64(x: np.ndarray) -> np.ndarray:
    power: np.ndarray = np.exp(x.astype(np.float64) - float(x.max()))
    power /= power.sum()
    return power


@settings(deadline=None, max_examples=60)
@given(
    count=st.integers(1, 300),
    offset=st.integers(0, 17),
    spread=st.floats(0.01, 30),
    seed=st.integers(0, 2**32 - 1),
)
def test_softmax_is_that_of_float64(library: ctypes.CDLL, count: int, offset: int, spread: float, seed: int) -> None:
    x = (np.random.default_rng(seed).standard_normal(offset + count) * spread).astype(np.float32)
    out = np.full(offset + count + SPARE, -7, np.float32)
    library.softmax(pointer(x, offset), count, pointer(out, offset))
    assert np.abs(out[offset : offset + count] - softmax_f64(x[offset:])).max() < ANY_ROW
    assert (out[:offset] == -7).all()
    assert (out[offset + count :] == -7).all()


def test_a_power_of_infinity_and_nan_is_what_it_is_in_ieee_754(library: ctypes.CDLL) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0, 88, -87, 200, -200, 1], np.float32)
    out = np.empty(9, np.float32)
    library.power(pointer(out), pointer(x), 9, 0.0)
    with np.errstate(over="ignore"):
        expected = np.exp(x.astype(np.float64))
    assert np.isnan(out[2])
    assert out[0] == np.inf
    assert (out[[1, 7]] == 0).all()
    np.testing.assert_allclose(out[[3, 4, 5, 8]], expected[[3, 4, 5, 8]], rtol=4e-6)


def test_the_same_work_takes_the_same_modeled_cycles(library: ctypes.CDLL) -> None:
    x = np.linspace(-3, 3, 4096, dtype=np.float32)
    out = np.empty_like(x)
    taken = []
    for count in (1024, 1024, 2048, 4096):
        library.cycles()
        library.softmax(pointer(x), count, pointer(out))
        taken.append(library.cycles())
    assert taken[0] == taken[1] > 1024 / 16
    assert library.cycles() == 0
    assert taken[3] - taken[2] == pytest.approx(2 * (taken[2] - taken[1]), rel=0.01)


@pytest.mark.skipif(GUIDE_TEXT not in os.environ, reason=f"{GUIDE_TEXT} does not name the guide's text")
def test_the_guides_listing_builds_as_printed(load: Load) -> None:
    """Its functions, letter for letter; vecmul is ours, as the page prints vecsum in its place."""
    text = Path(os.environ[GUIDE_TEXT]).read_text(encoding="utf-8")
    ours = (REPOSITORY / "samples" / "dsp" / "softmax_ivp.h").read_text(encoding="utf-8")

    def function(source: str, head: str, end: str = "\n}") -> str:
        begin = source.index(head)
        return source[begin : source.index(end, begin) + len(end)]

    source = "\n".join([
        "#include <hbrt/dsp_math.h>\n#include <xtensa/tie/xt_ivpn.h>",
        function(text, "float32_t vecmaxf(", "} /* vecmaxf() */"),
        function(text, "void vecexpf_max(", "} /* vecexpf() */"),
        function(text, "static float32_t vecsum(", "return sum;\n}"),
        function(ours, "static void vecmul("),
        function(text, "static int dsp_softmax(", "return 0;\n}"),
        'extern "C" int run(float *x, int count, float *out) { return dsp_softmax(x, count, out); }',
    ])  # fmt: skip
    library = load("listing", "-Wno-unused-variable", text=source)  # it declares an i that it does not use
    for count in (1, 15, 16, 17, 1000, 8192):
        x = np.random.default_rng(count).standard_normal(count).astype(np.float32) * 4
        out = np.empty_like(x)
        assert library.run(pointer(x), count, pointer(out)) == 0
        assert np.abs(out - softmax_f64(x)).max() < LIMIT
