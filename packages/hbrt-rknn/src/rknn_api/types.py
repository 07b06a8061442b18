"""C structures and enums of the RKNN run time, as ctypes: names and fields of the public reference.

Source: RKNN C API Reference (2.3.2), data structures, https://github.com/airockchip/rknn-toolkit2
Emulator: numbers that the reference does not print are its choice: those of flags, of enums but rknn_mem_sync_mode, and
the lengths of arrays. Sizes are those of an LP64 C compiler.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from hbrt.structures import (
    CStructure,
    float32_t,
    int8_t,
    int16_t,
    int32_t,
    int64_t,
    structure,
    uint8_t,
    uint32_t,
    uint64_t,
    void_p,
)

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

RKNN_MAX_DIMS = 16
RKNN_MAX_NUM_CHANNEL = 15
RKNN_MAX_NAME_LEN = 256
RKNN_MAX_DYNAMIC_SHAPE_NUM = 512


class RknnFlag(IntFlag):
    """Flags of rknn_init, and one of rknn_create_mem2."""

    RKNN_FLAG_PRIOR_HIGH = 0x0
    RKNN_FLAG_PRIOR_MEDIUM = 0x1
    RKNN_FLAG_PRIOR_LOW = 0x2
    RKNN_FLAG_ASYNC_MASK = 0x4
    RKNN_FLAG_COLLECT_PERF_MASK = 0x8
    RKNN_FLAG_MEM_ALLOC_OUTSIDE = 0x10
    RKNN_FLAG_SHARE_WEIGHT_MEM = 0x20
    RKNN_FLAG_FENCE_IN_OUTSIDE = 0x40
    RKNN_FLAG_FENCE_OUT_OUTSIDE = 0x80
    RKNN_FLAG_COLLECT_MODEL_INFO_ONLY = 0x100
    RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE = 0x200
    RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU = 0x400
    RKNN_FLAG_ENABLE_SRAM = 0x800
    RKNN_FLAG_SHARE_SRAM = 0x1000
    RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY = 0x2000
    RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE = 0x4000
    RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE = 0x8000
    RKNN_FLAG_MODEL_BUFFER_ZERO_COPY = 0x10000
    RKNN_MEM_FLAG_ALLOC_NO_CONTEXT = 0x20000


class rknn_query_cmd(IntEnum):
    """What rknn_query asks for."""

    RKNN_QUERY_IN_OUT_NUM = 0
    RKNN_QUERY_INPUT_ATTR = 1
    RKNN_QUERY_OUTPUT_ATTR = 2
    RKNN_QUERY_PERF_DETAIL = 3
    RKNN_QUERY_PERF_RUN = 4
    RKNN_QUERY_SDK_VERSION = 5
    RKNN_QUERY_MEM_SIZE = 6
    RKNN_QUERY_CUSTOM_STRING = 7
    RKNN_QUERY_NATIVE_INPUT_ATTR = 8
    RKNN_QUERY_NATIVE_NC1HWC2_INPUT_ATTR = 8
    RKNN_QUERY_NATIVE_OUTPUT_ATTR = 9
    RKNN_QUERY_NATIVE_NC1HWC2_OUTPUT_ATTR = 9
    RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR = 10
    RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR = 11
    RKNN_QUERY_DEVICE_MEM_INFO = 12
    RKNN_QUERY_INPUT_DYNAMIC_RANGE = 13
    RKNN_QUERY_CURRENT_INPUT_ATTR = 14
    RKNN_QUERY_CURRENT_OUTPUT_ATTR = 15
    RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR = 16
    RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR = 17
    RKNN_QUERY_CMD_MAX = 18


class rknn_tensor_format(IntEnum):
    """Order of a tensor's dimensions."""

    RKNN_TENSOR_NCHW = 0
    RKNN_TENSOR_NHWC = 1
    RKNN_TENSOR_NC1HWC2 = 2
    RKNN_TENSOR_UNDEFINED = 3
    RKNN_TENSOR_FORMAT_MAX = 4


