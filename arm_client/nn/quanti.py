"""quantize and dequantize: by scale and zero point or by shift, per tensor or per channel of an axis."""

from __future__ import annotations

import math
from typing import Any, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from arm_client.arrays import BoardArray, dtype_of
from arm_client.checks import need_known, refusal
from arm_client.client import ANY, Board
from arm_client.nn.arrays import as_array, axis_of, per_channel, result_array, to_board
from hbrt.behavior import QUANTI_DTYPES
from hbrt.nn_types import (
    HB_DSP_QUANTI_DDR_PATH,
    HB_DSP_QUANTI_PER_TENSOR,
    HB_DSP_QUANTI_ROUND_HALF_AWAY,
    QUANTI_SCALE,
    QUANTI_SHIFT,
    hbDSPDequantizeParam,
    hbDSPQuantizeParam,
)
from hbrt.types import HB_DSP_RPC_CMD_NN_DEQUANTIZE, HB_DSP_RPC_CMD_NN_QUANTIZE

QuantiParam: TypeAlias = hbDSPQuantizeParam | hbDSPDequantizeParam
TENSOR_TYPES = {np.dtype(name): number for number, name in QUANTI_DTYPES.items()}


class Options(TypedDict, total=False):
    """Keyword arguments that the four functions share.

    Attributes:
        out: Board array for the result, with the shape of the input; None, the default, for a new one.
        from_ddr: The op computes straight from DDR instead of through TCM; the result is the same.
        priority: 0..255, larger first; 0 by default.
        core: Core mask; 0, the default, for any core.
        timeout: Seconds; None, the default, for no limit.
    """

    out: BoardArray | None
    from_ddr: bool
    priority: int
    core: int
    timeout: float | None


def quantize(
    board: Board,
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike = 0,
    dtype: DTypeLike = np.int8,
    axis: int | None = None,
    *,
    half_away: bool = False,
    **options: Unpack[Options],
) -> BoardArray:
    """Compute clip(nearbyint(x / scale + zero_point)) in float32 with op 0x401.

    Args:
        board: Connection to a board.
        x: Real numbers of any shape. A float32 board array in C order is used in place, anything else is copied.
        scale: A number above 0, or one per channel.
        zero_point: An integer within the range of `dtype`, or one per channel.
        dtype: int8, uint8, int16, uint16 or int32.
        axis: Dimension of `x` that the channels run along; None for one scale for the whole tensor.
        half_away: Round ties away from zero, as in C's round(), instead of to even.
        **options: See Options.

    Returns:
        Board array of `dtype` with the shape of `x`. Values outside the range of `dtype`, including infinities, are
        clamped; NaN becomes the zero point.

    Raises:
        CallerError: arguments do not match. TimeoutError. OpFailedError: the op refuses a scale or zero point; carries
            its text.

    Source: RDK DNN API manual (rdk_doc), 4.2.7 hbDNNQuantiType,
    https://d-robotics.github.io/rdk_doc/en/Algorithm_Application/cdev_dnn_api/data_struct;
    BPU SDK API manual (J5 OE 1.1.77), 9.2.2.2.12 hbDNNQuantiType (round),
    https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
    """
    values, quantized = as_array(x), dtype_of(dtype)
    param = hbDSPQuantizeParam(flags=HB_DSP_QUANTI_ROUND_HALF_AWAY if half_away else 0)
    channels = _describe(param, values.shape, quantized, axis)
    tables = _use_scales(board, param, channels, scale, zero_point)
    return _run(board, HB_DSP_RPC_CMD_NN_QUANTIZE, param, values, np.float32, quantized, tables, options)


def quantize_shift(
    board: Board,
    x: ArrayLike,
    shift: ArrayLike,
    dtype: DTypeLike = np.int8,
    axis: int | None = None,
    *,
    half_away: bool = False,
    **options: Unpack[Options],
) -> BoardArray:
    """Compute clip(nearbyint(x * 2^shift)); `shift` is 0..126, one or one per channel. Otherwise like `quantize`."""
    values, quantized = as_array(x), dtype_of(dtype)
    param = hbDSPQuantizeParam(flags=HB_DSP_QUANTI_ROUND_HALF_AWAY if half_away else 0)
    channels = _describe(param, values.shape, quantized, axis)
    tables = _use_shifts(board, param, channels, shift)
    return _run(board, HB_DSP_RPC_CMD_NN_QUANTIZE, param, values, np.float32, quantized, tables, options)


