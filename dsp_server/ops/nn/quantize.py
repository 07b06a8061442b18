"""quantize, command 0x401: float32 in DDR to int8, uint8, int16, uint16 or int32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.nn.quanti import FLOAT32, plan
from dsp_server.ops.nn.tiles import (
    array_at,
    charge,
    current_path,
    output_array,
    read_param,
    refuse_overlap,
    run_pass,
)
from hbrt.nn_types import hbDSPQuantizeParam
from hbrt.status import Status

if TYPE_CHECKING:
    from dsp_server.hardware.tile_manager import TileManager

INSTRUCTIONS = 6
"""Modelled vector instructions: reciprocal step of the division, add, round, two of clip, pack."""


def round_half_away(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """C's round(): ties go away from zero. Adding 0.5 and cutting would be wrong just below a tie."""
    whole: NDArray[np.float32] = np.trunc(values)
    away = np.abs(values - whole) >= 0.5  # exact, as the difference of two neighbours is
    whole[away] += np.copysign(np.float32(1), values[away])
    return whole


def quantize_values(
    values: NDArray[np.float32],
    scale: NDArray[np.float32],
    zero_point: NDArray[np.int32],
    dtype: np.dtype[Any],
    *,
    half_away: bool = False,
    zero_point_last: bool = False,
) -> NDArray[Any]:
    """clip(nearbyint(x / scale + zero_point)), division and addition in float32, as C does it.

    Args:
        values: (n,) float32.
        scale: (n,) or (1,), finite and above 0.
        zero_point: (n,) or (1,), within the range of `dtype`.
        dtype: Quantised type. Results beyond its range, and infinities, take its lowest or highest value.
        half_away: Ties go away from zero, as round(), instead of to the even neighbour, as nearbyint().
        zero_point_last: clip(nearbyint(x / scale) + zero_point), as ONNX has it: with an odd zero point ties differ.

    Returns:
        (n,) of `dtype`. NaN becomes the zero point, which is the number that stands for 0.

    Source: RDK DNN API manual (rdk_doc), 4.2.7 hbDNNQuantiType (nearbyint),
    https://d-robotics.github.io/rdk_doc/en/Algorithm_Application/cdev_dnn_api/data_struct;
    BPU SDK API manual (J5 OE 1.1.77), 9.2.2.2.12 hbDNNQuantiType (round),
    https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
    Emulator: the result for NaN is its choice.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        steps = values / scale
        if not zero_point_last:
            steps += zero_point.astype(np.float32)
        rounded: NDArray[Any] = round_half_away(steps) if half_away else np.rint(steps, out=steps)
    limits = np.iinfo(dtype)
    if limits.max >= 1 << 24:  # float32 has no 2^31 - 1 to clip to; its numbers are all float64 numbers
        rounded = rounded.astype(np.float64)
    if zero_point_last:
        rounded += zero_point.astype(rounded.dtype)
    np.clip(rounded, limits.min, limits.max, out=rounded)
    missing = np.isnan(rounded)
    if missing.any():
        rounded = np.where(missing, zero_point, rounded)
    return rounded.astype(dtype)


def hb_dsp_quantize(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Quantises the float32 tensor that an hbDSPQuantizeParam describes into the output block.

    Returns:
        0; HB_ERR_MMAP_FAILED when a range that the structure points to does not lie in one live block.

    Raises:
        ParameterError: a field of the structure is wrong, or the output block is too small or overlaps the input.
        OutOfTcm: the banks have no room for a tile.
    """
    param = read_param(hbDSPQuantizeParam, input)
    todo = plan(param, array_at)
    source = None if todo is None else array_at(param.input, todo.count, FLOAT32)
    if todo is None or source is None:
        return Status.HB_ERR_MMAP_FAILED
    target = output_array(output, todo.count, todo.dtype)
    refuse_overlap(source, target)

    def compute(values: NDArray[Any], results: NDArray[Any], first: int) -> None:
        scale, zero_point = todo.scales.of(first, len(values)), todo.zero_points.of(first, len(values))
        results[:] = quantize_values(
            values, scale, zero_point, todo.dtype, half_away=todo.half_away, zero_point_last=todo.zero_point_last
        )
        charge(len(values), INSTRUCTIONS)

    run_pass(tm, "ddr" if todo.ddr else current_path(), source, target, compute)
    return 0
