"""Convert real numbers to stored integers and back, for both sides: DSP ops and model tensors. Pure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def round_half_away(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round like C's round(): ties away from zero. Adding 0.5 and truncating would be wrong just below a tie."""
    whole: NDArray[np.float32] = np.trunc(values)
    away = np.abs(values - whole) >= 0.5  # exact, like the difference between two neighbors
    whole[away] += np.copysign(np.float32(1), values[away])
    return whole


def quantize(
    values: NDArray[np.float32],
    scale: NDArray[np.float32],
    zero_point: NDArray[np.int32],
    dtype: np.dtype[Any],
    *,
    limits: tuple[int, int] | None = None,
    half_away: bool = False,
    zero_point_last: bool = False,
) -> NDArray[Any]:
    """Compute clip(nearbyint(x / scale + zero_point)), with division and addition in float32, as in C.

    Args:
        values: float32.
        scale: Scale of each value, finite and above 0; broadcast.
        zero_point: Zero point of each value; broadcast.
        dtype: Integer type of the result.
        limits: Minimum and maximum, to which results and infinities are clamped; by default those of `dtype`.
        half_away: Round ties away from zero, like round(), instead of to even, like nearbyint().
        zero_point_last: Use ONNX's clip(nearbyint(x / scale) + zero_point): with an odd zero point, ties differ.

    Returns:
        Array of `dtype`. NaN becomes the zero point, which represents 0.

    Source: RDK DNN API manual (rdk_doc), 4.2.7 hbDNNQuantiType (nearbyint),
    https://d-robotics.github.io/rdk_doc/en/Algorithm_Application/cdev_dnn_api/data_struct;
    BPU SDK API manual (J5 OE 1.1.77), 9.2.2.2.12 hbDNNQuantiType (round),
    https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
    Emulator: the result for NaN is its choice.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        steps = values / scale
        if not zero_point_last:
            steps += zero_point.astype(np.float32)
        rounded: NDArray[Any] = round_half_away(steps) if half_away else np.rint(steps, out=steps)
    low, high = limits or (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    if high >= 1 << 24:  # float32 cannot represent 2^31 - 1 for clipping; float64 represents all float32 numbers
        rounded = rounded.astype(np.float64)
    if zero_point_last:
        rounded += zero_point.astype(rounded.dtype)
    missing = np.isnan(rounded)
    if missing.any():
        rounded = np.where(missing, zero_point, rounded)
    return np.clip(rounded, low, high, out=rounded).astype(dtype)


def dequantize(values: NDArray[Any], scale: NDArray[np.float32], zero_point: NDArray[np.int32]) -> NDArray[np.float32]:
    """Compute (y - zero_point) * scale: the difference as an integer, then float32.

    Args:
        values: Integers.
        scale: Scale of each value; broadcast.
        zero_point: Zero point of each value; broadcast.

    Returns:
        float32. The difference is exact below 2^24; int32 tensors may need one rounding, to nearest.

    Source: RDK DNN API manual (rdk_doc), 4.2.7 hbDNNQuantiType,
    https://d-robotics.github.io/rdk_doc/en/Algorithm_Application/cdev_dnn_api/data_struct
    """
    if values.dtype.itemsize <= 2:  # exact in float32, and cheaper than going through int64
        steps = values.astype(np.float32)
        steps -= zero_point.astype(np.float32)
    else:
        steps = (values.astype(np.int64) - zero_point).astype(np.float32)
    with np.errstate(over="ignore", under="ignore"):
        steps *= scale
    return steps
