"""HB_ONNXRuntime: an ONNX model on the host, run by onnxruntime.

Source: RDK documentation, algorithm toolchain, checks of accuracy, https://github.com/D-Robotics/rdk_doc
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from google.protobuf.message import DecodeError
from numpy.typing import NDArray


class HB_ONNXRuntime:
    """One ONNX model.

    Args:
        model_file: Its path.
        onnx_model: The model itself, if there is no path.

    Attributes:
        input_names: Names of the inputs, in order.
        output_names: Names of the outputs, in order.
        input_shapes: A shape for each input.
        output_shapes: A shape for each output.
        layout: "NCHW" or "NHWC" for each input, by the position of its channels (1, 3 or 4).

    Raises:
        ValueError: the file is not an ONNX model, or has operators that only the vendor's tools run.
    """

    def __init__(self, model_file: str | Path | None = None, onnx_model: onnx.ModelProto | None = None) -> None:
        try:
            model = onnx.load(str(model_file)) if onnx_model is None else onnx_model
        except DecodeError as error:
            raise ValueError(
                f"{model_file} is not an ONNX model ({error}): use the ONNX file that it was compiled from."
            ) from None
        known = {"", "ai.onnx", "ai.onnx.ml", "com.microsoft"} | {one.domain for one in model.functions}
        others = sorted({node.op_type for node in model.graph.node if node.domain not in known})
        if others:
            raise ValueError(
                f"The model has operators of the vendor ({', '.join(others[:3])}), which only its tools run: "
                "use the ONNX file that it was made from."
            )
        self._session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        self.input_names = [one.name for one in self.get_inputs()]
        self.output_names = [one.name for one in self.get_outputs()]
        self.input_shapes = [one.shape for one in self.get_inputs()]
        self.output_shapes = [one.shape for one in self.get_outputs()]
        self.layout = ["NHWC" if len(shape) == 4 and shape[3] in {1, 3, 4} else "NCHW" for shape in self.input_shapes]

    def get_inputs(self) -> list[Any]:
        """The inputs: each has ``name``, ``shape`` and ``type``, as in onnxruntime."""
        return list(self._session.get_inputs())

    def get_outputs(self) -> list[Any]:
        """The outputs, like ``get_inputs``."""
        return list(self._session.get_outputs())

    def set_dim_param(self, input_index: int, dim_index: int, value: int | str) -> None:
        """Accepted without effect: a free dimension gets its size from ``run``."""

    def set_providers(self, providers: Sequence[str]) -> None:
        """Accepted without effect: models run on the CPU."""

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, NDArray[Any]],
        input_offset: int = 128,
    ) -> list[NDArray[Any]]:
        """Run the model.

        Args:
            output_names: Names of the outputs to return; all if None.
            input_feed: An array for each input, by its name.
            input_offset: Subtracted from bytes (uint8) for an int8 input, as the board does with pictures.

        Returns:
            An array for each output.
        """
        types = {one.name: one.type for one in self.get_inputs()}
        feed = {
            name: (array.astype(np.int16) - input_offset).astype(np.int8)
            if types.get(name) == "tensor(int8)" and array.dtype == np.uint8
            else array
            for name, array in input_feed.items()
        }
        return list(self._session.run(output_names, feed))

    def run_feature(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, NDArray[Any]],
        input_offset: int = 0,
    ) -> list[NDArray[Any]]:
        """Like ``run``, for arrays that are not pictures."""
        return self.run(output_names, input_feed, input_offset)
