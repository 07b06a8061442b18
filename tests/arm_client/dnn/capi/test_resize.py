"""hbDNNResize on a board: every type of picture against an oracle of its own, X3's limits, tasks."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import arm_client as hb
from arm_client.client import Board
from tests.arm_client.dnn.nets import double, good
from tests.each import each

Bytes = NDArray[np.uint8]
Y, NV12, SEPARATE = hb.HB_DNN_IMG_TYPE_Y, hb.HB_DNN_IMG_TYPE_NV12, hb.HB_DNN_IMG_TYPE_NV12_SEPARATE
YUV444, RGB, BGR = hb.HB_DNN_IMG_TYPE_YUV444, hb.HB_DNN_IMG_TYPE_RGB, hb.HB_DNN_IMG_TYPE_BGR
NHWC, NCHW = hb.HB_DNN_LAYOUT_NHWC, hb.HB_DNN_LAYOUT_NCHW
PATTERN = 0xA5


class Picture:
    """A picture in device memory, full of a pattern, and the structure that tells of it."""

    def __init__(self, kind: int, height: int, width: int, *, layout: int = NCHW, stride: int | None = None) -> None:
        self.kind, self.layout, self.height, self.width = kind, layout, height, width
        self.stride = -(-width // 16) * 16 if stride is None else stride
        self.channels = 1 if kind == Y else 3
        self.tensor = hb.hbDNNTensor()
        told = self.tensor.properties
        told.tensorType, told.tensorLayout = kind, layout
        for shape, wide in ((told.validShape, width), (told.alignedShape, self.stride)):
            sides = (self.channels, height, wide) if layout == NCHW else (height, wide, self.channels)
            shape.numDimensions = 4
            shape.dimensionSize[:4] = (1, *sides)
        luma = height * self.stride
        sizes: list[int] = {int(Y): [luma], int(NV12): [luma * 3 // 2], int(SEPARATE): [luma, luma // 2]}.get(
            kind, [luma * 3]
        )
        for at, size in enumerate(sizes):
            good(hb.hbSysAllocMem(self.tensor.sysMem[at], size))
            self.memory(at)[:] = PATTERN

    def memory(self, at: int = 0) -> Bytes:
        return self.tensor.sysMem[at].array(np.uint8)  # type: ignore[no-any-return]

    def planes(self) -> list[Bytes]:
        """(rows, columns, channels) of each, with the padding."""
        if self.kind in {NV12, SEPARATE}:
            luma = self.height * self.stride
            first = self.memory()[:luma].reshape(self.height, self.stride, 1)
            second = self.memory()[luma:] if self.kind == NV12 else self.memory(1)
            return [first, second.reshape(self.height // 2, self.stride // 2, 2)]
        if self.layout == NCHW:
            return [*self.memory().reshape(self.channels, self.height, self.stride, 1)]
        return [self.memory().reshape(self.height, self.stride, self.channels)]

    def widths(self) -> list[int]:
        """Columns of each plane that are pixels."""
        return [self.width, self.width // 2] if self.kind in {NV12, SEPARATE} else [self.width] * len(self.planes())

    def fill(self) -> None:
        random = np.random.default_rng(self.height * self.width)
        for plane, width in zip(self.planes(), self.widths(), strict=True):
            plane[:, :width] = random.integers(0, 256, (plane.shape[0], width, plane.shape[2]))

    def free(self) -> None:
        for mem in self.tensor.sysMem:
            if mem.virAddr:
                good(hb.hbSysFreeMem(mem))


@pytest.fixture
def picture(dsp_board: Board) -> Iterator[Any]:
    """``picture(...)``: a Picture that is freed at the end."""
    made: list[Picture] = []

    def make(*args: Any, **kwargs: Any) -> Picture:
        made.append(Picture(*args, **kwargs))
        return made[-1]

    yield make
    for one in made:
        one.free()


def control() -> hb.hbDNNResizeCtrlParam:
    ctrl = hb.hbDNNResizeCtrlParam(9, 9, 9, 9, 9, 9, 9)
    hb.HB_DNN_INITIALIZE_RESIZE_CTRL_PARAM(ctypes.byref(ctrl))  # type: ignore[arg-type]  # as in C
    assert bytes(ctrl) == bytes(28)
    return ctrl


def run(target: Picture, source: Picture, roi: hb.hbDNNRoi | None = None) -> None:
    task = hb.hbDNNTaskHandle_t()
    good(hb.hbDNNResize(task, target.tensor, source.tensor, roi, control()))
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNReleaseTask(task))


def oracle(pixels: Bytes, height: int, width: int) -> Bytes:
    """Result i lies at i steps of 1 / 65536 pixels; exact integers, rounded once, halves up."""

    def taps(source: int, target: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        step = ((source - 1) * 65536 + (target - 1) // 2) // (target - 1) if target > 1 else 0
        at = np.arange(target) * step
        return at >> 16, np.minimum((at >> 16) + 1, source - 1), at & 65535

    top, bottom, down = taps(pixels.shape[0], height)
    left, right, along = taps(pixels.shape[1], width)
    wide, along, down = pixels.astype(np.int64), along[:, None], down[:, None, None]
    columns = (wide[:, left] << 16) + (wide[:, right] - wide[:, left]) * along
    result: Bytes = ((columns[top] << 16) + (columns[bottom] - columns[top]) * down + (1 << 31) >> 32).astype(np.uint8)
    return result


@each(
    "kind, layout",
    [(Y, NCHW), (Y, NHWC), (NV12, NCHW), (SEPARATE, NCHW), (YUV444, NCHW), (RGB, NHWC), (RGB, NCHW), (BGR, NHWC)],
)
@each("region", [None, (2, 1, 18, 12), (3, 4, 3, 4)])
@each("sides", [(6, 10), (22, 34), (14, 20)])
def test_every_type_against_exact_integers(
    picture: Any, kind: int, layout: int, region: tuple[int, ...] | None, sides: tuple[int, int]
) -> None:
    source = picture(kind, 14, 20, layout=layout, stride=48)
    target = picture(kind, *sides, layout=layout, stride=64)
    source.fill()
    before = source.memory().tobytes()
    run(target, source, None if region is None else hb.hbDNNRoi(*region))
    left, top, right, bottom = (0, 0, 19, 13) if region is None else region
    for at, (made, given, width) in enumerate(zip(target.planes(), source.planes(), target.widths(), strict=True)):
        half = 2 if kind in {NV12, SEPARATE} and at == 1 else 1
        taken = given[top // half : bottom // half + 1, left // half : right // half + 1]
        np.testing.assert_array_equal(made[:, :width], oracle(taken, made.shape[0], width))
        assert (made[:, width:] == PATTERN).all()
    assert source.memory().tobytes() == before


def test_one_size_to_itself_is_a_copy(picture: Any) -> None:
    source, target = picture(NV12, 16, 32), picture(NV12, 16, 32)
    source.fill()
    run(target, source)
    assert target.memory().tobytes() == source.memory().tobytes()


@pytest.mark.parametrize(("source", "target"), [((185, 370), (1, 2)), ((4, 16), (1020, 4080)), ((1, 1), (1, 255))])
def test_the_limits_themselves(picture: Any, source: tuple[int, int], target: tuple[int, int]) -> None:
    run(picture(Y, *target), picture(Y, *source))


def refused(target: Picture, source: Picture, roi: Any, ctrl: Any, said: str) -> None:
    task = hb.hbDNNTaskHandle_t()
    assert hb.hbDNNResize(task, target.tensor, source.tensor, roi, ctrl) == hb.HB_DNN_INVALID_ARGUMENT
    assert said in hb.last_error()
    assert task.value is None
    assert (target.memory() == PATTERN).all()


@pytest.mark.parametrize(
    ("source", "target", "roi", "said"),
    [
        ((Y, 186, 16), (Y, 1, 16), None, "Cannot scale a height of 186 to 1: result / region must be in [1/185, 256)"),
        ((Y, 16, 1), (Y, 16, 256), None, "Cannot scale a width of 1 to 256"),
        ((Y, 16, 4081), (Y, 16, 32), None, "The input is 4081 pixels wide"),
        ((Y, 64, 32), (Y, 4081, 32), None, "The output is 32 pixels wide and 4081 high"),
        ((Y, 16, 20, 20), (Y, 8, 8), None, "The input has rows of 20 pixels (W of alignedShape)"),
        ((Y, 16, 32, 4096), (Y, 8, 8), None, "The input has rows of 4096 pixels"),
        ((Y, 16, 32), (RGB, 8, 8), None, "The input is HB_DNN_IMG_TYPE_Y, but the output HB_DNN_IMG_TYPE_RGB"),
        ((NV12, 16, 32), (NV12, 9, 16), None, "NV12 of 9 rows"),
        ((Y, 16, 32), (Y, 8, 8), (0, 0, 32, 15), "The region (0, 0, 32, 15) (corners are included) is not inside"),
        ((Y, 16, 32), (Y, 8, 8), (-1, 0, 3, 3), "is not inside its picture, whose pixels are 0..31 by 0..15"),
        ((Y, 16, 32), (Y, 8, 8), (5, 0, 4, 3), "is not inside"),
    ],
)
def test_a_limit_that_is_broken_is_named(
    picture: Any, source: tuple[int, ...], target: tuple[int, ...], roi: tuple[int, ...] | None, said: str
) -> None:
    made = picture(*source[:3], stride=source[3] if len(source) > 3 else None)
    refused(picture(*target), made, None if roi is None else hb.hbDNNRoi(*roi), control(), said)


def test_arguments_that_are_none(picture: Any) -> None:
    source, target = picture(Y, 16, 32), picture(Y, 8, 8)
    refused(target, source, 5, control(), "The roi is 5")
    refused(target, source, None, None, "The control parameter is None")
    bad = control()
    bad.resizeType = 1
    refused(target, source, None, bad, "resizeType is 1")
    bad = control()
    bad.priority = 256
    refused(target, source, None, bad, "The priority is 256")
    nothing: Any = None
    task = hb.hbDNNTaskHandle_t()
    assert hb.hbDNNResize(task, nothing, source.tensor, None, control()) == hb.HB_DNN_INVALID_ARGUMENT
    assert "The output is None" in hb.last_error()
    assert hb.hbDNNResize(nothing, target.tensor, source.tensor, None, control()) == hb.HB_DNN_INVALID_ARGUMENT
    for field, value, said in (
        ("tensorType", hb.HB_DNN_TENSOR_TYPE_F32, "The input has the tensorType 13"),
        ("tensorLayout", hb.HB_DNN_LAYOUT_NONE, "The input has the tensorLayout 255"),
    ):
        other = picture(Y, 16, 32)
        setattr(other.tensor.properties, field, value)
        refused(target, other, None, control(), said)
    other = picture(Y, 16, 32)
    other.tensor.properties.validShape.dimensionSize[0] = 2
    refused(target, other, None, control(), "one HB_DNN_IMG_TYPE_Y picture has (1, 1, H, W)")
    other = picture(Y, 16, 32)
    other.tensor.sysMem[0].memSize = 16 * 32 - 1
    refused(target, other, None, control(), "memSize 511; its rows need 512 bytes")
    other.tensor.sysMem[0].memSize = 16 * 32
    kept, other.tensor.sysMem[0].phyAddr = other.tensor.sysMem[0].phyAddr, 0x1000
    refused(target, other, None, control(), "0x1000")
    other.tensor.sysMem[0].phyAddr = kept


def test_tasks_are_counted_apart_from_models_and_a_handle_may_be_used_again(picture: Any, load: Any) -> None:
    source, target = picture(Y, 16, 32), picture(Y, 8, 8)
    net = load(double())
    models = [net.infer() for _ in range(32)]
    tasks = [hb.hbDNNTaskHandle_t() for _ in range(32)]
    for task in tasks:
        good(hb.hbDNNResize(task, target.tensor, source.tensor, None, control()))
    one_more = hb.hbDNNTaskHandle_t()
    assert hb.hbDNNResize(one_more, target.tensor, source.tensor, None, control()) == hb.HB_DNN_TASK_NUM_EXCEED_LIMIT
    assert "32 resize tasks are alive" in hb.last_error()
    assert (
        hb.hbDNNInfer(hb.hbDNNTaskHandle_t(), net.outputs, net.inputs, net.handle, hb.hbDNNInferCtrlParam())
        == hb.HB_DNN_TASK_NUM_EXCEED_LIMIT
    )
    assert "32 tasks are alive" in hb.last_error()
    assert hb.hbDNNResize(tasks[0], target.tensor, source.tensor, None, control()) == hb.HB_DNN_API_USE_ERROR
    for task in (*models, *tasks):
        good(hb.hbDNNWaitTaskDone(task, 0))
        good(hb.hbDNNReleaseTask(task))
    good(hb.hbDNNResize(tasks[0], target.tensor, source.tensor, None, control()))  # X3's programs do not null it
    good(hb.hbDNNReleaseTask(tasks[0]))
