"""The time that an accelerator takes for layers: one form for NPUs and BPUs, few parameters. Pure.

A layer computes and moves at the same time, as far as they overlap; then come a table for its activation, if that is
not free, and the launch of the next layer. All parameters are of one core.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hbrt.accelerators.layer import CHEAP, DEPTHWISE, MATMUL, MOVE, POINTWISE, Layer

_MAX_PACKED: Final = 4
"""Input channels of an image, which the array packs by pixels."""


class Chip(NamedTuple):
    """The parameters of a core, all positive.

    Attributes:
        macs_per_us: Multiplications of int8, at the best use of the array.
        depthwise_per_us: The same of depthwise convolutions.
        matmul_per_us: The same of products of two tensors.
        feature_bytes_per_us: Features from memory and to it.
        weight_bytes_per_us: Weights from memory.
        table_per_us: Elements of an activation by a table, or of another function.
        move: What an element that is only moved costs, in elements that a computing layer reads or writes.
        overlap: Part of the shorter of computing and moving that is hidden behind the longer, 0 to 1.
        launch_us: Of each layer.
        run_us: Of each run.
        input_group: Channels that the array takes at once.
        output_group: Channels that it makes at once.
        wide_rate: Multiplications of 16 bits, by those of int8 in the same time.
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
    """What layers do, in the terms of the parameters: float64 arrays with an element a layer.

    Attributes:
        macs: Multiplications of int8 that take as long, those of channels that fill a group included.
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
    """Modelled microseconds: float64 arrays with an element a layer. The parts overlap: the time is below their sum."""

    us: NDArray[Any]
    compute: NDArray[Any]
    features: NDArray[Any]
    weights: NDArray[Any]
    table: NDArray[Any]
    launch: NDArray[Any]

    def bound(self, at: int) -> str:
        """What takes longest in a layer: compute, features, weights, table, launch."""
        return max(self._fields[1:], key=lambda name: float(getattr(self, name)[at]))


def work_of(layers: Sequence[Layer], input_group: float, output_group: float, wide_rate: float = 0.5) -> Work:
    """Say what layers do on an array that takes and makes so many channels at once; ``wide_rate`` as in ``Chip``."""
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
    """Model a run of all layers on one core: its time in microseconds, and those of the layers."""
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
