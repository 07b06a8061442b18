"""hbm_runtime's descriptions of tensors and schedules.

Source: RDK S documentation, 4.1 Python interface, https://github.com/D-Robotics/rdk_s_doc
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class hbDNNDataType(Enum):
    """Types of tensors, numbered as in the S series."""

    S4 = 0
    U4 = 1
    S8 = 2
    U8 = 3
    F16 = 4
    S16 = 5
    U16 = 6
    F32 = 7
    S32 = 8
    U32 = 9
    F64 = 10
    S64 = 11
    U64 = 12
    BOOL8 = 13
    MAX = 14

    @property
    def numpy(self) -> np.dtype[Any]:
        """Its numpy type."""
        kinds = {"S": "int", "U": "uint", "F": "float", "B": "bool"}
        return np.dtype("bool" if self is hbDNNDataType.BOOL8 else f"{kinds[self.name[0]]}{self.name[1:]}")


class hbDNNQuantiType(Enum):
    """How stored numbers map to real ones."""

    NONE = 0
    SCALE = 1


@dataclass
class QuantParams:
    """How a tensor is quantized: real = (stored - zero_point) * scale.

    Attributes:
        scale: (n,) float32; empty for NONE.
        zero_point: (n,) int32; empty for NONE.
        quant_type: NONE or SCALE.
        axis: The dimension along which n counts; meaningless if n is 1.
    """

    scale: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    zero_point: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    quant_type: hbDNNQuantiType = hbDNNQuantiType.NONE
    axis: int = 0


@dataclass
class SchedParam:
    """How the runs of a model are scheduled unless a run overrides it.

    Attributes:
        priority: 0..255, larger first.
        customId: Order within one priority; smaller runs first.
        bpu_cores: Numbers of cores from 0; [-1] for any.
        deviceId: Always that of the board's only device.
    """

    priority: int = 0
    customId: int = 0
    bpu_cores: list[int] = field(default_factory=lambda: [-1])
    deviceId: int = 0
