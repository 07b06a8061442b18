"""QuantizeLinear and DequantizeLinear on the DSP (ops 0x401, 0x402), unless they are part of int8 operators."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from arm_client.dnn.layers.dsp_layer import FLOAT32, DspLayer, foreign, not_float32, of_float32
from arm_client.dnn.layers.layer import registry
from arm_client.dnn.layers.ndarray import NDArray
from hbrt.behavior import QUANTI_DTYPES
from hbrt.models.run.layer import TensorType
from hbrt.nn_types import (
    HB_DSP_QUANTI_PER_TENSOR,
    HB_DSP_QUANTI_ZERO_POINT_LAST,
    QUANTI_SCALE,
    hbDSPDequantizeParam,
    hbDSPQuantizeParam,
)
from hbrt.types import HB_DSP_RPC_CMD_NN_DEQUANTIZE, HB_DSP_RPC_CMD_NN_QUANTIZE, hbSysMem

if TYPE_CHECKING:
    from hbrt.dnn_types import hbDNNInferCtrlParam
    from hbrt.models.spec.graph import NodeInfo

QuantiParam: TypeAlias = hbDSPQuantizeParam | hbDSPDequantizeParam
TENSOR_TYPES = {np.dtype(name): number for number, name in QUANTI_DTYPES.items()}
_ALIGNMENT = 8  # alignment of a call's blocks
_NOTHING_BETWEEN = ("Relu", "Clip")  # activations that an int8 op includes


class _Quanti(DspLayer):
    """Shared by QuantizeLinear and DequantizeLinear."""

    cmd = 0
    structure: type[QuantiParam] = hbDSPQuantizeParam

    def __init__(self) -> None:
        super().__init__()
        self._axis = 1
        self._has_constants = False
        self._state: tuple[object, ...] = ()

    def SetUp(self, attributes: Mapping[str, Any], node: NodeInfo) -> None:
        """Read the axis, and whether scale and zero point are constant."""
        self._axis = attributes.get("axis", 1)
        self._has_constants = all(value is None or value.constant is not None for value in node.inputs[1:])

    def Decline(self, node: NodeInfo) -> str:
        """Say why the op cannot compute it, or that it is part of another operator."""
        scale = node.inputs[1] if len(node.inputs) > 1 else None
        if node.attributes.get("block_size"):
            return "they are quantized in blocks, which the DSP op does not support"
        if scale is not None and scale.shape is not None and len(scale.shape) > 1:
            return "they are quantized in blocks, which the DSP op does not support"
        if scale is not None and scale.constant is not None:
            values = scale.constant.astype(np.float64)
            if not (np.isfinite(values) & (values > 0)).all():
                return "a scale is not a finite number above 0"
        return foreign(node) or not_float32(node, 1)

    def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hbDNNInferCtrlParam) -> int:
        """Run one call for the tensor."""
        data, out, scale = bottom[0], top[0], bottom[1]
        zero_point = bottom[2] if len(bottom) > 2 else cast("NDArray | None", None)
        if not data.Size():
            return 0
        params = self.block("parameters", ctypes.sizeof(self.structure))
        state = (data.phy_addr, data.Shape())
        if state != self._state or not self._has_constants:
            self._fill(params, data, scale, zero_point, out)
            self._state = state
        target = out.mem
        if target.phyAddr % _ALIGNMENT:
            target = self.block("results", target.memSize)
        status = self.call(self.cmd, params, target, ctrl)
        if not status and target is not out.mem:
            out.numpy()[...] = target.array(out.dtype, tuple(out.Shape()))
        return status

    def _fill(self, params: hbSysMem, data: NDArray, scale: NDArray, zero_point: NDArray | None, out: NDArray) -> None:
        param = self.structure.from_buffer(params.view())
        param.input = data.phy_addr
        param.quanti_type = QUANTI_SCALE
        param.tensor_type = TENSOR_TYPES[self._stored(data, out)]
        param.flags = HB_DSP_QUANTI_ZERO_POINT_LAST
        if scale.Size() == 1:
            param.axis = HB_DSP_QUANTI_PER_TENSOR
            param.set_shape([data.Size()])
            param.scale = float(scale.numpy().reshape(-1)[0])
            param.zero_point = 0 if zero_point is None else int(zero_point.numpy().reshape(-1)[0])
            return
        shape, axis = data.Shape(), data.CanonicalAxis(self._axis)
        if shape[axis] != scale.Size():
            raise ValueError(f"{scale.Size()} scales for the {shape[axis]} channels of axis {axis} of {list(shape)}.")
        param.axis = 1
        param.set_shape([math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])])
        param.scale_data = scale.phy_addr
        param.zero_point = 0
        param.zero_point_data = 0
        if zero_point is not None:
            table = self.block("zero points", scale.Size() * 4)
            table.array(np.int32)[: scale.Size()] = zero_point.numpy()
            param.zero_point_data = table.phyAddr

    def _stored(self, data: NDArray, out: NDArray) -> np.dtype[Any]:
        raise NotImplementedError


class DspQuantizeLinear(_Quanti):
    """QuantizeLinear with op 0x401, in ONNX's order: round, then add the zero point."""

    cmd = HB_DSP_RPC_CMD_NN_QUANTIZE
    structure = hbDSPQuantizeParam

    def __init__(self) -> None:
        super().__init__()
        self._dtype: np.dtype[Any] | None = None

    def SetUp(self, attributes: Mapping[str, Any], node: NodeInfo) -> None:
        """Also read the type named by the attribute."""
        super().SetUp(attributes, node)
        self._dtype = _output_dtype(node)

    def Decline(self, node: NodeInfo) -> str:
        """Say why not: the op converts float32 to integers of 8 to 32 bits; int8 operators do it themselves."""
        dtype = _output_dtype(node)
        zero_point = node.inputs[2] if len(node.inputs) > 2 else None
        if zero_point is not None:
            dtype = zero_point.dtype
        if dtype is not None and dtype not in TENSOR_TYPES:
            return f"the DSP op does not produce {dtype}"
        return super().Decline(node) or not_float32(node, 0) or _quantized_result(node)

    def InferShape(self, bottom: Sequence[TensorType | None]) -> Sequence[TensorType]:
        """Return the input's shape, with the zero point's type."""
        data = of_float32(bottom[0], "QuantizeLinear")
        zero_point = bottom[2] if len(bottom) > 2 else None
        dtype = zero_point.dtype if zero_point is not None else self._dtype or np.dtype(np.uint8)
        return [TensorType(data.shape, dtype)]

    def _stored(self, data: NDArray, out: NDArray) -> np.dtype[Any]:
        del data
        return out.dtype


