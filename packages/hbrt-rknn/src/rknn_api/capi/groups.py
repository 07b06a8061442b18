"""The functions and queries that each chip has. Pure.

Source: RKNN C API Reference (2.3.2), tables 4-1 and 4-2, https://github.com/airockchip/rknn-toolkit2
Emulator: RKNN_QUERY_DEVICE_MEM_INFO works on every chip, since the reference contradicts itself; a function that a chip
does not have returns RKNN_ERR_TARGET_PLATFORM_UNMATCH, as observed with rknn_set_core_mask.
"""

from __future__ import annotations

from typing import Final

from rknn_api.types import rknn_query_cmd as q

_GENERAL: Final = frozenset({1, 2})  # columns of the table: one NPU core, several; 3 and 4 have only zero-copy calls
COLUMNS: Final[dict[str, frozenset[int]]] = {
    "rknn_create_mem_from_fd": frozenset({1, 2, 3}),
    "rknn_dup_context": _GENERAL,
    "rknn_inputs_set": _GENERAL,
    "rknn_outputs_get": _GENERAL,
    "rknn_outputs_release": _GENERAL,
    "rknn_set_input_shapes": _GENERAL,
    "rknn_set_core_mask": frozenset({2}),
    "rknn_set_batch_core_num": frozenset({2}),
    "rknn_register_custom_ops": _GENERAL,
    "rknn_matmul_create": _GENERAL,
    "rknn_matmul_create_dynamic_shape": _GENERAL,
    "rknn_matmul_set_core_mask": frozenset({2}),
    "rknn_wait": frozenset(),
    "rknn_create_mem_from_mb_blk": frozenset(),
}
"""Columns that have a function; a function not listed here is available everywhere."""

GENERAL_QUERIES: Final = frozenset(
    {
        q.RKNN_QUERY_PERF_DETAIL,
        q.RKNN_QUERY_PERF_RUN,
        q.RKNN_QUERY_INPUT_DYNAMIC_RANGE,
        q.RKNN_QUERY_CURRENT_INPUT_ATTR,
        q.RKNN_QUERY_CURRENT_OUTPUT_ATTR,
        q.RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR,
        q.RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR,
    }
)


def has_function(column: int, name: str) -> bool:
    """Whether the chips of a column have a function."""
    return column in COLUMNS.get(name, frozenset({1, 2, 3, 4}))


def has_query(column: int, command: int) -> bool:
    """Whether the chips of a column answer a query."""
    return command not in GENERAL_QUERIES or column in _GENERAL
