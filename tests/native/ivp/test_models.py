"""Each intrinsic of arithmetic against its scalar model: edge values in all pairs, and what hypothesis thinks of."""

from __future__ import annotations

import ctypes
import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from native.ivp_names import read
from tests.native.ivp.cases import FAMILIES
from tests.native.ivp.conftest import Load
from tests.native.ivp.models import (
    BOOLS,
    FLOATS,
    VECTORS,
    WIDE,
    Array,
    Case,
    bits,
    call,
    dtype,
    expected,
    lanes,
    limits,
    source,
)

EDGE_FLOATS = [65519.99, 65520.0, 2.9802322e-8, 2.9802326e-8, 1.00048828125, 0.0, -0.0, 1.0,
               -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 8388607.5, 1e-45, -1e-40, 3.4028235e38, -3.4028235e38,
               np.inf, -np.inf, np.nan, 2147483520.0, 2147483648.0, 4294967040.0, 4294967296.0, -2147483648.0,
               1 / 3]  # fmt: skip
EDGE_HALVES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1023.5, 2047, 2048, 65504, -65504, 5.9604645e-8, 3e-5,
               -6.0975552e-5, 6.1035156e-5, np.inf, -np.inf, np.nan, 32767, 32768, -32768, 255.875, 1 / 3]  # fmt: skip
UNDEFINED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
"""What C++ does not define ends the test's process with a message."""
MEMORY_NAMES = ("LV", "LA", "SV", "SA", "LS", "SS", "LB", "SB", "L2U", "GATHER", "SCATTER", "ZALIGN")
"""Intrinsics of these beginnings are tested by test_memory.py."""


@pytest.fixture(scope="module")
def library(load: Load) -> ctypes.CDLL:
    return load("cases", "-O0", *UNDEFINED, text=source([case for cases in FAMILIES.values() for case in cases]))


