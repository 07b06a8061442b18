"""``hbrt model new``: an ONNX file where a program expects a model that was compiled for its board."""

from __future__ import annotations

from pathlib import Path

import click

from arm_client.commands.run.pictures import need
from hbrt.cli.report import Report, reports


@click.group(epilog="Example: hbrt model new yolov5s.onnx --as yolov5s.bin --input nv12")
def command() -> None:
    """Replace a model that was compiled for a board by an ONNX file."""


@command.command(
    epilog="Example: hbrt model new yolov5s.onnx --as models/yolov5s.bin --input nv12 --scale 0.0039 --output nhwc"
)
@click.argument("source", metavar="FILE.onnx", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--as", "target", required=True, metavar="NAME.bin", type=click.Path(path_type=Path), help="What to write."
)
@click.option(
    "--input",
    "given",
    type=click.Choice(["nv12", "rgb", "bgr", "yuv444", "gray", "featuremap"]),
    default="featuremap",
    show_default=True,
    help="The program's format for a picture.",
)
@click.option(
    "--train",
    "trained",
    type=click.Choice(["rgb", "bgr", "yuv444"]),
    default="rgb",
    show_default=True,
    help="The graph's training format.",
)
@click.option("--mean", default="", metavar="NUMBERS", help="Subtracted first: one, or one per channel.")
@click.option("--scale", default="", metavar="NUMBERS", help="Multiplied next: one, or one per channel.")
@click.option(
    "--output",
    type=click.Choice(["as-it-is", "nhwc"]),
    default="as-it-is",
    show_default=True,
    help="Make outputs of four dimensions NHWC.",
)
@reports
def new(source: Path, target: Path, given: str, trained: str, mean: str, scale: str, output: str) -> Report:
    """Write NAME.bin, an ONNX file with the name that a program loads, and NAME.yaml, which describes its inputs.

    Also prints the properties of this model that most board programs would not expect.
    """
    need("dnn")
    from google.protobuf.message import DecodeError

    from arm_client.commands.model.new import advice, describe, has_picture, write
    from arm_client.commands.model_exec.models import in_this_process
    from arm_client.dnn.errors import ModelError
    from arm_client.dnn.loading.model import load

    if given == "gray":
        trained = "gray"
    description = target.with_suffix(".yaml")
    if existing := [file for file in (target, description) if file.exists()]:
        raise click.UsageError(f"{existing[0]} already exists: remove it, or choose another name.")
    try:
        inputs = write(source, target, is_nhwc=output == "nhwc")
    except DecodeError as error:
        raise click.UsageError(f"{source} is not an ONNX model: {error}.") from None
    if given != "featuremap" and not has_picture(inputs, given):
        target.unlink()
        shapes = ", ".join(f"{name} {list(shape)}" for name, shape in inputs)
        raise click.UsageError(f"No input has the shape of a {given} picture: {shapes}. Leave out --input.")
    description.write_text(describe(inputs, given, trained, mean, scale), encoding="utf-8")
    try:
        with in_this_process():
            (model,) = load([target])
    except ModelError as error:
        target.unlink()
        description.unlink()
        raise click.UsageError(str(error)) from None
    try:
        rows = [
            {"kind": kind, "name": spec.name, "type": spec.tensor_type.name.removeprefix("HB_DNN_"), "shape": shape}
            for kind, specs in (("input", model.inputs), ("output", model.outputs))
            for spec in specs
            for shape in [list(spec.valid_shape)]
        ]
        hints = advice(model.inputs, model.outputs, is_nhwc=output == "nhwc")
        files = {"model": str(target), "description": str(description)}
        tensors = (f"{row['kind']} {row['name']}: {row['type']} {row['shape']}" for row in rows)
        data = {**files, "tensors": rows, "advice": list(hints)}
        return Report(data, f"Wrote {target} and {description}.", *tensors, *hints)
    finally:
        model.close()