class rknn_tensor_type(IntEnum):
    """Types of elements."""

    RKNN_TENSOR_FLOAT32 = 0
    RKNN_TENSOR_FLOAT16 = 1
    RKNN_TENSOR_INT8 = 2
    RKNN_TENSOR_UINT8 = 3
    RKNN_TENSOR_INT16 = 4
    RKNN_TENSOR_UINT16 = 5
    RKNN_TENSOR_INT32 = 6
    RKNN_TENSOR_UINT32 = 7
    RKNN_TENSOR_INT64 = 8
    RKNN_TENSOR_BOOL = 9
    RKNN_TENSOR_INT4 = 10
    RKNN_TENSOR_BFLOAT16 = 11
    RKNN_TENSOR_TYPE_MAX = 12


class rknn_tensor_qnt_type(IntEnum):
    """How stored numbers stand for real ones."""

    RKNN_TENSOR_QNT_NONE = 0
    RKNN_TENSOR_QNT_DFP = 1
    RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC = 2
    RKNN_TENSOR_QNT_MAX = 3


class rknn_core_mask(IntEnum):
    """NPU cores that a context may use."""

    RKNN_NPU_CORE_AUTO = 0
    RKNN_NPU_CORE_0 = 1
    RKNN_NPU_CORE_1 = 2
    RKNN_NPU_CORE_2 = 4
    RKNN_NPU_CORE_0_1 = 3
    RKNN_NPU_CORE_0_1_2 = 7
    RKNN_NPU_CORE_ALL = 0xFFFF
    RKNN_NPU_CORE_UNDEFINED = 0x10000


class rknn_mem_alloc_flags(IntFlag):
    """Flags of rknn_create_mem2."""

    RKNN_FLAG_MEMORY_FLAGS_DEFAULT = 0
    RKNN_FLAG_MEMORY_CACHEABLE = 1
    RKNN_FLAG_MEMORY_NON_CACHEABLE = 2
    RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM = 4


class rknn_tensor_mem_flags(IntEnum):
    """Where the memory of a rknn_tensor_mem is from."""

    RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE = 1
    RKNN_TENSOR_MEMORY_FLAGS_FROM_FD = 2
    RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS = 3
    RKNN_TENSOR_MEMORY_FLAGS_UNKNOWN = 4


class rknn_matmul_type(IntEnum):
    """Types of the matrices of a product."""

    RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32 = 1
    RKNN_INT8_MM_INT8_TO_INT32 = 2
    RKNN_INT8_MM_INT8_TO_INT8 = 3
    RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16 = 4
    RKNN_FLOAT16_MM_INT8_TO_FLOAT32 = 5
    RKNN_FLOAT16_MM_INT8_TO_FLOAT16 = 6
    RKNN_FLOAT16_MM_INT4_TO_FLOAT32 = 7
    RKNN_FLOAT16_MM_INT4_TO_FLOAT16 = 8
    RKNN_INT8_MM_INT8_TO_FLOAT32 = 9
    RKNN_INT4_MM_INT4_TO_INT16 = 10
    RKNN_INT8_MM_INT4_TO_INT32 = 11
    RKNN_FLOAT16_MM_INT4_TO_BFLOAT16 = 12
    RKNN_INT8_MM_INT4_TO_FLOAT16 = 15


class rknn_matmul_quant_type(IntEnum):
    """How the numbers of B are quantized: one scale for all, one a column, or one for group_size rows of a column."""

    RKNN_QUANT_TYPE_PER_LAYER_SYM = 0
    RKNN_QUANT_TYPE_PER_LAYER_ASYM = 1
    RKNN_QUANT_TYPE_PER_CHANNEL_SYM = 2
    RKNN_QUANT_TYPE_PER_CHANNEL_ASYM = 3
    RKNN_QUANT_TYPE_PER_GROUP_SYM = 4
    RKNN_QUANT_TYPE_PER_GROUP_ASYM = 5


class rknn_matmul_layout(IntEnum):
    """How a matrix lies in memory: row by row, in the chip's parts, or B turned."""

    RKNN_MM_LAYOUT_NORM = 0
    RKNN_MM_LAYOUT_NATIVE = 1
    RKNN_MM_LAYOUT_TP_NORM = 2


class rknn_mem_sync_mode(IntEnum):
    """Direction of a cache operation."""

    RKNN_MEMORY_SYNC_TO_DEVICE = 1
    RKNN_MEMORY_SYNC_FROM_DEVICE = 2
    RKNN_MEMORY_SYNC_BIDIRECTIONAL = 3


