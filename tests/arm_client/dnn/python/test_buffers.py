"""Arrays in and out of a tensor's device memory: padding, strides, pictures, four bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from arm_client import dnn
from arm_client.client import Board
from arm_client.dnn.errors import ModelError
from arm_client.dnn.python.buffers import TensorBuffer
from hbrt.dnn_types import hbDNNTensor


def load(folder: Path, text: str, description: str = "") -> dnn.Model:
    """A model in ONNX's text form, with its YAML."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\n{text}')
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    if description:
        (folder / "m.yaml").write_text(description)
    (loaded,) = dnn.load(folder / "m.onnx")
    return loaded


QUANTIZED = """g (float[1,2,3,5] x) => (float[1,2,3,5] y) <float s = {0.5}, int8 z = {3}> {
  q = QuantizeLinear(x, s, z)
  d = DequantizeLinear(q, s, z)
  e = Relu(d)
  f = QuantizeLinear(e, s, z)
  y = DequantizeLinear(f, s, z)
}"""


def test_padding_is_not_part_of_the_values(dsp_board: Board, tmp_path: Path) -> None:
    model = load(tmp_path, QUANTIZED)
    spec = model.inputs[0].spec
    assert spec.aligned_shape == (1, 2, 3, 16)
    x = np.arange(30, dtype=np.int8).reshape(1, 2, 3, 5)
    buffer = TensorBuffer(spec)
    buffer.put(x)
    raw = np.frombuffer(buffer.raw(), np.int8).reshape(1, 2, 3, 16)
    np.testing.assert_array_equal(raw[..., :5], x)
    assert not raw[..., 5:].any()
    np.testing.assert_array_equal(buffer.get(), x)
    buffer.put_raw(np.roll(raw, 16).tobytes())
    np.testing.assert_array_equal(buffer.get().ravel(), np.roll(x, 5).ravel())
    buffer.free()
    (output,) = model.forward(x)
    np.testing.assert_array_equal(output.buffer, np.maximum(x, 3))
    np.testing.assert_array_equal(model(np.float32(x) * 0.5)[0], np.float32(x) * 0.5)


@pytest.mark.parametrize(("kind", "low", "high"), [("int4", -8, 7), ("uint4", 0, 15)])
def test_four_bits_are_packed(dsp_board: Board, tmp_path: Path, kind: str, low: int, high: int) -> None:
    to = onnx.TensorProto.DataType.Value(kind.upper())
    text = f"g ({kind}[3,5] x) => ({kind}[3,5] y) {{ f = Cast <to = 1> (x) y = Cast <to = {to}> (f) }}"
    model = load(tmp_path, text)
    spec = model.inputs[0].spec
    x = np.random.default_rng(0).integers(low, high, (3, 5), endpoint=True).astype(spec.graph_dtype)
    buffer = TensorBuffer(spec)
    buffer.put(x)
    packed = np.frombuffer(buffer.raw(), np.uint8)
    assert len(packed) == 8
    assert packed[0] & 15 == int(x[0, 0]) & 15
    assert packed[0] >> 4 == int(x[0, 1]) & 15
    np.testing.assert_array_equal(buffer.get(), x)
    buffer.free()
    np.testing.assert_array_equal(model.forward(x)[0].buffer, x)


@pytest.mark.parametrize(
    ("type_rt", "layout", "shape", "row_bytes"),
    [
        ("rgb", "NHWC", (4, 6, 3), 18),
        ("bgr", "NCHW", (3, 4, 6), 6),
        ("yuv444", "NHWC", (4, 6, 3), 18),
        ("gray", "NCHW", (4, 6), 16),
        ("nv12", "NHWC", (6, 6), 16),
    ],
)
def test_pictures_of_every_kind_are_rows(
    dsp_board: Board, tmp_path: Path, type_rt: str, layout: str, shape: tuple[int, ...], row_bytes: int
) -> None:
    channels = 1 if type_rt == "gray" else 3
    trained = "yuv444" if type_rt == "nv12" else type_rt
    model = load(
        tmp_path,
        f"g (float[1,{channels},4,6] x) => (float[1,{channels},4,6] y) {{ y = Identity(x) }}",
        f"{{input_type_rt: {type_rt}, input_layout_rt: {layout}, input_type_train: {trained},"
        " input_layout_train: NCHW}",
    )
    picture = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    buffer = TensorBuffer(model.inputs[0].spec)
    assert buffer.row_bytes == row_bytes
    buffer.put(picture)
    rows = buffer.get().reshape(-1, row_bytes)
    dense = picture.reshape(len(rows), -1)
    np.testing.assert_array_equal(rows[:, : dense.shape[1]], dense)
    buffer.free()
    (y,) = model(picture)
    first = y[0, 0]
    if type_rt in {"gray", "nv12"}:
        expected: Any = picture[:4]
    else:
        expected = picture[..., 0] if layout == "NHWC" else picture[0]
    np.testing.assert_array_equal(first, expected)


def test_the_picture_of_a_resizer_has_sides_of_its_own(dsp_board: Board, tmp_path: Path) -> None:
    model = load(
        tmp_path,
        "g (float[1,3,4,6] x) => (float[1,3,4,6] y) { y = Identity(x) }",
        "{input_type_rt: nv12, input_type_train: bgr, input_layout_train: NCHW, input_source: resizer}",
    )
    tensor = hbDNNTensor()
    buffer = TensorBuffer(model.inputs[0].spec, tensor, picture=(8, 20))
    told = tensor.properties
    assert list(told.validShape.dimensionSize)[:4] == [1, 3, 8, 20]
    assert list(told.alignedShape.dimensionSize)[:4] == [1, 3, 8, 32]
    assert (told.alignedByteSize, tensor.sysMem[0].memSize) == (384, 384)
    nv12 = np.arange(240, dtype=np.uint8).reshape(12, 20)
    buffer.put(nv12)
    np.testing.assert_array_equal(buffer.get().reshape(12, 32)[:, :20], nv12)
    buffer.free()


def test_a_shape_that_does_not_fit_is_a_sentence(dsp_board: Board, tmp_path: Path) -> None:
    spec = load(tmp_path, "g (float[n,2] x) => (float[n,2] y) { y = Identity(x) }").inputs[0].spec
    for shape in ((1,), (1, 3), (-1, 2)):
        with pytest.raises(ModelError, match=r"'x' has the shape \[-1, 2\] \(-1 is open\), not "):
            TensorBuffer(spec, shape=shape)


def test_too_large_a_tensor_says_what_was_free(dsp_board: Board, tmp_path: Path) -> None:
    spec = load(tmp_path, "g (float[n] x) => (float[n] y) { y = Identity(x) }").inputs[0].spec
    with pytest.raises(ModelError, match=r"Cannot allocate 4000000000 bytes for 'x': .*free"):
        TensorBuffer(spec, shape=(1_000_000_000,))
