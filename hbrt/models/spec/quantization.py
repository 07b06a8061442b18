"""Convert real numbers to stored integers and back, using a tensor's quantization. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from hbrt import quantize as rules
from hbrt.behavior import MAX_SHIFT
from hbrt.models.spec.spec import Quantization, QuantizationKind


def quantize(
    values: ArrayLike,
    quantization: Quantization,
    dtype: DTypeLike,
    *,
    limits: tuple[int, int] | None = None,
    half_away: bool = False,
) -> NDArray[Any]:
    """Compute clip(nearbyint(x / scale + zero_point)), or clip(nearbyint(x * 2^shift)), in float32.

    Args:
        values: Real numbers, in the tensor's valid shape.
        quantization: The tensor's quantization.
        dtype: Integer type of the result.
        limits: Minimum and maximum result; those of `dtype` by default. 4-bit types have narrower ones.
        half_away: Round ties away from zero, like C's round(), instead of to even.

    Returns:
        Array of `dtype` with the shape of `values`. Infinities become the limits, NaN the zero point.

    Source: RDK DNN API manual (rdk_doc), 4.2.7 hbDNNQuantiType (nearbyint, to nearest even),
    https://d-robotics.github.io/rdk_doc/en/Algorithm_Application/cdev_dnn_api/data_struct;
    BPU SDK API manual (J5 OE 1.1.77), 9.2.2.2.12 hbDNNQuantiType (round),
    https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
    ONNX's QuantizeLinear rounds x / scale and then adds the zero point: with an odd zero point, ties differ.
    """
    real = np.asarray(values, np.float32)
    flat = np.atleast_1d(real)
    scale, zero = _rule(quantization, flat.ndim)
    return rules.quantize(flat, scale, zero, np.dtype(dtype), limits=limits, half_away=half_away).reshape(real.shape)


def dequantize(values: ArrayLike, quantization: Quantization) -> NDArray[np.float32]:
    """Compute (y - zero_point) * scale, or y / 2^shift.

    Args:
        values: Stored integers, in the tensor's valid shape.
        quantization: The tensor's quantization.

    Returns:
        float32, shape of `values`. The difference is exact, then rounded to float32 once.

    Source: RDK DNN API manual (rdk_doc), 4.2.7 hbDNNQuantiType,
    https://d-robotics.github.io/rdk_doc/en/Algorithm_Application/cdev_dnn_api/data_struct
    ONNX's DequantizeLinear is the same.
    """
    stored = np.asarray(values)
    scale, zero = _rule(quantization, stored.ndim)
    return rules.dequantize(stored, scale, zero)


def as_shift(quantization: Quantization) -> Quantization:
    """Return the rule as SHIFT if possible: zero points 0, scales 1, 1/2, 1/4 ... 2^-126; else unchanged.

    Stored numbers and their meaning do not change, only how the tensor's properties express it.
    """
    if quantization.kind != QuantizationKind.SCALE or quantization.zero_point.any():
        return quantization
    mantissa, exponent = np.frexp(quantization.scale)
    shift = 1 - exponent
    if not ((mantissa == 0.5) & (shift >= 0) & (shift <= MAX_SHIFT)).all():
        return quantization
    return replace(
        quantization,
        kind=QuantizationKind.SHIFT,
        scale=np.empty(0, np.float32),
        zero_point=np.empty(0, np.int32),
        shift=shift.astype(np.uint8),
    )


def scales_and_zero_points(quantization: Quantization) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return scales and zero points, each (n,): for SHIFT, 2^-shift and 0."""
    if quantization.kind == QuantizationKind.SHIFT:
        scale = np.ldexp(np.float32(1), -quantization.shift.astype(np.int32))
        return scale.astype(np.float32), np.zeros(scale.shape, np.int32)
    return quantization.scale, quantization.zero_point


def _rule(quantization: Quantization, rank: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return scales and zero points in a shape that broadcasts over a tensor of `rank` dimensions."""
    scale, zero = scales_and_zero_points(quantization)
    if scale.size == 1:
        return scale.reshape(()), zero.reshape(())
    shape = [1] * rank
    shape[quantization.axis] = scale.size
    return scale.reshape(shape), zero.reshape(shape)