class DspDequantizeLinear(_Quanti):
    """DequantizeLinear with op 0x402."""

    cmd = HB_DSP_RPC_CMD_NN_DEQUANTIZE
    structure = hbDSPDequantizeParam

    def Decline(self, node: NodeInfo) -> str:
        """Say why not: the op takes int8, uint8, int16, uint16 and int32; constants and int8 operators' inputs stay."""
        data = node.inputs[0]
        if data is not None and data.constant is not None:
            return "they are constants, which onnxruntime converts once"
        if data is not None and data.dtype is not None and data.dtype not in TENSOR_TYPES:
            return f"the DSP op does not take {data.dtype}"
        if _output_dtype(node) not in {None, FLOAT32}:
            return f"the DSP op does not produce {_output_dtype(node)}"
        return super().Decline(node) or _quantized_operand(node)

    def InferShape(self, bottom: Sequence[TensorType | None]) -> Sequence[TensorType]:
        """Return the input's shape, in float32."""
        data = bottom[0]
        if data is None or data.dtype not in TENSOR_TYPES:
            raise ValueError(f"The DSP op dequantizes {', '.join(map(str, TENSOR_TYPES))}, not {data}.")
        return [TensorType(data.shape, FLOAT32)]

    def _stored(self, data: NDArray, out: NDArray) -> np.dtype[Any]:
        del out
        return data.dtype


def _output_dtype(node: NodeInfo) -> np.dtype[Any] | None:
    from onnx import helper

    number = node.attributes.get("output_dtype", 0)
    return np.dtype(helper.tensor_dtype_to_np_dtype(number)) if number else None


def _quantized_result(node: NodeInfo) -> str:
    """Whether a QuantizeLinear is the end of an int8 operator, which the BPU (here onnxruntime) runs as one."""
    maker = node.producer(0)
    if maker is not None and maker.op_type in _NOTHING_BETWEEN and not _is_int8(maker):
        maker = maker.producer(0)
    return _PART_OF if maker is not None and _is_int8(maker) else ""


def _quantized_operand(node: NodeInfo) -> str:
    """Whether a DequantizeLinear is read only by int8 operators."""
    readers = node.consumers(0)
    is_part = bool(readers) and not node.is_output(0) and all(_is_int8(reader) for reader in readers)
    return _PART_OF if is_part else ""


_PART_OF = "they are part of int8 operators, which the BPU runs as one"


def _is_int8(node: NodeInfo) -> bool:
    """Whether an operator runs on integers: its inputs are dequantized, its result or weights are quantized."""
    if registry.creator_of(node.domain, node.op_type) is not None:
        return False
    sources = [node.producer(at) for at, value in enumerate(node.inputs) if value is not None and _is_real(value)]
    if not sources or any(maker is None or maker.op_type != "DequantizeLinear" for maker in sources):
        return False
    has_weights = any(
        maker is not None and maker.inputs[0] is not None and maker.inputs[0].constant is not None for maker in sources
    )
    readers = node.consumers(0)
    if len(readers) == 1 and readers[0].op_type in _NOTHING_BETWEEN:
        readers = readers[0].consumers(0)
    return has_weights or (bool(readers) and all(reader.op_type == "QuantizeLinear" for reader in readers))


def _is_real(value: Any) -> bool:
    """Whether an input carries data: not a constant of the operator, such as limits, a shape or a float bias."""
    return value.constant is None and (value.dtype is None or value.dtype.kind == "f")