def dequantize(
    board: Board,
    y: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike = 0,
    axis: int | None = None,
    **options: Unpack[Options],
) -> BoardArray:
    """Compute (y - zero_point) * scale in float32 with op 0x402.

    Args:
        board: Connection to a board.
        y: Array of int8, uint8, int16, uint16 or int32, of any shape. A board array in C order is used in place,
            anything else is copied.
        scale: A number above 0, or one per channel.
        zero_point: An integer within the range of `y`'s type, or one per channel.
        axis: Dimension of `y` that the channels run along; None for one scale for the whole tensor.
        **options: See Options.

    Returns:
        Board array of float32 with the shape of `y`.

    Raises:
        CallerError: arguments do not match. TimeoutError. OpFailedError: the op refuses a scale or zero point; carries
            its text.

    Source: RDK DNN API manual (rdk_doc), 4.2.7 hbDNNQuantiType,
    https://d-robotics.github.io/rdk_doc/en/Algorithm_Application/cdev_dnn_api/data_struct
    """
    values = as_array(y)
    param = hbDSPDequantizeParam()
    channels = _describe(param, values.shape, values.dtype, axis)
    tables = _use_scales(board, param, channels, scale, zero_point)
    return _run(board, HB_DSP_RPC_CMD_NN_DEQUANTIZE, param, values, values.dtype, np.float32, tables, options)


def dequantize_shift(
    board: Board, y: ArrayLike, shift: ArrayLike, axis: int | None = None, **options: Unpack[Options]
) -> BoardArray:
    """Compute y / 2^shift; `shift` is 0..126, one or one per channel. Otherwise like `dequantize`."""
    values = as_array(y)
    param = hbDSPDequantizeParam()
    channels = _describe(param, values.shape, values.dtype, axis)
    tables = _use_shifts(board, param, channels, shift)
    return _run(board, HB_DSP_RPC_CMD_NN_DEQUANTIZE, param, values, values.dtype, np.float32, tables, options)


def _describe(param: QuantiParam, shape: tuple[int, ...], quantized: np.dtype[Any], axis: int | None) -> int | None:
    """Fill in type and shape; return the number of channels, or None for one rule for the whole tensor.

    Any number of dimensions works: only the sizes before, along and after the axis matter.
    """
    if quantized not in TENSOR_TYPES:
        raise refusal(f"{quantized} is not a quantized type: use {', '.join(QUANTI_DTYPES.values())}.")
    param.tensor_type = TENSOR_TYPES[quantized]
    if axis is None:
        param.axis = HB_DSP_QUANTI_PER_TENSOR
        param.set_shape([math.prod(shape)])
        return None
    axis = axis_of(shape, axis)
    param.axis = 1
    param.set_shape([math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])])
    return shape[axis]


def _use_scales(
    board: Board, param: QuantiParam, channels: int | None, scale: ArrayLike, zero_point: ArrayLike
) -> list[BoardArray]:
    param.quanti_type = QUANTI_SCALE
    scales = per_channel("scale", scale, channels or 1, np.float32)
    zero_points = per_channel("zero_point", zero_point, channels or 1, np.int32)
    if not channels:
        param.scale, param.zero_point = float(scales[0]), int(zero_points[0])
        return []
    tables = [board.from_array(scales), board.from_array(zero_points)]
    param.scale_data, param.zero_point_data = (table.phy_addr for table in tables)
    return tables


def _use_shifts(board: Board, param: QuantiParam, channels: int | None, shift: ArrayLike) -> list[BoardArray]:
    param.quanti_type = QUANTI_SHIFT
    shifts = per_channel("shift", shift, channels or 1, np.int32)
    if not channels:
        param.shift = int(shifts[0])
        return []
    table = board.from_array(shifts)
    param.shift_data = table.phy_addr
    return [table]


def _run(
    board: Board,
    cmd: int,
    param: QuantiParam,
    values: NDArray[Any],
    in_dtype: DTypeLike,
    out_dtype: DTypeLike,
    tables: list[BoardArray],
    options: Options,
) -> BoardArray:
    need_known(options, Options)
    results = result_array(board, options.get("out"), values.shape, out_dtype)
    if not values.size:
        return results
    source = to_board(board, values, in_dtype)
    param.input = source.phy_addr
    if options.get("from_ddr"):
        param.flags |= HB_DSP_QUANTI_DDR_PATH
    board.call(
        cmd,
        param,
        results,
        priority=options.get("priority", 0),
        core=options.get("core", ANY),
        timeout=options.get("timeout"),
        keep=(source, tables),
    )
    return results
