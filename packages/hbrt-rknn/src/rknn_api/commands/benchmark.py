"""``rknn_benchmark``: the contents of a model file, and the duration of its runs on this machine."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from hbrt.borders.printable import printable
from hbrt.cli.tables import show_text
from hbrt.models.errors import GraphError
from rknn_api.container import Container, Metadata, TensorInfo
from rknn_api.errors import RknnError, invalid_parameter
from rknn_api.platforms import CoreMask, platform_of
from rknn_api.run import plugins
from rknn_api.run.feeds import shape_sets
from rknn_api.run.runner import Runner
from rknn_api.toolkit.dataset import Wanted, read
from rknn_api.version import sdk_version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@click.command(epilog='Example: rknn_benchmark digits.rknn "" 10 3')
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("inputs", default="")
@click.argument("count", type=click.IntRange(1), default=10)
@click.argument("core_mask", type=int, default=CoreMask.NPU_CORE_AUTO.value)
def command(model: Path, inputs: str, count: int, core_mask: int) -> None:
    """Run MODEL COUNT times; print its contents and the duration of each run on this machine.

    INPUTS is a picture or an .npy file for each input, separated by #; "" for zeros. CORE_MASK is 1, 2 and 4 for the
    NPU cores 0, 1 and 2, their sum for several, and 0 for any.
    """
    try:
        _run(model, inputs, count, core_mask)
    except RknnError as error:
        raise click.ClickException(error.text) from None
    except GraphError as error:
        raise click.ClickException(str(error)) from None


def _run(model: Path, inputs: str, count: int, core_mask: int) -> None:
    container = Container.read(model)
    metadata = container.metadata
    platform = platform_of(metadata.target_platform)
    cores = platform.cores_of(core_mask)
    workers = platform.cores if core_mask == CoreMask.NPU_CORE_AUTO else len(cores)
    ops = plugins.required(container)
    runner = Runner(container, ops, workers, core_mask)
    if runner.note:
        show_text(runner.note, err=True)
    arrays = _arrays(metadata, inputs)
    show_text(sdk_version())
    show_text(f"{metadata.name}, for {metadata.target_platform}, {metadata.quantized_dtype or 'not quantized'}")
    for what, infos in (("input", metadata.inputs), ("output", metadata.outputs)):
        for at, info in enumerate(infos):
            show_text(f"{what} {at}: {_said(info)}")
    show_text("Measured on this machine, by onnxruntime, which does not reflect the chip:")
    runner.run(arrays, "nchw")  # the first run allocates buffers
    times = []
    for at in range(count):
        start = perf_counter_ns()
        runner.run(arrays, "nchw")
        times.append((perf_counter_ns() - start) / 1000)
        show_text(f"{at:4}: {times[-1]:.0f} µs")
    runner.close()
    ops.close()
    mean = sum(times) / count
    show_text(f"average {mean:.0f} µs, {1e6 / mean:.1f} runs a second")


def _arrays(metadata: Metadata, inputs: str) -> list[NDArray[Any]]:
    """Arrays for the inputs, in the graph's layout."""
    shapes: Sequence[tuple[int, ...]] = shape_sets(metadata)[0]
    if not inputs:
        return [np.zeros(shape, info.dtype) for shape, info in zip(shapes, metadata.inputs, strict=True)]
    files = inputs.split("#")
    if len(files) != len(shapes):
        raise invalid_parameter(f"{len(files)} inputs were given, but the model has {len(shapes)}.")
    return [
        read(Path(file), Wanted(shape, np.dtype(info.dtype)))
        for file, shape, info in zip(files, shapes, metadata.inputs, strict=True)
    ]


def _said(info: TensorInfo) -> str:
    rule = f", scale {info.scale:g}, zero point {info.zero_point}" if info.stored_name else ""
    layout = f" {info.layout}" if info.layout != "UNDEFINED" else ""
    return f"{printable(info.name)} {list(info.shape)}{layout} {info.dtype}, stored as {info.stored}{rule}"
