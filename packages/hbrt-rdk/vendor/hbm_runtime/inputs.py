"""The inputs and outputs of a model in hbm_runtime's form: for an S board, an NV12 picture is two inputs, Y and UV."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from arm_client.dnn import Model, Tensor, TensorProperties
from hbm_runtime.types import QuantParams, hbDNNDataType, hbDNNQuantiType

_TYPES = {
    "int8": hbDNNDataType.S8,
    "uint8": hbDNNDataType.U8,
    "float16": hbDNNDataType.F16,
    "int16": hbDNNDataType.S16,
    "uint16": hbDNNDataType.U16,
    "float32": hbDNNDataType.F32,
    "int32": hbDNNDataType.S32,
    "uint32": hbDNNDataType.U32,
    "float64": hbDNNDataType.F64,
    "int64": hbDNNDataType.S64,
    "uint64": hbDNNDataType.U64,
    "bool": hbDNNDataType.BOOL8,
}


@dataclass(frozen=True)
class Shown:
    """One input or output.

    Attributes:
        name: As programs use it.
        shape: Sizes, -1 if the data decides.
        dtype: Type of the arrays, with numpy's name.
        stride: Bytes between neighbors along each dimension; -1 if the caller decides.
        is_picture: Whether it takes a picture's bytes in any shape.
        quant: How it is quantized.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...]
    is_picture: bool = False
    quant: QuantParams = field(default_factory=QuantParams)

    @property
    def data_type(self) -> hbDNNDataType:
        """The vendor's name of ``dtype``."""
        return _TYPES[self.dtype]

    def checked(self, value: object) -> NDArray[np.generic]:
        """The array, contiguous.

        Raises:
            ValueError: the type or shape differs.
        """
        array = np.ascontiguousarray(value)
        if array.dtype.name != self.dtype:
            raise ValueError(f"The input {self.name!r} takes {self.dtype}, not {array.dtype.name}.")
        fits = len(array.shape) == len(self.shape) and all(
            known in {-1, size} for known, size in zip(self.shape, array.shape, strict=False)
        )
        is_plane = self.is_picture and -1 in self.stride
        if (is_plane and array.size != np.prod(self.shape)) or not (fits or self.is_picture):
            raise ValueError(f"The input {self.name!r} has the shape {list(self.shape)}, not {list(array.shape)}.")
        return array


def shown_inputs(model: Model, *, has_planes: bool) -> list[Shown]:
    """The inputs of a model, in order.

    Args:
        model: The model.
        has_planes: Whether NV12 pictures are two inputs, as in the S series.
    """
    rows = []
    for tensor in model.inputs:
        if has_planes and tensor.properties.tensor_type == "NV12":
            rows += _planes(tensor)
        else:
            rows.append(_shown(tensor))
    return rows


def shown_outputs(model: Model) -> list[Shown]:
    """The outputs of a model, in order."""
    return [_shown(tensor) for tensor in model.outputs]


def fed(model: Model, arrays: list[NDArray[np.generic]], *, has_planes: bool) -> list[NDArray[np.generic]]:
    """Convert arrays for ``shown_inputs`` to the model's form: Y and UV become one picture."""
    left = iter(arrays)
    feeds: list[NDArray[np.generic]] = []
    for tensor in model.inputs:
        first = next(left)
        if has_planes and tensor.properties.tensor_type == "NV12":
            first = np.concatenate([first.reshape(-1), next(left).reshape(-1)])
        feeds.append(first)
    return feeds


def _planes(tensor: Tensor) -> list[Shown]:
    batch, (height, width) = tensor.properties.shape[0], tensor.spec.sides
    y, uv = (batch, height, width, 1), (batch, height // 2, width // 2, 2)
    return [
        Shown(f"{tensor.name}_y", y, "uint8", (-1, -1, 1, 1), is_picture=True),
        Shown(f"{tensor.name}_uv", uv, "uint8", (-1, -1, 2, 1), is_picture=True),
    ]


def _shown(tensor: Tensor) -> Shown:
    told = tensor.properties
    is_picture = tensor.spec.image is not None
    return Shown(tensor.name, told.shape, told.dtype, told.stride, is_picture, _quant(told))


def _quant(told: TensorProperties) -> QuantParams:
    if told.quanti_type != "SCALE":
        return QuantParams()
    return QuantParams(told.scale_data, told.zero_point_data, hbDNNQuantiType.SCALE, told.quantize_axis)
