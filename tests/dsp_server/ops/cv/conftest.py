"""A stretch of DDR without a board, images in it with bytes between their rows, and crops of photographs."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import skimage.data
from numpy.typing import DTypeLike, NDArray

from dsp_server.builtin_ops import CV_OPS
from dsp_server.hardware.tile_manager import TileManager
from dsp_server.ops.cv import op as shared
from dsp_server.runtime import MAP_FAILED, Mapped
from hbrt.cv_types import CvRules, hbDSPCvCmd, hbVPFilterKernel, hbVPImage, hbVPImageType

Array = NDArray[Any]
BASE = 0x8_0000_0000
PADDING = 0xA5
TYPES = {"uint8": 1, "int16": 3, "int32": 4, "float32": 5}
FORMATS = {"y": 1, "nv12": 2, "rgb": 3, "bgr": 4}


class Ddr:
    """Bytes from BASE on, handed out in order; what was not handed out cannot be mapped."""

    def __init__(self, size_bytes: int) -> None:
        self.bytes = memoryview(bytearray([PADDING]) * size_bytes)
        self.used_bytes = 0

    def take(self, size_bytes: int) -> int:
        """Physical address of a new block."""
        start = -(-self.used_bytes // 64) * 64
        self.used_bytes = start + size_bytes
        assert self.used_bytes <= len(self.bytes)
        return BASE + start

    def mem_map(self, phy_addr: int, size_bytes: int) -> Mapped:
        start = phy_addr - BASE
        inside = start >= 0 and start + size_bytes <= self.used_bytes
        return self.bytes[start : start + size_bytes] if inside else MAP_FAILED

    def array(self, phy_addr: int, shape: Sequence[int], dtype: DTypeLike, stride: int) -> Array:
        """View of a plane."""
        item_bytes = np.dtype(dtype).itemsize
        inner = (item_bytes * math.prod(shape[2:]), item_bytes)[: len(shape) - 1]
        return np.ndarray(tuple(shape), dtype, self.bytes, phy_addr - BASE, (stride, *inner))

    def plane(self, shape: Sequence[int], dtype: DTypeLike, padding: int) -> tuple[int, int]:
        """Physical address and stride of a new plane, with `padding` pixels behind each row."""
        stride = (shape[1] + padding) * np.dtype(dtype).itemsize * math.prod(shape[2:])
        return self.take(stride * shape[0]), stride

    def image(self, values: Array | Sequence[Array], name: str = "", padding: int = 0) -> hbVPImage:
        """An image with these values: one array, or Y and UV."""
        image = self.blank(
            values.shape if isinstance(values, np.ndarray) else values[0].shape, _dtype(values), name, padding
        )
        for target, given in zip(
            self.planes(image), values if isinstance(values, (tuple, list)) else (values,), strict=True
        ):
            target[...] = given
        return image

    def blank(self, shape: Sequence[int], dtype: DTypeLike = np.uint8, name: str = "", padding: int = 0) -> hbVPImage:
        """An image full of padding."""
        phy_addr, stride = self.plane(shape, dtype, padding)
        name = name or ("rgb" if len(shape) == 3 else "y")
        image = hbVPImage(
            imageFormat=FORMATS[name],
            imageType=2 if len(shape) == 3 else TYPES[np.dtype(dtype).name],
            width=shape[1],
            height=shape[0],
            stride=stride,
            dataPhyAddr=phy_addr,
        )
        if name == "nv12":
            image.uvPhyAddr, image.uvStride = self.plane((shape[0] // 2, shape[1] // 2, 2), dtype, padding)
        return image

    def planes(self, image: hbVPImage) -> list[Array]:
        """Views of an image's planes."""
        return [
            self.array(
                plane.phy_addr,
                (plane.rows, plane.columns, *((plane.element.channels,) if plane.element.channels > 1 else ())),
                plane.element.dtype,
                plane.stride,
            )
            for plane in image.planes()
        ]

    def kernel(self, values: Array) -> hbVPFilterKernel:
        """A filter's weights, or a mask."""
        phy_addr, stride = self.plane(values.shape, values.dtype, 0)
        self.array(phy_addr, values.shape, values.dtype, stride)[...] = values
        number = (
            hbVPImageType.HB_VP_IMAGE_TYPE_U8C1 if values.dtype == np.uint8 else hbVPImageType.HB_VP_IMAGE_TYPE_F32C1
        )
        return hbVPFilterKernel(values.shape[1], values.shape[0], number, phy_addr)

    def run(self, param: CvRules) -> list[Array]:
        """Run the structure's op; copies of the planes of dst. What lies between rows must be as it was."""
        op = op_of(param)
        assert op(memoryview(bytearray(param)), memoryview(b""), TileManager()) == 0
        for plane, values in zip(param.dst.planes(), self.planes(param.dst), strict=True):
            gap = plane.stride - plane.row_bytes
            if gap and param.src.dataPhyAddr != param.dst.dataPhyAddr:
                between = self.array(plane.phy_addr + plane.row_bytes, (plane.rows, gap), np.uint8, plane.stride)
                assert (between == PADDING).all(), "the op wrote between the rows"
            assert values.size
        return [values.copy() for values in self.planes(param.dst)]


