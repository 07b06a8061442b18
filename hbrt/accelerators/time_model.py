"""Model of an accelerator's time per layer: one formula for NPUs and BPUs, few parameters. Pure.

A layer computes and moves data at the same time, as far as they overlap; then come a table for its activation, unless
that is free, and the launch of the next layer. All parameters are for one core.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hbrt.accelerators.layer import CHEAP, DEPTHWISE, MATMUL, MOVE, POINTWISE, Layer

_MAX_PACKED: Final = 4
"""Input channels of an image, for which the array packs pixels."""


class Chip(NamedTuple):
    """The parameters of a core, all positive.

    Attributes:
        macs_per_us: int8 multiplications, at full use of the array.
        depthwise_per_us: The same for depthwise convolutions.
        matmul_per_us: The same for products of two tensors.
        feature_bytes_per_us: Features from and to memory.
        weight_bytes_per_us: Weights from memory.
        table_per_us: Elements of a table activation or another function.
        move: Cost of an element that is only moved, in elements that a computing layer reads or writes.
        overlap: Fraction of the shorter of computing and moving hidden behind the longer, 0 to 1.
        launch_us: Launch time per layer.
        run_us: Fixed time per run.
        input_group: Channels that the array reads at once.
        output_group: Channels that it produces at once.
        wide_rate: 16-bit multiplications per int8 multiplication in the same time.
    """

    macs_per_us: float
    depthwise_per_us: float
    matmul_per_us: float
    feature_bytes_per_us: float
    weight_bytes_per_us: float
    table_per_us: float
    move: float
    overlap: float
    launch_us: float
    run_us: float
    input_group: float = 32
    output_group: float = 32
    wide_rate: float = 0.5


class Work(NamedTuple):
    """The work of layers, in terms of the parameters: float64 arrays with an element per layer.

    Attributes:
        macs: Equivalent int8 multiplications, including channels that pad a group.
        depthwise: Multiplications of depthwise convolutions.
        matmul: Multiplications of products of two tensors.
        features: Bytes that computing layers read and write.
        moved: Bytes that moving layers read and write.
        weights: Bytes of weights.
        table: Elements that go through a table or a function.
    """

    macs: NDArray[Any]
    depthwise: NDArray[Any]
    matmul: NDArray[Any]
    features: NDArray[Any]
    moved: NDArray[Any]
    weights: NDArray[Any]
    table: NDArray[Any]


class Times(NamedTuple):
    """Modeled microseconds: float64 arrays with an element per layer. Parts overlap, so the time is below their sum."""

    us: NDArray[Any]
    compute: NDArray[Any]
    features: NDArray[Any]
    weights: NDArray[Any]
    table: NDArray[Any]
    launch: NDArray[Any]

    def bound(self, at: int) -> str:
        """Return what takes longest in each layer: compute, features, weights, table, launch."""
        return max(self._fields[1:], key=lambda name: float(getattr(self, name)[at]))


def work_of(layers: Sequence[Layer], input_group: float, output_group: float, wide_rate: float = 0.5) -> Work:
    """Return layers' work on an array with these channel groups; ``wide_rate`` as in ``Chip``."""
    rows = [_work(one, input_group, output_group, wide_rate) for one in layers]
    return Work(*np.array(rows, np.float64).reshape(-1, len(Work._fields)).T)


def times_of(work: Work, chip: Chip) -> Times:
    """Model the time of layers on one core."""
    compute = work.macs / chip.macs_per_us + work.depthwise / chip.depthwise_per_us + work.matmul / chip.matmul_per_us
    features = (work.features + chip.move * work.moved) / chip.feature_bytes_per_us
    weights = work.weights / chip.weight_bytes_per_us
    table = work.table / chip.table_per_us
    moving = features + weights
    hidden = chip.overlap * np.minimum(compute, moving)
    launch = np.full_like(table, chip.launch_us)
    return Times(compute + moving - hidden + table + launch, compute, features, weights, table, launch)


def run_times(layers: Sequence[Layer], chip: Chip) -> tuple[float, Times]:
    """Model a run of all layers on one core; returns its time in microseconds, and the layers' times."""
    times = times_of(work_of(layers, chip.input_group, chip.output_group, chip.wide_rate), chip)
    return chip.run_us + float(times.us.sum()), times


def run_us(layers: Sequence[Layer], chip: Chip) -> float:
    """Model the time of a run of all layers on one core, in microseconds."""
    return run_times(layers, chip)[0]


def _work(layer: Layer, input_group: float, output_group: float, wide_rate: float) -> tuple[float, ...]:
    macs = depthwise = matmul = 0.0
    products = layer.macs / (wide_rate if layer.feature_bits > 8 else 1)
    if layer.kind == DEPTHWISE:
        depthwise = products
    elif layer.kind == MATMUL:
        matmul = products
    elif layer.macs:
        inputs, outputs = layer.channels, layer.output.channels // layer.groups
        taken = _MAX_PACKED if inputs <= _MAX_PACKED else ceil(inputs / input_group) * input_group
        macs = products * taken / inputs * ceil(outputs / output_group) * output_group / outputs
    is_table = layer.kind == POINTWISE or layer.activation not in CHEAP
    moved = layer.feature_bytes
    features, only_moved = (0, moved) if layer.kind == MOVE else (moved, 0)
    table = layer.output.elements if is_table else 0
    return macs, depthwise, matmul, features, only_moved, layer.weight_bytes, table
