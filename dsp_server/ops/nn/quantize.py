"""quantize and dequantize, commands 0x401 and 0x402: float32 in DDR to int8, uint8, int16, uint16, int32, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from hbrt import quantize
from hbrt.nn_types import hbDSPDequantizeParam, hbDSPQuantizeParam
from hbrt.profiles.work import Operations
from hbrt.status import Status

if TYPE_CHECKING:
    from dsp_server.hardware.tile_manager import TileManager

QUANTIZE = Operations(load=1, divide=1, alu=4, pack=1, store=1)
"""Per 16 values: division, add, round, two of clip, pack."""
DEQUANTIZE = Operations(load=1, alu=2, mul=1, store=1)
"""Per 16 values: convert, subtract, multiply."""


def hb_dsp_quantize(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Quantize the float32 tensor described by an hbDSPQuantizeParam, writing to the output block.

    Returns:
        0; HB_ERR_MMAP_FAILED if a range that the structure points to is not inside a single live block.

    Raises:
        ParameterError: a field of the structure is invalid, or the output block is too small or overlaps the input.
        OutOfTcm: a tile does not fit in the banks.
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
        results[:] = quantize.quantize(
            values, scale, zero_point, todo.dtype, half_away=todo.half_away, zero_point_last=todo.zero_point_last
        )
        charge(len(values), QUANTIZE)

    run_pass(tm, "ddr" if todo.ddr else current_path(), source, target, compute)
    return 0


def hb_dsp_dequantize(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Convert the quantized tensor described by an hbDSPDequantizeParam to float32 in the output block.

    Returns:
        0; HB_ERR_MMAP_FAILED if a range that the structure points to is not inside a single live block.

    Raises:
        ParameterError: a field of the structure is invalid, or the output block is too small or overlaps the input.
        OutOfTcm: a tile does not fit in the banks.
    """
    param = read_param(hbDSPDequantizeParam, input)
    todo = plan(param, array_at)
    source = None if todo is None else array_at(param.input, todo.count, todo.dtype)
    if todo is None or source is None:
        return Status.HB_ERR_MMAP_FAILED
    target = output_array(output, todo.count, FLOAT32)
    refuse_overlap(source, target)

    def compute(values: NDArray[Any], results: NDArray[Any], first: int) -> None:
        scale, zero_point = todo.scales.of(first, len(values)), todo.zero_points.of(first, len(values))
        results[:] = quantize.dequantize(values, scale, zero_point)
        charge(len(values), DEQUANTIZE)

    run_pass(tm, "ddr" if todo.ddr else current_path(), source, target, compute)
    return 0
