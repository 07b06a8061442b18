"""Scalar models of the intrinsics, in numpy: what each must give, lane by lane, written apart from the headers.

A case names an intrinsic, the types that it takes and returns, and the model. `source` writes the C++ that ctypes
calls: one function a case, which takes an array of addresses. Types: ``i8`` to ``u32``, ``f32`` and ``f16`` vectors;
``b64``, ``b32``, ``b16`` vector booleans, arrays of bool here; ``w24``, ``w48``, ``w64`` wide registers; ``int`` a
scalar argument; ``s:TYPE`` a scalar result. An intrinsic that writes its first arguments has them as results, and the
model gets their old values first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

Array = Any
"""An array, of numbers of Python or of numpy: what models compute with."""
LANES = {"8": 64, "16": 32, "32": 16}
VECTORS = {
    "i8": ("2NX8", "xb_vec2Nx8"), "u8": ("2NX8U", "xb_vec2Nx8U"),
    "i16": ("NX16", "xb_vecNx16"), "u16": ("NX16U", "xb_vecNx16U"),
    "i32": ("N_2X32", "xb_vecN_2x32v"), "u32": ("N_2X32U", "xb_vecN_2x32Uv"),
    "f32": ("N_2XF32", "xb_vecN_2xf32"), "f16": ("NXF16", "xb_vecNxf16"),
}  # fmt: skip
WIDE = {
    "w24": ("xb_vec2Nx24", np.int32, 64),
    "w48": ("xb_vecNx48", np.int64, 32),
    "w64": ("xb_vecN_2x64w", np.int64, 16),
}
BOOLS = {"b64": ("vbool2N", 64), "b32": ("vboolN", 32), "b16": ("vboolN_2", 16)}
SIGNED = ("i8", "i16", "i32")
UNSIGNED = ("u8", "u16", "u32")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("f32", "f16")
SLOT = 64 * 4
"""Bytes between two results: the largest register's."""


def bits(kind: str) -> int:
    """Bits of a lane."""
    return int(kind[1:])


def lanes(kind: str) -> int:
    """Lanes of a vector, a wide register or a vector boolean."""
    if kind in WIDE:
        return WIDE[kind][2]
    return BOOLS[kind][1] if kind in BOOLS else LANES[kind[1:]]


def mask(kind: str) -> str:
    """The vector boolean of a vector."""
    return f"b{lanes(kind)}"


def dtype(kind: str) -> np.dtype[Any]:
    """The numpy type of a lane."""
    if kind in WIDE:
        return np.dtype(WIDE[kind][1])
    return np.dtype({"i": "int", "u": "uint", "f": "float"}[kind[0]] + kind[1:])


def c_type(kind: str) -> str:
    """The type as C++ names it."""
    if kind.startswith("s:"):
        return {"s:f32": "float", "s:f16": "xb_f16"}.get(kind) or f"{dtype(kind[2:])}_t"
    if kind == "int":
        return "int"
    if kind in VECTORS:
        return VECTORS[kind][1]
    return WIDE[kind][0] if kind in WIDE else BOOLS[kind][0]


class Case(NamedTuple):
    """One intrinsic: `results` that it returns or, with `writes`, gets by reference; `takes`; and what it must give."""

    name: str
    results: tuple[str, ...]
    takes: tuple[str, ...]
    model: Callable[..., Any]
    writes: bool = False
    ints: tuple[int, ...] = ()
    """Values of its scalar argument that are worth a try."""


def source(cases: list[Case]) -> str:
    """A function for each case: results in and out at `r`, one behind the other; addresses of arguments in `a`."""
    lines = ["#include <xtensa/tie/xt_ivpn.h>", "#include <string.h>"]
    for case in cases:
        outs, ins = [f"y{i}" for i in range(len(case.results))], [f"x{i}" for i in range(len(case.takes))]
        body = ["(void)a;"]
        for i, (kind, name) in enumerate(zip(case.takes, ins, strict=True)):
            body.append(f"{c_type(kind)} {name}; memcpy((void *)&{name}, a[{i}], sizeof {name});")
        for i, (kind, name) in enumerate(zip(case.results, outs, strict=True)):
            body.append(f"{c_type(kind)} {name}; memcpy((void *)&{name}, r + {SLOT * i}, sizeof {name});")
        body.append(
            f"{'' if case.writes else 'y0 = '}{case.name}({', '.join([*(outs if case.writes else ()), *ins])});"
        )
        body += [f"memcpy(r + {SLOT * i}, (const void *)&{name}, sizeof {name});" for i, name in enumerate(outs)]
        lines.append(f'extern "C" void c_{case.name}(char *r, const void **a) {{ {" ".join(body)} }}')
    return "\n".join(lines) + "\n"


