"""Real numbers to stored integers and back, by what a tensor says of itself. Pure."""

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
    """clip(nearbyint(x / scale + zero_point)), or clip(nearbyint(x * 2^shift)), in float32.

    Args:
        values: Real numbers, of the tensor's valid shape.
        quantization: Of the tensor.
        dtype: Integer type of the result.
        limits: Least and greatest result; those of `dtype` by default. 4-bit types have narrower ones.
        half_away: Ties go away from zero, as C's round() does, instead of to the even neighbor.

    Returns:
        Array of `dtype` with the shape of `values`. Infinities take the limits, NaN the zero point.

    Source: RDK DNN API manual (rdk_doc), 4.2.7 hbDNNQuantiType (nearbyint, to nearest even),
    https://d-robotics.github.io/rdk_doc/en/Algorithm_Application/cdev_dnn_api/data_struct;
    BPU SDK API manual (J5 OE 1.1.77), 9.2.2.2.12 hbDNNQuantiType (round),
    https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
    ONNX's QuantizeLinear rounds x / scale and then adds the zero point: for an odd zero point ties end differently.
    """
    real = np.asarray(values, np.float32)
    flat = np.atleast_1d(real)
    scale, zero = _rule(quantization, flat.ndim)
    return rules.quantize(flat, scale, zero, np.dtype(dtype), limits=limits, half_away=half_away).reshape(real.shape)


def dequantize(values: ArrayLike, quantization: Quantization) -> NDArray[np.float32]:
    """(y - zero_point) * scale, or y / 2^shift.

    Args:
        values: Stored integers, of the tensor's valid shape.
        quantization: Of the tensor.

    Returns:
        float32, shape of `values`. The difference is formed exactly, and rounded to float32 once.

    Source: RDK DNN API manual (rdk_doc), 4.2.7 hbDNNQuantiType,
    https://d-robotics.github.io/rdk_doc/en/Algorithm_Application/cdev_dnn_api/data_struct
    ONNX's DequantizeLinear is the same.
    """
    stored = np.asarray(values)
    scale, zero = _rule(quantization, stored.ndim)
    return rules.dequantize(stored, scale, zero)


def as_shift(quantization: Quantization) -> Quantization:
    """The same rule as SHIFT, when it is one: zero points 0, scales 1, 1/2, 1/4 ... 2^-126; else as it is.

    The stored numbers and what they stand for do not change, only how the tensor's properties tell it.
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
    """Scales and zero points, each (n,): of SHIFT they are 2^-shift and 0."""
    if quantization.kind == QuantizationKind.SHIFT:
        scale = np.ldexp(np.float32(1), -quantization.shift.astype(np.int32))
        return scale.astype(np.float32), np.zeros(scale.shape, np.int32)
    return quantization.scale, quantization.zero_point


def _rule(quantization: Quantization, rank: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Scales and zero points in a shape that broadcasts over a tensor of `rank` dimensions."""
    scale, zero = scales_and_zero_points(quantization)
    if scale.size == 1:
        return scale.reshape(()), zero.reshape(())
    shape = [1] * rank
    shape[quantization.axis] = scale.size
    return scale.reshape(shape), zero.reshape(shape)
