"""Layout of pictures in device memory: where each row is, and by which rules. Pure: addresses in, planes out.

Sizes come from the caller's hbDNNTensor, so it can describe a picture with wide rows, or part of a larger picture that
starts at an address inside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from arm_client.dnn.errors import ModelError, bad_argument
from arm_client.dnn.spec.properties import IMAGE_ALIGNMENT, NV12, PLANAR
from hbrt.dnn_types import hbDNNDataType, hbDNNTensorLayout

SEPARATE = hbDNNDataType.HB_DNN_IMG_TYPE_NV12_SEPARATE


class Plane(NamedTuple):
    """Rows of bytes in device memory.

    Attributes:
        phy_addr: Address of the first row.
        rows: Number of rows.
        row_bytes: Bytes of pixels per row.
        stride: Bytes from the start of one row to the next.
    """

    phy_addr: int
    rows: int
    row_bytes: int
    stride: int

    @property
    def size_bytes(self) -> int:
        """Bytes from the first pixel to the end of the last; padding after the last row is optional."""
        return self.stride * (self.rows - 1) + self.row_bytes


class Picture(NamedTuple):
    """One picture.

    Attributes:
        tensor_type: HB_DNN_IMG_TYPE_*.
        height: Rows.
        width: Pixels per row.
        planes: Y; Y and UV for NV12; for RGB, BGR and YUV444, one plane of H rows in NHWC, three in NCHW.
    """

    tensor_type: hbDNNDataType
    height: int
    width: int
    planes: tuple[Plane, ...]


def type_given(name: str, model_type: hbDNNDataType, given: int) -> hbDNNDataType:
    """Return the picture type that the caller set: the model's, or the other form of NV12.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    if given == model_type or (model_type in NV12 and given in NV12):
        return hbDNNDataType(given)
    allowed = "NV12 and NV12_SEPARATE" if model_type in NV12 else model_type.name
    name_of_type = next((member.name for member in hbDNNDataType if member == given), str(given))
    raise bad_argument(f"The input {name!r} has the tensorType {name_of_type}; the model takes {allowed}.")


def pictures_of(
    name: str,
    tensor_type: hbDNNDataType,
    layout: hbDNNTensorLayout,
    valid: Sequence[int],
    aligned: Sequence[int],
    blocks: Sequence[tuple[int, int]],
) -> list[Picture]:
    """Return the pictures of one tensor, one per batch element.

    Args:
        name: Name of the tensor, for messages.
        tensor_type: Type that the caller set; see `type_given`.
        layout: Layout of the model's tensor.
        valid: Sizes of validShape: (N, C, H, W) or (N, H, W, C).
        aligned: Sizes of alignedShape: equal to valid without padding, else the padded sizes.
        blocks: (physical address, bytes) of sysMem[0] and sysMem[1].

    Raises:
        ModelError: INVALID_ARGUMENT: names the broken rule and the value.
    """
    if len(valid) != 4 or len(aligned) != 4 or min(*valid, *aligned) < 1:
        raise _wrong(name, f"the validShape {list(valid)} and the alignedShape {list(aligned)}; both need four sizes")
    is_planes = layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW
    batch, height, width = (valid[0], *(valid[2:] if is_planes else valid[1:3]))
    channels = valid[1] if is_planes else valid[3]
    padded_height, padded_width = aligned[2:] if is_planes else aligned[1:3]
    if (aligned[0], aligned[1] if is_planes else aligned[3]) != (batch, channels):
        raise _wrong(name, f"the alignedShape {list(aligned)} for the validShape {list(valid)}; pad only H and W")
    if padded_height < height or padded_width < width:
        raise _wrong(name, f"the alignedShape {list(aligned)}, which is smaller than its validShape {list(valid)}")
    if tensor_type in NV12 and (height % 2 or width % 2 or padded_height % 2):
        raise _wrong(
            name,
            f"NV12 of {height} rows, padded to {padded_height}, and {width} columns; a UV pair covers 2 x 2 "
            "pixels: make them even",
        )
    if tensor_type in PLANAR:
        _check_stride(name, padded_width, is_padded=tuple(valid) != tuple(aligned))
        _check_addresses(name, tensor_type, blocks)
    make = _nv12 if tensor_type in NV12 else _dense
    found = [
        Picture(
            tensor_type,
            height,
            width,
            make(index, tensor_type, blocks, (height, width), (padded_height, padded_width), is_planes=is_planes),
        )
        for index in range(batch)
    ]
    _check_room(name, found, blocks)
    return found


def _check_stride(name: str, stride: int, *, is_padded: bool) -> None:
    if stride % IMAGE_ALIGNMENT and is_padded:
        raise _wrong(
            name,
            f"rows of {stride} bytes (W of alignedShape); pad them to a multiple of {IMAGE_ALIGNMENT}, or set "
            "alignedShape to validShape for rows without padding",
        )


def _check_addresses(name: str, tensor_type: hbDNNDataType, blocks: Sequence[tuple[int, int]]) -> None:
    for index in range(2 if tensor_type == SEPARATE else 1):
        phy_addr = blocks[index][0]
        if phy_addr % IMAGE_ALIGNMENT:
            raise _wrong(
                name,
                f"sysMem[{index}].phyAddr {phy_addr:#x}; a picture must start at a multiple of {IMAGE_ALIGNMENT}, so "
                f"move a crop to the left by {phy_addr % IMAGE_ALIGNMENT} pixels",
            )


def _nv12(
    index: int,
    tensor_type: hbDNNDataType,
    blocks: Sequence[tuple[int, int]],
    sides: tuple[int, int],
    padded: tuple[int, int],
    *,
    is_planes: bool,
) -> tuple[Plane, ...]:
    """Return Y, then UV with half the rows, both with the same stride. A batch is stored picture by picture."""
    del is_planes
    (height, width), (padded_height, stride) = sides, padded
    luma = padded_height * stride
    if tensor_type == SEPARATE:
        first, second = blocks[0][0] + index * luma, blocks[1][0] + index * (luma // 2)
    else:
        first = blocks[0][0] + index * (luma + luma // 2)
        second = first + luma
    return Plane(first, height, width, stride), Plane(second, height // 2, width, stride)


def _dense(
    index: int,
    tensor_type: hbDNNDataType,
    blocks: Sequence[tuple[int, int]],
    sides: tuple[int, int],
    padded: tuple[int, int],
    *,
    is_planes: bool,
) -> tuple[Plane, ...]:
    (height, width), (padded_height, padded_width) = sides, padded
    channels = 1 if tensor_type == hbDNNDataType.HB_DNN_IMG_TYPE_Y else 3
    start = blocks[0][0] + index * padded_height * padded_width * channels
    if is_planes:
        step = padded_height * padded_width
        return tuple(Plane(start + step * channel, height, width, padded_width) for channel in range(channels))
    return (Plane(start, height, width * channels, padded_width * channels),)


def _check_room(name: str, pictures: Sequence[Picture], blocks: Sequence[tuple[int, int]]) -> None:
    is_separate = pictures[0].tensor_type == SEPARATE
    for index in range(2 if is_separate else 1):
        phy_addr, size_bytes = blocks[index]
        planes = [
            plane
            for picture in pictures
            for plane in (picture.planes[index : index + 1] if is_separate else picture.planes)
        ]
        need = max(plane.phy_addr + plane.size_bytes for plane in planes) - phy_addr
        if size_bytes < need:
            raise _wrong(name, f"sysMem[{index}].memSize {size_bytes}; its rows need {need} bytes")


def _wrong(name: str, what: str) -> ModelError:
    return bad_argument(f"The picture {name!r} has {what}.")
