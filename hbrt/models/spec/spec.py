"""Records created when a model is loaded and read by everything else. Pure data."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

DYNAMIC = -1  # a data-dependent size


class QuantizationKind(IntEnum):
    """How stored numbers represent real ones."""

    NONE = 0  # stored directly
    SHIFT = 1
    SCALE = 2


@dataclass(frozen=True)
class Quantization:
    """How stored integers represent real numbers.

    Attributes:
        kind: SCALE: real = (stored - zero_point) * scale. SHIFT: real = stored / 2^shift.
        scale: (n,) float32; n is 1 per tensor, otherwise the size of dimension ``axis``. Empty for SHIFT.
        zero_point: (n,) int32, from the model.
        shift: (n,) uint8. Empty for SCALE.
        axis: Dimension of the valid shape; meaningless if n is 1.
    """

    kind: QuantizationKind
    scale: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    zero_point: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    shift: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    axis: int = 0
