"""C parameter structures of the built-in NN ops, byte for byte as they lie in the input block of a call.

Both sides use them: the ARM side fills one in shared memory, the op reads it there. Every address is a
physical one, every integer little-endian, every field naturally aligned, as a C compiler for a 64-bit ARM
lays it out. docs/nn-ops.md lists the offsets.

`hbDSPSoftmaxParam` is the vendor's public structure (J5 DSP development guide, softmax example). The
structures of quantize and dequantize are not public: they are the emulator's choice.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from hbrt.structures import CStructure, float32_t, int32_t, structure, uint64_t

QUANTI_SHIFT = 1
QUANTI_SCALE = 2
"""Values of `quanti_type`: those of the manual's hbDNNQuantiType, whose 0 leaves a tensor as it is."""

QUANTI_DTYPES = {8: "int8", 9: "uint8", 11: "int16", 12: "uint16", 14: "int32"}
"""numpy's name of each `tensor_type`, which has the number that it has in hbDNNDataType."""

HB_DSP_QUANTI_PER_TENSOR = -1
"""Value of `axis`: one scale, zero point or shift for the whole tensor, taken from the structure itself."""

HB_DSP_QUANTI_ROUND_HALF_AWAY = 1 << 0
"""Bit of `flags`: ties go away from zero, as in C's round(), not to the even neighbor, as in nearbyint()."""

HB_DSP_QUANTI_DDR_PATH = 1 << 1
"""Bit of `flags`: compute straight from DDR instead of by ping-pong through TCM, with the same result."""

HB_DSP_QUANTI_ZERO_POINT_LAST = 1 << 2
"""Bit of `flags`, for quantize: the zero point is added after rounding, as in ONNX, not before it."""

MAX_SHIFT = 126
"""Up to here 2^shift and 2^-shift are both normal float32 numbers, so that SHIFT loses no bit."""

MAX_DIMENSION = (1 << 31) - 1
MAX_DIMENSIONS = 8
"""Length of `shape`, the value of HB_DNN_TENSOR_MAX_DIMENSIONS."""

Dimensions: TypeAlias = Annotated[ctypes.Array[ctypes.c_int32], ctypes.c_int32 * MAX_DIMENSIONS]


@structure
class hbDSPSoftmaxParam(CStructure):
    """Input block of softmax (0x400), 16 bytes: `data_size` at 0, 4 bytes of padding, `input` at 8.

    Attributes:
        data_size: Bytes of float32 input, 4 * count; as many bytes are written to the output block.
        input: Physical address of the first value.

    Source: DSP development guide (J5 OE), 10.2.3.3 DSP Softmax Operator Development,
    https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html
    """

    data_size: int32_t
    input: uint64_t


@structure
class hbDSPSoftmaxRowsParam(CStructure):
    """Input block of softmax of many rows (0x405), 16 bytes: `data_size` at 0, `rows` at 4, `input` at 8.

    Attributes:
        data_size: Bytes of a row of float32, 4 * count.
        rows: How many rows; rows * data_size bytes are read, and as many are written to the output block.
        input: Physical address of the first value; the rows lie one behind the other.

    Emulator: its choice, as the command is.
    """

    data_size: int32_t
    rows: int32_t
    input: uint64_t


@structure
class QuantiParam(CStructure):
    """The 96 bytes that quantize and dequantize share.

    With an axis, `channels` is shape[axis], `inner` the product of the dimensions after it, and element i of
    the row-major tensor belongs to channel (i / inner) % channels.

    Attributes:
        input: Physical address of the elements to convert, row-major.
        scale_data: Physical address of float32[channels]; read for SCALE with an axis.
        zero_point_data: Physical address of int32[channels]; read for SCALE with an axis. 0 means
            that every channel uses `zero_point`.
        shift_data: Physical address of int32[channels]; read for SHIFT with an axis.
        shape: Dimensions; the first `dimension_count` of them count.
        dimension_count: 1..8. The number of elements is the product of the dimensions and may be 0.
        axis: Dimension that the arrays run along, or HB_DSP_QUANTI_PER_TENSOR.
        quanti_type: QUANTI_SHIFT or QUANTI_SCALE.
        tensor_type: Quantized type: 8 S8, 9 U8, 11 S16, 12 U16 or 14 S32.
        scale: Scale of the whole tensor, finite and above 0.
        zero_point: Zero point of the whole tensor, within the range of the quantized type.
        shift: Shift of the whole tensor, 0..126.
        flags: HB_DSP_QUANTI_* bits; all others must be 0.

    Emulator: the whole structure is its choice; the vendor's is not public.
    """

    input: uint64_t
    scale_data: uint64_t
    zero_point_data: uint64_t
    shift_data: uint64_t
    shape: Dimensions
    dimension_count: int32_t
    axis: int32_t
    quanti_type: int32_t
    tensor_type: int32_t
    scale: float32_t
    zero_point: int32_t
    shift: int32_t
    flags: int32_t

    def set_shape(self, dimensions: Sequence[int]) -> None:
        """Fills `shape` and `dimension_count`.

        Raises:
            ValueError: there are no dimensions, or more than 8, or one that does not fit an int32.
        """
        if not 1 <= len(dimensions) <= MAX_DIMENSIONS:
            raise ValueError(
                f"A shape of {len(dimensions)} dimensions does not fit the structure: "
                f"reshape the tensor to between 1 and {MAX_DIMENSIONS} dimensions."
            )
        if max(dimensions) > MAX_DIMENSION:
            raise ValueError(f"Dimension {max(dimensions)} is above {MAX_DIMENSION}, the largest int32.")
        self.dimension_count = len(dimensions)
        self.shape[: len(dimensions)] = list(dimensions)


class hbDSPQuantizeParam(QuantiParam):
    """Input block of quantize (0x401): float32 at `input` to `tensor_type` in the output block."""


class hbDSPDequantizeParam(QuantiParam):
    """Input block of dequantize (0x402): `tensor_type` at `input` to float32 in the output block."""