def packed(kind: str, value: Array) -> bytes:
    """A value as it lies in memory."""
    if kind in BOOLS:
        return np.packbits(value, bitorder="little").tobytes()
    if kind == "int":
        return int(value).to_bytes(8, "little", signed=True)[:4]
    return np.ascontiguousarray(value).tobytes()


def unpacked(kind: str, raw: bytes) -> Array:
    """The value of a result."""
    if kind in BOOLS:
        size = lanes(kind)
        return np.unpackbits(np.frombuffer(raw[: size // 8], np.uint8), bitorder="little").astype(bool)
    if kind.startswith("s:"):
        return np.frombuffer(raw[: dtype(kind[2:]).itemsize], dtype(kind[2:]))
    array = np.frombuffer(raw[: lanes(kind) * dtype(kind).itemsize], dtype(kind))
    return signed(array, bits(kind)) if kind in WIDE else array


def signed(x: Array, width: int) -> Array:
    """The low bits of int64, with their sign."""
    return np.left_shift(x.astype(np.int64), 64 - width) >> np.int64(64 - width)


def call(library: ctypes.CDLL, case: Case, values: list[Any], old: list[Any]) -> list[Array]:
    """What the intrinsic gives."""
    buffers = [ctypes.create_string_buffer(packed(kind, value)) for kind, value in zip(case.takes, values, strict=True)]
    result = ctypes.create_string_buffer(SLOT * len(case.results))
    for i, (kind, value) in enumerate(zip(case.results, old, strict=True)):
        raw = b"" if kind.startswith("s:") else packed(kind, value)
        ctypes.memmove(ctypes.addressof(result) + SLOT * i, raw, len(raw))
    addresses = (ctypes.c_void_p * max(len(buffers), 1))(*(ctypes.addressof(buffer) for buffer in buffers))
    getattr(library, f"c_{case.name}")(result, addresses)
    return [unpacked(kind, result.raw[SLOT * i : SLOT * (i + 1)]) for i, kind in enumerate(case.results)]


def expected(case: Case, values: list[Any], old: list[Any]) -> list[Array]:
    """What the model says: integers are cut to their width, as a register cuts them."""
    numbers = [wider(kind, value) for kind, value in zip(case.takes, values, strict=True)]
    before = [wider(kind, value) for kind, value in zip(case.results, old, strict=True)] if case.writes else []
    with np.errstate(all="ignore"):
        given = case.model(*before, *numbers)
    outputs = given if isinstance(given, tuple) else (given,)
    return [_cut(kind, output) for kind, output in zip(case.results, outputs, strict=True)]


def wider(kind: str, value: Array) -> Array:
    """Integers as Python's, which have no width, so that a model cannot wrap by accident."""
    if kind in WIDE:
        return signed(value, bits(kind)).astype(object)
    return value.astype(object) if kind in INTEGERS else value


def _cut(kind: str, output: Array) -> Array:
    if kind in BOOLS:
        return np.asarray(output, bool)
    if kind in WIDE:
        return signed(low(np.asarray(output, object), 64).astype(np.uint64).view(np.int64), bits(kind))
    plain = kind.removeprefix("s:")
    if plain in FLOATS:
        return np.atleast_1d(np.asarray(output, dtype(plain)))
    width = bits(plain)
    unsigned = low(np.atleast_1d(np.asarray(output, object)), width).astype(np.uint64).astype(f"uint{width}")
    return unsigned.view(dtype(plain))


def low(x: Array, width: int) -> Array:
    """The low bits of each number."""
    return np.array([int(value) & ((1 << width) - 1) for value in x], object)


def limits(kind: str) -> tuple[int, int]:
    """The lowest and highest value of a lane."""
    width = bits(kind)
    return (0, (1 << width) - 1) if kind[0] == "u" else (-(1 << width - 1), (1 << width - 1) - 1)


def clip(x: Array, kind: str) -> Array:
    """Saturated to a lane."""
    low_end, high_end = limits(kind)
    return np.array([min(max(int(value), low_end), high_end) for value in x], object)


def where(condition: Array, yes: Array, no: Array) -> Array:
    """`yes` where the condition holds."""
    return np.array([a if c else b for c, a, b in zip(condition, yes, no, strict=True)], yes.dtype)


def each(function: Callable[..., Any]) -> Callable[..., Array]:
    """A rule of single lanes as one of vectors."""
    return lambda *vectors: np.array([function(*row) for row in zip(*vectors, strict=True)], object)


def predicated(case: Case, forms: str = "TF") -> Iterator[Case]:
    """A case with its predicated forms."""
    yield case
    kind = case.results[0]
    for form in forms:

        def model(old: Array, *rest: Array, form: str = form) -> Array:
            chosen = rest[-1] if form == "T" else ~rest[-1]
            new = case.model(*rest[:-1])
            return where(chosen, np.asarray(new, old.dtype), old)

        yield Case(case.name + form, (kind,), (*case.takes, mask(kind)), model, writes=True)
