"""The common part of the CV ops: reads the structure, checks the rules, maps the planes and charges the cycles.

The planes are numpy views of DDR, whatever the stride, and OpenCV writes to the view it is given as `dst`: the image
is never copied on its way through an op.

A program makes the same call for every frame. So whatever depends only on the structure is done once: an op's function
gets the structure and the planes, and returns what to run for each call (see dsp_server.ops.cv.plans).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dsp_server.errors import ParameterError
from dsp_server.hardware import cycles
from dsp_server.ops.cv.plans import Plan, Plans
from dsp_server.runtime import map_range
from hbrt.cv.image import Plane
from hbrt.cv.rules import CvRules
from hbrt.status import Status

if TYPE_CHECKING:
    from dsp_server.hardware.tile_manager import TileManager

Planes: TypeAlias = tuple[NDArray[Any], ...]
"""An image as arrays: (height, width) or (height, width, 3); NV12 adds (height / 2, width / 2, 2)."""

Run: TypeAlias = Callable[[], object]
"""One call of an op whose structure has already been checked; reads the pixels and other data in DDR."""

Op: TypeAlias = Callable[[memoryview, memoryview, "TileManager"], int]

Param = TypeVar("Param", bound=CvRules)


class NotMapped(Exception):
    """A plane is not inside a single live block of the caller; the runtime has recorded why."""


def cv_op(structure: type[Param], prepare: Callable[[Param, Planes, Planes], Run], instructions: int) -> Op:
    """Make a CV op from what it computes.

    Args:
        structure: Type of its input block; knows the op's rules.
        prepare: Receives the structure and the planes of src and dst, and returns what writes the planes of dst; it
            must not itself read pixels, kernels, maps or lists, since the next call may have different ones.
        instructions: Modeled vector instructions per 64 bytes of the larger image.

    Returns:
        An op that returns 0, or HB_ERR_MMAP_FAILED if memory named by the structure is not inside a single live
        block. It raises ParameterError if the block is too short or dst is not in the output block, and CvRuleError if
        another rule is broken.
    """
    size_bytes = ctypes.sizeof(structure)

    plans = Plans()

    def plan_of(raw: bytes, input: memoryview, output: memoryview) -> Plan:
        if len(raw) < size_bytes:
            raise ParameterError(
                f"The input block has {len(raw)} bytes, but {structure.__name__} has {size_bytes}: "
                "allocate a block of that size and fill in the structure there."
            )
        param = structure.from_buffer_copy(raw)
        param.check()
        sources, targets = view_all(param.src.planes()), view_all(param.dst.planes())
        need_in_block(targets[0], output)
        return Plan(prepare(param, sources, targets), cost(sources, targets), input, output)

    def op(input: memoryview, output: memoryview, tm: TileManager) -> int:
        raw = bytes(input[:size_bytes])
        try:
            plan = plans.get(raw, input, output)
            if plan is None:
                plan = plan_of(raw, input, output)
                plans.put(raw, plan)
            plan.run()
        except NotMapped:
            return Status.HB_ERR_MMAP_FAILED
        computed_bytes, moved_bytes = plan.moved
        cycles.current().charge_overlapped(computed_bytes, cycles.LANES_8BIT, instructions, moved_bytes)
        return 0

    op.__doc__ = f"{prepare.__doc__ or ''}\n\nInput block: {structure.__name__}."
    op.__name__ = op.__qualname__ = f"hb_dsp_{prepare.__name__}"
    op.__module__ = prepare.__module__
    return op


def view_all(planes: tuple[Plane, ...]) -> Planes:
    """Return views of planes in DDR.

    Raises:
        NotMapped: a plane is not inside a single live block.
    """
    return tuple(view(plane) for plane in planes)


def view(plane: Plane) -> NDArray[Any]:
    """Return a view of one plane in DDR: (rows, columns), or (rows, columns, channels) for several channels."""
    mapped = map_range(plane.phy_addr, plane.size_bytes)
    if not isinstance(mapped, memoryview):
        raise NotMapped
    channels, item_bytes = plane.element.channels, plane.element.item_bytes
    shape: tuple[int, ...] = (plane.rows, plane.columns)
    strides: tuple[int, ...] = (plane.stride, channels * item_bytes)
    if channels > 1:
        shape, strides = (*shape, channels), (*strides, item_bytes)
    return np.ndarray(shape, plane.element.dtype, mapped, 0, strides)


def settle(target: NDArray[Any], result: object) -> None:
    """Make sure that a result is in its place. It already is if OpenCV used `target` as its `dst`."""
    if result is not target:
        target[...] = result


def settled(target: NDArray[Any], function: Callable[..., object], *args: Any, **options: Any) -> Run:
    """Return what calls `function(*args, **options)` and makes sure that its result is in its place."""
    return lambda: settle(target, function(*args, **options))


def in_turn(runs: Iterable[Run]) -> Run:
    """Return what runs these one after another: an image has one plane or two."""
    first, *others = runs
    if not others:
        return first

    def run() -> None:
        first()
        for other in others:
            other()

    return run


def need_in_block(target: NDArray[Any], output: memoryview) -> None:
    """Refuse an output block that is not the memory of dst; a call without an output block is fine.

    Raises:
        ParameterError: dst starts outside the output block.
    """
    if not len(output):
        return
    begins: int = np.frombuffer(output, np.uint8).__array_interface__["data"][0]
    at: int = target.__array_interface__["data"][0]
    if not begins <= at < begins + len(output):
        raise ParameterError(
            f"dst.dataPhyAddr is not in the call's output block of {len(output)} bytes: pass the block that has dst, "
            "or none."
        )


def cost(sources: Planes, targets: Planes) -> tuple[int, int]:
    """Return the bytes to compute on, and the bytes that iDMA moves; they overlap, so the longer of the two counts."""
    in_bytes, out_bytes = sum(plane.nbytes for plane in sources), sum(plane.nbytes for plane in targets)
    return max(in_bytes, out_bytes), in_bytes + out_bytes
