"""Layers whose methods are function pointers (hbrt_layer.h), as in plugins' C++ classes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from arm_client.dnn.environment import refused
from arm_client.dnn.errors import ModelError
from arm_client.dnn.layers.layer import Layer, hbDNNRegisterLayerCreator
from arm_client.dnn.layers.ndarray import NDArray
from arm_client.dnn.spec.dtypes import carried, dtype_of
from hbrt.dnn_types import HB_DNN_TENSOR_MAX_DIMENSIONS, hbDNNInferCtrlParam, hbrtArray, hbrtAttribute, hbrtLayer
from hbrt.models.run.layer import TensorType
from hbrt.models.spec.dtypes import onnx_type_of
from hbrt.models.spec.graph import NodeInfo
from hbrt.status import Status


def register(layer_type: bytes | None, functions: Any, context: int | None) -> int:
    """Implement hbrt_register_layer of hbrt_layer.h."""
    given = functions.contents if functions else hbrtLayer()
    if not (given.create and given.destroy and given.forward):
        return refused(
            Status.HB_DNN_INVALID_ARGUMENT,
            f"The creator of {(layer_type or b'NULL').decode('utf-8', 'replace')!r} is NULL, or a layer's create, "
            "destroy or forward is; pass functions.",
        )
    kept = hbrtLayer.from_buffer_copy(given)
    return hbDNNRegisterLayerCreator(layer_type, lambda: FunctionLayer(kept, context))  # type: ignore[arg-type]


class FunctionLayer(Layer):
    """A layer whose methods are functions in C.

    Args:
        functions: The functions of its type.
        context: The argument of ``create``.

    Raises:
        RuntimeError: ``create`` returns NULL.
    """

    processor = "C"

    def __init__(self, functions: hbrtLayer, context: int | None) -> None:
        self._functions = functions
        self._layer: int | None = functions.create(context)
        if not self._layer:
            raise RuntimeError(self._why("its creator returned NULL"))

    def SetUp(self, attributes: Mapping[str, Any], node: NodeInfo) -> None:
        """Pass the attributes: numbers and text unchanged, tensors as their elements."""
        self._outputs = len(node.outputs)
        if not self._functions.setUp:
            return
        kept = [_attribute(name, value) for name, value in attributes.items()]
        array = (hbrtAttribute * len(kept))(*(one for one, _ in kept))
        self._check(self._functions.setUp(self._layer, array, len(kept)), "SetUp")

    def InferShape(self, bottom: Sequence[TensorType | None]) -> Sequence[TensorType]:
        """Return the shapes from ``inferShape``; without that function, the shape of the first input."""
        if not self._functions.inferShape:
            return super().InferShape(bottom)
        into = (hbrtArray * len(bottom))(*map(_array_of_type, bottom))
        out = (hbrtArray * self._outputs)(*(_array_of_type(None) for _ in range(self._outputs)))
        self._check(self._functions.inferShape(self._layer, into, len(into), out, len(out)), "InferShape")
        return [self._type_of(one, at) for at, one in enumerate(out)]

    def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hbDNNInferCtrlParam) -> int:
        """Call ``forward``."""
        into, out = (hbrtArray * len(bottom))(*map(_array, bottom)), (hbrtArray * len(top))(*map(_array, top))
        status = int(self._functions.forward(self._layer, into, len(into), out, len(out), ctypes.byref(ctrl)))
        if status and (why := self._why("")):
            raise RuntimeError(why)
        return status

    def TearDown(self) -> None:
        """Call ``destroy``."""
        layer, self._layer = self._layer, None
        if layer:
            self._functions.destroy(layer)

    def _type_of(self, array: hbrtArray, at: int) -> TensorType:
        if not 0 <= array.numDimensions <= HB_DNN_TENSOR_MAX_DIMENSIONS:
            raise ValueError(f"InferShape must give output {at} a shape of 0 to 8 dimensions.")
        return TensorType(tuple(array.shape[: array.numDimensions]), dtype_of(array.type))

    def _check(self, status: int, method: str) -> None:
        if status:
            raise RuntimeError(self._why(f"{method} returned {status}"))

    def _why(self, otherwise: str) -> str:
        text = self._functions.why() if self._functions.why else None
        return text.decode("utf-8", "replace") if text else otherwise


def _attribute(name: str, value: Any) -> tuple[hbrtAttribute, Any]:
    """An attribute, and the objects that its pointers refer to."""
    if isinstance(value, (str, bytes)):
        text = value.encode() if isinstance(value, str) else value
        return hbrtAttribute(name=name.encode(), text=text), text
    try:
        numbers = np.ravel(np.asarray(value))
        is_whole = numbers.dtype.kind in "iub"
        values = np.ascontiguousarray(numbers, np.int64 if is_whole else np.float64)
    except (TypeError, ValueError):  # a graph, or a list of strings
        return hbrtAttribute(name=name.encode()), None
    made = hbrtAttribute(name=name.encode())
    if is_whole:
        made.integers, made.integerCount = values.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)), len(values)
    else:
        made.reals, made.realCount = values.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), len(values)
    return made, values


def _shaped(shape: Sequence[int], dtype: np.dtype[Any]) -> hbrtArray:
    if len(shape) > HB_DNN_TENSOR_MAX_DIMENSIONS:
        raise ValueError(f"A tensor with {len(shape)} dimensions does not fit a C layer, which allows 8.")
    made = hbrtArray(type=int(carried(onnx_type_of(dtype), "a layer's")[1]), numDimensions=len(shape))
    made.shape[: len(shape)] = list(shape)
    return made


def _array_of_type(given: TensorType | None) -> hbrtArray:
    """Return the type and shape known before the model runs; a tensor of unknown rank counts as missing."""
    return hbrtArray(numDimensions=-1) if given is None or given.shape is None else _shaped(given.shape, given.dtype)


def _array(given: NDArray | None) -> hbrtArray:
    if given is None:
        return hbrtArray(numDimensions=-1)
    made = _shaped(given.Shape(), given.dtype)
    made.data = given.numpy().ctypes.data
    try:
        made.phyAddr = given.phy_addr
    except ModelError:  # not in device memory
        made.phyAddr = 0
    return made
