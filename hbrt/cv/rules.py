"""Rules that several CV ops share: supported images, matching sizes, permitted overlaps, kernels and matrices.

Each raises CvRuleError with a message. They are pure: the ARM side checks them before submitting, the op before
running.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from hbrt.cv.enums import HB_VP_INTER_LINEAR, HB_VP_INTER_NEAREST, hbVPBorderType
from hbrt.cv.image import BGR, NV12, RGB, Y_F32, Y_S16, Y_S32, Y_U8, ImageKind, Plane, refuse
from hbrt.cv.structures import hbVPImage
from hbrt.structures import CStructure, structure

GRAY = (Y_U8,)
COLOR = (Y_U8, RGB, BGR)
COLOR_NV12 = (*COLOR, NV12)
EVERY_KIND = (Y_U8, Y_S16, Y_S32, Y_F32, RGB, BGR, NV12)

BORDERS: dict[int, str] = {one: one.name for one in hbVPBorderType}
INTERPOLATIONS = {HB_VP_INTER_NEAREST: "HB_VP_INTER_NEAREST", HB_VP_INTER_LINEAR: "HB_VP_INTER_LINEAR"}


def take(image: hbVPImage, name: str, kinds: Collection[ImageKind]) -> ImageKind:
    """Return the image's kind, which must be one of these."""
    kind = image.check(name)
    if kind not in kinds:
        refuse(f"{name} is {kind}: this op takes {_listed(kinds)}.")
    return kind


def same_kind(param: CvRules, kinds: Collection[ImageKind]) -> ImageKind:
    """The kind of src, which must also be dst's."""
    kind = take(param.src, "src", kinds)
    result = param.dst.check("dst")
    if result is not kind:
        refuse(f"dst is {result}: it must be {kind}, like src.")
    return kind


def need_size(image: hbVPImage, width: int, height: int) -> None:
    """Dst must have this size."""
    if (image.width, image.height) != (width, height):
        refuse(f"dst is {image.width} x {image.height} pixels: with this src it must be {width} x {height}.")


def same_size(param: CvRules) -> None:
    """Dst must have the size of src."""
    need_size(param.dst, param.src.width, param.src.height)


def need_apart(param: CvRules, *, in_place: bool = False) -> None:
    """No plane of dst may overlap one of src, except, where safe, by being identical to it."""
    sources, targets = param.src.planes(), param.dst.planes()
    if in_place and all(map(_is_in_place, sources, targets)) and len(sources) == len(targets):
        return
    for source in sources:
        for target in targets:
            if overlap(source, target):
                refuse(
                    f"dst at {target.phy_addr:#x} overlaps src at {source.phy_addr:#x}: "
                    + ("give both the same address and stride, or separate memory." if in_place else _APART)
                )
    need_planes_apart(targets)


def need_planes_apart(targets: Sequence[Plane]) -> None:
    """The two planes of an NV12 dst may not overlap each other."""
    if len(targets) > 1 and overlap(*targets[:2]):
        refuse(
            f"The Y plane of dst at {targets[0].phy_addr:#x} overlaps its UV plane at {targets[1].phy_addr:#x}: they "
            "must not overlap."
        )


def need_extras_apart(param: CvRules, targets: Sequence[Plane] | None = None) -> None:
    """No result may overlap what the op reads besides src; call it once `extras` is valid.

    Args:
        param: The structure.
        targets: Memory of all results, if more than the planes of dst.
    """
    for extra in param.extras():
        for target in param.dst.planes() if targets is None else targets:
            if overlap(extra, target):
                refuse(
                    f"dst at {target.phy_addr:#x} overlaps what the op reads at {extra.phy_addr:#x} besides src: dst "
                    "must not overlap it."
                )


_APART = "this op reads pixels after it has written others, so dst must not overlap src."


def overlap(one: Plane, other: Plane) -> bool:
    """Whether two planes share a byte. Planes side by side in rows of the same stride do not overlap."""
    distance = other.phy_addr - one.phy_addr
    if distance >= one.size_bytes or -distance >= other.size_bytes:
        return False
    if one.stride == other.stride:
        column = distance % one.stride
        return not (column >= one.row_bytes and column + other.row_bytes <= one.stride)
    return True


def _is_in_place(source: Plane, target: Plane) -> bool:
    return source.phy_addr == target.phy_addr and (source.stride == target.stride or source.rows == 1)


def need_choice(name: str, value: int, choices: dict[int, str]) -> None:
    """The value must be one of these named values."""
    if value not in choices:
        listed = ", ".join(f"{number} {text}".rstrip() for number, text in choices.items())
        refuse(f"{name} is {value}: use one of {listed}.")


def need_odd(name: str, value: int, largest: int, smallest: int = 1) -> None:
    """The value must be an odd number from `smallest` to `largest`."""
    if not (smallest <= value <= largest and value % 2):
        refuse(f"{name} is {value}: use an odd number from {smallest} to {largest}.")


def need_range(name: str, value: float, smallest: float, largest: float) -> None:
    """The value must be in a closed range; NaN is not."""
    if not smallest <= value <= largest:
        refuse(f"{name} is {value}: use {smallest:g} to {largest:g}.")


def need_finite(name: str, values: Sequence[float]) -> None:
    """All values must be finite."""
    for value in values:
        if not math.isfinite(value):
            refuse(f"{name} has the value {value}: use finite numbers.")


def need_weights(name: str, values: Sequence[float]) -> float:
    """A filter's weights must be finite. Returns the sum of their magnitudes."""
    total = sum(map(abs, values))
    if not math.isfinite(total):
        wrong = next(index for index, value in enumerate(values) if not math.isfinite(value))
        refuse(f"{name} has the weight {values[wrong]} at index {wrong}: use finite numbers.")
    return total


def need_mask(name: str, values: Collection[int]) -> None:
    """A mask must not be all zeros."""
    if not any(values):
        refuse(f"{name} is a mask of {len(values)} zeros, which selects no pixel: set at least one element.")


def need_anchor(x: int, y: int, width: int, height: int) -> None:
    """An anchor must be inside the kernel; -1 is the middle."""
    if not (-1 <= x < width and -1 <= y < height):
        refuse(f"The anchor ({x}, {y}) is outside the {width} x {height} kernel: use -1 for its middle.")


def _listed(kinds: Collection[ImageKind]) -> str:
    *first, last = [str(kind) for kind in kinds]
    return f"{', '.join(first)} or {last}" if first else last


if TYPE_CHECKING:
    _Structure = CStructure
else:
    _Structure = object


class CvRules(_Structure):
    """Of the input block of a CV op, which begins with the source and destination images.

    Attributes:
        src: Image to read, at 0.
        dst: Image to write, at 56. Its memory is the call's output block or part of it.
    """

    src: hbVPImage
    dst: hbVPImage

    def check(self) -> None:
        """Check the structure against its op's rules; each op has its own.

        Raises:
            CvRuleError: a rule is violated; the message names the field, its value and the allowed ones.
        """
        raise NotImplementedError(f"{type(self).__name__} has no rules of its own.")

    def extras(self) -> tuple[Plane, ...]:
        """Memory that the op reads besides `src`: kernels, maps, lists of regions."""
        return ()


@structure
class CvParam(CvRules, CStructure):
    """The start of every CV op's input block: the source and destination images, 112 bytes. For ops of your own."""

    src: hbVPImage
    dst: hbVPImage
