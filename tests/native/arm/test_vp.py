"""hbVP*: ops on images of the S series, from C, against OpenCV."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from hbrt.cv_types import (
    HB_VP_IMAGE_FORMAT_BGR as BGR,
    HB_VP_IMAGE_FORMAT_NV12 as NV12,
    HB_VP_IMAGE_FORMAT_RGB as RGB,
    HB_VP_IMAGE_FORMAT_Y as Y,
    HB_VP_IMAGE_FORMAT_YUV420 as YUV420,
)
from hbrt.native.files import include_dir
from tests.limits import PATIENCE_S
from tests.native.arm.conftest import Compile

Image: TypeAlias = tuple[int, int, int, int]
"""Format, width, height, stride."""
Pixels: TypeAlias = NDArray[np.uint8]
Call: TypeAlias = Callable[..., tuple[Pixels, str]]

ROOT = Path(__file__).resolve().parents[3]
PADDING = 7
GOOD = "made 0 0 0, waited 0, released 0, ended 1, at once 0, again 0, none -6000129 -6000136"


def rows_of(image: Image) -> int:
    kind, _, height, _ = image
    return height * 3 // 2 if kind == NV12 else height


def planes(image: Image, memory: Pixels) -> list[Pixels]:
    """The pixels of an image without its padding: (height, width[, 3]), and for NV12 (height / 2, width / 2, 2)."""
    kind, width, height, _ = image
    if kind in (RGB, BGR):
        return [memory[:, : width * 3].reshape(height, width, 3)]
    first = memory[:height, :width]
    return [first, memory[height:, :width].reshape(height // 2, width // 2, 2)] if kind == NV12 else [first]


def noise(image: Image) -> Pixels:
    return np.random.default_rng(3).integers(0, 256, (rows_of(image), image[3]), np.uint8)


@pytest.fixture
def call(compiled: Compile, board: Path) -> Call:
    """``call(op, src, dst, *numbers)``: the memory of the result, and what the program noted."""
    program = compiled("vp.c")

    def run(op: str, src: Image, dst: Image, *numbers: float) -> tuple[Pixels, str]:
        outer = {name: value for name, value in os.environ.items() if not name.startswith("HBRT_")}
        done = subprocess.run(
            [program, op, *map(str, (*map(int, (*src, *dst)), *numbers))],
            env={**outer, "HBRT_BOARD": str(board), "HBRT_CHECK": "all"},
            input=noise(src).tobytes(),
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        memory = np.frombuffer(done.stdout, np.uint8).reshape(rows_of(dst), dst[3])
        return memory, done.stderr.decode()

    return run


def check(call: Call, op: str, src: Image, dst: Image, expected: list[Any], *numbers: float) -> None:
    memory, noted = call(op, src, dst, *numbers)
    assert GOOD in noted, noted
    assert "leak" not in noted
    for found, wanted in zip(planes(dst, memory), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    width = dst[1] * (3 if dst[0] in (RGB, BGR) else 1)
    assert (memory[:, width:] == PADDING).all()


@pytest.mark.parametrize(("interpolation", "method"), [(0, cv2.INTER_NEAREST), (1, cv2.INTER_LINEAR)])
@pytest.mark.parametrize("kind", [Y, NV12, BGR])
def test_resize(call: Call, kind: int, interpolation: int, method: int) -> None:
    src, dst = (kind, 64, 48, 240), (kind, 30, 36, 96)
    source = planes(src, noise(src))
    sizes = [(30, 36), (15, 18)]
    wanted = [
        cv2.resize(np.ascontiguousarray(one), size, interpolation=method)
        for one, size in zip(source, sizes, strict=False)
    ]
    check(call, "resize", src, dst, wanted, interpolation)


@pytest.mark.parametrize(("kind", "code"), [(BGR, cv2.COLOR_YUV2BGR_NV12), (RGB, cv2.COLOR_YUV2RGB_NV12)])
def test_colors_of_nv12(call: Call, kind: int, code: int) -> None:
    src, dst = (NV12, 32, 20, 48), (kind, 32, 20, 120)
    whole = np.ascontiguousarray(noise(src)[:, :32])
    check(call, "cvt", src, dst, [cv2.cvtColor(whole, code)])


def test_nv12_of_colors(call: Call) -> None:
    src, dst = (BGR, 32, 20, 96), (NV12, 32, 20, 64)
    planar = cv2.cvtColor(planes(src, noise(src))[0], cv2.COLOR_BGR2YUV_I420)
    u, v = planar[20:].reshape(2, 10, 16)
    check(call, "cvt", src, dst, [planar[:20], np.dstack([u, v])])


@pytest.mark.parametrize("is_inverse", [0, 1])
def test_a_letterbox_is_the_picture_at_half_its_size_in_gray(call: Call, is_inverse: int) -> None:
    src, dst = (NV12, 64, 32, 64), (NV12, 32, 32, 48)
    luma, chroma = planes(src, noise(src))
    wanted = [np.full((32, 32), 114, np.uint8), np.full((16, 16, 2), 128, np.uint8)]
    wanted[0][8:24], wanted[1][4:12] = luma[::2, ::2], chroma[::2, ::2]
    matrix = (2, 0, 0, 0, 2, -16) if is_inverse else (0.5, 0, 0, 0, 0.5, 8)
    check(call, "warp", src, dst, wanted, is_inverse, *matrix)


def test_blur(call: Call) -> None:
    src = dst = (BGR, 21, 17, 63)
    wanted = cv2.GaussianBlur(planes(src, noise(src))[0], (5, 5), 0, borderType=cv2.BORDER_REPLICATE)
    check(call, "blur", src, dst, [wanted], 5)


@pytest.mark.parametrize(
    ("op", "src", "dst", "numbers", "sentence"),
    [
        ("resize", (NV12, 8, 8, 8), (Y, 8, 8, 8), (1,), "dst"),
        ("resize", (Y, 8, 8, 8), (Y, 4, 4, 4), (9,), "interpolation is 9"),
        ("resize", (YUV420, 8, 8, 24), (YUV420, 4, 4, 12), (1,), "imageFormat 7: use one of 1 Y, 2 NV12, 3 RGB, 4 BGR"),
        ("cvt", (NV12, 8, 8, 8), (BGR, 4, 8, 12), (), "dst"),
        ("resize", (BGR, 8, 8, 8), (BGR, 4, 4, 12), (1,), "stride"),
        ("warp", (Y, 8, 8, 8), (Y, 4, 4, 4), (1, 0, 0, 0, 0, 0, 0), "determinant"),
    ],
)
def test_what_an_op_refuses_its_task_comes_to(
    call: Call, op: str, src: Image, dst: Image, numbers: tuple[float, ...], sentence: str
) -> None:
    memory, noted = call(op, src, dst, *numbers)
    assert re.search(r"made 0 0 0, waited -6000268, released 0, ended 0, at once -6000268", noted), noted
    assert sentence in noted
    assert "/ucp.c:" not in noted, "a line of hbrt's own"
    assert (memory == PADDING).all()


def test_the_page_lists_every_function_that_the_headers_declare() -> None:
    headers = "".join(one.read_text() for one in include_dir("ucp").joinpath("hobot/vp").glob("*.h"))
    declared = re.findall(r"^int32_t (hbVP\w+)\(", headers, re.MULTILINE)
    page = (ROOT / "docs" / "rdk.md").read_text()
    listed = re.findall(r"^\| `(?:hobot/vp/\w+\.h)` \| (?:works|not supported) \| (.*) \|$", page, re.MULTILINE)
    assert sorted(declared) == sorted(re.findall(r"hbVP\w+", "".join(listed)))
