"""Parameter structures and rules of the CV ops that change an image's size."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from hbrt.cv import structures
from hbrt.cv.enums import HB_VP_INTER_GAUSSIAN, HB_VP_INTER_LINEAR, hbVPImageType
from hbrt.cv.image import BGR, ELEMENTS, NV12, RGB, Y_F32, Y_S16, Y_U8, Plane, refuse
from hbrt.cv.rules import (
    COLOR_NV12,
    INTERPOLATIONS,
    CvRules,
    need_apart,
    need_choice,
    need_extras_apart,
    need_planes_apart,
    need_range,
    need_size,
    overlap,
    same_kind,
)

PYRAMID_FILTERS = {HB_VP_INTER_LINEAR: "HB_VP_INTER_LINEAR", HB_VP_INTER_GAUSSIAN: "HB_VP_INTER_GAUSSIAN"}
MAX_ROIS = 256
_BYTE = ELEMENTS[Y_U8.type]


class hbDSPCvResizeParam(CvRules, structures.hbDSPCvResizeParam):
    """Input block of Resize, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, (Y_U8, Y_S16, Y_F32, RGB, BGR, NV12))
        need_apart(self)
        need_choice("interpolation", self.interpolation, INTERPOLATIONS)


class hbDSPCvRoiResizeParam(CvRules, structures.hbDSPCvRoiResizeParam):
    """Input block of RoiResize, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError. `check_rois` checks the regions."""
        same_kind(self, COLOR_NV12)
        need_choice("interpolation", self.interpolation, INTERPOLATIONS)
        need_range("roiCount", self.roiCount, 1, MAX_ROIS)
        if not self.roiPhyAddr or self.roiPhyAddr % 4:
            refuse(f"roiPhyAddr is {self.roiPhyAddr:#x}: give the physical address of the regions, a multiple of 4.")
        if self.roiCount > 1:
            for name, step, plane in zip(("dstStep", "dstUvStep"), self.steps(), self.dst.planes(), strict=False):
                smallest = plane.stride * plane.rows
                if step < smallest:
                    refuse(f"{name} is {step} bytes: one result takes {smallest}, so it must be at least that.")
        for source in self.src.planes():
            for target in self.targets():
                if overlap(source, target):
                    refuse(
                        f"The results at {target.phy_addr:#x} overlap src at {source.phy_addr:#x}: give them memory "
                        "of their own."
                    )
        need_planes_apart(self.targets())
        need_extras_apart(self, self.targets())

    def extras(self) -> tuple[Plane, ...]:
        """The regions."""
        element = ELEMENTS[hbVPImageType.HB_VP_IMAGE_TYPE_S32C1]
        row_bytes = ctypes.sizeof(structures.hbDSPCvRoi)
        return (Plane(self.roiPhyAddr, self.roiCount, row_bytes // element.item_bytes, row_bytes, element),)

    def steps(self) -> tuple[int, int]:
        """Return the bytes between results, for each plane."""
        return self.dstStep, self.dstUvStep

    def targets(self) -> tuple[Plane, ...]:
        """The memory of all results, back to back, as one plane for each plane of `dst`."""
        return tuple(
            plane._replace(stride=step, rows=self.roiCount, columns=plane.size_bytes, element=_BYTE)
            if self.roiCount > 1
            else plane
            for plane, step in zip(self.dst.planes(), self.steps(), strict=False)
        )

    def check_rois(self, rois: Sequence[tuple[int, int, int, int]]) -> None:
        """Check that the regions (left, top, right, bottom) are inside the image.

        Raises:
            CvRuleError: one is empty, extends outside the image, or for NV12 splits a UV pair.
        """
        width, height = self.src.width, self.src.height
        is_nv12 = self.src.imageFormat == NV12.format
        for index, (left, top, right, bottom) in enumerate(rois):
            name = f"ROI {index}, ({left}, {top}) to ({right}, {bottom}),"
            if right < left or bottom < top:
                refuse(f"{name} is empty: right and bottom are inclusive, and must not be before left and top.")
            if left < 0 or top < 0 or right >= width or bottom >= height:
                refuse(f"{name} extends outside src, whose last pixel is ({width - 1}, {height - 1}).")
            if is_nv12 and (left % 2 or top % 2 or right % 2 == 0 or bottom % 2 == 0):
                refuse(f"{name} splits a UV pair of NV12: left and top must be even, right and bottom odd.")


class PyramidParam(CvRules):
    """The 120 bytes that PyrDown and PyrUp share. Y U8C1, RGB, BGR or NV12; dst as src, of half or twice the size.

    Attributes:
        interpolation: HB_VP_INTER_GAUSSIAN or HB_VP_INTER_LINEAR.
    """

    interpolation: int

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, COLOR_NV12)
        need_size(self.dst, *self.result_size(self.src))
        need_apart(self)
        need_choice("interpolation", self.interpolation, PYRAMID_FILTERS)

    def result_size(self, src: structures.hbVPImage) -> tuple[int, int]:
        """Width and height that dst must have."""
        raise NotImplementedError(f"{type(self).__name__} has no size.")


class hbDSPCvPyrDownParam(PyramidParam, structures.hbDSPCvPyrDownParam):
    """Input block of PyrDown, with its rules."""

    def result_size(self, src: structures.hbVPImage) -> tuple[int, int]:
        """Half, rounded up."""
        return (src.width + 1) // 2, (src.height + 1) // 2


class hbDSPCvPyrUpParam(PyramidParam, structures.hbDSPCvPyrUpParam):
    """Input block of PyrUp, with its rules."""

    def result_size(self, src: structures.hbVPImage) -> tuple[int, int]:
        """Twice."""
        return src.width * 2, src.height * 2
