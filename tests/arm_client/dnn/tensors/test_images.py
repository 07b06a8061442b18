"""Pictures to a graph's numbers: colors against BT.601 written out, layouts, mean and scale; the rules of memory."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper

from arm_client.dnn.errors import ModelError
from arm_client.dnn.spec.properties import image_spec
from arm_client.dnn.spec.spec import ImageSpec, TensorSpec
from arm_client.dnn.tensors.images import encode, graph_input
from arm_client.dnn.tensors.pictures import Picture, pictures_of, type_given
from hbrt.dnn_types import hbDNNDataType, hbDNNTensorLayout
from hbrt.status import Status
from tests.each import each

NHWC, NCHW, _ = hbDNNTensorLayout
T = hbDNNDataType
Y, NV12, SEPARATE, YUV444, RGB, BGR = (
    T.HB_DNN_IMG_TYPE_Y,
    T.HB_DNN_IMG_TYPE_NV12,
    T.HB_DNN_IMG_TYPE_NV12_SEPARATE,
    T.HB_DNN_IMG_TYPE_YUV444,
    T.HB_DNN_IMG_TYPE_RGB,
    T.HB_DNN_IMG_TYPE_BGR,
)
Bytes = NDArray[np.uint8]


def yuv_to_rgb(yuv: NDArray[Any], *, video_range: bool = False) -> NDArray[np.float64]:
    """BT.601 from its definition: Kr 0.299, Kb 0.114. Y, U, V last; not rounded."""
    luma, u, v = np.moveaxis(yuv - np.array([0.0, 128.0, 128.0]), -1, 0)
    if video_range:
        luma, u, v = (luma - 16) * 255 / 219, u * 255 / 224, v * 255 / 224
    red = luma + 2 * (1 - 0.299) * v
    blue = luma + 2 * (1 - 0.114) * u
    green = (luma - 0.299 * red - 0.114 * blue) / 0.587
    rgb: NDArray[np.float64] = np.clip(np.stack([red, green, blue], -1), 0, 255)
    return rgb


def rgb_to_yuv(rgb: NDArray[Any]) -> NDArray[np.float64]:
    red, green, blue = np.moveaxis(rgb.astype(np.float64), -1, 0)
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    return np.stack([luma, (blue - luma) / 1.772 + 128, (red - luma) / 1.402 + 128], -1)


def spec_for(
    tensor_type: hbDNNDataType,
    train_type: str,
    sides: tuple[int, int] = (6, 20),
    *,
    batch: int = 1,
    layout: hbDNNTensorLayout = NHWC,
    train_layout: hbDNNTensorLayout = NCHW,
    element: int = TensorProto.FLOAT,
    mean: tuple[float, ...] = (0.0,),
    scale: tuple[float, ...] = (1.0,),
    video_range: bool = False,
) -> TensorSpec:
    channels = 1 if train_type == "gray" else 3
    shape = (batch, channels, *sides) if train_layout == NCHW else (batch, *sides, channels)
    image = ImageSpec(
        train_type, train_layout, np.array(mean, np.float32), np.array(scale, np.float32), video_range=video_range
    )
    return image_spec(helper.make_tensor_value_info("x", element, shape), tensor_type, layout, image)


def random_bytes(*shape: int, low: int = 0, high: int = 256) -> Bytes:
    return np.random.default_rng(shape[0] * 100 + shape[-1]).integers(low, high, shape, np.uint8)


def full_chroma(luma: Bytes, pairs: Bytes) -> Bytes:
    """Y, U, V of each pixel of NV12."""
    u, v = pairs[:, 0::2], pairs[:, 1::2]
    return np.stack([luma, *(plane.repeat(2, 0).repeat(2, 1) for plane in (u, v))], -1)


@each("train_type", ["rgb", "bgr"])
@each("video_range", [False, True])
def test_nv12_is_bt601(train_type: str, *, video_range: bool) -> None:
    low, high = (16, 236) if video_range else (0, 256)
    luma, pairs = random_bytes(6, 20, low=low, high=high), random_bytes(3, 20, low=low, high=high)
    spec = spec_for(NV12, train_type, video_range=video_range)
    (found,) = graph_input(spec, [[luma, pairs]], NV12)
    expected = yuv_to_rgb(full_chroma(luma, pairs), video_range=video_range).transpose(2, 0, 1)
    expected = expected if train_type == "rgb" else expected[::-1]
    assert np.abs(found - expected).max() <= 1.0
    assert found.dtype == np.float32


def test_video_range_clips_what_lies_outside() -> None:
    spec = spec_for(NV12, "rgb", video_range=True)
    luma, pairs = random_bytes(6, 20), random_bytes(3, 20)
    found = graph_input(spec, [[luma, pairs]], NV12)
    clipped = graph_input(spec, [[luma.clip(16, 235), pairs.clip(16, 240)]], NV12)
    np.testing.assert_array_equal(found, clipped)
    expected = yuv_to_rgb(full_chroma(luma.clip(16, 235), pairs.clip(16, 240)), video_range=True).transpose(2, 0, 1)
    assert np.abs(found[0] - expected).max() <= 1.0


def test_nv12_for_a_graph_trained_on_yuv444() -> None:
    luma, pairs = random_bytes(6, 20), random_bytes(3, 20)
    (found,) = graph_input(spec_for(NV12, "yuv444"), [[luma, pairs]], NV12)
    np.testing.assert_array_equal(found, full_chroma(luma, pairs).transpose(2, 0, 1))


@each("layout", [NHWC, NCHW])
@each("train_layout", [NHWC, NCHW])
@each(
    "given, train_type",
    [(RGB, "rgb"), (RGB, "bgr"), (BGR, "rgb"), (BGR, "bgr"), (YUV444, "yuv444"), (YUV444, "bgr")],
)
def test_three_channels(
    given: hbDNNDataType, train_type: str, layout: hbDNNTensorLayout, train_layout: hbDNNTensorLayout
) -> None:
    pixels = random_bytes(5, 7, 3)
    planes = [pixels.reshape(5, 21)] if layout == NHWC else [pixels[:, :, channel] for channel in range(3)]
    spec = spec_for(given, train_type, (5, 7), layout=layout, train_layout=train_layout)
    (found,) = graph_input(spec, [planes], given)
    expected: NDArray[Any] = pixels
    tolerance = 0.0
    if {given, train_type} & {RGB, BGR} and (given == RGB) != (train_type == "rgb"):
        expected = pixels[:, :, ::-1]
    elif given == YUV444 and train_type == "bgr":
        expected, tolerance = yuv_to_rgb(pixels)[:, :, ::-1], 1.0
    np.testing.assert_allclose(
        found if train_layout == NHWC else found.transpose(1, 2, 0), expected, rtol=0, atol=tolerance
    )


def test_gray() -> None:
    luma = random_bytes(5, 7)
    (found,) = graph_input(spec_for(Y, "gray", (5, 7), scale=(2.0,)), [[luma]], Y)
    np.testing.assert_array_equal(found[0], luma * np.float32(2))


@each("train_layout", [NHWC, NCHW])
@each("element", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE])
def test_mean_then_scale_for_each_channel(train_layout: hbDNNTensorLayout, element: int) -> None:
    pixels = random_bytes(4, 6, 3)
    mean, scale = (103.94, 116.78, 123.68), (0.017, 0.5, 1 / 3)
    spec = spec_for(BGR, "bgr", (4, 6), train_layout=train_layout, element=element, mean=mean, scale=scale)
    (found,) = graph_input(spec, [[pixels.reshape(4, 18)]], BGR)
    expected = ((pixels - np.array(mean, np.float32)) * np.array(scale, np.float32)).astype(spec.graph_dtype)
    np.testing.assert_array_equal(found if train_layout == NHWC else found.transpose(1, 2, 0), expected)
    assert found.dtype == spec.graph_dtype


def test_a_graph_of_integers_gets_the_pixels() -> None:
    pixels = random_bytes(4, 6, 3)
    (found,) = graph_input(spec_for(RGB, "rgb", (4, 6), element=TensorProto.UINT8), [[pixels.reshape(4, 18)]], RGB)
    np.testing.assert_array_equal(found, pixels.transpose(2, 0, 1))


def test_a_batch_and_rows_with_padding() -> None:
    wide = [random_bytes(6, 32), random_bytes(3, 32)]
    spec = spec_for(NV12, "rgb", batch=2)
    narrow = [plane[:, :20] for plane in wide]
    found = graph_input(spec, [narrow, narrow], NV12)
    assert found.shape == (2, 3, 6, 20)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], graph_input(spec_for(NV12, "rgb"), [[p.copy() for p in narrow]], NV12)[0])


@pytest.mark.parametrize("tensor_type", [NV12, SEPARATE])
def test_encoded_nv12_is_bt601_and_comes_back(tensor_type: hbDNNDataType) -> None:
    rgb = random_bytes(4, 6, 3).repeat(2, 0).repeat(2, 1)  # one color for each 2 x 2 pixels: no chroma is lost
    planes = encode(np.ascontiguousarray(rgb[:, :, ::-1]), tensor_type)
    luma, pairs = planes if tensor_type == SEPARATE else (planes[0][:8], planes[0][8:])
    assert np.abs(full_chroma(luma, pairs) - rgb_to_yuv(rgb)).max() <= 1.0
    (found,) = graph_input(spec_for(NV12, "rgb", (8, 12)), [[luma, pairs]], NV12)
    assert np.abs(found.transpose(1, 2, 0) - rgb).max() <= 3.0  # two roundings of chroma, times 1.772 at most


def test_encoded_video_range_comes_back() -> None:
    rgb = random_bytes(4, 6, 3).repeat(2, 0).repeat(2, 1)
    luma, pairs = encode(np.ascontiguousarray(rgb[:, :, ::-1]), SEPARATE, video_range=True)
    assert luma.min() >= 16
    assert luma.max() <= 235
    (found,) = graph_input(spec_for(NV12, "rgb", (8, 12), video_range=True), [[luma, pairs]], NV12)
    assert np.abs(found.transpose(1, 2, 0) - rgb).max() <= 4.0


def test_encoding_pads_rows() -> None:
    (found,) = encode(np.full((4, 18, 3), 200, np.uint8), NV12, stride_multiple=16)
    assert found.shape == (6, 32)
    assert (found[:4, :18] == 200).all()
    assert not found[:, 18:].any()


@each("layout", [NHWC, NCHW])
@each("tensor_type, train_type", [(RGB, "rgb"), (BGR, "bgr"), (YUV444, "rgb")])
def test_encoding_other_types_comes_back(
    tensor_type: hbDNNDataType, train_type: str, layout: hbDNNTensorLayout
) -> None:
    bgr = random_bytes(4, 6, 3)
    (plane,) = encode(bgr, tensor_type, layout)
    spec = spec_for(tensor_type, train_type, (4, 6), layout=layout, train_layout=NHWC)
    (found,) = graph_input(spec, [[plane] if layout == NHWC else np.split(plane, 3)], tensor_type)
    expected = bgr[:, :, ::-1] if train_type == "rgb" else bgr
    assert np.abs(found - expected).max() <= (3 if tensor_type == YUV444 else 0)


# Where the rows lie


BASE = 0x8000_0000
ROOM = 1 << 20


def place(
    tensor_type: hbDNNDataType,
    valid: tuple[int, ...],
    aligned: tuple[int, ...],
    blocks: tuple[tuple[int, int], ...] = ((BASE, ROOM), (BASE + ROOM, ROOM)),
    layout: hbDNNTensorLayout = NCHW,
) -> list[Picture]:
    return pictures_of("x", tensor_type, layout, valid, aligned, blocks)


def test_nv12_in_one_block_a_batch_picture_by_picture() -> None:
    first, second = place(NV12, (2, 3, 4, 18), (2, 3, 4, 32))
    assert [tuple(plane) for plane in first.planes] == [(BASE, 4, 18, 32), (BASE + 128, 2, 18, 32)]
    assert [plane.phy_addr for plane in second.planes] == [BASE + 192, BASE + 320]


def test_uv_begins_behind_the_padded_rows() -> None:
    (picture,) = place(NV12, (1, 3, 4, 32), (1, 3, 6, 32))
    assert [tuple(plane) for plane in picture.planes] == [(BASE, 4, 32, 32), (BASE + 6 * 32, 2, 32, 32)]


def test_nv12_in_two_blocks() -> None:
    first, second = place(SEPARATE, (2, 3, 4, 18), (2, 3, 4, 32))
    assert [plane.phy_addr for plane in (*first.planes, *second.planes)] == [
        BASE,
        BASE + ROOM,
        BASE + 128,
        BASE + ROOM + 64,
    ]


def test_a_crop_of_a_larger_picture_needs_no_bytes_behind_its_last_row() -> None:
    stride, need = 64, 64 * 3 + 32
    blocks = ((BASE + 16, need), (BASE + ROOM + 16, 64 + 32))
    (picture,) = place(SEPARATE, (1, 3, 4, 32), (1, 3, 4, stride), blocks)
    assert picture.planes[0].size_bytes == need
    with pytest.raises(ModelError, match=rf"sysMem\[0\].memSize {need - 1}; its rows need {need} bytes"):
        place(SEPARATE, (1, 3, 4, 32), (1, 3, 4, stride), ((BASE + 16, need - 1), blocks[1]))


def test_colors_in_both_layouts() -> None:
    (dense,) = place(RGB, (1, 5, 7, 3), (1, 5, 7, 3), layout=NHWC)
    assert [tuple(plane) for plane in dense.planes] == [(BASE, 5, 21, 21)]
    (planes,) = place(RGB, (1, 3, 5, 7), (1, 3, 5, 7))
    assert [tuple(plane) for plane in planes.planes] == [(BASE + 35 * channel, 5, 7, 7) for channel in range(3)]


@each(
    "tensor_type, valid, aligned, addresses, says",
    [
        (NV12, (1, 3, 3, 16), (1, 3, 3, 16), (0, 0), "make them even"),
        (NV12, (1, 3, 4, 15), (1, 3, 4, 16), (0, 0), "make them even"),
        (NV12, (1, 3, 4, 16), (1, 3, 5, 16), (0, 0), "make them even"),
        (NV12, (1, 3, 4, 18), (1, 3, 4, 24), (0, 0), "rows of 24 bytes"),
        (Y, (1, 1, 4, 17), (1, 1, 4, 40), (0, 0), "rows of 40 bytes"),
        (NV12, (1, 3, 4, 32), (1, 3, 4, 16), (0, 0), "smaller than its validShape"),
        (NV12, (1, 3, 4, 32), (1, 4, 4, 32), (0, 0), "pad only H and W"),
        (NV12, (1, 3, 4, 32), (2, 3, 4, 32), (0, 0), "pad only H and W"),
        (NV12, (3, 4, 32), (3, 4, 32), (0, 0), "four sizes"),
        (NV12, (1, 3, 0, 32), (1, 3, 0, 32), (0, 0), "four sizes"),
        (Y, (1, 1, 4, 32), (1, 1, 4, 32), (8, 0), r"sysMem\[0\].phyAddr 0x80000008; .* to the left by 8 pixels"),
        (SEPARATE, (1, 3, 4, 32), (1, 3, 4, 32), (0, 4), r"sysMem\[1\].phyAddr"),
    ],
)
def test_rules(
    tensor_type: hbDNNDataType,
    valid: tuple[int, ...],
    aligned: tuple[int, ...],
    addresses: tuple[int, int],
    says: str,
) -> None:
    blocks = ((BASE + addresses[0], ROOM), (BASE + ROOM + addresses[1], ROOM))
    with pytest.raises(ModelError, match=says) as error:
        place(tensor_type, valid, aligned, blocks)
    assert error.value.status == Status.HB_DNN_INVALID_ARGUMENT


def test_only_nv12_may_be_given_in_its_other_form() -> None:
    for model_type, other in itertools.product((Y, NV12, SEPARATE, YUV444, RGB, BGR), repeat=2):
        if model_type == other or {model_type, other} == {NV12, SEPARATE}:
            assert type_given("x", model_type, other) == other
        else:
            with pytest.raises(ModelError, match=other.name):
                type_given("x", model_type, other)
    with pytest.raises(ModelError, match="tensorType 99"):
        type_given("x", NV12, 99)


SIZES = st.integers(-2, 40) | st.sampled_from([0, 16, 32, 64, (1 << 31) - 1, -(1 << 31)])
SIDES = st.sampled_from([2, 8, 16, 32, 48])
SHAPES = st.tuples(st.integers(1, 2), st.sampled_from([1, 3]), SIDES, SIDES) | st.lists(SIZES, max_size=8).map(tuple)


@given(
    st.sampled_from([Y, NV12, SEPARATE, YUV444, RGB]),
    st.sampled_from([NHWC, NCHW]),
    SHAPES,
    SHAPES | st.none(),
    st.tuples(st.integers(0, 4), st.integers(0, 1 << 13), st.integers(0, 1 << 13)),
)
def test_whatever_a_caller_writes_no_row_leaves_its_block(
    tensor_type: hbDNNDataType,
    layout: hbDNNTensorLayout,
    valid: tuple[int, ...],
    aligned: tuple[int, ...] | None,
    memory: tuple[int, int, int],
) -> None:
    start, first, second = memory
    aligned = valid if aligned is None else aligned
    blocks = ((BASE + start * 8, first), (BASE + ROOM, second))
    layout = NCHW if tensor_type in {Y, NV12, SEPARATE} else layout
    # The runtime has compared these two with the model's before.
    if len(valid) == 4 and (valid[0] > 255 or valid[1 if layout == NCHW else 3] != (1 if tensor_type == Y else 3)):
        return
    try:
        pictures = pictures_of("x", tensor_type, layout, valid, aligned, blocks)
    except ModelError as error:
        note(str(error))
        return
    assert len(pictures) == valid[0]
    for plane in (plane for picture in pictures for plane in picture.planes):
        assert any(
            phy_addr <= plane.phy_addr and plane.phy_addr + plane.size_bytes <= phy_addr + size
            for phy_addr, size in blocks
        )
        assert plane.row_bytes <= plane.stride


@given(
    st.sampled_from([Y, NV12, SEPARATE, YUV444, RGB]),
    st.sampled_from([NHWC, NCHW]),
    st.integers(1, 3),
    st.tuples(st.integers(1, 12), st.integers(1, 20)),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_rows_lie_in_order_apart_and_in_the_fewest_bytes(
    tensor_type: hbDNNDataType,
    wanted: hbDNNTensorLayout,
    batch: int,
    sides: tuple[int, int],
    more: tuple[int, int],
) -> None:
    height, width = sides[0] * 2, sides[1] * 2
    is_aligned = tensor_type in {Y, NV12, SEPARATE}
    padded_width = -(-width // 16) * 16 + more[1] * 16 if is_aligned else width + more[1]
    channels, rows = (1 if tensor_type == Y else 3), height + more[0] * 2
    layout = NCHW if is_aligned else wanted
    valid, aligned = (
        (batch, channels, *shape) if layout == NCHW else (batch, *shape, channels)
        for shape in ((height, width), (rows, padded_width))
    )
    pictures = place(tensor_type, valid, aligned, layout=layout)
    for block in range(2 if tensor_type == SEPARATE else 1):
        planes = [
            plane
            for picture in pictures
            for plane in (picture.planes[block : block + 1] if tensor_type == SEPARATE else picture.planes)
        ]
        base = BASE + block * ROOM
        ends = [base, *(plane.phy_addr + plane.size_bytes for plane in planes)]
        assert all(end <= plane.phy_addr for end, plane in zip(ends, planes, strict=False))
        need = ends[-1] - base
        for missing in (0, 1):
            blocks = [(BASE, ROOM), (BASE + ROOM, ROOM)]
            blocks[block] = (base, need - missing)
            if missing:
                with pytest.raises(ModelError, match=f"need {need} bytes"):
                    place(tensor_type, valid, aligned, tuple(blocks), layout)
            else:
                assert place(tensor_type, valid, aligned, tuple(blocks), layout) == pictures
