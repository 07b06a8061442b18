"""The structures have the sizes of the public layout, and enums the flat names of C."""

import ctypes

import pytest

from rknn_api import types

SIZES = {
    "rknn_input_output_num": 8, "rknn_tensor_attr": 376, "rknn_input_range": 33040, "rknn_perf_detail": 16,
    "rknn_perf_run": 8, "rknn_sdk_version": 512, "rknn_mem_size": 64, "rknn_custom_string": 1024, "rknn_tensor_mem": 40,
    "rknn_input": 32, "rknn_output": 24, "rknn_init_extend": 136, "rknn_run_extend": 24, "rknn_output_extend": 8,
    "rknn_context": 8,
}  # fmt: skip


def test_structures_have_the_sizes_of_the_public_layout() -> None:
    assert {name: ctypes.sizeof(getattr(types, name)) for name in SIZES} == SIZES


def test_enums_have_the_flat_names_of_c() -> None:
    assert types.RKNN_QUERY_NATIVE_NC1HWC2_OUTPUT_ATTR == types.RKNN_QUERY_NATIVE_OUTPUT_ATTR == 9
    assert types.RKNN_NPU_CORE_0_1_2 == 7
    assert types.RKNN_MEMORY_SYNC_BIDIRECTIONAL == 3


def test_memory_as_an_array() -> None:
    mem = types.rknn_tensor_mem()
    with pytest.raises(ValueError, match="has no memory"):
        mem.array("uint8")
    mem.backing, mem.size = memoryview(bytearray(range(10))), 10
    assert mem.array("uint16").tolist() == [0x100, 0x302, 0x504, 0x706, 0x908]
    assert mem.array("uint8", (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="has 16 bytes, not 10"):
        mem.array("float32", 4)
