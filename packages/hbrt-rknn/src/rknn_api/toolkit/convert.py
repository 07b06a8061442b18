"""Convert models of other frameworks to ONNX with the frameworks' own converters, if installed.

Source of the arguments: RKNN-Toolkit2 API Reference (2.3.2), load_pytorch and the others,
https://github.com/airockchip/rknn-toolkit2
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from hbrt.borders.interrupts import let_out
from hbrt.models.errors import one_line
from rknn_api.errors import RknnError, RknnStatus, invalid_model, invalid_parameter

_SET = 13


def from_pytorch(model: Path, input_size_list: Sequence[Sequence[int]], file: Path) -> None:
    """Write a TorchScript file as ONNX; inputs are named x.1, x.2, ... if it has no names.

    Args:
        model: A file written by ``torch.jit.save``.
        input_size_list: A shape for each input.
        file: The ONNX file to write.

    Raises:
        RknnError: RKNN_ERR_FAIL: torch is not installed; RKNN_ERR_MODEL_INVALID: it rejects the model, and why.
    """
    torch = _module("torch", "load_pytorch", "pytorch")
    sizes = _sizes(input_size_list)

    def write() -> None:
        script = torch.jit.load(str(model), map_location="cpu").eval()
        samples = tuple(torch.zeros(size) for size in sizes)
        torch.onnx.export(script, samples, str(file), opset_version=_SET, dynamo=False)

    _converted("torch.onnx.export", model, write)


def from_tensorflow(
    model: Path, inputs: Sequence[str], input_size_list: Sequence[Sequence[int]], outputs: Sequence[str], file: Path
) -> None:
    """Convert a frozen graph (.pb) to ONNX, with pictures in NCHW.

    Args:
        model: The file.
        inputs: Names of its inputs.
        input_size_list: A shape for each of them.
        outputs: Names of its outputs.
        file: The ONNX file to write.

    Raises:
        RknnError: as ``from_pytorch``.
    """
    convert = _module("tf2onnx.convert", "load_tensorflow", "tensorflow")
    tensorflow = _module("tensorflow", "load_tensorflow", "tensorflow")
    sizes = _sizes(input_size_list)
    if len(sizes) != len(inputs):
        raise invalid_parameter(f"input_size_list has {len(sizes)} shapes, but inputs has {len(inputs)} names.")
    names = [_port(name) for name in inputs]
    pictures = [name for name, size in zip(names, sizes, strict=True) if len(size) == 4]

    def write() -> None:
        graph = tensorflow.compat.v1.GraphDef()
        graph.ParseFromString(model.read_bytes())
        convert.from_graph_def(
            graph,
            input_names=names,
            output_names=[_port(name) for name in outputs],
            shape_override=dict(zip(names, sizes, strict=True)),
            inputs_as_nchw=pictures,
            opset=_SET,
            output_path=str(file),
        )

    _converted("tf2onnx", model, write)


def from_tflite(model: Path, file: Path) -> None:
    """Write a TFLite model as ONNX, its pictures in NCHW.

    Args:
        model: The file.
        file: The ONNX file to write.

    Raises:
        RknnError: as ``from_pytorch``.
    """
    convert = _module("tf2onnx.convert", "load_tflite", "tensorflow")

    def write() -> None:
        made, _ = convert.from_tflite(str(model), opset=_SET)
        values = made.graph.input
        pictures = [value.name for value in values if len(value.type.tensor_type.shape.dim) == 4]
        made, _ = convert.from_tflite(str(model), opset=_SET, inputs_as_nchw=pictures or None)
        for value in made.graph.input:
            for size in value.type.tensor_type.shape.dim:
                size.dim_value = max(size.dim_value, 1)  # an open size is 1 until a program sets it
        onnx.save(made, file)

    _converted("tf2onnx", model, write)


def _module(name: str, call: str, extra: str) -> Any:
    """A converter's module.

    Raises:
        RknnError: RKNN_ERR_FAIL: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise RknnError(
            RknnStatus.RKNN_ERR_FAIL,
            f"{call} needs {name.partition('.')[0]}: pip install 'hbrt-rknn[{extra}]' ({one_line(error)}). Or convert "
            "the model to ONNX, and call load_onnx.",
        ) from None


def _sizes(given: Sequence[Sequence[int]]) -> list[list[int]]:
    try:
        return [[int(size) for size in np.atleast_1d(one)] for one in given]
    except (TypeError, ValueError):
        raise invalid_parameter(f"input_size_list is {given!r}; pass a list with a shape for each input.") from None


def _port(name: str) -> str:
    """The name of a TensorFlow operation's first output."""
    return name if ":" in name else f"{name}:0"


def _converted(what: str, model: Path, write: Any) -> None:
    if not model.is_file():
        raise invalid_model(f"No such file: {model}")
    try:
        write()
    except Exception as error:  # noqa: BLE001 - a converter may raise anything for an unknown model
        let_out(error)
        raise invalid_model(f"{what} rejects {model.name}: {one_line(error)}.") from None