def _dtype(values: Any) -> DTypeLike:
    dtype: DTypeLike = values[0].dtype
    return dtype


def op_of(param: CvRules) -> shared.Op:
    """The op that takes this structure."""
    wanted = type(param).__name__.removeprefix("hbDSPCv").removesuffix("Param").lower()
    (cmd,) = [cmd for cmd in hbDSPCvCmd if cmd.op_name.replace("_", "") == wanted]
    module, _, name = CV_OPS[cmd][1].partition(":")
    op: shared.Op = getattr(importlib.import_module(module), name)
    return op


def no_copy(target: Array, result: object) -> None:
    """`settle`, where OpenCV must have written into `target` itself."""
    assert result is target, "OpenCV made its own array"


@pytest.fixture
def ddr(monkeypatch: pytest.MonkeyPatch) -> Ddr:
    memory = Ddr(8 << 20)
    monkeypatch.setattr(shared, "map_range", memory.mem_map)
    monkeypatch.setattr(shared, "settle", no_copy)
    for _, source in CV_OPS.values():
        module = importlib.import_module(source.partition(":")[0])
        if hasattr(module, "settle"):
            monkeypatch.setattr(module, "settle", no_copy)
    return memory


data: Any = skimage.data  # its functions have no types
CAMERA: Array = data.camera()
ASTRONAUT: Array = data.astronaut()


def gray(height: int, width: int) -> Array:
    """A crop of a photograph with edges in it, (height, width) uint8."""
    return CAMERA[90 : 90 + height, 180 : 180 + width].copy()


def color(height: int, width: int) -> Array:
    """A crop of a photograph, (height, width, 3) uint8, R G B."""
    return ASTRONAUT[40 : 40 + height, 170 : 170 + width].copy()


def nv12(height: int, width: int) -> tuple[Array, Array]:
    """Y and UV made of photographs; what they show does not matter, that they are not smooth does."""
    return gray(height, width), color(height // 2, width // 2)[..., :2].copy()


@pytest.fixture
def photo() -> SimpleNamespace:
    """`photo.gray(height, width)`, `photo.color(...)`, `photo.nv12(...)`."""
    return SimpleNamespace(gray=gray, color=color, nv12=nv12)


def padded(image: Array, rows: tuple[int, int], columns: tuple[int, int], border: int) -> NDArray[np.float64]:
    """The image with what an op finds outside it: border 0 is constant 0, 1 replicated."""
    widths = (rows, columns) + ((0, 0),) * (image.ndim - 2)
    return np.pad(image.astype(np.float64), widths, mode="edge" if border else "constant")


def correlated(
    image: Array, kernel: Array, anchor: tuple[int, int] | None = None, border: int = 1
) -> NDArray[np.float64]:
    """Sum over the kernel, written out; anchor is (x, y), by default the middle."""
    height, width = kernel.shape
    x, y = anchor or (width // 2, height // 2)
    wide = padded(image, (y, height - 1 - y), (x, width - 1 - x), border)
    total = np.zeros(image.shape)
    for j in range(height):
        for i in range(width):
            total += float(kernel[j, i]) * wide[j : j + image.shape[0], i : i + image.shape[1]]
    return total


@pytest.fixture
def oracle() -> SimpleNamespace:
    """`oracle.correlated(...)` and `oracle.padded(...)`, plain numpy."""
    return SimpleNamespace(correlated=correlated, padded=padded)
