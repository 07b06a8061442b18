"""softmax, command 0x400: m = max(x), e = exp(x - m), s = sum(e), y = e * (1 / s), for one row of float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.errors import ParameterError
from dsp_server.ops.nn.tiles import (
    BLOCK_ELEMENTS,
    Path,
    array_at,
    charge,
    checked_path,
    current_path,
    output_array,
    read_param,
    refuse_overlap,
    run_at_once,
    run_pass,
    set_path,
)
from hbrt.nn_types import hbDSPSoftmaxParam
from hbrt.profiles.work import Operations
from hbrt.status import Status

if TYPE_CHECKING:
    from dsp_server.hardware.tile_manager import TileManager

__all__ = ["hb_dsp_softmax", "make_softmax", "set_path", "softmax_row"]

FLOAT32 = np.dtype(np.float32)
FIND_LARGEST = Operations(load=1, alu=1)
EXPONENTIATE = Operations(load=9, store=1, alu=15, mul=11, pack=2, move=4)
"""exp as in the guide, and the sum: range reduction, a polynomial of degree 6 with its coefficients, scaling."""
NORMALIZE = Operations(load=1, store=1, mul=1)
ALL_PASSES = FIND_LARGEST.plus(EXPONENTIATE).plus(NORMALIZE)


def softmax_row(tm: TileManager, path: Path, source: NDArray[np.float32], target: NDArray[np.float32]) -> None:
    """Compute softmax of a row in DDR in three passes; a row that fits in a TCM bank is brought there only once.

    The vendor's exp clips its argument to [-128, 127]. That is omitted here, as it cannot affect any result: x - m is
    never above 0, and exp(-128) is 0 in float32. The difference, exp and the sum are computed in float64, e and 1 / s
    are rounded to float32: a normal result has a relative error of at most 3 * 2^-24, at any length.

    Args:
        tm: The core's tile manager.
        path: Through TCM, or straight from DDR; the result is the same.
        source: (n,) float32.
        target: (n,) float32; may be `source`.

    Source: DSP development guide (J5 OE), 10.2.3.3.2 DSP Softmax Implementation,
    https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html
    docs/nn-ops.md has the table of NaN and infinities.
    """
    with np.errstate(invalid="ignore", under="ignore"):
        if path != "ping_pong" or not run_at_once(tm, source, target, softmax_in_place):
            _tile_by_tile(tm, path, source, target)


def softmax_in_place(values: NDArray[Any]) -> None:
    """Do all three passes over a row that is in one tile, (n,) float32."""
    factor = np.float32(1.0 / math.fsum(_exponentiate(values, np.maximum.reduce(values), values)))
    np.multiply(values, factor, out=values)
    charge(len(values), ALL_PASSES)


def _tile_by_tile(tm: TileManager, path: Path, source: NDArray[np.float32], target: NDArray[np.float32]) -> None:
    largest = np.float32(-np.inf)
    sums: list[float] = []
    factor = np.float32(0)

    def find_largest(values: NDArray[Any], _: NDArray[Any], _first: int) -> None:
        nonlocal largest
        largest = np.maximum(largest, values.max())  # keeps NaN, unlike max()
        charge(len(values), FIND_LARGEST)

    def exponentiate(values: NDArray[Any], results: NDArray[Any], _first: int) -> None:
        sums.extend(_exponentiate(values, largest, results))
        charge(len(values), EXPONENTIATE)

    def normalize(values: NDArray[Any], results: NDArray[Any], _first: int) -> None:
        np.multiply(values, factor, out=results)
        charge(len(values), NORMALIZE)

    run_pass(tm, path, source, None, find_largest)
    run_pass(tm, path, source, target, exponentiate)
    factor = np.float32(1.0 / math.fsum(sums))
    run_pass(tm, path, target, target, normalize)


def _exponentiate(values: NDArray[Any], largest: np.float32, results: NDArray[Any]) -> list[float]:
    """Write exp(values - largest) to `results`; return the sums of its blocks."""
    exponentials = np.subtract(values, largest, dtype=np.float64)
    np.exp(exponentials, out=exponentials)
    results[:] = exponentials
    whole = len(exponentials) // BLOCK_ELEMENTS * BLOCK_ELEMENTS
    rest = float(np.add.reduce(exponentials[whole:]))
    if not whole:
        return [rest]
    return [*exponentials[:whole].reshape(-1, BLOCK_ELEMENTS).sum(axis=1).tolist(), rest]


def make_softmax(path: Path | None = None) -> Callable[[memoryview, memoryview, TileManager], int]:
    """Make the softmax op with a fixed path to its data; its structure has no room for the caller to choose one.

    Args:
        path: "ping_pong", "ddr", or None to use what `set_path` says at each call.

    Raises:
        ValueError: an unknown path.
    """
    fixed = None if path is None else checked_path(path)

    def hb_dsp_softmax(input: memoryview, output: memoryview, tm: TileManager) -> int:
        """Compute softmax of the row that an hbDSPSoftmaxParam points to, writing to the output block.

        Returns:
            0; HB_ERR_MMAP_FAILED if the row is not inside a single live block.

        Raises:
            ParameterError: data_size is negative or not a multiple of 4, the address is not aligned, the output
                block is too small, or the two blocks overlap but are not identical.
            OutOfTcm: a tile does not fit in the banks.
        """
        param = read_param(hbDSPSoftmaxParam, input)
        if param.data_size < 0 or param.data_size % FLOAT32.itemsize:
            raise ParameterError(f"Invalid data_size {param.data_size}: must be 4 bytes per float32 value.")
        count = param.data_size // FLOAT32.itemsize
        source = array_at(param.input, count, FLOAT32)
        if source is None:
            return Status.HB_ERR_MMAP_FAILED
        target = output_array(output, count, FLOAT32)
        if count:
            refuse_overlap(source, target)
            softmax_row(tm, fixed or current_path(), source, target)
        return 0

    return hb_dsp_softmax


hb_dsp_softmax = make_softmax()
