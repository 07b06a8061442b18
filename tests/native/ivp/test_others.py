"""Patterns, the language of vectors (conversions, operators), and intrinsics that no table has."""

from __future__ import annotations

import ctypes
import re
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from native.ivp_names import read
from tests.native.ivp.cases import patterns
from tests.native.ivp.conftest import INCLUDE, Load

KINDS = 7
OF_THE_RUNTIME = INCLUDE.parents[1] / "dsp"
BYTES = np.arange(128, dtype=np.uint8) * 3 + 1


@pytest.fixture(scope="module")
def library(load: Load) -> ctypes.CDLL:
    library = load("others", "-O0", "-Wno-psabi")
    for name in ("language", "lanes_and_scalars", "scalar_instructions"):
        getattr(library, name).restype = ctypes.c_char_p
    library.sum_f32.restype = ctypes.c_float
    return library


@pytest.fixture(scope="module")
def numbers(load: Load) -> dict[str, int]:
    """What each pattern's name stands for."""
    names = [name for name in read().names if "SELI_" in name or "SHFLI_" in name]
    text = f'#include <xtensa/tie/xt_ivpn.h>\nextern "C" const int all[] = {{{", ".join(names)}}};\n'
    values = (ctypes.c_int * len(names)).in_dll(load("pattern_numbers", "-O0", text=text), "all")
    return dict(zip(names, values, strict=True))


def elements(unit: int) -> list[bytes]:
    return [BYTES[i : i + unit].tobytes() for i in range(0, 128, unit)]


def through(library: ctypes.CDLL, pattern: int, what: int, kind: int) -> bytes:
    out = np.full(64, 0xEE, np.uint8)
    library.select_bytes(ctypes.c_void_p(out.ctypes.data), ctypes.c_void_p(BYTES.ctypes.data), pattern, what, kind)
    return out.tobytes()


def test_selects_by_pattern(library: ctypes.CDLL, numbers: dict[str, int]) -> None:
    for number, (name, unit, rule) in enumerate(patterns()):
        count = 64 // unit
        if name.startswith("IVP_SELI_32B_ROTATE") and int(name.rpartition("_")[2]) > count:
            continue  # past two vectors
        want = b"".join(elements(unit)[rule(i, count) % (2 * count)] for i in range(count))
        assert through(library, numbers[name], 0, number % KINDS) == want, name


