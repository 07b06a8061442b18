"""Shared by ops whose kernel comes from the caller: weights and masks in DDR, checked against the rules; saturation."""

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
"""OpenCV converts a float to int before it saturates; anything larger would become the smallest int."""


class Weights:
    """A filter's weights in DDR.

    Attributes:
        values: A view of the weights, (rows, columns) of float32.
    """

    def __init__(self, kernel: hbVPFilterKernel, name: str) -> None:
        self.values: NDArray[np.float32] = view(kernel.plane())
        self._name = name
        self._known = b""
        self._largest_sum = 0.0

    def largest_sum(self) -> float:
        """Return the largest possible sum of weights times 8-bit pixels; recomputed when the weights have changed.

        Raises:
            CvRuleError: a weight is not finite.
        """
        raw = self.values.tobytes()
        if raw != self._known:
            self._largest_sum = need_weights(self._name, self.values.reshape(-1).tolist()) * LARGEST_PIXEL
            self._known = raw
        return self._largest_sum


def under_mask(
    morph: Callable[..., Any], kernel: hbVPFilterKernel, source: NDArray[Any], target: NDArray[Any], **options: Any
) -> Run:
    """Return a function that calls `morph(source, mask, dst=target, **options)`, checking the mask in DDR each time.

    The function raises CvRuleError if the whole mask is 0.
    """
    mask: NDArray[np.uint8] = view(kernel.plane())
    morphed = settled(target, morph, source, mask, dst=target, **options)

    def run() -> None:
        need_mask("kernel", mask.tobytes())
        morphed()

    return run


def is_beyond_int(target: NDArray[Any], largest: float) -> bool:
    """Whether sums up to this size need `saturate` on their way to target; never for a float target."""
    return target.dtype.kind != "f" and not largest < WHAT_AN_INT_HOLDS


def saturate(target: NDArray[Any], exact: NDArray[Any]) -> None:
    """Write float64 values to an image of integers: rounded to nearest, and clamped to its range."""
    limits = np.iinfo(target.dtype)
    target[...] = np.rint(np.clip(exact, limits.min, limits.max))