if TYPE_CHECKING:

    def __getattr__(name: str) -> int: ...


# The flat names of C: the same objects as the members, aliases too.
for _kind in (
    RknnFlag, rknn_query_cmd, rknn_tensor_format, rknn_tensor_type, rknn_tensor_qnt_type, rknn_core_mask,
    rknn_mem_alloc_flags, rknn_tensor_mem_flags, rknn_mem_sync_mode, rknn_matmul_type, rknn_matmul_quant_type,
    rknn_matmul_layout,
):  # fmt: skip
    globals().update(_kind.__members__)

DTYPES = {
    "float32": rknn_tensor_type.RKNN_TENSOR_FLOAT32, "float16": rknn_tensor_type.RKNN_TENSOR_FLOAT16,
    "int8": rknn_tensor_type.RKNN_TENSOR_INT8, "uint8": rknn_tensor_type.RKNN_TENSOR_UINT8,
    "int16": rknn_tensor_type.RKNN_TENSOR_INT16, "uint16": rknn_tensor_type.RKNN_TENSOR_UINT16,
    "int32": rknn_tensor_type.RKNN_TENSOR_INT32, "uint32": rknn_tensor_type.RKNN_TENSOR_UINT32,
    "int64": rknn_tensor_type.RKNN_TENSOR_INT64, "bool": rknn_tensor_type.RKNN_TENSOR_BOOL,
}  # fmt: skip
"""By numpy's name of a type, its number."""
DTYPE_OF = {int(number): name for name, number in DTYPES.items()}

Dims: TypeAlias = Annotated[Any, ctypes.c_uint32 * RKNN_MAX_DIMS]
Name: TypeAlias = Annotated[bytes, ctypes.c_char * RKNN_MAX_NAME_LEN]
String: TypeAlias = Annotated[bytes, ctypes.c_char * 1024]
Ranges: TypeAlias = Annotated[Any, ctypes.c_uint32 * RKNN_MAX_DIMS * RKNN_MAX_DYNAMIC_SHAPE_NUM]
Reserved10: TypeAlias = Annotated[Any, ctypes.c_uint8 * 40]
Reserved34: TypeAlias = Annotated[Any, ctypes.c_int8 * 34]
Reserved112: TypeAlias = Annotated[Any, ctypes.c_uint8 * 112]


class rknn_context(ctypes.c_uint64):
    """Handle of a context; ``value`` is 0 until rknn_init fills it."""

    def __repr__(self) -> str:
        """The handle's number."""
        return f"rknn_context({self.value:#x})"


@structure
class rknn_input_output_num(CStructure):
    """How many inputs and outputs a model has (8 bytes)."""

    n_input: uint32_t
    n_output: uint32_t


@structure
class rknn_tensor_attr(CStructure):
    """A tensor (376 bytes): the caller sets ``index``, and rknn_query the rest. Sizes in bytes, strides in pixels."""

    index: uint32_t
    n_dims: uint32_t
    dims: Dims
    name: Name
    n_elems: uint32_t
    size: uint32_t
    fmt: int32_t
    type: int32_t
    qnt_type: int32_t
    fl: int8_t
    zp: int32_t
    scale: float32_t
    w_stride: uint32_t
    size_with_stride: uint32_t
    pass_through: uint8_t
    h_stride: uint32_t

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions that it has."""
        return tuple(self.dims[: self.n_dims])


@structure
class rknn_input_range(CStructure):
    """The shapes that an input may have (33040 bytes)."""

    index: uint32_t
    shape_number: uint32_t
    fmt: int32_t
    name: Name
    dyn_range: Ranges
    n_dims: uint32_t


@structure
class rknn_perf_detail(CStructure):
    """A table of a run as text (16 bytes): address and length."""

    perf_data: void_p
    data_len: uint64_t


@structure
class rknn_perf_run(CStructure):
    """How long the last run took, microseconds of this machine (8 bytes)."""

    run_duration: int64_t


@structure
class rknn_sdk_version(CStructure):
    """Versions (512 bytes)."""

    api_version: Name
    drv_version: Name


@structure
class rknn_mem_size(CStructure):
    """What a model needs (64 bytes), in bytes."""

    total_weight_size: uint32_t
    total_internal_size: uint32_t
    total_dma_allocated_size: uint64_t
    total_sram_size: uint32_t
    free_sram_size: uint32_t
    reserved: Reserved10


@structure
class rknn_custom_string(CStructure):
    """The text of the model's configuration (1024 bytes)."""

    string: String


