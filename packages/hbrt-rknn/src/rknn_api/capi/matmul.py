"""``rknn_matmul_*``: matrix products in board memory, with the C API's names.

Source: RKNN C API Reference (2.3.2), matrix multiplication, https://github.com/airockchip/rknn-toolkit2
Emulator: B must be in memory in the layout given by ``info`` at each run; iommu_domain_id has no effect, and a
warning says so once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from arm_client.cabi.arguments import bytes_of
from rknn_api.capi import matrices
from rknn_api.capi.arguments import array_of, handle_of, number_of, structure_of
from rknn_api.capi.functions import returns_code, warn_once
from rknn_api.capi.matrices import KINDS, PLAIN, MatmulTypes, Quantized, Sizes
from rknn_api.capi.product import NAMES, NATIVE, NORM, PER_GROUP, TURNED, Matmul
from rknn_api.capi.runtime import existing, runtime
from rknn_api.errors import invalid_parameter
from rknn_api.types import (
    rknn_context,
    rknn_matmul_info,
    rknn_matmul_io_attr,
    rknn_matmul_shape,
    rknn_matmul_tensor_attr,
    rknn_quant_params,
    rknn_tensor_mem,
)


@returns_code
def rknn_matmul_create(ctx: Any, info: Any, io_attr: Any) -> None:
    """Create a matrix product.

    Args:
        ctx: Out: a rknn_context.
        info: rknn_matmul_info: M, K, N, type, and the layouts of A and C, and of B.
        io_attr: Out: rknn_matmul_io_attr: dimensions and bytes of A, B and C.

    Returns:
        0; RKNN_ERR_PARAM_INVALID: unsupported type, layout or quantization, or sizes that the chip does not support;
        RKNN_ERR_TARGET_PLATFORM_UNMATCH: the chip has no such function.
    """
    _create("rknn_matmul_create", ctx, info, None, [structure_of("io_attr", io_attr, rknn_matmul_io_attr)])


@returns_code
def rknn_matmul_create_dynamic_shape(ctx: Any, info: Any, shape_num: int, dynamic_shapes: Any, io_attrs: Any) -> None:
    """Create a product with several sizes, as rknn_matmul_create; rknn_matmul_set_dynamic_shape chooses one."""
    count = number_of("shape_num", shape_num)
    shapes = array_of("dynamic_shapes", dynamic_shapes, count, rknn_matmul_shape)
    attrs = array_of("io_attrs", io_attrs, count, rknn_matmul_io_attr)
    sizes = [Sizes(one.M, one.K, one.N) for one in shapes]
    _create("rknn_matmul_create_dynamic_shape", ctx, info, sizes, attrs)


def _create(call: str, ctx: Any, info: Any, shapes: list[Sizes] | None, attrs: list[rknn_matmul_io_attr]) -> None:
    target, given = structure_of("ctx", ctx, rknn_context), structure_of("info", info, rknn_matmul_info)
    is_laid_out = given.B_layout in {NORM, NATIVE, TURNED} and given.AC_layout in {NORM, NATIVE}
    if given.type not in KINDS or not is_laid_out:
        raise invalid_parameter(
            f"type is {given.type}, B_layout {given.B_layout} and AC_layout {given.AC_layout}: types are 1 to 12 and "
            "15, layouts 0 (normal) and 1 (native), and 2 (transposed) for B."
        )
    sizes = shapes or [Sizes(given.M, given.K, given.N)]
    here = runtime()
    here.check_function(call)
    _check_sizes(KINDS[given.type], sizes, here.chip)
    _check_quantization(given, sizes)
    made = Matmul(given, sizes, here.chip, here.memory, here.priority(0))
    for attr, one in zip(attrs, sizes, strict=False):
        made.describe(attr, one)
    target.value = here.add_matmul(made)
    if given.iommu_domain_id:
        warn_once(call, "iommu_domain_id has no effect: all memory is in one domain.")


@returns_code
def rknn_matmul_set_dynamic_shape(ctx: Any, shape: Any) -> None:
    """Choose one of the sizes; memory must be set again.

    Returns:
        0; RKNN_ERR_PARAM_INVALID: it was not created with these.
    """
    found, given = _found(ctx), structure_of("shape", shape, rknn_matmul_shape)
    sizes = Sizes(given.M, given.K, given.N)
    if sizes not in found.shapes:
        raise invalid_parameter(
            f"M, K and N are {tuple(sizes)}; they must be one of {[tuple(one) for one in found.shapes]}."
        )
    found.bound.clear()
    found.sizes = sizes


@returns_code
def rknn_matmul_set_io_mem(ctx: Any, mem: Any, attr: Any) -> None:
    """Place A, B or C in board memory.

    Args:
        ctx: The product.
        mem: Memory from rknn_create_mem.
        attr: The matrix's attribute from the creation; its name selects the matrix.

    Returns:
        0; RKNN_ERR_PARAM_INVALID: the memory is too small, or the attribute belongs to no matrix.
    """
    found, given = _found(ctx), structure_of("attr", attr, rknn_matmul_tensor_attr)
    which = given.name.decode(errors="replace")
    if which not in NAMES:
        raise invalid_parameter(f"The attribute's name is {which!r}; it must be one of io_attr: A, B or C.")
    found.bind(structure_of("mem", mem, rknn_tensor_mem), which)


@returns_code
def rknn_matmul_set_core_mask(ctx: Any, core_mask: int) -> None:
    """Choose the NPU cores, on chips with several; like rknn_set_core_mask."""
    here = existing(handle_of(ctx))
    here.check_function("rknn_matmul_set_core_mask")
    found = _found(ctx)
    found.schedule = found.schedule._replace(cores=here.mask(number_of("core_mask", core_mask)))


@returns_code
def rknn_matmul_set_quant_params(ctx: Any, params: Any) -> None:
    """Set the scales and zero points of a matrix: one, one per column of B, or one for each of its groups.

    Args:
        ctx: The product.
        params: rknn_quant_params: name, addresses of scale and zp, and their numbers.

    Returns:
        0; RKNN_ERR_PARAM_INVALID: unknown matrix, or a wrong number of them.
    """
    found, given = _found(ctx), structure_of("params", params, rknn_quant_params)
    which = given.name.decode(errors="replace")
    if which not in NAMES or not {given.scale_len, given.zp_len} <= {0, *found.counts(which)}:
        raise invalid_parameter(
            f"{which!r} has {given.scale_len} scales and {given.zp_len} zero points: A, B and C can have one, B and C "
            f"one per column, {found.sizes.n}, and B one for each group of group_size rows of a column."
        )
    for field, address, count in (("scale", given.scale, given.scale_len), ("zp", given.zp, given.zp_len)):
        if count and not address:
            raise invalid_parameter(f"{field} of {which!r} is NULL, and {field}_len is {count}.")
    scale, zero = PLAIN
    if given.scale_len:
        scale = np.frombuffer(bytes_of(given.scale, 4 * given.scale_len), np.float32).copy()
    if given.zp_len:
        zero = np.frombuffer(bytes_of(given.zp, 4 * given.zp_len), np.int32).copy()
    found.quantized[which] = Quantized(scale, zero)


@returns_code
def rknn_matmul_get_quant_params(ctx: Any, params: Any, scale: Any) -> None:
    """Get the scales and zero points set for B, for a product of type RKNN_INT8_MM_INT8_TO_INT32.

    Args:
        ctx: The product.
        params: Out: rknn_quant_params: addresses, owned by the product until they are set again or it ends.
        scale: Out: the buffer or address of a float: one scale for all columns of B; times A's, it estimates C's.

    Returns:
        0; RKNN_ERR_PARAM_INVALID: the product has another type.

    Emulator: ``scale`` is the largest of B's.
    """
    found, given = _found(ctx), structure_of("params", params, rknn_quant_params)
    target = _buffer("scale", scale, np.float32().nbytes)
    if found.kind != KINDS[2]:
        raise invalid_parameter("Only a product of type RKNN_INT8_MM_INT8_TO_INT32 reports its scales.")
    held = found.quantized["B"]
    given.name, target[:] = b"B", held.scale.max().tobytes()
    given.scale, given.scale_len = held.scale.ctypes.data, held.scale.size
    given.zp, given.zp_len = held.zero.ctypes.data, held.zero.size


@returns_code
def rknn_matmul_run(ctx: Any) -> None:
    """Multiply on an NPU core, and return when C is ready.

    Returns:
        0; RKNN_ERR_FAIL: a matrix has no memory, or the core failed.
    """
    _found(ctx).run()


@returns_code
def rknn_matmul_destroy(ctx: Any) -> None:
    """End a product; memory stays until rknn_destroy_mem."""
    handle = handle_of(ctx)
    _found(ctx).close()
    existing(handle).discard_matmul(handle)


@returns_code
def rknn_B_normal_layout_to_native_layout(B_input: Any, B_output: Any, K: int, N: int, info: Any) -> None:
    """Convert B, K by N row by row, to the chip's native layout.

    Args:
        B_input: Bytes or address.
        B_output: Buffer or address, with the size given in io_attr.
        K: Rows.
        N: Columns.
        info: rknn_matmul_info of the product.

    Returns:
        0; RKNN_ERR_PARAM_INVALID: unsupported type, or sizes that the chip does not support.
    """
    given, here = structure_of("info", info, rknn_matmul_info), runtime()
    sizes = Sizes(1, number_of("K", K), number_of("N", N))
    if given.type not in KINDS:
        raise invalid_parameter(f"Invalid type {given.type}: must be 1 to 12 or 15.")
    kind = KINDS[given.type]
    _check_sizes(kind, [sizes], here.chip)
    dims = matrices.native_dims("B", kind, sizes, here.chip)
    plain = _buffer("B_input", B_input, matrices.size_of((sizes.k, sizes.n), kind.b))
    native = _buffer("B_output", B_output, matrices.size_of(dims, kind.b))
    made = matrices.to_native("B", matrices.unpacked(plain, (sizes.k, sizes.n), kind.b), dims)
    native[:] = matrices.packed(made, kind.b).data


def _check_sizes(kind: MatmulTypes, sizes: list[Sizes], chip: str) -> None:
    for one in sizes:
        if why := matrices.wrong_size(kind, one, chip):
            raise invalid_parameter(why)


def _check_quantization(given: rknn_matmul_info, sizes: list[Sizes]) -> None:
    if not 0 <= given.B_quant_type <= max(PER_GROUP) or given.AC_quant_type not in {0, 1}:
        raise invalid_parameter(
            f"B_quant_type is {given.B_quant_type} and AC_quant_type {given.AC_quant_type}: B must have "
            "RKNN_QUANT_TYPE_*, 0 to 5, and A and C 0 or 1, one scale for all."
        )
    if given.B_quant_type in PER_GROUP and any(given.group_size < 1 or one.k % given.group_size for one in sizes):
        raise invalid_parameter(
            f"group_size is {given.group_size}: K, {sizes[0].k}, must be a multiple of it if B has a scale per group."
        )


def _buffer(name: str, given: Any, size_bytes: int) -> memoryview:
    try:
        found = bytes_of(given, size_bytes)
    except (TypeError, ValueError, BufferError) as error:
        raise invalid_parameter(f"{name} is not a buffer: {error}.") from None
    if found.nbytes < size_bytes:
        raise invalid_parameter(f"{name} has {found.nbytes} bytes; it must have {size_bytes}.")
    return found[:size_bytes]


def _found(ctx: Any) -> Matmul:
    handle = handle_of(ctx)
    return existing(handle).matmul(handle)
