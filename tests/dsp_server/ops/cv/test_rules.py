"""What the ops refuse, in the words that a user meets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hbrt.cv_types import (
    CvRuleError,
    CvRules,
    hbDSPCvBilateralFilterParam,
    hbDSPCvBoxFilterParam,
    hbDSPCvCannyParam,
    hbDSPCvCornerHarrisParam,
    hbDSPCvCvtColorParam,
    hbDSPCvDilateParam,
    hbDSPCvEqualizeHistParam,
    hbDSPCvErodeParam,
    hbDSPCvFilter2DParam,
    hbDSPCvFlipParam,
    hbDSPCvGaussianBlurParam,
    hbDSPCvIntegralParam,
    hbDSPCvMedianBlurParam,
    hbDSPCvPyrDownParam,
    hbDSPCvPyrUpParam,
    hbDSPCvRemapParam,
    hbDSPCvResizeParam,
    hbDSPCvRoiResizeParam,
    hbDSPCvRotateParam,
    hbDSPCvSepFilter2DParam,
    hbDSPCvSobelParam,
    hbDSPCvThresholdParam,
    hbDSPCvTransposeParam,
    hbDSPCvWarpAffineParam,
    hbDSPCvWarpPerspectiveParam,
    hbVPFilterKernel,
    hbVPImage,
)
from tests.each import each

BASE = 0x8_0000_0000


def image(address: int, width: int = 8, height: int = 6, number: int = 1, format: int = 1, **fields: Any) -> hbVPImage:
    """A good image, but for the fields given."""
    pixel_bytes = {1: 1, 2: 3, 3: 2, 4: 4, 5: 4}[number]
    values: dict[str, Any] = {
        "imageFormat": format,
        "imageType": number,
        "width": width,
        "height": height,
        "stride": 32 * pixel_bytes,
        "dataPhyAddr": BASE + address,
    }
    if format == 2:
        values |= {"uvPhyAddr": BASE + address + 0x10000, "uvStride": 32}
    return hbVPImage(**(values | fields))


U8, U8C3, S16, S32, F32 = 1, 2, 3, 4, 5
Y, NV12, RGB, BGR = 1, 2, 3, 4
MASK = hbVPFilterKernel(3, 3, U8, BASE + 0x20000)
WEIGHTS = hbVPFilterKernel(3, 3, F32, BASE + 0x20000)
ROW, COLUMN = hbVPFilterKernel(3, 1, F32, BASE + 0x20000), hbVPFilterKernel(1, 3, F32, BASE + 0x20000)
TO_TURNED = image(0x1000, 6, 8)


def pair(structure: Callable[..., CvRules], dst: hbVPImage | None = None, **fields: Any) -> Callable[..., CvRules]:
    """Makes a good structure, but for the fields given to it."""

    def make(**wrong: Any) -> CvRules:
        good = {"src": image(0), "dst": image(0x1000) if dst is None else dst, **fields}
        values = good | wrong
        matrix = values.pop("transformMatrix", None)
        param = structure(**values)
        if matrix is not None:
            param.transformMatrix[:] = matrix
        return param

    return make


IDENTITY_3 = [1.0, 0, 0, 0, 1, 0, 0, 0, 1]
GOOD: dict[str, Callable[..., CvRules]] = {
    "bilateral": pair(hbDSPCvBilateralFilterParam, sigmaColor=15, sigmaSpace=2, kernelSize=5),
    "box": pair(hbDSPCvBoxFilterParam, kernelHeight=3, kernelWidth=3, pointLocX=-1, pointLocY=-1, normalize=1),
    "canny": pair(hbDSPCvCannyParam, threshold1=1, threshold2=2, kernelSize=3, norm=1, overlap=64, borderType=1),
    "harris": pair(hbDSPCvCornerHarrisParam, image(0x1000, number=S32), sensitivity=0.04, blockSize=3, kernelSize=3),
    "cvt": pair(hbDSPCvCvtColorParam, image(0x1000, number=U8C3, format=RGB)),
    "dilate": pair(hbDSPCvDilateParam, kernel=MASK),
    "equalize": pair(hbDSPCvEqualizeHistParam),
    "erode": pair(hbDSPCvErodeParam, kernel=MASK),
    "filter2d": pair(hbDSPCvFilter2DParam, kernel=WEIGHTS, pointLocX=-1, pointLocY=-1),
    "flip": pair(hbDSPCvFlipParam),
    "gaussian": pair(hbDSPCvGaussianBlurParam, kernelSize=3),
    "integral": pair(hbDSPCvIntegralParam, image(0x1000, 9, 7, S32)),
    "median": pair(hbDSPCvMedianBlurParam, maskWidth=5),
    "pyr_down": pair(hbDSPCvPyrDownParam, image(0x1000, 4, 3), interpolation=2),
    "pyr_up": pair(hbDSPCvPyrUpParam, image(0x1000, 16, 12), interpolation=2),
    "remap": pair(hbDSPCvRemapParam, mapPhyAddr=BASE + 0x20000, mapWidth=8, mapHeight=6, dataType=6, interpolation=1),
    "resize": pair(hbDSPCvResizeParam, image(0x1000, 5, 7), interpolation=1),
    "roi": pair(hbDSPCvRoiResizeParam, roiPhyAddr=BASE + 0x20000, dstStep=192, roiCount=2, interpolation=1),
    "rotate": pair(hbDSPCvRotateParam, TO_TURNED),
    "sep": pair(hbDSPCvSepFilter2DParam, kernelX=ROW, kernelY=COLUMN, pointLocX=-1, pointLocY=-1),
    "sobel": pair(hbDSPCvSobelParam, image(0x1000, number=S16), scale=1, dx=1, kernelSize=3),
    "threshold": pair(hbDSPCvThresholdParam, thresh=100, maxVal=255),
    "transpose": pair(hbDSPCvTransposeParam, TO_TURNED),
    "affine": pair(hbDSPCvWarpAffineParam, transformMatrix=[1.0, 0, 0, 0, 1, 0], interpolation=1),
    "perspective": pair(hbDSPCvWarpPerspectiveParam, transformMatrix=IDENTITY_3, interpolation=1),
}


@each("op", GOOD)
def test_a_good_structure_is_good(op: str) -> None:
    GOOD[op]().check()


NO_DST = "this op reads pixels after it has written others, so dst must not overlap src."
ROTATIONS = "use one of 0 HB_VP_ROTATE_90_CLOCKWISE, 1 HB_VP_ROTATE_180, 2 HB_VP_ROTATE_90_COUNTER_CLOCKWISE."
THRESHOLDS = (
    "use one of 0 HB_VP_THRESH_BINARY, 1 HB_VP_THRESH_BINARY_INV, 2 HB_VP_THRESH_TRUNC, 3 HB_VP_THRESH_TOZERO, "
    "4 HB_VP_THRESH_TOZERO_INV."
)
NO_INVERSE = "determinant 0: it maps all of src to a line or a point."
NO_DETERMINANT = "determinant inf: use smaller numbers, so that float64 holds it."
NO_DIVISOR = "divides by 0 everywhere: its last row must not be all 0."
KERNEL_OR_MAP = "what the op reads at 0x800020000 besides src: dst must not overlap it."
NOT_ODD = "use an odd number from 1 to 31."
WRONG: list[tuple[str, dict[str, Any], str]] = [
    # Descriptors, which are the same for every op.
    ("gaussian", {"src": image(0, format=0)}, "src has imageFormat 0: use one of 1 Y, 2 NV12, 3 RGB, 4 BGR."),
    (
        "gaussian",
        {"src": image(0, imageType=9)},
        "src has imageType 9: for its format use 1 U8C1, 3 S16C1, 4 S32C1, 5 F32C1.",
    ),
    ("gaussian", {"dst": image(0x1000, format=RGB)}, "dst has imageType 1: for its format use 2 U8C3."),
    ("gaussian", {"src": image(0, 0)}, "src is 0 x 6 pixels: each side must have 1 to 32766."),
    ("gaussian", {"src": image(0, 8, -1)}, "src is 8 x -1 pixels: each side must have 1 to 32766."),
    ("gaussian", {"src": image(0, 32767, stride=32767)}, "src is 32767 x 6 pixels: each side must have 1 to 32766."),
    (
        "gaussian",
        {"src": image(0, stride=7)},
        "src has a stride of 7 bytes: a row of 8 pixels takes 8, and a stride must be a whole number of Y U8C1 pixels.",
    ),
    (
        "gaussian",
        {"src": image(0, number=U8C3, format=RGB, stride=25)},
        (
            "src has a stride of 25 bytes: a row of 8 pixels takes 24, and a stride must be a whole number of "
            "RGB U8C3 pixels."
        ),
    ),
    (
        "gaussian",
        {"src": image(0, dataPhyAddr=0)},
        "src starts at the physical address 0x0: give that of its first pixel, a multiple of 1.",
    ),
    (
        "threshold",
        {"src": image(2, number=F32)},
        "src starts at the physical address 0x800000002: give that of its first pixel, a multiple of 4.",
    ),
    (
        "resize",
        {"src": image(0, 7, format=NV12)},
        "src is 7 x 6 pixels: NV12 has a UV pair per 2 x 2 pixels, so both must be even.",
    ),
    (
        "resize",
        {"src": image(0, format=NV12, uvStride=7)},
        "src has a uvStride of 7 bytes: must be even and at least 8.",
    ),
    (
        "resize",
        {"src": image(0, format=NV12, uvPhyAddr=0)},
        "src has no uvPhyAddr: give the physical address of the UV plane.",
    ),
    # Kinds, sizes and overlap.
    ("gaussian", {"src": image(0, number=S16)}, "src is Y S16C1: this op takes Y U8C1, RGB U8C3 or BGR U8C3."),
    ("gaussian", {"dst": image(0x1000, number=S16)}, "dst is Y S16C1: it must be Y U8C1, like src."),
    ("gaussian", {"dst": image(0x1000, 9)}, "dst is 9 x 6 pixels: with this src it must be 8 x 6."),
    ("gaussian", {"dst": image(0)}, f"dst at 0x800000000 overlaps src at 0x800000000: {NO_DST}"),
    ("gaussian", {"dst": image(0xA7)}, f"dst at 0x8000000a7 overlaps src at 0x800000000: {NO_DST}"),
    (
        "threshold",
        {"dst": image(0, stride=16)},
        "dst at 0x800000000 overlaps src at 0x800000000: give both the same address and stride, or separate memory.",
    ),
    ("cvt", {"dst": image(0x1000, number=S16)}, "dst is Y S16C1: this op takes RGB U8C3, BGR U8C3 or NV12 U8C1."),
    ("cvt", {"dst": image(0x1000)}, "dst is Y U8C1: this op takes RGB U8C3, BGR U8C3 or NV12 U8C1."),
    ("sobel", {"dst": image(0x1000)}, "dst is Y U8C1: this op takes Y S16C1."),
    ("harris", {"dst": image(0x1000)}, "dst is Y U8C1: this op takes Y S32C1 or Y F32C1."),
    ("integral", {"dst": image(0x1000, number=S32)}, "dst is 8 x 6 pixels: with this src it must be 9 x 7."),
    ("pyr_down", {"dst": image(0x1000)}, "dst is 8 x 6 pixels: with this src it must be 4 x 3."),
    ("pyr_up", {"dst": image(0x1000)}, "dst is 8 x 6 pixels: with this src it must be 16 x 12."),
    ("rotate", {"dst": image(0x1000)}, "dst is 8 x 6 pixels: with this src it must be 6 x 8."),
    ("rotate", {"rotateCode": 1}, "dst is 6 x 8 pixels: with this src it must be 8 x 6."),
    ("transpose", {"dst": image(0x1000)}, "dst is 8 x 6 pixels: with this src it must be 6 x 8."),
    ("remap", {"mapWidth": 9}, "dst is 8 x 6 pixels: with this src it must be 9 x 6."),
    (
        "box",
        {"dst": image(0x1000, number=S32)},
        "dst is Y S32C1: this op takes Y U8C1.",
    ),
    # Parameters.
    ("bilateral", {"kernelSize": 1}, "kernelSize is 1: use an odd number from 3 to 31."),
    ("bilateral", {"sigmaColor": 0}, "sigmaColor is 0.0: use a number above 0 and up to 1e6."),
    ("bilateral", {"sigmaSpace": float("nan")}, "sigmaSpace is nan: use a number above 0 and up to 1e6."),
    ("bilateral", {"borderType": 2}, "borderType is 2: use one of 0 HB_VP_BORDER_CONSTANT, 1 HB_VP_BORDER_REPLICATE."),
    ("box", {"kernelWidth": 128}, "kernelWidth is 128: use 1 to 127."),
    ("box", {"kernelHeight": 0}, "kernelHeight is 0: use 1 to 127."),
    ("box", {"pointLocX": 3}, "The anchor (3, -1) is outside the 3 x 3 kernel: use -1 for its middle."),
    ("box", {"normalize": 2}, "normalize is 2: use one of 0 the sum, 1 the mean."),
    ("canny", {"threshold1": 3}, "threshold1 is 3.0: use 0 to 2."),
    ("canny", {"threshold2": -3}, "threshold2 is -3.0: use 0 or more, and at least threshold1."),
    ("canny", {"threshold2": float("inf")}, "threshold2 has the value inf: use finite numbers."),
    ("canny", {"kernelSize": 9}, "kernelSize is 9: use one of 3, 5, 7."),
    ("canny", {"norm": 0}, "norm is 0: use one of 1 HB_VP_NORM_L1, 2 HB_VP_NORM_L2."),
    ("canny", {"overlap": -1}, "overlap is -1: use 0 to 1024."),
    ("canny", {"borderType": 0}, "borderType is 0: use one of 1 HB_VP_BORDER_REPLICATE."),
    ("harris", {"sensitivity": 0.3}, "sensitivity is 0.3: use a number above 0 and up to 0.25."),
    ("harris", {"blockSize": 2}, f"blockSize is 2: {NOT_ODD}"),
    ("harris", {"kernelSize": 1}, "kernelSize is 1: use one of 3, 5, 7."),
    (
        "dilate",
        {"kernel": hbVPFilterKernel(3, 32, U8, BASE)},
        "kernel has 3 x 32 elements: each side must have 1 to 31.",
    ),
    ("dilate", {"kernel": hbVPFilterKernel(3, 3, F32, BASE)}, "kernel.dataType is 5: use 1 U8C1."),
    ("erode", {"kernel": hbVPFilterKernel(0, 3, U8, BASE)}, "kernel has 0 x 3 elements: each side must have 1 to 31."),
    (
        "filter2d",
        {"kernel": hbVPFilterKernel(3, 3, F32, BASE + 2)},
        "kernel is at the physical address 0x800000002: must be a nonzero multiple of 4.",
    ),
    ("filter2d", {"delta": float("nan")}, "delta has the value nan: use finite numbers."),
    (
        "sep",
        {"kernelX": COLUMN},
        "kernelX has 1 x 3 and kernelY 1 x 3 elements: the first must be a row, the second a column.",
    ),
    (
        "flip",
        {"flipCode": 2},
        "flipCode is 2: use one of 0 HB_VP_FLIP_VERTICAL, 1 HB_VP_FLIP_HORIZONTAL, -1 HB_VP_FLIP_BOTH.",
    ),
    ("gaussian", {"kernelSize": 7}, "kernelSize is 7: use one of 3 for 1 2 1, 5 for 1 4 6 4 1."),
    ("median", {"maskWidth": 4}, "maskWidth is 4: use an odd number from 1 to 127."),
    ("median", {"maskWidth": -3}, "maskWidth is -3: use an odd number from 1 to 127."),
    ("pyr_down", {"interpolation": 0}, "interpolation is 0: use one of 1 HB_VP_INTER_LINEAR, 2 HB_VP_INTER_GAUSSIAN."),
    ("remap", {"dataType": 1}, "dataType is 1: use one of 6 F64C2, 7 F32C2."),
    ("remap", {"mapPhyAddr": BASE + 4}, "mapPhyAddr is 0x800000004: must be a nonzero multiple of 8."),
    ("remap", {"borderValue": 256}, "borderValue is 256: use 0 to 255."),
    ("resize", {"interpolation": 2}, "interpolation is 2: use one of 0 HB_VP_INTER_NEAREST, 1 HB_VP_INTER_LINEAR."),
    ("roi", {"roiCount": 0}, "roiCount is 0: use 1 to 256."),
    (
        "roi",
        {"roiPhyAddr": BASE + 2},
        "roiPhyAddr is 0x800000002: give the physical address of the regions, a multiple of 4.",
    ),
    ("roi", {"dstStep": 191}, "dstStep is 191 bytes: one result takes 192, so it must be at least that."),
    (
        "roi",
        {"dst": image(0x20)},
        "The results at 0x800000020 overlap src at 0x800000000: give them memory of their own.",
    ),
    (
        "rotate",
        {"rotateCode": 3},
        f"rotateCode is 3: {ROTATIONS}",
    ),
    ("sobel", {"dx": 0}, "dx and dy are both 0: at least one must be the order of a derivative."),
    ("sobel", {"dy": 3}, "dy is 3: use 0 to 2."),
    ("sobel", {"scale": float("inf")}, "scale has the value inf: use finite numbers."),
    ("threshold", {"thresh": 256}, "thresh is 256.0: use 0 to 255."),
    ("threshold", {"thresh": 1.5}, "thresh is 1.5: for Y U8C1 pixels use an integer."),
    ("threshold", {"maxVal": -1}, "maxVal is -1.0: use 0 to 255."),
    (
        "threshold",
        {"src": image(0, number=F32), "dst": image(0x1000, number=F32), "thresh": -1e39},
        "thresh is -1e+39: for Y F32C1 pixels use a number up to 3.4028235e+38 in size.",
    ),
    (
        "threshold",
        {"type": 5},
        f"type is 5: {THRESHOLDS}",
    ),
    (
        "affine",
        {"transformMatrix": [1, 2, 3, 2, 4, 5]},
        f"transformMatrix [1.0, 2.0, 3.0, 2.0, 4.0, 5.0] has the {NO_INVERSE}",
    ),
    (
        "affine",
        {"transformMatrix": [1, 0, float("nan"), 0, 1, 0]},
        "transformMatrix has the value nan: use finite numbers.",
    ),
    (
        "perspective",
        {"transformMatrix": [1, 0, 0, 0, 1, 0, 0, 0, 0]},
        f"transformMatrix [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0] {NO_DIVISOR}",
    ),
    (
        "affine",
        {"transformMatrix": [1e200, 0, 0, 0, 1e200, 0]},
        f"transformMatrix [1e+200, 0.0, 0.0, 0.0, 1e+200, 0.0] has the {NO_DETERMINANT}",
    ),
    ("filter2d", {"dst": image(0x1FFF0)}, f"dst at 0x80001fff0 overlaps {KERNEL_OR_MAP}"),
    ("sep", {"dst": image(0x1FFF0)}, f"dst at 0x80001fff0 overlaps {KERNEL_OR_MAP}"),
    ("dilate", {"dst": image(0x1FFF0)}, f"dst at 0x80001fff0 overlaps {KERNEL_OR_MAP}"),
    ("remap", {"dst": image(0x20040)}, f"dst at 0x800020040 overlaps {KERNEL_OR_MAP}"),
    ("roi", {"dst": image(0x1FF40)}, f"dst at 0x80001ff40 overlaps {KERNEL_OR_MAP}"),
    (
        "perspective",
        {"borderType": -1},
        "borderType is -1: use one of 0 HB_VP_BORDER_CONSTANT, 1 HB_VP_BORDER_REPLICATE.",
    ),
]


@each("op, wrong, sentence", WRONG)
def test_a_wrong_structure_is_named(op: str, wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CvRuleError) as caught:
        GOOD[op](**wrong).check()
    assert str(caught.value) == sentence


def test_side_by_side_is_no_overlap() -> None:
    GOOD["gaussian"](dst=image(8)).check()
    GOOD["gaussian"](dst=image(32 * 6)).check()
    with pytest.raises(CvRuleError, match="overlaps"):
        GOOD["gaussian"](dst=image(7)).check()
    with pytest.raises(CvRuleError, match="overlaps"):
        GOOD["gaussian"](dst=image(25)).check()  # its last column is src's next row


def test_the_planes_of_one_result_are_kept_apart() -> None:
    src, dst = image(0, format=NV12), image(0x20000, format=NV12, uvPhyAddr=BASE + 0x20008)
    GOOD["flip"](src=src, dst=dst).check()  # side by side in rows of one stride
    dst.uvPhyAddr += 1
    dst.uvStride = 34
    sentence = "^The Y plane of dst at 0x800020000 overlaps its UV plane at 0x800020009: they must not overlap"
    with pytest.raises(CvRuleError, match=sentence):
        GOOD["flip"](src=src, dst=dst).check()
    rois = {"roiPhyAddr": BASE + 0x30000, "dstStep": 0x200, "dstUvStep": 0x200}
    dst = image(0x20000, format=NV12, uvPhyAddr=BASE + 0x200C0)
    GOOD["roi"](src=src, dst=dst, **rois).check()  # Y and UV in turns
    dst.uvPhyAddr += 0x200 - 0x58
    with pytest.raises(CvRuleError, match="overlaps its UV plane"):
        GOOD["roi"](src=src, dst=dst, **rois).check()


def test_every_plane_is_kept_apart() -> None:
    src = image(0, format=NV12)
    for address in (0, 0x10000):
        dst = image(0x1000, 4, 4, format=NV12, uvPhyAddr=BASE + address)
        with pytest.raises(CvRuleError, match="overlaps src"):
            GOOD["resize"](src=src, dst=dst).check()


@each(
    "roi, why",
    [
        ((3, 0, 2, 5), "is empty: right and bottom are inclusive, and must not be before left and top."),
        ((0, 0, 8, 5), "extends outside src, whose last pixel is (7, 5)."),
        ((-1, 0, 7, 5), "extends outside src, whose last pixel is (7, 5)."),
        ((1, 0, 7, 5), "splits a UV pair of NV12: left and top must be even, right and bottom odd."),
        ((0, 0, 6, 5), "splits a UV pair of NV12: left and top must be even, right and bottom odd."),
    ],
)
def test_a_wrong_region_is_named(roi: tuple[int, int, int, int], why: str) -> None:
    param: Any = GOOD["roi"](src=image(0, format=NV12), dst=image(0x1000, format=NV12))
    with pytest.raises(CvRuleError) as caught:
        param.check_rois([(0, 0, 7, 5), roi])
    assert str(caught.value) == f"ROI 1, ({roi[0]}, {roi[1]}) to ({roi[2]}, {roi[3]}), {why}"
