"""What the NN ops share: their parameter block, their input in DDR, and a pass over it tile by tile.

A pass gives each tile to `compute(values, results, first)`, in order. With ping-pong both arrays are in TCM and iDMA
moves them; straight from DDR they are slices of the tensor itself, at the cost of a stall per load. An op's result
must not depend on the tile length, so both paths, and any size of TCM, give the same bits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dsp_server.errors import ParameterError
from dsp_server.hardware import cycles
from dsp_server.hardware.descriptors import current
from dsp_server.hardware.frame import ping_pong
from dsp_server.hardware.tcm import OutOfTcm
from dsp_server.hardware.tile_manager import XV_MEM_BANK_COLOR_0
from dsp_server.runtime import map_range
from hbrt.profiles.work import Operations

if TYPE_CHECKING:
    from dsp_server.hardware.tile_manager import TileManager

Path: TypeAlias = Literal["ping_pong", "ddr"]
Compute: TypeAlias = Callable[[NDArray[Any], NDArray[Any], int], object]

BLOCK_ELEMENTS = 1024
"""Every tile of a pass except the last is a whole number of blocks; a sum computed by blocks fits any tile."""

DDR_TILE_ELEMENTS = 16 * BLOCK_ELEMENTS
"""Elements per step straight from DDR: few enough for the host's cache, enough to hide Python's overhead."""

Param = TypeVar("Param", bound=ctypes.Structure)

_chosen: Path = "ping_pong"


def set_path(path: Path | None) -> None:
    """Choose how this core's built-in NN ops read their data from now on.

    Args:
        path: "ping_pong" (through TCM by iDMA), as does None; "ddr", straight from DDR.

    Raises:
        ValueError: any other value.
    """
    global _chosen  # noqa: PLW0603 - one core per process
    _chosen = "ping_pong" if path is None else checked_path(path)


def current_path() -> Path:
    """Return what `set_path` chose, or "ping_pong"."""
    return _chosen


def checked_path(path: str) -> Path:
    """Return the path if it is valid; raise ValueError otherwise."""
    if path == "ping_pong":
        return "ping_pong"
    if path == "ddr":
        return "ddr"
    raise ValueError(f"Unknown data path {path!r}: use 'ping_pong' or 'ddr'.")


def read_param(structure: type[Param], block: memoryview) -> Param:
    """Return a copy of the parameter structure at the start of an input block.

    Raises:
        ParameterError: the block is shorter than the structure.
    """
    size_bytes = ctypes.sizeof(structure)
    if len(block) < size_bytes:
        raise ParameterError(
            f"The input block has {len(block)} bytes, but {structure.__name__} has {size_bytes}: "
            "allocate a block of that size and fill in the structure there."
        )
    return structure.from_buffer_copy(block)


def array_at(phy_addr: int, count: int, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Return `count` elements in DDR as a view of the bytes themselves; None if they cannot be mapped.

    Raises:
        ParameterError: the address is not a multiple of the element size; a real core hangs on such a pointer.
    """
    if not count:
        return np.empty(0, dtype)
    if phy_addr % dtype.itemsize:
        raise ParameterError(
            f"The {dtype.name} data at {phy_addr:#x} is not aligned: "
            f"its address must be a multiple of {dtype.itemsize}."
        )
    mapped = map_range(phy_addr, count * dtype.itemsize)
    return np.frombuffer(mapped, dtype) if isinstance(mapped, memoryview) else None


def output_array(block: memoryview, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the first `count` elements of an output block as a view.

    Raises:
        ParameterError: the block is too small.
    """
    size_bytes = count * dtype.itemsize
    if len(block) < size_bytes:
        raise ParameterError(
            f"The output block has {len(block)} bytes, but {count} {dtype.name} results take {size_bytes}: "
            "allocate a larger one."
        )
    return np.frombuffer(block[:size_bytes], dtype) if count else np.empty(0, dtype)


def refuse_overlap(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Refuse a target that would overwrite input that a later tile still has to read.

    Raises:
        ParameterError: source and target overlap, unless the target overlays its source and has no larger elements.
    """
    from_ = source.__array_interface__["data"][0]  # .ctypes is several times slower
    to = target.__array_interface__["data"][0]
    if from_ == to and target.itemsize <= source.itemsize:
        return
    if from_ < to + target.nbytes and to < from_ + source.nbytes:
        raise ParameterError(
            "The output block overlaps the input data: use a separate block or, if the result is not "
            "larger than the input, the address of the input itself."
        )


def run_pass(tm: TileManager, path: Path, source: NDArray[Any], target: NDArray[Any] | None, compute: Compute) -> None:
    """Give every tile of `source` to `compute(values, results, first)`, in order.

    Args:
        tm: The core's tile manager.
        path: Through TCM, or straight from DDR.
        source: (n,) in DDR.
        target: (n,) in DDR that receives the results; None for a pass that only reads (`results` is scratch).
        compute: Receives both parts of a tile and the index of its first element; charges its own cycles. The
            results may overlay the values, so it must read all of them before it writes.

    Raises:
        OutOfTcm: a tile of BLOCK_ELEMENTS does not fit in the banks.
    """
    if path == "ping_pong":
        out_dtype = None if target is None else target.dtype
        ping_pong(
            tm,
            source.data,
            None if target is None else target.data,
            compute,
            in_dtype=source.dtype,
            out_dtype=out_dtype,
            multiple_of=BLOCK_ELEMENTS,
            in_place=target is not None and target.itemsize <= source.itemsize,
        )
        return
    for first in range(0, len(source), DDR_TILE_ELEMENTS):
        values = source[first : first + DDR_TILE_ELEMENTS]
        results = values if target is None else target[first : first + DDR_TILE_ELEMENTS]
        cycles.current().charge_ddr(values.nbytes + (0 if target is None else results.nbytes))
        compute(values, results, first)


def run_at_once(
    tm: TileManager, source: NDArray[Any], target: NDArray[Any], compute: Callable[[NDArray[Any]], object]
) -> bool:
    """Bring all of `source` into one tile, have `compute(values)` work on it in place, and copy it to `target`.

    For several passes over data that fits in a bank: it crosses the bus once each way, and the host saves the frames.

    Returns:
        Whether it fits; if not, nothing was done.
    """
    try:
        tile = tm.allocate(source.nbytes, XV_MEM_BANK_COLOR_0)
    except OutOfTcm:
        return False
    try:
        idma = current()
        idma.wait(idma.enqueue(tile, source.data.cast("B")))
        compute(np.frombuffer(tile, source.dtype))
        idma.wait(idma.enqueue(target.data.cast("B"), tile))
    finally:
        tm.free(tile)
    return True


def charge(elements: int, operations: Operations) -> None:
    """Spend modeled cycles: these operations for each vector of 16 float32."""
    cycles.current().charge_loop(-(-elements // cycles.LANES_F32), cycles.loop_cost(operations))
