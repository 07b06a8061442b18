"""Records that loading makes and that every other part reads. Pure data."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

DYNAMIC = -1  # a size that the data decides


class QuantizationKind(IntEnum):
    """How stored numbers stand for real ones."""

    NONE = 0  # as themselves
    SHIFT = 1
    SCALE = 2


@dataclass(frozen=True)
class Quantization:
    """How stored integers stand for real numbers.

    Attributes:
        kind: SCALE: real = (stored - zero_point) * scale. SHIFT: real = stored / 2^shift.
        scale: (n,) float32; n is 1 per tensor, else the size of dimension ``axis``. Empty for SHIFT.
        zero_point: (n,) int32, as the model has them.
        shift: (n,) uint8. Empty for SCALE.
        axis: Dimension of the valid shape; meaningless when n is 1.
    """

    kind: QuantizationKind
    scale: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    zero_point: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    shift: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    axis: int = 0