@structure
class rknn_tensor_mem(CStructure):
    """Memory of the board (40 bytes): address in this process, physical address, descriptor or -1, size in bytes."""

    virt_addr: void_p
    phys_addr: uint64_t
    fd: int32_t
    offset: int32_t
    size: uint32_t
    flags: uint32_t
    priv_data: void_p

    backing: memoryview | None = None  # keeps the mapping

    def array(self, dtype: DTypeLike, shape: int | tuple[int, ...] | None = None) -> NDArray[Any]:
        """The bytes as the CPU sees them, as numpy array: a view.

        Args:
            dtype: Type of an element.
            shape: In elements; None for as many whole ones as there are.

        Raises:
            ValueError: the memory was destroyed, or is smaller.
        """
        import numpy as np

        if self.backing is None:
            raise ValueError("This rknn_tensor_mem has no memory: it was destroyed, or rknn_create_mem gave none.")
        element = np.dtype(dtype)
        whole = np.frombuffer(self.backing, element, len(self.backing) // element.itemsize)
        if shape is None:
            return whole
        wanted = (shape,) if isinstance(shape, int) else shape
        count = int(np.prod(wanted, dtype=np.int64))
        if count > whole.size:
            raise ValueError(
                f"An array of {wanted} {element} has {count * element.itemsize} bytes; here are {self.size}."
            )
        return whole[:count].reshape(wanted)


@structure
class rknn_input(CStructure):
    """An input of the general API (32 bytes); ``buf`` is an address, such as ``array.ctypes.data``."""

    index: uint32_t
    buf: void_p
    size: uint32_t
    pass_through: uint8_t
    type: int32_t
    fmt: int32_t


@structure
class rknn_output(CStructure):
    """An output of the general API (24 bytes)."""

    want_float: uint8_t
    is_prealloc: uint8_t
    index: uint32_t
    buf: void_p
    size: uint32_t


@structure
class rknn_init_extend(CStructure):
    """What rknn_init takes beside the model (136 bytes)."""

    ctx: uint64_t
    real_model_offset: int32_t
    real_model_size: uint32_t
    model_buffer_fd: int32_t
    model_buffer_flags: uint32_t
    reserved: Reserved112


@structure
class rknn_run_extend(CStructure):
    """What rknn_run takes (24 bytes)."""

    frame_id: uint64_t
    non_block: int32_t
    timeout_ms: int32_t
    fence_fd: int32_t


@structure
class rknn_output_extend(CStructure):
    """What rknn_outputs_get takes (8 bytes)."""

    frame_id: uint64_t


@structure
class rknn_matmul_shape(CStructure):
    """Rows of A, columns of A, columns of B (12 bytes)."""

    M: int32_t
    K: int32_t
    N: int32_t


@structure
class rknn_matmul_info(CStructure):
    """A product (64 bytes): layouts 0 normal, 1 native, 2 turned (B alone); quantizations as rknn_matmul_quant_type."""

    M: int32_t
    K: int32_t
    N: int32_t
    type: int32_t
    B_layout: int16_t
    B_quant_type: int16_t
    AC_layout: int16_t
    AC_quant_type: int16_t
    iommu_domain_id: int32_t
    group_size: int16_t
    reserved: Reserved34


@structure
class rknn_matmul_tensor_attr(CStructure):
    """A matrix of a product (332 bytes): its dimensions as it lies in memory."""

    name: Name
    n_dims: uint32_t
    dims: Dims
    size: uint32_t
    type: int32_t


@structure
class rknn_matmul_io_attr(CStructure):
    """The matrices of a product."""

    A: rknn_matmul_tensor_attr
    B: rknn_matmul_tensor_attr
    C: rknn_matmul_tensor_attr


@structure
class rknn_quant_params(CStructure):
    """Scales and zero points of a matrix: addresses of float32 and int32, and how many."""

    name: Name
    scale: void_p
    scale_len: int32_t
    zp: void_p
    zp_len: int32_t
