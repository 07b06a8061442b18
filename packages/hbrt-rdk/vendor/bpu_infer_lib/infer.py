"""Infer: read inputs, forward, get outputs.

Source: RDK documentation, Model Zoo quick start, https://github.com/D-Robotics/rdk_doc; programs of rdk_model_zoo.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from arm_client.dnn import Model, Tensor, load
from arm_client.errors import HbrtError
from hobot_vio.pictures import to_nv12


@dataclass
class InferTensor:
    """An input or output.

    Attributes:
        name: As in the model.
        properties: ``tensorLayout`` and ``tensorType`` as the vendor names them, ``validShape``, ``alignedShape``.
        data: Stored values; for an output, after ``get_output``.
    """

    name: str
    properties: SimpleNamespace
    data: NDArray[Any] = field(default_factory=lambda: np.empty(0))


class Infer:
    """A model with its input arrays and the outputs of its last run.

    Args:
        debug: Print what is done.
    """

    def __init__(self, debug: bool = False) -> None:  # noqa: FBT001, FBT002 - the vendor's signature
        self._debug = debug
        self._model: Model | None = None
        self._given: dict[int, NDArray[Any]] = {}
        self._results: tuple[Tensor, ...] = ()
        self.inputs: list[InferTensor] = []
        self.outputs: list[InferTensor] = []

    def load_model(self, model_path: str) -> bool:
        """Load the first model of a file; returns False, with the reason on standard error, if that fails."""
        try:
            self._model = load(model_path)[0]
        except HbrtError as error:
            sys.stderr.write(f"bpu_infer_lib: {error}\n")
            return False
        self.inputs = [_told(tensor) for tensor in self._model.inputs]
        self.outputs = [_told(tensor) for tensor in self._model.outputs]
        self._given, self._results = {}, ()
        return True

    def read_input(self, values: NDArray[Any], index: int) -> bool:
        """Set an input's array, which must have its type and number of elements.

        Raises:
            ValueError: the index is out of range, or the array does not fit.
        """
        tensor = self._input(index)
        array = np.ascontiguousarray(values)
        told = tensor.properties
        if array.dtype.name != told.dtype:
            raise ValueError(f"Input {index} ({tensor.name}) takes {told.dtype}, not {array.dtype.name}.")
        if tensor.spec.image is None and -1 not in told.shape:
            if array.size != np.prod(told.shape):
                raise ValueError(f"Input {index} ({tensor.name}) has the shape {told.shape}, not {array.shape}.")
            array = array.reshape(told.shape)
        self._given[index] = array
        self._show(f"input {index}: {array.dtype} {array.shape}")
        return True

    def read_numpy_arr_float32(self, values: NDArray[Any], index: int) -> bool:
        """Like ``read_input``, for numbers that become float32."""
        return self.read_input(np.asarray(values, np.float32), index)

    def read_numpy_arr_int32(self, values: NDArray[Any], index: int) -> bool:
        """Like ``read_input``, for numbers that become int32."""
        return self.read_input(_whole(values, np.int32), index)

    def read_numpy_arr_uint8(self, values: NDArray[Any], index: int) -> bool:
        """Like ``read_input``, for numbers that become uint8."""
        return self.read_input(_whole(values, np.uint8), index)

    def read_numpy_arr_int8(self, values: NDArray[Any], index: int) -> bool:
        """Like ``read_input``, for numbers that become int8."""
        return self.read_input(_whole(values, np.int8), index)

    def read_img_to_nv12(self, img_path: str, index: int) -> bool:
        """Read a picture file, resize it to the input and convert it to NV12.

        Raises:
            FileNotFoundError: the file cannot be read as a picture. ValueError: the index is out of range, or the input
                takes no NV12.
        """
        tensor = self._input(index)
        if tensor.properties.tensor_type != "NV12":
            raise ValueError(f"Input {index} ({tensor.name}) takes {tensor.properties.tensor_type}, not NV12.")
        height, width = tensor.spec.sides
        picture = cv2.imread(img_path)
        if picture is None:
            raise FileNotFoundError(f"Cannot read {img_path} as a picture.")
        return self.read_input(np.frombuffer(to_nv12(np.asarray(picture, np.uint8), width, height), np.uint8), index)

    def forward(self, more: bool = False) -> bool:  # noqa: FBT001, FBT002 - the vendor's signature
        """Run the model on the inputs that were read. ``more`` is accepted and has no effect.

        Raises:
            ValueError: an input was not read. HbrtError: the task failed.
        """
        del more
        missing = [str(at) for at in range(len(self.inputs)) if at not in self._given]
        if self._model is None or missing:
            raise ValueError(f"Not read yet: input {', '.join(missing)}." if missing else "No model is loaded.")
        self._results = self._model.forward([self._given[at] for at in range(len(self.inputs))])
        return True

    def get_output(self) -> bool:
        """Put the outputs' arrays into ``outputs[i].data``."""
        for shown, result in zip(self.outputs, self._results, strict=False):
            shown.data = result.buffer
            self._show(f"output {result.name}: {result.buffer.dtype} {result.buffer.shape}")
        return bool(self._results)

    def get_infer_res_np_float32(self, index: int, size: int | None = None) -> NDArray[np.float32]:
        """An output's numbers as one row of float32, dequantized.

        Args:
            index: Index of the output.
            size: Number of outputs, from the first; None for all.

        Raises:
            ValueError: the index is out of range, or the model has not been run.
        """
        row = self._result(index).dequantize().astype(np.float32).reshape(-1)
        return row if size is None else row[:size]

    def get_infer_res_np_int32(self, index: int, size: int | None = None) -> NDArray[np.int32]:
        """As ``get_infer_res_np_float32``, of the stored numbers, which ``get_output_scale`` makes real ones."""
        row = self._result(index).buffer.astype(np.int32).reshape(-1)
        return row if size is None else row[:size]

    def get_output_scale(self, index: int) -> SimpleNamespace:
        """How an output is quantized: ``scaleData`` and ``zeroPointData``, empty for real numbers, and their lengths.

        Raises:
            ValueError: the index is out of range.
        """
        if self._model is None or not 0 <= index < len(self.outputs):
            raise ValueError(f"Output {index} is out of range: the model has {len(self.outputs)} outputs.")
        told = self._model.outputs[index].properties
        scales, zeros = told.scale_data, told.zero_point_data
        return SimpleNamespace(scaleLen=len(scales), scaleData=scales, zeroPointLen=len(zeros), zeroPointData=zeros)

    def get_infer_res(self, index: int, size: int | None = None) -> NDArray[np.float32]:
        """Like ``get_infer_res_np_float32``."""
        return self.get_infer_res_np_float32(index, size)

    def _input(self, index: int) -> Tensor:
        if self._model is None:
            raise ValueError("No model is loaded.")
        if not 0 <= index < len(self._model.inputs):
            raise ValueError(f"Input {index} is out of range: the model has {len(self._model.inputs)} inputs.")
        return self._model.inputs[index]

    def _result(self, index: int) -> Tensor:
        if not 0 <= index < len(self._results):
            raise ValueError(f"Output {index} is out of range: the model has {len(self._results)} results.")
        return self._results[index]

    def _show(self, text: str) -> None:
        if self._debug:
            sys.stderr.write(f"bpu_infer_lib: {text}\n")


def _whole(values: NDArray[Any], dtype: type[np.integer[Any]]) -> NDArray[Any]:
    """The numbers in a type of integers.

    Raises:
        ValueError: one of them is not in the type's range.
    """
    given, limits = np.asarray(values), np.iinfo(dtype)
    if given.size and not limits.min <= given.min() <= given.max() <= limits.max:
        raise ValueError(f"The numbers {given.min()} to {given.max()} do not fit {limits.dtype}.")
    return given.astype(dtype)


def _told(tensor: Tensor) -> InferTensor:
    told = tensor.properties
    properties = SimpleNamespace(
        tensorLayout=tensor.spec.layout.name,
        tensorType=tensor.spec.tensor_type.name,
        validShape=told.shape,
        alignedShape=told.aligned_shape,
        quantiType=told.quanti_type,
        scaleData=told.scale_data,
    )
    return InferTensor(tensor.name, properties)