@pytest.mark.parametrize("kind", range(KINDS))
def test_dual_selects_by_pattern(library: ctypes.CDLL, numbers: dict[str, int], kind: int) -> None:
    rules = {name: (unit, rule) for name, unit, rule in patterns()}
    for width, group in ((w, k) for w in ("8B_", "16B_", "32B_", "") for k in (1, 2, 4)):
        unit = rules[f"IVP_SELI_{width}ROTATE_RIGHT_1"][0]
        pieces = elements(unit)
        both = [pieces[rules[f"IVP_SELI_{width}INTERLEAVE_{group}_{half}"][1](i, 64 // unit)]
                for half in ("LO", "HI") for i in range(64 // unit)]  # fmt: skip
        apart = [piece for part in (0, 1) for i, piece in enumerate(pieces) if i // group % 2 == part]
        for name, want in (("INTERLEAVE", both), ("DEINTERLEAVE", apart)):
            number = numbers[f"IVP_DSELI_{width}{name}_{group}"]
            assert through(library, number, 2, kind) + through(library, number, 1, kind) == b"".join(want), (
                width,
                name,
                group,
            )


@pytest.mark.parametrize("kind", range(KINDS))
def test_shuffles_by_pattern(library: ctypes.CDLL, numbers: dict[str, int], kind: int) -> None:
    def shuffled(name: str) -> bytes:
        out = np.zeros(64, np.uint8)
        library.shuffle_bytes(ctypes.c_void_p(out.ctypes.data), ctypes.c_void_p(BYTES.ctypes.data), numbers[name], kind)
        return out.tobytes()

    for width, unit in (("8B_", 1), ("16B_", 2), ("32B_", 4), ("", 2)):
        pieces = elements(unit)[: 64 // unit]
        assert shuffled(f"IVP_SHFLI_{width}REVERSE_1") == b"".join(reversed(pieces))
        for k in (1, 2, 4, 8):
            assert shuffled(f"IVP_SHFLI_{width}SWAP_{k}") == b"".join(pieces[i ^ k] for i in range(len(pieces)))
    for k in range(32):
        assert shuffled(f"IVP_SHFLI_REP_{k}X1") == elements(2)[k] * 32


def test_three_channels_become_pixels_and_channels_again(library: ctypes.CDLL) -> None:
    channels = np.random.default_rng(3).integers(0, 256, (3, 64)).astype(np.uint8)
    pixels, back = np.zeros((64, 3), np.uint8), np.zeros((3, 64), np.uint8)
    library.interleave(ctypes.c_void_p(pixels.ctypes.data), ctypes.c_void_p(channels.ctypes.data))
    assert (pixels == channels.T).all()
    library.deinterleave(ctypes.c_void_p(back.ctypes.data), ctypes.c_void_p(pixels.ctypes.data))
    assert (back == channels).all()


@pytest.mark.parametrize(
    ("signs", "lane", "coefficient"), [(0, np.int8, np.int8), (1, np.uint8, np.uint8), (2, np.uint8, np.int8)]
)
def test_dual_quads(library: ctypes.CDLL, signs: int, lane: type, coefficient: type) -> None:
    random = np.random.default_rng(signs)
    a = random.integers(0, 256, (4, 64)).astype(np.uint8)
    r = random.integers(0, 256, 8).astype(np.uint8)
    got = np.zeros((2, 64), np.int32)
    one, zero = (ctypes.c_void_p(got[i].ctypes.data) for i in (1, 0))
    library.dual_quads(one, zero, ctypes.c_void_p(a.ctypes.data), ctypes.c_int64(int(r.view(np.int64)[0])), signs)
    factors = r.view(coefficient).astype(np.int64).reshape(2, 4)
    want = factors @ a.view(lane).astype(np.int64)[::-1]
    assert (got == want).all()


@settings(deadline=None)
@given(st.lists(st.floats(-(2.0**96), 2.0**96, width=32), min_size=16, max_size=16), st.integers(0, 0xFFFF))
def test_a_sum_of_floats_is_rounded_once(library: ctypes.CDLL, values: list[float], where: int) -> None:
    raw = np.zeros(32, np.float32)
    start = (-raw.ctypes.data % 64) // 4
    raw[start : start + 16] = values
    chosen = [value for i, value in enumerate(values) if where >> i & 1]
    got = library.sum_f32(ctypes.c_void_p(raw[start:].ctypes.data), where)
    assert got == np.float32(reduce(add, chosen, 0.0))  # in double, one after the other; sum() compensates since 3.12


def test_scalars_operators_and_conversions(library: ctypes.CDLL) -> None:
    assert library.language() is None


def test_single_lanes(library: ctypes.CDLL) -> None:
    assert library.lanes_and_scalars() is None


def test_scalar_instructions(library: ctypes.CDLL) -> None:
    assert library.scalar_instructions() is None


def test_each_class_of_the_model_is_counted_by_an_intrinsic_or_a_call() -> None:
    text = (INCLUDE / "hbrt" / "cycles.h").read_text("utf-8")
    classes = set(re.findall(r"^  HBRT_CYCLES_(\w+),", text, re.MULTILINE))
    sources = [*(INCLUDE / "hbrt" / "ivp").glob("*.h"), INCLUDE / "hbrt" / "cycles.h", *OF_THE_RUNTIME.glob("*.c")]
    used = "".join(path.read_text("utf-8").replace("CYCLES_ADD(", "CYCLES_COUNT(") for path in sources)
    used = re.sub(r"(CYCLES_COUNT\(\w+),", r"\1)", used)
    assert {"LOAD", "MUL", "GATHER"} <= classes
    assert not {name for name in classes if f"HBRT_CYCLES_COUNT({name})" not in used and f", {name}," not in used}
