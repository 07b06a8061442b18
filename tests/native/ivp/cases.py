"""The cases: each family of intrinsics with the rule that it must follow."""

# ruff: noqa: C901, PLR0912 -- these are tables: their branches are the types that a family has

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import reduce
from itertools import product

import numpy as np

from tests.native.ivp.models import (
    FLOATS,
    INTEGERS,
    SIGNED,
    UNSIGNED,
    VECTORS,
    Array,
    Case,
    bits,
    clip,
    dtype,
    each,
    lanes,
    limits,
    low,
    mask,
    predicated,
    signed,
    where,
)

SUFFIX = {kind: suffix for kind, (suffix, _) in VECTORS.items()}
WIDE_OF = {"8": "w24", "16": "w48", "32": "w64"}


WITH_FORMS = {"ADD", "MULSGN", "MAXNUM", "NEG", "NEGS", "NSAU", "POPC", "MUL"}
"""Operations whose predicated forms are tried: those of all others come from the same lines of the header."""


def pair(name: str, kind: str, model: Array, suffix: str = "") -> Iterator[Case]:
    case = Case(f"IVP_{name}{suffix or SUFFIX[kind]}", (kind,), (kind, kind), model)
    yield from predicated(case, "TF" if name in WITH_FORMS else "")


def single(name: str, kind: str, model: Array) -> Iterator[Case]:
    case = Case(f"IVP_{name}{SUFFIX[kind]}", (kind,), (kind,), model)
    yield from predicated(case, "TF" if name in WITH_FORMS else "")


def u_names(kind: str) -> tuple[str, ...]:
    """The suffixes of unsigned operations: with and without the U behind the type."""
    return SUFFIX[kind], SUFFIX[kind].removesuffix("U")


