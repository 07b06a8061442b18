"""Parameter structures and rules of the CV ops that move pixels by a map or a matrix."""

from __future__ import annotations

import math
from typing import Any

from hbrt.cv import structures
from hbrt.cv.enums import hbVPImageType
from hbrt.cv.image import BGR, ELEMENTS, NV12, RGB, Y_F32, Y_S16, Y_U8, Plane, refuse
from hbrt.cv.rules import (
    BORDERS,
    COLOR_NV12,
    INTERPOLATIONS,
    CvRules,
    need_apart,
    need_choice,
    need_extras_apart,
    need_finite,
    need_range,
    need_size,
    same_kind,
)

SMALLEST_DETERMINANT = 1e-12
MAPS = {hbVPImageType.HB_VP_IMAGE_TYPE_F64C2: "F64C2", hbVPImageType.HB_VP_IMAGE_TYPE_F32C2: "F32C2"}


class hbDSPCvRemapParam(CvRules, structures.hbDSPCvRemapParam):
    """Input block of Remap, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, (Y_U8, Y_S16, Y_F32, RGB, BGR, NV12))
        need_apart(self)
        need_choice("dataType", self.dataType, {int(number): name for number, name in MAPS.items()})
        need_size(self.dst, self.mapWidth, self.mapHeight)
        (plane,) = self.extras()
        if not plane.phy_addr or plane.phy_addr % plane.element.item_bytes:
            refuse(f"mapPhyAddr is {plane.phy_addr:#x}: must be a nonzero multiple of {plane.element.item_bytes}.")
        need_choice("interpolation", self.interpolation, INTERPOLATIONS)
        _check_border(self.borderType, self.borderValue)
        need_extras_apart(self)

    def extras(self) -> tuple[Plane, ...]:
        """The map."""
        element = ELEMENTS[self.dataType]
        row_bytes = self.mapWidth * element.channels * element.item_bytes
        return (Plane(self.mapPhyAddr, self.mapHeight, self.mapWidth, row_bytes, element),)


class WarpParam(CvRules):
    """Shared rules of WarpAffine and WarpPerspective, except those for the matrix."""

    transformMatrix: Any
    interpolation: int
    borderType: int
    borderValue: int

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, COLOR_NV12)
        need_apart(self)
        matrix = list(self.transformMatrix)
        need_finite("transformMatrix", matrix)
        self.check_matrix(matrix)
        need_choice("interpolation", self.interpolation, INTERPOLATIONS)
        _check_border(self.borderType, self.borderValue)

    def check_matrix(self, m: list[float]) -> None:
        """Check a row-major matrix of finite numbers against the op's rules; raises CvRuleError."""
        raise NotImplementedError


class hbDSPCvWarpAffineParam(WarpParam, structures.hbDSPCvWarpAffineParam):
    """Input block of WarpAffine, with its rules."""

    def check_matrix(self, m: list[float]) -> None:
        """Check the matrix against the op's rules; raises CvRuleError."""
        if abs(determinant := m[0] * m[4] - m[1] * m[3]) < SMALLEST_DETERMINANT:
            refuse(f"transformMatrix {m} has the determinant {determinant:g}: it maps all of src to a line or a point.")
        if not math.isfinite(determinant):
            refuse(
                f"transformMatrix {m} has the determinant {determinant}: use smaller numbers, so that float64 holds it."
            )


class hbDSPCvWarpPerspectiveParam(WarpParam, structures.hbDSPCvWarpPerspectiveParam):
    """Input block of WarpPerspective, with its rules."""

    def check_matrix(self, m: list[float]) -> None:
        """Check the matrix against the op's rules; raises CvRuleError."""
        if not any(m[6:]):
            refuse(f"transformMatrix {m} divides by 0 everywhere: its last row must not be all 0.")


def _check_border(border_type: int, border_value: int) -> None:
    need_choice("borderType", border_type, BORDERS)
    need_range("borderValue", border_value, 0, 255)
