"""C structures of ops of a program's own, as ctypes: names and fields of the public reference.

Source: RKNN C API Reference (2.3.2), data structures, https://github.com/airockchip/rknn-toolkit2
Emulator: the numbers of rknn_target_type, and the lengths of arrays.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import TYPE_CHECKING

from hbrt.structures import CStructure, int32_t, structure, uint32_t, uint64_t, void_p
from rknn_api.types import Name, rknn_tensor_attr, rknn_tensor_mem

if TYPE_CHECKING:

    def __getattr__(name: str) -> int: ...


RKNN_CUSTOM_OP_MAX_STR_LEN = 64
RKNN_CUSTOM_OP_MAX_VALUE_LEN = 32


class rknn_target_type(IntEnum):
    """Where the callbacks of an op run."""

    RKNN_TARGET_TYPE_CPU = 1
    RKNN_TARGET_TYPE_GPU = 2


globals().update(rknn_target_type.__members__)


@structure
class rknn_gpu_op_context(CStructure):
    """OpenCL's objects (24 bytes), which are NULL here."""

    cl_context: void_p
    cl_command_queue: void_p
    cl_kernel: void_p


@structure
class rknn_custom_op_context(CStructure):
    """A node that an op computes (48 bytes); ``priv_data`` is the program's."""

    target: int32_t
    internal_ctx: uint64_t
    gpu_ctx: rknn_gpu_op_context
    priv_data: void_p


@structure
class rknn_custom_op_tensor(CStructure):
    """An input or output of an op (416 bytes); its first byte is at ``mem.virt_addr + mem.offset``."""

    attr: rknn_tensor_attr
    mem: rknn_tensor_mem


@structure
class rknn_custom_op_attr(CStructure):
    """An attribute of a node (272 bytes); ``n_elems`` is 0 for one that the node does not set."""

    name: Name
    dtype: int32_t
    n_elems: uint32_t
    data: void_p


@structure
class rknn_custom_op(CStructure):
    """An op (832 bytes); callbacks are addresses, in Python those of a ``rknn_custom_op_callback``."""

    version: uint32_t
    target: int32_t
    op_type: Name
    cl_kernel_name: Name
    cl_kernel_source: void_p
    cl_source_size: uint64_t
    cl_build_options: Name
    init: void_p
    prepare: void_p
    compute: void_p
    compute_native: void_p
    destroy: void_p


rknn_custom_op_callback = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(rknn_custom_op_context),
    ctypes.POINTER(rknn_custom_op_tensor),
    ctypes.c_uint32,
    ctypes.POINTER(rknn_custom_op_tensor),
    ctypes.c_uint32,
)
"""The type of init, prepare and compute."""
rknn_custom_op_destroy = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(rknn_custom_op_context))
"""The type of destroy."""
