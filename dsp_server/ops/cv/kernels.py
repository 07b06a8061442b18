"""What the ops with kernels of the caller's share: weights and masks from DDR, held to their rules; saturation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.op import view
from hbrt.cv.rules import hbVPFilterKernel, need_mask, need_weights

LARGEST_PIXEL = 255
WHAT_AN_INT_HOLDS = 2.0**31 - 256
"""OpenCV makes an int of a float before it saturates; a larger one would become the smallest int."""


def weights(kernel: hbVPFilterKernel, name: str) -> tuple[NDArray[np.float32], float]:
    """A filter's weights, and how large a sum of them over pixels of 8 bits may be.

    Raises:
        CvRuleError: one is not finite.
    """
    values = view(kernel.plane())
    return values, need_weights(name, values.reshape(-1).tolist()) * LARGEST_PIXEL


def mask(kernel: hbVPFilterKernel) -> NDArray[np.uint8]:
    """A morphology's mask.

    Raises:
        CvRuleError: all of it is 0.
    """
    values = view(kernel.plane())
    need_mask("kernel", values.reshape(-1).tolist())
    return values


def is_beyond_int(target: NDArray[Any], largest: float) -> bool:
    """Whether sums up to this size need `saturate` on their way to target: not when it is of float."""
    return target.dtype.kind != "f" and not largest < WHAT_AN_INT_HOLDS


def saturate(target: NDArray[Any], exact: NDArray[Any]) -> None:
    """Write float64 values to an image of integers: rounded to nearest, the limits where they do not fit."""
    limits = np.iinfo(target.dtype)
    target[...] = np.rint(np.clip(exact, limits.min, limits.max))
