"""What quantize and dequantize share: their parameters, checked, as one scale and zero point per channel.

SHIFT needs no arithmetic of its own: with scale = 2^-shift and zero_point = 0, x / scale equals x * 2^shift, and
(y - zero_point) * scale equals y / 2^shift, to the last bit of float32, because both are powers of two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dsp_server.errors import ParameterError
from hbrt.behavior import MAX_DIMENSIONS, MAX_SHIFT, QUANTI_DTYPES
from hbrt.nn_types import (
    HB_DSP_QUANTI_DDR_PATH,
    HB_DSP_QUANTI_PER_TENSOR,
    HB_DSP_QUANTI_ROUND_HALF_AWAY,
    HB_DSP_QUANTI_ZERO_POINT_LAST,
    QUANTI_SCALE,
    QUANTI_SHIFT,
    hbDSPDequantizeParam,
    hbDSPQuantizeParam,
)

Value = TypeVar("Value", bound=np.generic)

LONGEST_PERIOD = 1 << 18
LONGEST_TILE = 1 << 15
QuantiParam: TypeAlias = hbDSPQuantizeParam | hbDSPDequantizeParam
Load = Callable[[int, int, np.dtype[Any]], NDArray[Any] | None]
"""(physical address, count, dtype) -> the array there, or None if the range cannot be mapped."""

Rule = tuple[NDArray[np.float32], NDArray[np.int32]]
"""Scales and zero points: one per channel, or a single one for the whole tensor."""

FLAGS = HB_DSP_QUANTI_ROUND_HALF_AWAY | HB_DSP_QUANTI_DDR_PATH | HB_DSP_QUANTI_ZERO_POINT_LAST
FLOAT32 = np.dtype(np.float32)
INT32 = np.dtype(np.int32)
DTYPES: dict[int, np.dtype[Any]] = {number: np.dtype(name) for number, name in QUANTI_DTYPES.items()}
"""Quantized types by their number in hbDNNDataType."""


class Channels(Generic[Value]):
    """values[(i // inner) % len(values)] for each element i of a tensor; a single value applies to all elements.

    Args:
        values: (channels,).
        inner: Number of consecutive elements of one channel: the product of the dimensions after the axis.
        count: Number of elements in the tensor.
    """

    def __init__(self, values: NDArray[Value], inner: int, count: int) -> None:
        self.values = values
        self._inner = inner
        self._period = len(values) * inner
        self._written: NDArray[Value] | None = None
        if len(values) > 1 and 0 < self._period <= LONGEST_PERIOD:  # 0: a dimension after the axis is empty
            # Written out once, one tile longer than the period, so that every tile is a slice of it.
            longest = min(count, LONGEST_TILE)
            self._written = np.tile(np.repeat(values, inner), 1 + -(-longest // self._period))

    def of(self, first: int, count: int) -> NDArray[Value]:
        """Return the values for elements [first, first + count): (count,), or (1,) if there is only one value."""
        if len(self.values) == 1:
            return self.values
        if self._written is not None and count <= LONGEST_TILE:
            at = first % self._period
            return self._written[at : at + count]
        runs = np.arange(first // self._inner, (first + count - 1) // self._inner + 1)
        begins = np.maximum(runs * self._inner, first)
        ends = np.minimum((runs + 1) * self._inner, first + count)
        return np.repeat(self.values[runs % len(self.values)], ends - begins)


@dataclass(frozen=True)
class Plan:
    """A checked parameter structure: the divisor or factor, and the offset, for each of `count` elements."""

    count: int
    dtype: np.dtype[Any]
    scales: Channels[np.float32]
    zero_points: Channels[np.int32]
    half_away: bool
    zero_point_last: bool
    ddr: bool


def plan(param: QuantiParam, load: Load) -> Plan | None:
    """Check a parameter structure and read the arrays that it points to.

    Returns:
        The plan, or None if an array cannot be mapped.

    Raises:
        ParameterError: a field has a value that no tensor can have; the text has the field and the value.
    """
    shape = _shape(param)
    if param.tensor_type not in DTYPES:
        known = ", ".join(f"{number} {dtype.name}" for number, dtype in DTYPES.items())
        raise ParameterError(f"tensor_type {param.tensor_type} is not a quantized type: use one of {known}.")
    if param.flags & ~FLAGS:
        raise ParameterError(f"flags {param.flags:#x} has unknown bits set: clear the structure before use.")
    if param.quanti_type not in RULES:
        raise ParameterError(f"Unknown quanti_type {param.quanti_type}: use 1 (SHIFT) or 2 (SCALE).")
    dtype = DTYPES[param.tensor_type]
    per_tensor = param.axis == HB_DSP_QUANTI_PER_TENSOR
    rule = RULES[param.quanti_type](param, 1 if per_tensor else shape[param.axis], dtype, load)
    if rule is None:
        return None
    count = math.prod(shape)
    inner = 1 if per_tensor else math.prod(shape[param.axis + 1 :])
    return Plan(
        count=count,
        dtype=dtype,
        scales=Channels(rule[0], inner, count),
        zero_points=Channels(rule[1], inner, count),
        half_away=bool(param.flags & HB_DSP_QUANTI_ROUND_HALF_AWAY),
        zero_point_last=bool(param.flags & HB_DSP_QUANTI_ZERO_POINT_LAST),
        ddr=bool(param.flags & HB_DSP_QUANTI_DDR_PATH),
    )


def _shape(param: QuantiParam) -> tuple[int, ...]:
    if not 1 <= param.dimension_count <= MAX_DIMENSIONS:
        raise ParameterError(f"Invalid dimension_count {param.dimension_count}: must be 1 to {MAX_DIMENSIONS}.")
    shape = tuple(param.shape[: param.dimension_count])
    if min(shape) < 0:
        raise ParameterError(f"shape {shape} has a negative dimension.")
    if not HB_DSP_QUANTI_PER_TENSOR <= param.axis < len(shape):
        raise ParameterError(
            f"axis {param.axis} is out of range for shape {shape}: use 0..{len(shape) - 1}, "
            f"or {HB_DSP_QUANTI_PER_TENSOR} for one scale for the whole tensor."
        )
    return shape


def _scale_rule(param: QuantiParam, channels: int, dtype: np.dtype[Any], load: Load) -> Rule | None:
    scales: NDArray[Any] | None = np.array([param.scale], FLOAT32)
    zero_points: NDArray[Any] | None = np.array([param.zero_point], INT32)
    if param.axis != HB_DSP_QUANTI_PER_TENSOR:
        scales = load(param.scale_data, channels, FLOAT32)
        if param.zero_point_data:
            zero_points = load(param.zero_point_data, channels, INT32)
    if scales is None or zero_points is None:
        return None
    _refuse("scale", scales, ~((scales > 0) & np.isfinite(scales)), "finite numbers above 0")
    limits = np.iinfo(dtype)
    outside = (zero_points < limits.min) | (zero_points > limits.max)
    _refuse("zero point", zero_points, outside, f"{limits.min}..{limits.max}, the range of {dtype.name}")
    return scales, zero_points


def _shift_rule(param: QuantiParam, channels: int, dtype: np.dtype[Any], load: Load) -> Rule | None:
    del dtype  # a shift has no zero point to check against the type's range
    shifts: NDArray[Any] | None = np.array([param.shift], INT32)
    if param.axis != HB_DSP_QUANTI_PER_TENSOR:
        shifts = load(param.shift_data, channels, INT32)
    if shifts is None:
        return None
    _refuse("shift", shifts, (shifts < 0) | (shifts > MAX_SHIFT), f"0..{MAX_SHIFT}")
    return np.ldexp(np.float32(1), -shifts), np.zeros(1, np.int32)


def _refuse(what: str, values: NDArray[Any], wrong: NDArray[np.bool_], allowed: str) -> None:
    if wrong.any():
        channel = int(wrong.argmax())
        raise ParameterError(f"The {what} of channel {channel} is {values[channel]}: must be {allowed}.")


RULES: dict[int, Callable[[QuantiParam, int, np.dtype[Any], Load], Rule | None]] = {
    QUANTI_SHIFT: _shift_rule,
    QUANTI_SCALE: _scale_rule,
}
"""How each hbDNNQuantiType gets its scales and zero points; 0, NONE, leaves a tensor unchanged."""
