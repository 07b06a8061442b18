"""quantize and dequantize, by scale and zero point or by shift, per tensor or per channel of an axis."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from arm_client.client import ANY, Board, BoardArray
from arm_client.nn.arrays import as_array, finish, per_channel, refusal, result_array, to_board
from hbrt.nn_types import (
    HB_DSP_QUANTI_DDR_PATH,
    HB_DSP_QUANTI_PER_TENSOR,
    HB_DSP_QUANTI_ROUND_HALF_AWAY,
    QUANTI_DTYPES,
    QUANTI_SCALE,
    QUANTI_SHIFT,
    QuantiParam,
    hbDSPDequantizeParam,
    hbDSPQuantizeParam,
)
from hbrt.types import HB_DSP_RPC_CMD_NN_DEQUANTIZE, HB_DSP_RPC_CMD_NN_QUANTIZE

TENSOR_TYPES = {np.dtype(name): number for number, name in QUANTI_DTYPES.items()}
Param = TypeVar("Param", bound=QuantiParam)


def quantize(
    board: Board,
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike = 0,
    dtype: DTypeLike = np.int8,
    axis: int | None = None,
    *,
    half_away: bool = False,
    from_ddr: bool = False,
    out: BoardArray | None = None,
    priority: int = 0,
    core: int = ANY,
    timeout: float | None = None,
) -> BoardArray:
    """clip(nearbyint(x / scale + zero_point)), computed in float32 by the op at 0x401.

    Args:
        board: Connection to a board.
        x: Real numbers of any shape; a float32 board array in C order is used where it is, the rest is copied.
        scale: One number above 0, or one a channel.
        zero_point: One integer within the range of `dtype`, or one a channel.
        dtype: int8, uint8, int16, uint16 or int32.
        axis: Dimension of `x` that the channels run along; None for one scale for the whole tensor.
        half_away: Ties go away from zero, as in C's round(), and not to the even neighbour.
        from_ddr: The op computes straight from DDR instead of through TCM; the result is the same.
        out: Board array for the result; None for a new one.
        priority: 0..255, larger first.
        core: Core mask, 0 for any.
        timeout: Seconds; None for no limit.

    Returns:
        `out`, or a new board array of `dtype` with the shape of `x`. Values beyond the range of `dtype`, infinite
        ones too, take its limits; NaN becomes the zero point.

    Raises:
        CallerError: an argument does not fit the others. TimeoutError. OpFailedError: a scale or zero point that
            the op refuses; has its text.

    Source: DNN API manual, hbDNNQuantiType; BPU SDK API manual for round().
    """
    values = as_array(x)
    param, channels = _describe(hbDSPQuantizeParam, values.shape, axis, dtype, half_away, from_ddr)
    tables = _put_scales(board, param, channels, scale, zero_point)
    results = result_array(board, out, values.shape, dtype)
    source = to_board(board, values, np.float32)
    return _run(board, HB_DSP_RPC_CMD_NN_QUANTIZE, param, source, results, tables, priority, core, timeout)
