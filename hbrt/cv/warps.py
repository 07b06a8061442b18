"""Parameter structures of the CV ops that move pixels by a map or a matrix, with their rules."""

from __future__ import annotations

import ctypes
import math
from typing import Annotated, Any, TypeAlias

from hbrt.cv.enums import hbVPImageType
from hbrt.cv.image import BGR, ELEMENTS, NV12, RGB, Y_F32, Y_S16, Y_U8, Plane, refuse
from hbrt.cv.rules import (
    BORDERS,
    COLOR_NV12,
    INTERPOLATIONS,
    CvParam,
    need_apart,
    need_choice,
    need_extras_apart,
    need_finite,
    need_range,
    need_size,
    same_kind,
)
from hbrt.structures import int32_t, structure, uint64_t

SMALLEST_DETERMINANT = 1e-12
Matrix2x3: TypeAlias = Annotated[Any, ctypes.c_double * 6]
Matrix3x3: TypeAlias = Annotated[Any, ctypes.c_double * 9]
MAPS = {hbVPImageType.HB_VP_IMAGE_TYPE_F64C2: "F64C2", hbVPImageType.HB_VP_IMAGE_TYPE_F32C2: "F32C2"}


@structure
class hbDSPCvRemapParam(CvParam):
    """Input block of Remap, 144 bytes. Y U8C1, S16C1 or F32C1, RGB, BGR or NV12; dst as src, of the map's size.

    Attributes:
        mapPhyAddr: Physical address of mapHeight rows of mapWidth pairs x, y, without padding.
        mapWidth: Pairs of a row: dst.width.
        mapHeight: Rows: dst.height.
        dataType: hbVPImageType: F64C2, or F32C2, which needs no conversion.
        interpolation: HB_VP_INTER_NEAREST or HB_VP_INTER_LINEAR.
        borderType: HB_VP_BORDER_*.
        borderValue: The value outside src with a constant border, 0..255, in every channel.
    """

    mapPhyAddr: uint64_t
    mapWidth: int32_t
    mapHeight: int32_t
    dataType: int32_t
    interpolation: int32_t
    borderType: int32_t
    borderValue: int32_t

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, (Y_U8, Y_S16, Y_F32, RGB, BGR, NV12))
        need_apart(self)
        need_choice("dataType", self.dataType, {int(number): name for number, name in MAPS.items()})
        need_size(self.dst, self.mapWidth, self.mapHeight)
        (plane,) = self.extras()
        if not plane.phy_addr or plane.phy_addr % plane.element.item_bytes:
            refuse(f"mapPhyAddr is {plane.phy_addr:#x}: give the map's own, a multiple of {plane.element.item_bytes}.")
        need_choice("interpolation", self.interpolation, INTERPOLATIONS)
        _check_border(self.borderType, self.borderValue)
        need_extras_apart(self)

    def extras(self) -> tuple[Plane, ...]:
        """The map."""
        element = ELEMENTS[self.dataType]
        row_bytes = self.mapWidth * element.channels * element.item_bytes
        return (Plane(self.mapPhyAddr, self.mapHeight, self.mapWidth, row_bytes, element),)


class WarpParam(CvParam):
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


@structure
class hbDSPCvWarpAffineParam(WarpParam):
    """Input block of WarpAffine, 176 bytes. Y U8C1, RGB, BGR or NV12; dst has its kind and any size.

    Attributes:
        transformMatrix: M, 2 x 3, row after row: takes a point of src to dst. Its determinant is 1e-12 or more in size.
        interpolation: HB_VP_INTER_NEAREST or HB_VP_INTER_LINEAR.
        borderType: HB_VP_BORDER_*.
        borderValue: The value outside src with a constant border, 0..255, in every channel.
    """

    transformMatrix: Matrix2x3
    interpolation: int32_t
    borderType: int32_t
    borderValue: int32_t

    def check_matrix(self, m: list[float]) -> None:
        """Check the matrix against the op's rules; raises CvRuleError."""
        if abs(determinant := m[0] * m[4] - m[1] * m[3]) < SMALLEST_DETERMINANT:
            refuse(
                f"transformMatrix {m} has the determinant {determinant:g}: it takes all of src to a line or a point."
            )
        if not math.isfinite(determinant):
            refuse(
                f"transformMatrix {m} has the determinant {determinant}: use numbers so small that float64 holds it."
            )


@structure
class hbDSPCvWarpPerspectiveParam(WarpParam):
    """Input block of WarpPerspective, 200 bytes. As WarpAffine, but the matrix takes a point of dst to src.

    Attributes:
        transformMatrix: M, 3 x 3, row after row, finite, not all 0 in its last row.
        interpolation: HB_VP_INTER_NEAREST or HB_VP_INTER_LINEAR.
        borderType: HB_VP_BORDER_*.
        borderValue: The value outside src with a constant border, 0..255, in every channel.
    """

    transformMatrix: Matrix3x3
    interpolation: int32_t
    borderType: int32_t
    borderValue: int32_t

    def check_matrix(self, m: list[float]) -> None:
        """Check the matrix against the op's rules; raises CvRuleError."""
        if not any(m[6:]):
            refuse(f"transformMatrix {m} divides by 0 everywhere: its last row is not all 0.")


def _check_border(border_type: int, border_value: int) -> None:
    need_choice("borderType", border_type, BORDERS)
    need_range("borderValue", border_value, 0, 255)
