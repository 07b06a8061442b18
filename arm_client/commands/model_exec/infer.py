"""``hrt_model_exec infer``: some frames of one input, their classes, and the tensor dumps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from arm_client.commands.model_exec import dump
from arm_client.commands.model_exec.dump import Dumps, real_values

if TYPE_CHECKING:
    from arm_client.commands.model_exec.inputs import Frame
    from arm_client.dnn import Model
    from arm_client.dnn.python.buffers import TensorBuffer
    from arm_client.dnn.python.runner import Runner
    from hbrt.dnn_types import hbDNNInferCtrlParam

TOP = 5


def infer(
    file: Path,
    model: Model,
    frame: Frame,
    frames: int,
    ctrl: hbDNNInferCtrlParam,
    timeout_ms: int,
    dumps: Dumps,
    *,
    classify: bool,
) -> dict[str, Any]:
    """Run one input some times.

    Args:
        file: The model's file.
        model: The model.
        frame: Its inputs.
        frames: How often.
        ctrl: How tasks are scheduled.
        timeout_ms: Time limit of a task; 0 for none.
        dumps: What is written.
        classify: Whether the results are the classes of a picture.

    Returns:
        For ``--json``: name of the model, and of each frame its latency, the classes, and the files that were written.

    Raises:
        HbrtError, TimeoutError: a task failed or took too long.
        OSError: a file cannot be written.
    """
    results = []
    runner = frame.runner(model)
    try:
        for number in range(frames):
            latency_ms = runner.run(ctrl, timeout_ms)
            result: dict[str, Any] = {"frame": number, "infer_time_ms": latency_ms}
            if classify:
                result["classes"] = classes_of(real_values(runner.outputs[0]))
            if dumps.enable_dump:
                result["files"] = [str(file) for file in _dump(model, runner, number, dumps)]
            results.append(result)
    finally:
        runner.free()
    document: dict[str, Any] = {"model_name": model.name, "frames": results}
    if dumps.dump_intermediate:
        from arm_client.commands.model_exec.layers import dump_layers

        document["layer_files"] = [str(file) for file in dump_layers(file, model, frame, ctrl, dumps)]
    return document


def classes_of(values: NDArray[Any], count: int = TOP) -> list[list[dict[str, Any]]]:
    """The classes of the highest scores, for each picture the highest first; of equal scores the smaller number.

    Args:
        values: Scores: (N, ...) of N pictures, or (n,) of one. The order of the rest matches the classes.
        count: How many classes.
    """
    pictures = values.reshape(values.shape[0] if values.ndim > 1 else 1, -1).astype(np.float64)
    found = []
    for scores in pictures:
        order = np.argsort(-scores, kind="stable")[:count]
        found.append([{"id": int(number), "score": float(scores[number])} for number in order])
    return found


def text_of(document: dict[str, Any]) -> str:
    """The output of ``infer``, in the lines known from the board."""
    lines = []
    for result in document["frames"]:
        lines += [f"-----Frame {result['frame']} begin-----", f"Infer time: {result['infer_time_ms']:.3f} ms"]
        for classes in result.get("classes", ()):
            for place, found in enumerate(classes, 1):
                name = "class result" if place == 1 else f"  top {place}"
                lines.append(f"{name}: [id]{found['id']}, [score]{found['score']:.6f}")
        lines += [f"Dumped {file}" for file in result.get("files", ())]
        lines.append(f"-----Frame {result['frame']} end-----")
    if "layer_files" in document:
        lines.append(f"Dumped {len(document['layer_files'])} files of layers.")
    return "\n".join(lines)


def _dump(model: Model, runner: Runner, number: int, dumps: Dumps) -> list[Path]:
    """Write the inputs as they were given, and the outputs."""
    files = []
    for kind, buffers in (("input", runner.inputs), ("output", runner.outputs)):
        for at, buffer in enumerate(buffers):
            stem = dump.file_name(model.name, f"frame{number}", kind, at, buffer.spec.name)
            if kind == "output" and dumps.hybrid_dequantize_process:
                file = dumps.dump_path / f"{stem}.txt"
                dump.write_text(file, real_values(buffer).astype(np.float32), dumps.dump_txt_axis, dumps.dump_precision)
            elif dumps.dump_format == "txt":
                file = dumps.dump_path / f"{stem}.txt"
                dump.write_text(file, _as_it_lies(buffer), dumps.dump_txt_axis, dumps.dump_precision)
            else:
                file = dumps.dump_path / f"{stem}.bin"
                dump.write_bytes(file, buffer.raw())
            files.append(file)
    return files


def _as_it_lies(buffer: TensorBuffer) -> NDArray[Any]:
    """Stored values with their padding; of pictures the bytes, row by row."""
    if buffer.spec.image:
        return buffer.get().reshape(-1, buffer.row_bytes)
    if buffer.aligned_shape == buffer.valid_shape:
        return buffer.get()
    return np.frombuffer(buffer.raw(), buffer.dtype).reshape(buffer.aligned_shape)


def check_axis(axis: int, model: Model) -> None:
    """Refuse a line break that no output has.

    Raises:
        click.UsageError: ``--dump_txt_axis`` is beyond the dimensions of every output.
    """
    most = max((len(tensor.spec.valid_shape) for tensor in model.outputs), default=0)
    if not 0 <= axis <= max(most, 4):
        raise click.UsageError(f"--dump_txt_axis is {axis}; the outputs of {model.name} have up to {most} dimensions.")