def edges(kind: str) -> list[Any]:
    """Values of a lane at which rules change."""
    if kind in BOOLS:
        return [False, True]
    if kind in FLOATS:
        return EDGE_FLOATS if kind == "f32" else EDGE_HALVES
    lowest, highest = limits(f"i{bits(kind)}" if kind in WIDE else kind)
    near = [lowest, lowest + 1, lowest // 2, -2, -1, 0, 1, 2, 3, highest // 2, highest - 1, highest]
    wide_ones = (
        [2**15, 2**15 - 1, -(2**15) - 1, 2**31, 2**31 - 1, -(2**31) - 1, 0x5555, 0x4000, 0xC000] if kind in WIDE else []
    )
    return [value for value in (*near, *wide_ones) if lowest <= value <= highest]


def filled(kind: str, values: list[Any]) -> Array:
    """An array of one kind; a wide register has bits above its width, which must not matter."""
    if kind in BOOLS:
        return np.array(values, bool)
    if kind in WIDE and bits(kind) < 8 * dtype(kind).itemsize:
        above = 1 << bits(kind)
        values = [value + above * (i % 5 - 2) for i, value in enumerate(values)]
    return np.array(values, dtype(kind))


def equal(got: Array, want: Array, *, any_zero: bool) -> bool:
    """Any NaN is as good as another; so is any zero, where the rule does not say which of two zeros is the larger."""
    if got.dtype.kind != "f":
        return np.array_equal(got, want)
    same = (got == want) & (any_zero | (np.signbit(got) == np.signbit(want)))
    return bool((same | np.isnan(got) & np.isnan(want)).all())


def check(library: ctypes.CDLL, case: Case, values: list[Any], old: list[Any]) -> None:
    got, want = call(library, case, values, old), expected(case, values, old)
    for one, model in zip(got, want, strict=True):
        any_zero = "MAX" in case.name or "MIN" in case.name
        assert equal(one, model, any_zero=any_zero), f"{case.name} of {values} over {old}\ngave  {one}\nmodel {model}"


def registers(case: Case) -> list[str]:
    """The kinds of all that has lanes: arguments, then what is written."""
    return [kind for kind in case.takes if kind != "int"] + [kind for kind in case.results if case.writes]


def parted(case: Case, arrays: list[Array], number: int) -> tuple[list[Any], list[Any]]:
    given = iter(arrays)
    values = [number if kind == "int" else next(given) for kind in case.takes]
    old = list(given) if case.writes else [None if kind.startswith("s:") else zeros(kind) for kind in case.results]
    return values, old


def zeros(kind: str) -> Array:
    return np.zeros(lanes(kind), bool if kind in BOOLS else dtype(kind))


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_edge_values_meet(library: ctypes.CDLL, family: str) -> None:
    """The first two registers go through all pairs of edges, the others through edges in other orders."""
    for case in FAMILIES[family]:
        kinds = registers(case)
        if not kinds:
            for number in case.ints or (0,):
                check(library, case, *parted(case, [], number))
            continue
        pairs = list(product(edges(kinds[0]), edges(kinds[1] if len(kinds) > 1 else kinds[0])))
        columns = [[pair[0] for pair in pairs], [pair[1] for pair in pairs]]
        for step, kind in enumerate(kinds[2:], start=3):
            few = edges(kind)
            columns.append([few[(i * step + i // 7) % len(few)] for i in range(len(pairs))])
        size = max(lanes(kind) for kind in kinds)
        numbers = case.ints or (0,)
        rounds = max(-(-len(pairs) // size), len(numbers))
        for turn in range(min(rounds, 24)):
            arrays = [
                filled(kind, [column[(turn * size + i) % len(column)] for i in range(lanes(kind))])
                for kind, column in zip(kinds, columns, strict=False)
            ]
            check(library, case, *parted(case, arrays, numbers[turn % len(numbers)]))


@pytest.mark.long
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 2**63 - 1), shift=st.integers(0, 31))
@pytest.mark.parametrize("family", FAMILIES)
def test_any_values(library: ctypes.CDLL, family: str, seed: int, shift: int) -> None:
    random = np.random.default_rng(seed)
    for case in FAMILIES[family]:
        arrays = [any_register(random, kind, shift) for kind in registers(case)]
        number = int(random.choice(case.ints)) if case.ints else 0
        check(library, case, *parted(case, arrays, number))


def any_register(random: np.random.Generator, kind: str, shift: int) -> Array:
    if kind in BOOLS:
        return random.integers(0, 2, lanes(kind)).astype(bool)
    if kind in FLOATS:
        raw: Array = np.frombuffer(random.bytes(lanes(kind) * dtype(kind).itemsize), dtype(kind))
        with np.errstate(over="ignore"):
            near = (random.standard_normal(lanes(kind)) * 2.0 ** (shift - 8)).astype(dtype(kind))
        return np.where(random.integers(0, 2, lanes(kind)) == 1, raw, near)
    size = dtype(kind).itemsize
    whole = np.frombuffer(random.bytes(lanes(kind) * size), dtype(kind))
    return whole >> dtype(kind).type(min(shift, 8 * size - 1))


def test_every_intrinsic_has_a_model() -> None:
    """What has none is a load, a store or a pattern, or stands in the list, with the test that it has."""
    modeled = {case.name for cases in FAMILIES.values() for case in cases}
    elsewhere = {name for name in read().names if name.startswith(tuple(f"IVP_{part}" for part in MEMORY_NAMES))}
    elsewhere |= {name for name in read().names if "SELI_" in name or "SHFLI_" in name or name.startswith("xb_")}
    forms = product(("SEL", "DSEL", "SHFL"), (suffix for suffix, _ in VECTORS.values()), ("I", "I_H"))
    by_pattern = {f"IVP_{kind}{suffix}{form}" for kind, suffix, form in forms}
    others = {  # test_others
        "IVP_RADDN_2XF32", "IVP_RADDN_2XF32T", "IVP_MOVNX16_FROM8", "IVP_MOVNX16_FROM8U", "IVP_MOVN_2XF32_FROMF32",
        "IVP_MOV16_FROMNX16", "IVP_MOV32_FROMN_2X32", "IVP_MOV32U_FROMN_2X32U", "IVP_EXTRPR64N_2X32",
        "IVP_DEXTRPRN_2X32", "IVP_INSRNX16", "IVP_INSRN_2X32",
        "IVP_DMULQA2N8XR8", "IVP_DMULUUQA2N8XR8", "IVP_DMULUSQA2N8XR8",
    }  # fmt: skip
    views = {
        name
        for name in read().names
        if name.startswith("IVP_MOV") and "_FROM" in name and re.search("2XF32|NXF16", name)
    }
    predicated = {name for name in read().names if name[-1] in "TF" and name[:-1] in modeled}
    assert sorted(set(read().names) - modeled - elsewhere - by_pattern - others - views - predicated) == []
    assert modeled <= set(read().names)
