"""Modeled cost of a layer: cycles, bytes, and how cores share it. Pure; every number is modeled, none measured.

Cycles and bytes agree with published layer logs; where those have no data, the docstring says that the number is a
choice. Times are those of ``hbrt.accelerators``, fitted to published times of whole models, as in ``hbrt estimate``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import NamedTuple

from hbrt.accelerators.chips import chip_named
from hbrt.accelerators.layer import CONV, DEPTHWISE, MATMUL, MOVE, POINTWISE, Layer as Accelerated, Tensor
from hbrt.accelerators.time_model import Chip as TimeChip, run_times
from hbrt.profiles.profile import Profile
from rknn_api.perf.layers import Layer, Shape

_MULTICORE = ("Conv", "Add", "Concat", "Relu", "Clip", "ThresholdedRelu", "PRelu", "LeakyRelu")
_MIN_MACS = 1 << 16
"""A layer with fewer multiplications stays on one core; the emulator's choice."""
_MAX_USAGE = 99.0
_TABLES = {
    "swish": "silu", "sigmoid": "sigmoid", "tanh": "tanh", "gelu": "gelu", "softmax": "softmax",
    "normalization": "norm", "softplus": "softplus", "mish": "mish", "exp": "exp",
}  # fmt: skip
"""Suffixes of the names of operators that a table computes; a convolution may have one merged into it."""


@dataclass(frozen=True)
class Chip:
    """The parameters of a chip for the rules.

    Attributes:
        clock_mhz: Clock of an NPU core.
        int8_macs: Multiplications of int8 per core and cycle.
        float16_macs: Likewise for float16.
        depthwise_macs: Likewise for int8 in a convolution with one group per channel.
        ddr_mb_per_s: Throughput of the DDR.
        c2: Channels in a group of NC1HWC2, by bytes of an element.
        times: Data for the time of a layer; None for a user's own profile, for which cycles give a lower bound.
    """

    clock_mhz: float
    int8_macs: int
    float16_macs: int
    depthwise_macs: int
    ddr_mb_per_s: float
    c2: tuple[int, int]
    times: TimeChip | None = None

    @classmethod
    def of(cls, profile: Profile) -> Chip:
        """A profile's."""
        return cls(
            profile.number("cores.npu.clock_mhz"),
            profile.whole("npu.int8_macs"),
            profile.whole("npu.float16_macs"),
            profile.whole("npu.depthwise_macs"),
            profile.number("npu.ddr_mb_per_s"),
            (profile.whole("npu.c2_int8") or 8, profile.whole("npu.c2_float16") or 4),
            chip_named(profile.chip),
        )


class Cost(NamedTuple):
    """Modeled cost of a layer.

    Attributes:
        ddr_cycles: DDR cycles for reads and writes.
        npu_cycles: Cycles of the multiplications, on one core.
        time_us: Time of the layer, on the cores that share it.
        mac_usage: Utilization of the multipliers, in percent; 0 for a layer without multiplications.
        rw_bytes: Bytes read: inputs, weights and biases.
        shares: Part of each core; all 0 for a layer on the CPU.
    """

    ddr_cycles: int
    npu_cycles: int
    time_us: float
    mac_usage: float
    rw_bytes: int
    shares: tuple[float, ...]

    @property
    def total_cycles(self) -> int:
        """The larger number of cycles."""
        return max(self.ddr_cycles, self.npu_cycles)

    @property
    def improvement(self) -> float:
        """Part of the time that sharing the layer may save."""
        return 1 - max(self.shares) if any(self.shares) else 0.0


def cost_of(layer: Layer, chip: Chip, cores: Sequence[int] = (0,), count: int = 1) -> Cost:
    """The cost of a layer.

    Args:
        layer: The layer.
        chip: The chip.
        cores: Cores that the model runs on.
        count: Number of the chip's cores.

    Source: RKNN SDK advanced guide (chapter 5), 5.3.2
    Emulator: the numbers of cycles, which follow published logs, and the time (docs/accuracy.md).
    """
    if layer.target == "CPU":
        first = float(layer.op_type == "InputOperator")  # as in the guide's table
        read = sum(map(prod, layer.inputs)) * layer.element_bytes
        return Cost(0, 0, 0.0, 0.0, read, (first, *(0.0,) * (count - 1)))
    read = sum(native_bytes(shape, layer, chip) for shape in layer.inputs)
    # Weights have 8 bits, or 16 in an unquantized model; a bias has 8 bytes per channel there, and 4 here.
    is_float = layer.dtype == "FLOAT16"
    weights = sum(prod(shape) for shape in layer.weights[:1]) * (2 if is_float else 1)
    biases = layer.output[1] * (4 if is_float else 8) if layer.macs and len(layer.output) > 1 else 0
    moved = read + weights + biases
    written = native_bytes(layer.output, layer, chip)
    ddr = round((moved + written) * chip.clock_mhz / chip.ddr_mb_per_s)
    npu = _npu_cycles(layer, chip)
    shares = shares_of(layer, chip, cores, count, npu)
    time_us = _time_us(layer, chip, max(shares)) or max(ddr, ceil(npu * max(shares))) / chip.clock_mhz
    rate = chip.int8_macs if layer.dtype == "INT8" else chip.float16_macs
    usage = 100 * layer.macs / rate / (time_us * chip.clock_mhz) if layer.macs and time_us else 0.0
    return Cost(ddr, npu, time_us, min(usage, _MAX_USAGE), moved, shares)


