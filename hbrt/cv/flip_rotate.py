"""Parameter structures of the CV ops that turn an image over or around, with their rules."""

from __future__ import annotations

from hbrt.cv.enums import HB_VP_ROTATE_180, hbVPFlipCode, hbVPRotateCode
from hbrt.cv.rules import EVERY_KIND, CvParam, need_apart, need_choice, need_size, same_kind, same_size
from hbrt.structures import int32_t, structure

FLIPS: dict[int, str] = {one: one.name for one in hbVPFlipCode}
ROTATIONS: dict[int, str] = {one: one.name for one in hbVPRotateCode}


@structure
class hbDSPCvFlipParam(CvParam):
    """Input block of Flip, 120 bytes. Any kind; dst as src.

    Attributes:
        flipCode: HB_VP_FLIP_VERTICAL, HB_VP_FLIP_HORIZONTAL or HB_VP_FLIP_BOTH.
    """

    flipCode: int32_t

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, EVERY_KIND)
        same_size(self)
        need_apart(self)
        need_choice("flipCode", self.flipCode, FLIPS)


@structure
class hbDSPCvRotateParam(CvParam):
    """Input block of Rotate, 120 bytes. Any kind; dst as src, its sides exchanged by a quarter of a turn.

    Attributes:
        rotateCode: HB_VP_ROTATE_90_CLOCKWISE, HB_VP_ROTATE_180 or HB_VP_ROTATE_90_COUNTER_CLOCKWISE.
    """

    rotateCode: int32_t

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, EVERY_KIND)
        need_choice("rotateCode", self.rotateCode, ROTATIONS)
        if self.rotateCode == HB_VP_ROTATE_180:
            same_size(self)
        else:
            need_size(self.dst, self.src.height, self.src.width)
        need_apart(self)


class hbDSPCvTransposeParam(CvParam):
    """Input block of Transpose, 112 bytes. Any kind; dst as src, its sides exchanged."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, EVERY_KIND)
        need_size(self.dst, self.src.height, self.src.width)
        need_apart(self)