def arithmetic() -> Iterator[Case]:
    for kind in INTEGERS:
        yield from pair("ADD", kind, lambda a, b: a + b)
        yield from pair("SUB", kind, lambda a, b: a - b)
        yield from pair("AND", kind, lambda a, b: a & b)
        yield from pair("OR", kind, lambda a, b: a | b)
        yield from pair("XOR", kind, lambda a, b: a ^ b)
        yield Case(f"IVP_NOT{SUFFIX[kind]}", (kind,), (kind,), lambda a: -1 - a)
    for kind in SIGNED:
        yield from single("NEG", kind, lambda a: -a)
        yield from single("ABS", kind, np.abs)
        yield from pair("MAX", kind, np.maximum)
        yield from pair("MIN", kind, np.minimum)
        yield from pair("ABSSUB", kind, lambda a, b: np.abs(a - b))
    yield from pair("ADDS", "i16", lambda a, b: clip(a + b, "i16"))
    yield from pair("SUBS", "i16", lambda a, b: clip(a - b, "i16"))
    yield from single("NEGS", "i16", lambda a: clip(-a, "i16"))
    for kind in UNSIGNED:
        for suffix in u_names(kind):
            yield from pair("MAXU", kind, np.maximum, suffix)
            yield from pair("MINU", kind, np.minimum, suffix)
            yield from pair("ABSSUBU", kind, lambda a, b: np.abs(a - b), suffix)
    for kind in ("i8", "i16"):
        yield from pair("AVG", kind, lambda a, b: (a + b) // 2)
        yield from pair("AVGR", kind, lambda a, b: (a + b + 1) // 2)
    for kind in ("u8", "u16"):
        for suffix in u_names(kind):
            yield from pair("AVGU", kind, lambda a, b: (a + b) // 2, suffix)
            yield from pair("AVGRU", kind, lambda a, b: (a + b + 1) // 2, suffix)
    for kind in ("i16", "i32"):
        yield from pair("MULSGN", kind, lambda a, b: np.sign(a) * b)
        width = bits(kind)
        yield from single("NSA", kind, each(lambda a, width=width: width - 1 - (a if a >= 0 else -1 - a).bit_length()))
    for kind in ("i16", "u16", "i32", "u32"):
        width = bits(kind)
        yield from single("NSAU", kind, each(lambda a, width=width: width - (a & (1 << width) - 1).bit_length()))
    for kind in ("i8", "u8"):
        yield from single("POPC", kind, each(lambda a: (a & 255).bit_count()))


def division() -> Iterator[Case]:
    def quotient(a: int, b: int) -> int:
        return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    def remainder(a: int, b: int) -> int:
        return a if b == 0 else a - quotient(a, b) * b

    for kind, half in (("i32", "i16"), ("u32", "u16")):
        unsigned = "U" if kind[0] == "u" else ""

        def both(old: Array, old_rest: Array, a: Array, b: Array, part: int) -> tuple[Array, Array]:
            assert len(old) == len(old_rest)
            lanes_of_b = b[part & 1 :: 2]
            return each(quotient)(a, lanes_of_b), each(remainder)(a, lanes_of_b)

        yield Case(f"IVP_DIVN_2X32X16{unsigned}", (kind, kind), (kind, half, "int"), both, writes=True, ints=(0, 1))
        yield Case(f"IVP_QUONX16{unsigned}", (half,), (half, half), each(quotient))
        yield Case(f"IVP_REMNX16{unsigned}", (half,), (half, half), each(remainder))


def comparisons() -> Iterator[Case]:
    rules = {"LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}
    for kind, (name, rule) in product(SIGNED, rules.items()):
        yield Case(f"IVP_{name}{SUFFIX[kind]}", (mask(kind),), (kind, kind), rule)
    for kind, (name, rule) in product(UNSIGNED, rules.items()):
        for suffix in u_names(kind):
            yield Case(f"IVP_{name}U{suffix}", (mask(kind),), (kind, kind), rule)
    for kind in INTEGERS:
        yield Case(f"IVP_EQ{SUFFIX[kind]}", (mask(kind),), (kind, kind), np.equal)
        yield Case(f"IVP_NEQ{SUFFIX[kind]}", (mask(kind),), (kind, kind), np.not_equal)
    for kind in UNSIGNED:
        yield Case(f"IVP_EQU{SUFFIX[kind]}", (mask(kind),), (kind, kind), np.equal)
    ordered = {**rules, "EQ": np.equal, "NEQ": np.not_equal}
    for kind, (name, rule) in product(FLOATS, ordered.items()):
        yield Case(
            f"IVP_O{name}{SUFFIX[kind]}",
            (mask(kind),),
            (kind, kind),
            lambda a, b, rule=rule: rule(a, b) & ~np.isnan(a) & ~np.isnan(b),
        )
        yield Case(
            f"IVP_U{name}{SUFFIX[kind]}",
            (mask(kind),),
            (kind, kind),
            lambda a, b, rule=rule: rule(a, b) | np.isnan(a) | np.isnan(b),
        )
    for kind in FLOATS:
        yield Case(f"IVP_UN{SUFFIX[kind]}", (mask(kind),), (kind, kind), lambda a, b: np.isnan(a) | np.isnan(b))


def booleans() -> Iterator[Case]:
    for kind, name in (("b64", "2N"), ("b32", "N"), ("b16", "N_2")):
        yield Case(f"IVP_ANDB{name}", (kind,), (kind, kind), np.logical_and)
        yield Case(f"IVP_ORB{name}", (kind,), (kind, kind), np.logical_or)
        yield Case(f"IVP_XORB{name}", (kind,), (kind, kind), np.logical_xor)
        yield Case(f"IVP_NOTB{name}", (kind,), (kind,), np.logical_not)
        size = lanes(kind)
        for form in (f"LTR{name}", f"LTRS{name}", f"LTR{name}I"):
            counts = (-(2**31), -1, 0, 1, size - 1, size, size + 1, 2**31 - 1, size // 2)
            yield Case(f"IVP_{form}", (kind,), ("int",), lambda n, size=size: np.arange(size) < n, ints=counts)
    for whole, half, name, half_name in (("b64", "b32", "2N", "N"), ("b32", "b16", "N", "N_2")):
        size = lanes(half)
        yield Case(
            f"IVP_JOINB{half_name}", (whole,), (half, half), lambda high, low_half: np.concatenate([low_half, high])
        )
        yield Case(f"IVP_EXTRACTBL{name}", (half,), (whole,), lambda b, size=size: b[:size])
        yield Case(f"IVP_EXTRACTBH{name}", (half,), (whole,), lambda b, size=size: b[size:])
        yield Case(
            f"IVP_EXTRACTB{name}",
            (half, half),
            (whole,),
            lambda _, __, b, size=size: (b[size:], b[:size]),
            writes=True,
        )
    for kind in SIGNED:
        numbers = tuple(range(bits(kind)))
        yield Case(
            f"IVP_EXTBI{SUFFIX[kind]}",
            (mask(kind),),
            (kind, "int"),
            lambda v, bit: each(lambda x: x >> bit & 1)(v),
            ints=numbers,
        )
        yield Case(
            f"IVP_INJBI{SUFFIX[kind]}",
            (kind,),
            (mask(kind), "int"),
            lambda old, b, bit: each(lambda x, one: x & ~(1 << bit) | int(one) << bit)(old, b),
            writes=True,
            ints=numbers,
        )


def shifts() -> Iterator[Case]:
    def moved(x: int, count: int, width: int) -> int:
        n = min(max(count, -width), width)
        return x << n if n >= 0 else x >> -n

    def logical(kind: str, sign: int) -> Array:
        width = bits(kind)
        return each(lambda x, n: moved(x & (1 << width) - 1, sign * n, width))

    def arithmetic_shift(kind: str, sign: int) -> Array:
        width = bits(kind)
        return each(lambda x, n: moved(x, sign * n, width))

    def by(model: Array) -> Array:
        return lambda a, n: model(a, np.full(len(a), n, object))

    for kind in INTEGERS:
        width = bits(kind)
        counts = tuple(range(width))
        yield Case(f"IVP_SLLI{SUFFIX[kind]}", (kind,), (kind, "int"), by(logical(kind, 1)), ints=counts)
        yield Case(f"IVP_SRLI{SUFFIX[kind]}", (kind,), (kind, "int"), by(logical(kind, -1)), ints=counts)

        def with_sign(a: Array, n: int, width: int = width) -> Array:
            return signed(low(a, width), width).astype(object) >> n

        yield Case(f"IVP_SRAI{SUFFIX[kind]}", (kind,), (kind, "int"), with_sign, ints=counts)
    for kind, count in (("i16", "i16"), ("u16", "i16"), ("i32", "i32"), ("u32", "i32")):
        yield Case(f"IVP_SLL{SUFFIX[kind]}", (kind,), (kind, count), logical(kind, 1))
        yield Case(f"IVP_SRL{SUFFIX[kind]}", (kind,), (kind, count), logical(kind, -1))
    for kind in ("i16", "i32"):
        left, right = arithmetic_shift(kind, 1), arithmetic_shift(kind, -1)
        yield Case(f"IVP_SLA{SUFFIX[kind]}", (kind,), (kind, kind), left)
        yield Case(f"IVP_SRA{SUFFIX[kind]}", (kind,), (kind, kind), right)
        yield Case(f"IVP_SLS{SUFFIX[kind]}", (kind,), (kind, kind), lambda a, n, k=kind, f=left: clip(f(a, n), k))
        yield Case(f"IVP_SRS{SUFFIX[kind]}", (kind,), (kind, kind), lambda a, n, k=kind, f=right: clip(f(a, n), k))
        counts = tuple(range(bits(kind)))
        yield Case(
            f"IVP_SLSI{SUFFIX[kind]}",
            (kind,),
            (kind, "int"),
            by(lambda a, n, k=kind, f=left: clip(f(a, n), k)),
            ints=counts,
        )


def products() -> Iterator[Case]:
    unsigned_of = dict(zip(SIGNED, UNSIGNED, strict=True))
    for kind in SIGNED:
        wide, plain, unsigned = WIDE_OF[kind[1:]], SUFFIX[kind], unsigned_of[kind]
        forms = [("", plain, kind, kind), ("UU", plain, unsigned, unsigned), ("UU", plain + "U", unsigned, unsigned)]
        forms += [("US", plain, unsigned, kind), ("SU", plain, kind, unsigned)]
        for signs, suffix, a, b in forms:
            yield Case(f"IVP_MUL{signs}{suffix}", (wide,), (a, b), lambda x, y: x * y)
            yield Case(f"IVP_MUL{signs}A{suffix}", (wide,), (a, b), lambda w, x, y: w + x * y, writes=True)
            yield Case(f"IVP_MUL{signs}S{suffix}", (wide,), (a, b), lambda w, x, y: w - x * y, writes=True)
        for form, sign in (("A", 1), ("S", -1)):

            def chosen(w: Array, x: Array, y: Array, b: Array, sign: int = sign) -> Array:
                return w + sign * x * y * b.astype(object)

            yield Case(f"IVP_MUL{form}{plain}T", (wide,), (kind, kind, mask(kind)), chosen, writes=True)
    for signs, a, b in (("", "i16", "i32"), ("US", "u16", "i32"), ("SU", "i16", "u32"), ("UU", "u16", "u32")):
        for part, (form, shift) in product((0, 1), (("", 0), ("H", 16))):
            name = f"{form}N_2X16X32_{part}"
            yield Case(
                f"IVP_MUL{signs}{name}", ("w64",), (a, b), lambda x, y, p=part, s=shift: (x[p::2] * y) * (1 << s)
            )
            yield Case(
                f"IVP_MUL{signs}A{name}",
                ("w64",),
                (a, b),
                lambda w, x, y, p=part, s=shift: w + (x[p::2] * y) * (1 << s),
                writes=True,
            )
    for (signs, flags), kind in product((("", (0, 0)), ("UU", (1, 1)), ("US", (1, 0))), ("i8", "i16")):
        types = [unsigned_of[kind] if flag else kind for flag in flags] * 2
        wide, suffix = WIDE_OF[kind[1:]], SUFFIX[kind]
        yield Case(f"IVP_MUL{signs}P{suffix}", (wide,), tuple(types), lambda a, b, c, d: a * b + c * d)
        yield Case(
            f"IVP_MUL{signs}PA{suffix}", (wide,), tuple(types), lambda w, a, b, c, d: w + a * b + c * d, writes=True
        )
        yield Case(
            f"IVP_MUL{signs}PS{suffix}", (wide,), tuple(types), lambda w, a, b, c, d: w - a * b - c * d, writes=True
        )
    yield Case("IVP_MULUUPDA2NX8", ("w24",), ("u8",) * 4, lambda w, a, b, c, d: w + a * b - c * d, writes=True)
    for signs, kind, scalar in (("", "i8", "i1"), ("UU", "u8", "u1"), ("US", "u8", "i1")):

        def quad(w: Array, a: Array, b: Array, c: Array, d: Array, r: int, scalar: str = scalar) -> Array:
            k = np.array([r], np.int32).view(scalar).astype(object)
            return w + d * k[0] + c * k[1] + b * k[2] + a * k[3]

        numbers = (0, 1, -1, 0x7F80FF01, -0x7F80FF02, 0x01020304)
        yield Case(f"IVP_MUL{signs}QA2N8XR8", ("w24",), (kind,) * 4 + ("int",), quad, writes=True, ints=numbers)
    for signs, kind, scalar in (("", "i16", "i2"), ("UU", "u16", "u2"), ("US", "u16", "i2"), ("SU", "i16", "u2")):

        def two(a: Array, b: Array, r: int, scalar: str = scalar) -> Array:
            k = np.array([r], np.int32).view(scalar).astype(object)
            return b * k[0] + a * k[1]

        yield Case(
            f"IVP_MUL{signs}PN16XR16", ("w48",), (kind, kind, "int"), two, ints=(0, 1, -1, 0x7FFF8000, -0x7FFF8001)
        )
    for signs, kind in (("", "i8"), ("US", "u8")):

        def one(w: Array, a: Array, r: int) -> Array:
            return w + a * int(np.array([r], np.int32).view("i2")[0])

        def of_two(w: Array, a: Array, b: Array, r: int) -> Array:
            k = np.array([r], np.int32).view("i2").astype(object)
            return w + b * k[0] + a * k[1]

        yield Case(f"IVP_MUL{signs}A2N8XR16", ("w24",), (kind, "int"), one, writes=True, ints=(0, 7, -1, 0x7FFF8000))
        yield Case(
            f"IVP_MUL{signs}PA2N8XR16", ("w24",), (kind, kind, "int"), of_two, writes=True, ints=(0, 7, -1, 0x7FFF8000)
        )

    def interleaved(a: Array, odd: Array, even: Array) -> Array:
        factors = np.empty(64, object)
        factors[::2], factors[1::2] = even, odd
        return a * factors

    yield Case("IVP_MULI2NX8X16", ("w24",), ("i8", "i16", "i16"), interleaved)
    for kind in ("i8", "u8", "i16", "u16"):
        wide = WIDE_OF[kind[1:]]
        unsigned = "U" if kind[0] == "u" else ""
        for suffix in u_names(kind) if unsigned else (SUFFIX[kind],):
            for name, sign in (("ADDW", 1), ("SUBW", -1)):
                yield Case(f"IVP_{name}{unsigned}{suffix}", (wide,), (kind, kind), lambda a, b, s=sign: a + s * b)
                yield Case(
                    f"IVP_{name}{unsigned}A{suffix}",
                    (wide,),
                    (kind, kind),
                    lambda w, a, b, s=sign: w + a + s * b,
                    writes=True,
                )
    yield Case("IVP_DECNEGWNX48", ("w48",), (), each(lambda w: w - (w < 0)), writes=True)
    for kind in ("i16", "u16"):
        yield Case(f"IVP_MUL{SUFFIX[kind]}PACKL", (kind,), (kind, kind), lambda a, b: a * b)
        yield Case(f"IVP_MULA{SUFFIX[kind]}PACKL", (kind,), (kind, kind), lambda r, a, b: r + a * b, writes=True)
        yield Case(f"IVP_MULS{SUFFIX[kind]}PACKL", (kind,), (kind, kind), lambda r, a, b: r - a * b, writes=True)
    yield Case("IVP_MULNX16PACKQ", ("i16",), ("i16", "i16"), lambda a, b: clip(a * b + (1 << 14) >> 15, "i16"))


def packs() -> Iterator[Case]:
    def shifted(w: int, count: int, *, rounds: bool) -> int:
        n = min(max(count, 0), 63)
        return (w + (1 << n - 1) if rounds and n else w) >> n

    def pack(kind: str, how: str, part: int | None = None) -> Array:
        def model(w: Array, counts: Array) -> Array:
            lanes_of_w = w if part is None else w[part::2]
            counts = counts if isinstance(counts, np.ndarray) else np.full(len(lanes_of_w), counts, object)
            new = each(lambda x, n: shifted(x, n, rounds="NR" not in how))(lanes_of_w, counts)
            return new if "NR" in how else clip(new, kind)

        return model

    counts = (-1, 0, 1, 2, 7, 8, 14, 15, 16, 22, 23, 24, 31, 32, 47, 48, 54, 63, 64, 2**31 - 1)
    for wide, suffix, kind in (("w24", "2NX24", "i8"), ("w48", "NX48", "i16"), ("w64", "N_2X64W", "i32")):
        for how in ("V", "VNR", "VU"):
            out = "u" + kind[1:] if how == "VU" else kind
            yield Case(f"IVP_PACK{how}{suffix}", (out,), (wide, kind), pack(out, how))
        for how in ("VR", "VRNR", "VRU"):
            out = "u" + kind[1:] if how == "VRU" else kind
            yield Case(f"IVP_PACK{how}{suffix}", (out,), (wide, "int"), pack(out, how), ints=counts)
        yield Case(f"IVP_PACKL{suffix}", (kind,), (wide,), lambda w: w)
    for (wide, suffix, kind), how, part in product(
        (("w24", "2NX24", "i16"), ("w48", "NX48", "i32")), ("VR", "VRNR"), (0, 1)
    ):
        yield Case(f"IVP_PACK{how}{suffix}_{part}", (kind,), (wide, "int"), pack(kind, how, part), ints=counts)
    yield Case("IVP_PACKLN_2X96", ("i32",), ("w64",), lambda w: w)
    yield Case("IVP_PACKL2NX24_0", ("i16",), ("w24",), lambda w: w[::2])
    yield Case("IVP_PACKL2NX24_1", ("i16",), ("w24",), lambda w: w[1::2])
    yield Case("IVP_PACKMNX48", ("i16",), ("w48",), lambda w: w >> 16)
    yield Case("IVP_PACKHNX48", ("i16",), ("w48",), lambda w: w >> 32)
    yield Case("IVP_PACKHN_2X64W", ("i32",), ("w64",), lambda w: w >> 32)
    yield Case("IVP_PACKQNX48", ("i16",), ("w48",), lambda w: clip(w + (1 << 14) >> 15, "i16"))
    for number, quarter in enumerate(("LL", "LH", "HL", "HH")):
        yield Case(f"IVP_CVT32S2NX24{quarter}", ("i32",), ("w24",), lambda w, n=number: w[16 * n : 16 * n + 16])

        def as_64(w: Array, n: int = number) -> Array:
            return np.array([half for x in w[8 * n : 8 * n + 8] for half in (x, x >> 32)], object)

        yield Case(f"IVP_CVT64SNX48{quarter}", ("i32",), ("w48",), as_64)
    for upper, chosen in (("L", slice(0, 32)), ("H", slice(32, 64))):
        yield Case(f"IVP_CVT16S2NX24{upper}", ("i16",), ("w24",), lambda w, c=chosen: clip(w[c], "i16"))
        yield Case(f"IVP_CVT16U2NX24{upper}", ("u16",), ("w24",), lambda w, c=chosen: w[c])
    for upper, chosen in (("L", slice(0, 16)), ("H", slice(16, 32))):
        yield Case(f"IVP_CVT32SNX48{upper}", ("i32",), ("w48",), lambda w, c=chosen: clip(w[c], "i32"))
        yield Case(f"IVP_CVT32UNX48{upper}", ("u32",), ("w48",), lambda w, c=chosen: w[c])
        yield Case(f"IVP_UNPKSNX16_{upper}", ("i32",), ("i16",), lambda v, c=chosen: v[c])
        yield Case(f"IVP_UNPKUNX16_{upper}", ("u32",), ("u16",), lambda v, c=chosen: v[c])
    for part in (0, 1):
        yield Case(f"IVP_UNPKS2NX8_{part}", ("i16",), ("i8",), lambda v, p=part: v[p::2])
        yield Case(f"IVP_UNPKU2NX8_{part}", ("u16",), ("u8",), lambda v, p=part: v[p::2])

    def joined(high: Array, low_half: Array) -> Array:
        return np.concatenate([low_half, high])

    zeros = np.zeros(16, object)
    yield Case("IVP_CVT48SNX32", ("w48",), ("i32", "i32"), joined)
    yield Case("IVP_CVT48UNX32", ("w48",), ("u32", "u32"), joined)
    yield Case("IVP_CVT48SNX32L", ("w48",), ("i32",), lambda v: joined(zeros, v))
    yield Case("IVP_CVT48UNX32L", ("w48",), ("u32",), lambda v: joined(zeros, v))
    yield Case("IVP_CVT24S2NX16", ("w24",), ("i16", "i16"), joined)
    yield Case(
        "IVP_CVT24UNX32L",
        ("w24",),
        ("u32", "u32"),
        lambda high, low_half: np.concatenate([low_half, high, zeros, zeros]),
    )
    yield Case(
        "IVP_CVT24UNX32H",
        ("w24",),
        ("u32", "u32"),
        lambda w, high, low_half: np.concatenate([w[:32], low_half, high]),
        writes=True,
    )
    yield Case(
        "IVP_MOV2NX24_FROMNX48",
        ("w24",),
        ("w48",),
        lambda w: np.array([half for x in w for half in (x, x >> 24)], object),
    )
    yield Case("IVP_MOVNX48_FROM2NX24", ("w48",), ("w24",), lambda w: w[1::2] * (1 << 24) + low(w[::2], 24))
    for wide, suffix in (("w24", "2NX24"), ("w48", "NX48"), ("w64", "N_2X64W")):
        yield Case(f"IVP_ZERO{suffix}", (wide,), (), lambda wide=wide: np.zeros(lanes(wide), object))


def reductions() -> Iterator[Case]:
    sums = [
        ("RADD2NX8", "i8", "i16"),
        ("RADDU2NX8", "u8", "u16"),
        ("RADDNX16", "i16", "i32"),
        ("RADDRNX16", "i16", "i32"),
    ]
    sums += [
        ("RADDUNX16", "u16", "u32"),
        ("RADDURNX16", "u16", "u32"),
        ("RADDN_2X32", "i32", "i32"),
        ("RADDN_2X32U", "u32", "u32"),
    ]
    for name, kind, out in sums:
        yield Case(f"IVP_{name}", (f"s:{out}",), (kind,), np.sum)
        if name not in ("RADDRNX16", "RADDURNX16", "RADDN_2X32U"):
            yield Case(f"IVP_{name}T", (f"s:{out}",), (kind, mask(kind)), lambda v, b: np.sum(v * b.astype(object)))
    for kind in SIGNED:
        lowest, highest = limits(kind)
        for name, rule, neutral in (("RMAX", np.max, lowest), ("RMIN", np.min, highest)):
            yield Case(f"IVP_{name}{SUFFIX[kind]}", (f"s:{kind}",), (kind,), rule)
            for form, sign in (("T", True), ("F", False)):

                def chosen(v: Array, b: Array, rule: Array = rule, neutral: int = neutral, sign: bool = sign) -> Array:  # noqa: FBT001
                    return rule(np.append(v[b == sign], neutral))

                yield Case(f"IVP_{name}{SUFFIX[kind]}{form}", (f"s:{kind}",), (kind, mask(kind)), chosen)
    for kind in UNSIGNED:
        for suffix in u_names(kind):
            yield Case(f"IVP_RMAXU{suffix}", (f"s:{kind}",), (kind,), np.max)
            yield Case(f"IVP_RMINU{suffix}", (f"s:{kind}",), (kind,), np.min)
    yield Case("IVP_RMAXN_2XF32", ("s:f32",), ("f32",), np.max)
    yield Case("IVP_RMINN_2XF32", ("s:f32",), ("f32",), np.min)
    # Not np.fmax.reduce: behind a NaN it loses numbers that came before.
    yield Case("IVP_RMAXNUMN_2XF32", ("s:f32",), ("f32",), lambda v: reduce(np.fmax, v))
    yield Case("IVP_RMINNUMN_2XF32", ("s:f32",), ("f32",), lambda v: reduce(np.fmin, v))


def floats() -> Iterator[Case]:
    for kind in FLOATS:
        yield from float_arithmetic(kind)
    scales: tuple[int, ...] = (0, 1, 24, 31, -3)

    def truncated(kind: str) -> Array:
        def lane(x: float, scale: int) -> int:
            if np.isnan(x):
                return 0
            lowest, highest = limits(kind)
            scaled = np.float64(x) * 2.0**scale
            return lowest if scaled <= lowest else highest if scaled >= highest else int(scaled)

        return lambda a, scale: np.array([lane(x, scale) for x in a], object)

    yield Case("IVP_TRUNCN_2XF32", ("i32",), ("f32", "int"), truncated("i32"), ints=scales)
    yield Case("IVP_UTRUNCN_2XF32", ("u32",), ("f32", "int"), truncated("u32"), ints=scales)
    for name, kind in (("FLOATN_2X32", "i32"), ("UFLOATN_2X32U", "u32")):
        yield Case(
            f"IVP_{name}",
            ("f32",),
            (kind, "int"),
            lambda a, s: (a.astype(np.float64) * 2.0**-s).astype(np.float32),
            ints=scales,
        )
    scales = (0, 1, 9, -3)
    yield Case("IVP_TRUNC16NXF16", ("i16",), ("f16", "int"), truncated("i16"), ints=scales)
    yield Case(
        "IVP_FLOAT16NX16",
        ("f16",),
        ("i16", "int"),
        lambda a, s: (a.astype(np.float64) * 2.0**-s).astype(np.float16),
        ints=scales,
    )
    for part in (0, 1):
        yield Case(f"IVP_CVTF32NXF16_{part}", ("f32",), ("f16",), lambda a, part=part: a[part::2])
    yield Case(
        "IVP_CVTF16N_2XF32_0",
        ("f16",),
        ("f32",),
        lambda a: np.stack([a.astype(np.float16), np.zeros(16, np.float16)], 1).ravel(),
    )


def float_arithmetic(kind: str) -> Iterator[Case]:
    """What all floats have; each result is rounded once."""
    lane = dtype(kind).type

    def rounded(function: Array) -> Array:
        return lambda *vectors: function(*vectors).astype(lane)

    for name, rule in (("ADD", np.add), ("SUB", np.subtract), ("MUL", np.multiply)):
        yield from pair(name, kind, rounded(rule))
    for name, pick in (("MAX", np.maximum), ("MIN", np.minimum), ("MAXNUM", np.fmax), ("MINNUM", np.fmin)):
        yield from pair(name, kind, pick)
    away = rounded(lambda a: np.trunc(a.astype(np.float64) + np.copysign(0.5, a)))
    rules = [("NEG", np.negative), ("ABS", np.abs), ("FIROUND", away), ("FIRINT", np.rint), ("FIFLOOR", np.floor)]
    for name, rule in (*rules, ("FICEIL", np.ceil), ("FITRUNC", np.trunc)):
        yield from single(name, kind, rule)
    suffix = SUFFIX[kind]
    yield Case(f"IVP_DIV{suffix}", (kind,), (kind, kind), rounded(np.divide))
    yield Case(f"IVP_RECIP{suffix}", (kind,), (kind,), lambda a: lane(1) / a)
    yield Case(f"IVP_SQRT{suffix}", (kind,), (kind,), rounded(np.sqrt))
    if kind == "f32":
        yield Case(f"IVP_RSQRT{suffix}", (kind,), (kind,), lambda a: lane(1) / np.sqrt(a))
    else:  # rounded once
        yield Case(f"IVP_RSQRT{suffix}", (kind,), (kind,), lambda a: rounded(np.divide)(1.0, np.sqrt(a.astype("f8"))))
    for name, sign in (("MULA", 1), ("MULS", -1)):
        yield Case(
            f"IVP_{name}{suffix}",
            (kind,),
            (kind, kind),
            lambda r, a, b, s=sign: fused(kind, r, a, b, s),
            writes=True,
        )
        yield Case(
            f"IVP_{name}{suffix}T",
            (kind,),
            (kind, kind, mask(kind)),
            lambda r, a, b, chosen, s=sign: where(chosen, fused(kind, r, a, b, s), r),
            writes=True,
        )


def fused(kind: str, r: Array, a: Array, b: Array, sign: int) -> Array:
    """The sum of r and sign * a * b, rounded once."""
    if kind == "f32":
        wide_sum = sign * a.astype(np.longdouble) * b.astype(np.longdouble) + r.astype(np.longdouble)
        return wide_sum.astype(np.float32)
    rows = zip(r, a, b, strict=True)
    return np.array([fused_half(float(x), float(y), float(z), sign) for x, y, z in rows], np.float16)


def fused_half(r: float, a: float, b: float, sign: int) -> np.float16:
    """The nearest of the numbers of half precision around the exact sum; that with an even last bit of two."""
    near = sign * a * b + r
    if not math.isfinite(near) or near == 0:
        return np.float16(near)
    exact = sign * Fraction(a) * Fraction(b) + Fraction(r)
    if abs(exact) >= 65520:
        return np.float16(math.copysign(math.inf, near))
    first = np.float16(max(-65504.0, min(65504.0, near)))
    around = [first, *(np.nextafter(first, np.float16(end)) for end in (-np.inf, np.inf))]
    finite = [one for one in around if np.isfinite(one)]
    return min(finite, key=lambda one: (abs(Fraction(float(one)) - exact), int(one.view(np.uint16)) & 1))


def moves() -> Iterator[Case]:
    for kind in VECTORS:
        suffix, size = SUFFIX[kind], lanes(kind)
        yield Case(f"IVP_MOV{suffix}T", (kind,), (kind, kind, mask(kind)), lambda a, b, c: where(c, a, b))
        yield Case(f"IVP_MOV{suffix}F", (kind,), (kind, kind, mask(kind)), lambda a, b, c: where(c, b, a))
        index = f"i{bits(kind)}"

        def selected(high: Array, low_half: Array, at: Array, size: int = size) -> Array:
            return np.concatenate([low_half, high])[(at & 2 * size - 1).astype(int)]

        yield Case(f"IVP_SEL{suffix}", (kind,), (kind, kind, index), selected)

        def selected_where(old: Array, high: Array, low_half: Array, at: Array, b: Array, f: Array = selected) -> Array:
            return where(b, f(high, low_half, at), old)

        yield Case(f"IVP_SEL{suffix}T", (kind,), (kind, kind, index, mask(kind)), selected_where, writes=True)
        yield Case(f"IVP_SHFL{suffix}", (kind,), (kind, index), lambda v, at, size=size: v[(at & size - 1).astype(int)])
        numbers = tuple(range(size))
        yield Case(f"IVP_SELS{suffix}", (f"s:{kind}",), (kind, "int"), lambda v, n: v[n], ints=numbers)
        yield Case(
            f"IVP_REP{suffix}", (kind,), (kind, "int"), lambda v, n, size=size: np.array([v[n]] * size), ints=numbers
        )
        if kind not in FLOATS:
            yield Case(f"IVP_SEQ{suffix}", (kind,), (), lambda size=size: np.arange(size).astype(object))
            yield Case(f"IVP_ZERO{suffix}", (kind,), (), lambda size=size: np.zeros(size, object))
    for kind in ("i16", "u16"):

        def dual(_: Array, __: Array, high: Array, low_half: Array, at: Array) -> tuple[Array, Array]:
            both, index = np.concatenate([low_half, high]), (at & 63).astype(int)
            return both[index[1::2]], both[index[::2]]

        yield Case(f"IVP_DSEL{SUFFIX[kind]}", (kind, kind), (kind, kind, "i8"), dual, writes=True)

        def dual_where(
            one: Array,
            zero: Array,
            high: Array,
            low_half: Array,
            at: Array,
            b: Array,
            f: Array = dual,
        ) -> tuple[Array, Array]:
            new_one, new_zero = f(one, zero, high, low_half, at)
            return where(b[1::2], new_one, one), where(b[::2], new_zero, zero)

        yield Case(f"IVP_DSEL{SUFFIX[kind]}T", (kind, kind), (kind, kind, "i8", "b64"), dual_where, writes=True)
    for name, kind, count in (
        ("EXTR2NX8", "i8", 64),
        ("EXTRNX16", "i16", 32),
        ("EXTRN_2X32", "i32", 16),
        ("EXTRPRN_2X32", "i32", 16),
    ):
        yield Case(f"IVP_{name}", ("s:i32",), (kind, "int"), lambda v, n: v[n], ints=tuple(range(count)))
    yield Case("IVP_EXTRVRN_2X32", ("s:i32",), ("i32", "int"), lambda v, n: v[n // 4], ints=tuple(range(0, 64, 4)))
    for name, kind, out in (("MOVAV8", "i8", "i32"), ("MOVAV16", "i16", "i32"), ("MOVAV32", "i32", "i32")):
        yield Case(f"IVP_{name}", (f"s:{out}",), (kind,), lambda v: v[0])
        yield Case(f"IVP_{name.replace('AV', 'AVU')}", ("s:u32",), ("u" + kind[1:],), lambda v: v[0])
    yield Case("IVP_MOVF32_FROMN_2XF32", ("s:f32",), ("f32",), lambda v: v[0])
    numbers = (0, 1, -1, 127, 128, 255, -32768, 65535, 2**31 - 1, -(2**31))
    vectors = [
        ("MOVVA8", "i8"),
        ("MOVVA16", "i16"),
        ("MOVVA32", "i32"),
        ("MOVNX16_FROM16", "i16"),
        ("MOVNX16U_FROM16U", "u16"),
    ]
    for name, kind in (*vectors, ("MOVNX16_FROM32", "i16"), ("MOVNX16_FROM32U", "i16"), ("MOVN_2X32_FROM32", "i32")):
        yield Case(f"IVP_{name}", (kind,), ("int",), lambda x, kind=kind: np.full(lanes(kind), x, object), ints=numbers)
    for (to, to_suffix), (of, of_suffix) in product(SUFFIX.items(), SUFFIX.items()):

        def same_bytes(v: Array, to: str = to, of: str = of) -> Array:
            raw = v if of in FLOATS else low(v, bits(of)).astype(np.uint64).astype(f"u{bits(of) // 8}")
            view = np.ascontiguousarray(raw).view(f"{to[0]}{bits(to) // 8}")
            return view if to in FLOATS else view.astype(object)

        if (
            {to, of} & set(FLOATS)
            and to != of
            and {to[1:] + to[0], of[1:] + of[0]} not in ({"32f", "32i"}, {"16f", "16i"})
        ):
            continue  # a lane of float may be a NaN of any kind: one direction of integers tells enough
        yield Case(f"IVP_MOV{to_suffix}_FROM{of_suffix}", (to,), (of,), same_bytes)


def patterns() -> list[tuple[str, int, Array]]:
    """Pattern, bytes of its elements, and which element of low and high (n each) element i takes."""
    known: list[tuple[str, int, Array]] = []
    for width, unit in (("8B_", 1), ("16B_", 2), ("32B_", 4), ("", 2)):
        for k in range(1, 32):
            known.append((f"IVP_SELI_{width}ROTATE_RIGHT_{k}", unit, lambda i, _, k=k: i + k))
            known.append((f"IVP_SELI_{width}ROTATE_LEFT_{k}", unit, lambda i, n, k=k: n - k + i))
        for k in (1, 2, 4):
            lists = {
                "LO": lambda n, k=k: _interleaved(range(n // 2), n, k),
                "HI": lambda n, k=k: _interleaved(range(n // 2, n), n, k),
                "EVEN": lambda n, k=k: _interleaved([i for i in range(n) if i // k % 2 == 0], n, k),
                "ODD": lambda n, k=k: _interleaved([i for i in range(n) if i // k % 2 == 1], n, k),
            }
            known += [
                (f"IVP_SELI_{width}INTERLEAVE_{k}_{name}", unit, lambda i, n, f=f: f(n)[i]) for name, f in lists.items()
            ]
        for offset, name in ((0, "EVEN"), (1, "ODD")):
            known.append((f"IVP_SELI_{width}EXTRACT_1_OF_2_OFF_{offset}", unit, lambda i, _, o=offset: 2 * i + o))
            known.append((f"IVP_SELI_{width}DEINTERLEAVE_1_{name}", unit, lambda i, _, o=offset: 2 * i + o))
        known.append(
            (f"IVP_SELI_{width}EXTRACT_LO_HALVES", unit, lambda i, n: [*range(n // 2), *range(n, n + n // 2)][i])
        )
        known.append(
            (f"IVP_SELI_{width}EXTRACT_HI_HALVES", unit, lambda i, n: [*range(n // 2, n), *range(n + n // 2, 2 * n)][i])
        )
    known += [(f"IVP_SELI_8B_ROTATE_RIGHT_{k}", 1, lambda i, _, k=k: i + k) for k in range(32, 64)]
    known += [(f"IVP_SELI_8B_ROTATE_LEFT_{k}", 1, lambda i, n, k=k: n - k + i) for k in range(32, 64)]
    return known


def _interleaved(of: Array, n: int, k: int) -> list[int]:
    chosen = list(of)
    groups = [chosen[i : i + k] for i in range(0, len(chosen), k)]
    return [i for group in groups for i in (*group, *(j + n for j in group))]


FAMILIES = {
    "arithmetic": list(arithmetic()),
    "division": list(division()),
    "comparisons": list(comparisons()),
    "booleans": list(booleans()),
    "shifts": list(shifts()),
    "products": list(products()),
    "packs": list(packs()),
    "reductions": list(reductions()),
    "floats": list(floats()),
    "moves": list(moves()),
}