def _time_us(layer: Layer, chip: Chip, share: float) -> float:
    """The time of a layer split between cores; 0 if nothing is known about the chip."""
    if chip.times is None:
        return 0.0
    bits = 8 * layer.element_bytes
    one = _as_accelerated(layer)._replace(feature_bits=bits, weight_bits=bits)
    alone_us = float(run_times([one], chip.times)[1].us[0])
    return share * (alone_us - chip.times.launch_us) + chip.times.launch_us


def _as_accelerated(layer: Layer) -> Accelerated:
    """A layer as described by ``hbrt.accelerators``."""
    inputs, output = tuple(map(_tensor, layer.inputs)), _tensor(layer.output)
    named = layer.op_type.lower()
    activation = next((name for suffix, name in _TABLES.items() if named.endswith(suffix)), "")
    if not layer.macs:
        return Accelerated(layer.name, POINTWISE if activation else MOVE, inputs, output)
    if not layer.weights:
        return Accelerated(layer.name, MATMUL, inputs, output, layer.macs, 0, layer.inputs[0][-1])
    kernel = layer.weights[0]
    channels = kernel[1] if len(kernel) == 4 else prod(kernel) // output.channels
    groups = max(1, inputs[0].channels // channels) if len(kernel) == 4 else 1
    kind = DEPTHWISE if layer.is_depthwise else CONV
    return Accelerated(
        layer.name, kind, inputs, output, layer.macs, prod(kernel), channels, groups, activation=activation
    )


def _tensor(shape: Shape) -> Tensor:
    return Tensor(shape[1], shape[0] * shape[2], shape[3]) if len(shape) == 4 else Tensor(prod(shape))


def native_bytes(shape: Shape, layer: Layer, chip: Chip) -> int:
    """Bytes of a tensor as stored by the NPU: four dimensions are padded to groups of channels."""
    if len(shape) != 4:
        return prod(shape) * layer.element_bytes
    c2 = chip.c2[0 if layer.element_bytes == 1 else 1]
    return shape[0] * ceil(shape[1] / c2) * c2 * shape[2] * shape[3] * layer.element_bytes


def _npu_cycles(layer: Layer, chip: Chip) -> int:
    if layer.is_depthwise:
        rate = (
            chip.depthwise_macs if layer.dtype == "INT8" else chip.depthwise_macs * chip.float16_macs / chip.int8_macs
        )
    else:
        rate = chip.int8_macs if layer.dtype == "INT8" else chip.float16_macs
    # In the logs, a pointwise convolution with 64 channels takes twice its cycles.
    is_slow = len(layer.weights[:1]) == 1 and layer.weights[0][1:] == (64, 1, 1)
    return ceil(layer.macs / rate * (2 if is_slow else 1))


def shares_of(layer: Layer, chip: Chip, cores: Sequence[int], count: int, npu_cycles: int) -> tuple[float, ...]:
    """Each core's part of a layer: by rows of the result, or by groups of its channels if there are few rows.

    Source: RKNN SDK advanced guide (chapter 5), 5.3.2
    Emulator: how a layer is split, and from what size.
    """
    shares = [0.0] * count
    is_shared = layer.op_type.startswith(_MULTICORE) and len(layer.output) == 4
    rows = layer.output[2] if is_shared else 0
    groups = ceil(layer.output[1] / chip.c2[0]) if is_shared else 0
    units = rows if rows >= len(cores) else groups
    work = layer.macs if npu_cycles else prod(layer.output)
    if len(cores) == 1 or units < len(cores) or work < _MIN_MACS:
        shares[cores[0]] = 1.0
        return tuple(shares)
    done = 0
    for at, core in enumerate(cores, 1):
        end = units * at // len(cores)  # the later cores get the rest
        shares[core] = (end - done) / units
        done = end
    return tuple(shares)
