"""Parameter structures and rules of the CV ops that flip or rotate an image."""

from __future__ import annotations

from hbrt.cv import structures
from hbrt.cv.enums import HB_VP_ROTATE_180, hbVPFlipCode, hbVPRotateCode
from hbrt.cv.rules import EVERY_KIND, CvRules, need_apart, need_choice, need_size, same_kind, same_size

FLIPS: dict[int, str] = {one: one.name for one in hbVPFlipCode}
ROTATIONS: dict[int, str] = {one: one.name for one in hbVPRotateCode}


class hbDSPCvFlipParam(CvRules, structures.hbDSPCvFlipParam):
    """Input block of Flip, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, EVERY_KIND)
        same_size(self)
        need_apart(self)
        need_choice("flipCode", self.flipCode, FLIPS)


class hbDSPCvRotateParam(CvRules, structures.hbDSPCvRotateParam):
    """Input block of Rotate, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, EVERY_KIND)
        need_choice("rotateCode", self.rotateCode, ROTATIONS)
        if self.rotateCode == HB_VP_ROTATE_180:
            same_size(self)
        else:
            need_size(self.dst, self.src.height, self.src.width)
        need_apart(self)


class hbDSPCvTransposeParam(CvRules, structures.hbDSPCvTransposeParam):
    """Input block of Transpose, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, EVERY_KIND)
        need_size(self.dst, self.src.height, self.src.width)
        need_apart(self)
