"""What a query tells of tensors that the C structure has no room for."""

import pytest

from rknn_api.capi.attributes import Side, View, fill
from rknn_api.container import TensorInfo
from rknn_api.errors import RknnError, RknnStatus
from rknn_api.layouts import rules_of
from rknn_api.types import rknn_tensor_attr


def told(name: str, shape: tuple[int, ...], dtype: str) -> rknn_tensor_attr:
    attr = rknn_tensor_attr()
    fill(attr, Side(TensorInfo(name, shape, dtype, dtype), shape, is_input=True), View.PLAIN, rules_of("rk3588"))
    return attr


@pytest.mark.parametrize(
    ("shape", "dtype", "what"),
    [
        ((1, 3), "float64", "has type float64 and 2 dimensions"),
        ((1,) * 17, "int64", "has type int64 and 17 dimensions"),
    ],
)
def test_a_tensor_that_c_has_no_words_for_is_refused(shape: tuple[int, ...], dtype: str, what: str) -> None:
    with pytest.raises(RknnError, match=f"'x' {what}; the C API supports float32, .*, and 16 dimensions") as caught:
        told("x", shape, dtype)
    assert caught.value.status == RknnStatus.RKNN_ERR_MODEL_INVALID


def test_a_long_name_ends_with_a_whole_letter() -> None:
    assert told("日" * 100, (1,) * 16, "int64").name.decode() == "日" * 85
