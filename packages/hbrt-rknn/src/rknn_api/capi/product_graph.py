"""The graph of a matrix product, which an NPU core runs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

    from rknn_api.capi.matrices import MatmulTypes, Sizes

SUMS = "sums"
_OPSET, _IR = 17, 8


def product_graph(kind: MatmulTypes, sizes: Sizes) -> ModelProto:
    """A product's graph.

    Its inputs are A and B row by row as stored, int4 as int8, and the inputs named by ``constants``, in shapes that
    broadcast over them. Its output ``sums`` is C: float32 for real numbers, float64 for integers, which is exact and
    much faster than integer multiplication.

    Args:
        kind: The types.
        sizes: M, K, N.
    """
    is_real = kind.a == "float16"
    work = TensorProto.FLOAT if is_real else TensorProto.DOUBLE
    nodes = [_made("Cast", "a", of="A", to=work), _made("Cast", "b", of="B", to=work)]
    left, right = "a", "b"
    for name in constants(kind):
        read = left if name == "a_zero" else right
        nodes.append(_made("Mul" if name == "b_scale" else "Sub", f"{read}_{name}", read, of=name))
        left, right = (f"{read}_{name}", right) if name == "a_zero" else (left, f"{read}_{name}")
    nodes.append(_made("MatMul", "product", left, of=right))
    stored = "float32" if kind.c == "bfloat16" else kind.c
    made = helper.np_dtype_to_tensor_dtype(np.dtype(stored)) if is_real else work
    nodes.append(_made("Cast", SUMS, of="product", to=made))
    matrices = (("A", kind.a, [sizes.m, sizes.k]), ("B", kind.b, [sizes.k, sizes.n]))
    inputs = [helper.make_tensor_value_info(name, _type_of(dtype), shape) for name, dtype, shape in matrices]
    inputs += [
        helper.make_tensor_value_info(name, work, [f"rows of {name}", f"columns of {name}"]) for name in constants(kind)
    ]
    output = helper.make_tensor_value_info(SUMS, made, [sizes.m, sizes.n])
    graph = helper.make_graph(nodes, "product", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)


def constants(kind: MatmulTypes) -> tuple[str, ...]:
    """The inputs besides A and B, in order of use."""
    if kind.b == "float16":
        return ()
    zeros = ("b_zero",) if kind.a == "float16" else ("a_zero", "b_zero")
    is_scaled = kind.a != kind.b and kind.c not in {"int16", "int32"}
    return (*zeros, "b_scale") if is_scaled else zeros


def _made(op_type: str, name: str, *before: str, of: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, [*before, of], [name], **attributes)


def _type_of(dtype: str) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype("int8" if dtype == "int4" else dtype)))
