"""eval_perf and eval_memory of a model file."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

from hbrt.accelerators.chips import chip_named, run_of
from hbrt.accelerators.onnx_layers import UnknownSizesError, layers_of_model
from rknn_api.container import Container, Metadata
from rknn_api.perf.cost import Chip, cost_of
from rknn_api.perf.layers import layers_of
from rknn_api.perf.memory import Memory, memory_of
from rknn_api.perf.table import layer_table
from rknn_api.platforms import Platform
from rknn_api.run.custom_ops import CustomOps
from rknn_api.run.feeds import shape_sets
from rknn_api.run.runner import Runner

if TYPE_CHECKING:
    from onnx import ModelProto

_RUNS = 10


def layers_text(model: ModelProto, metadata: Metadata, ops: CustomOps, platform: Platform, cores: Sequence[int]) -> str:
    """The table of layers, modeled.

    Args:
        model: The graph of a model file.
        metadata: Of the file.
        ops: The program's ops.
        platform: The chip.
        cores: Its NPU cores that share the layers.

    Raises:
        RknnError: the model cannot be run.
    """
    layers, chip = layers_of(model, metadata, ops), Chip.of(platform.profile)
    taken = tuple(cores)[:1] if metadata.extra.get("single_core_mode") else tuple(cores)
    table = layer_table(layers, [cost_of(one, chip, taken, platform.cores) for one in layers])
    return table + _whole_run(model, platform)


def _whole_run(model: ModelProto, platform: Platform) -> str:
    """A line about the model's run time from published times of whole models; empty if those do not cover it."""
    if chip_named(platform.profile.chip) is None:
        return ""
    try:
        run = run_of(layers_of_model(model, 16), platform.profile.chip)
    except UnknownSizesError:
        return ""
    return (
        f"\n\nA run on one core, modeled by published times of whole models: {run.us / 1000:.2f} ms, "
        f"{1_000_000 / run.us:.1f} a second; 90% of such figures lie from {run.low_us / 1000:.2f} to "
        f"{run.high_us / 1000:.2f} ms (docs/accuracy.md).{f' Assumed: {run.why}.' if run.why else ''}"
    )


def measured_text(runner: Runner) -> str:
    """Duration of a run on this machine.

    Raises:
        RknnError: it failed.
    """
    shapes = shape_sets(runner.metadata)[0]
    inputs = [np.zeros(shape, info.dtype) for shape, info in zip(shapes, runner.metadata.inputs, strict=True)]
    times = []
    for _ in range(_RUNS):
        start = perf_counter_ns()
        runner.run(inputs, "nchw")
        times.append((perf_counter_ns() - start) / 1000)
    return measured_line(median(times))


def measured_line(run_us: float) -> str:
    """A time of this machine, formatted unlike any modeled one."""
    return f"Measured on this machine, by onnxruntime, which does not reflect the chip: {run_us:.0f} µs per run."


def memory_report(container: Container, ops: CustomOps, platform: Platform) -> Memory:
    """Memory of a model, modeled.

    Raises:
        RknnError: the model cannot be run.
    """
    model = container.proto()
    return memory_of(model, layers_of(model, container.metadata, ops), Chip.of(platform.profile))
