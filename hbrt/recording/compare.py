"""The first difference between two memory ranges, byte by byte or as numbers with a tolerance. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

TYPES: Final = (
    "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"
)  # fmt: skip


class Difference(NamedTuple):
    """How two ranges of the same size differ.

    Attributes:
        byte: Offset of the first element that differs.
        element: Its index.
        recorded: Its recorded value.
        replayed: Its value now.
        differing: Number of differing elements.
        elements: Total number of elements.
        largest_error: The largest absolute error; NaN if only one side is NaN.
    """

    byte: int
    element: int
    recorded: float
    replayed: float
    differing: int
    elements: int
    largest_error: float


def difference(recorded: bytes, replayed: bytes, dtype: str = "uint8", tolerance: float = 0.0) -> Difference | None:
    """Compare two ranges; returns None if they are equal.

    Args:
        recorded: The recorded bytes.
        replayed: The replayed bytes, the same number.
        dtype: Element type, one of TYPES. An incomplete last element is compared byte by byte.
        tolerance: The largest absolute error that counts as equal. NaN equals NaN.
    """
    if recorded == replayed:
        return None
    import numpy as np

    whole = len(recorded) // np.dtype(dtype).itemsize * np.dtype(dtype).itemsize
    found = _elements(np.frombuffer(recorded[:whole], dtype), np.frombuffer(replayed[:whole], dtype), tolerance)
    if found is None and whole < len(recorded):
        rest = _elements(np.frombuffer(recorded[whole:], "uint8"), np.frombuffer(replayed[whole:], "uint8"), 0.0)
        return None if rest is None else rest._replace(byte=whole + rest.byte)
    return found


def _elements(old: NDArray[Any], new: NDArray[Any], tolerance: float) -> Difference | None:
    import numpy as np

    # 64-bit integers do not fit a float: compute their errors as Python integers.
    if old.dtype.itemsize == 8 and old.dtype.kind in "iu":
        old, new = old.astype(object), new.astype(object)
        errors: NDArray[Any] = abs(new - old)
        differs = errors > tolerance
    else:
        wide_old, wide_new = old.astype(np.float64), new.astype(np.float64)
        with np.errstate(invalid="ignore"):
            errors = abs(wide_new - wide_old)
        errors[(wide_old == wide_new) | (np.isnan(wide_old) & np.isnan(wide_new))] = 0.0  # including infinities
        differs = ~(errors <= tolerance)
    where = np.flatnonzero(differs)
    if not where.size:
        return None
    first = int(where[0])
    return Difference(
        first * (old.dtype.itemsize if old.dtype != object else 8),
        first,
        _number(old[first]),
        _number(new[first]),
        int(where.size),
        int(old.size),
        float(errors.max()),
    )


def _number(value: object) -> float:
    """Convert to Python's int or float."""
    return value.item() if hasattr(value, "item") else value  # type: ignore[return-value]
