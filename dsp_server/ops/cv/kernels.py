"""What the ops with kernels of the caller's share: weights and masks from DDR, held to their rules; saturation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.op import Run, settled, view
from hbrt.cv.rules import need_mask, need_weights
from hbrt.cv.structures import hbVPFilterKernel

LARGEST_PIXEL = 255
WHAT_AN_INT_HOLDS = 2.0**31 - 256
"""OpenCV makes an int of a float before it saturates; a larger one would become the smallest int."""


class Weights:
    """A filter's weights in DDR.

    Attributes:
        values: A view of them, (rows, columns) of float32.
    """

    def __init__(self, kernel: hbVPFilterKernel, name: str) -> None:
        self.values: NDArray[np.float32] = view(kernel.plane())
        self._name = name
        self._known = b""
        self._largest_sum = 0.0

    def largest_sum(self) -> float:
        """How large a sum of them over pixels of 8 bits may be; looked at again when they are others.

        Raises:
            CvRuleError: one is not finite.
        """
        raw = self.values.tobytes()
        if raw != self._known:
            self._largest_sum = need_weights(self._name, self.values.reshape(-1).tolist()) * LARGEST_PIXEL
            self._known = raw
        return self._largest_sum


def under_mask(
    morph: Callable[..., Any], kernel: hbVPFilterKernel, source: NDArray[Any], target: NDArray[Any], **options: Any
) -> Run:
    """What calls `morph(source, mask, dst=target, **options)` with a mask in DDR, looked at in each call.

    That raises CvRuleError when all of the mask is 0.
    """
    mask: NDArray[np.uint8] = view(kernel.plane())
    morphed = settled(target, morph, source, mask, dst=target, **options)

    def run() -> None:
        need_mask("kernel", mask.tobytes())
        morphed()

    return run


def is_beyond_int(target: NDArray[Any], largest: float) -> bool:
    """Whether sums up to this size need `saturate` on their way to target: not when it is of float."""
    return target.dtype.kind != "f" and not largest < WHAT_AN_INT_HOLDS


def saturate(target: NDArray[Any], exact: NDArray[Any]) -> None:
    """Write float64 values to an image of integers: rounded to nearest and clamped to the limits."""
    limits = np.iinfo(target.dtype)
    target[...] = np.rint(np.clip(exact, limits.min, limits.max))
