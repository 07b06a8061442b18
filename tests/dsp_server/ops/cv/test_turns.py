"""Flip, Rotate and Transpose against numpy, exactly, for every kind of image."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hbrt.cv_types import (
    HB_VP_FLIP_BOTH,
    HB_VP_FLIP_HORIZONTAL,
    HB_VP_FLIP_VERTICAL,
    HB_VP_ROTATE_90_CLOCKWISE,
    HB_VP_ROTATE_90_COUNTER_CLOCKWISE,
    HB_VP_ROTATE_180,
    CvRules,
    hbDSPCvFlipParam,
    hbDSPCvRotateParam,
    hbDSPCvTransposeParam,
)
from tests.each import each

if TYPE_CHECKING:
    from tests.dsp_server.ops.cv.conftest import Ddr

Array = NDArray[Any]
Turn = Callable[[Array], Array]

TURNS: dict[str, tuple[Callable[[], CvRules], Turn]] = {
    "vertical": (lambda: hbDSPCvFlipParam(flipCode=HB_VP_FLIP_VERTICAL), np.flipud),
    "horizontal": (lambda: hbDSPCvFlipParam(flipCode=HB_VP_FLIP_HORIZONTAL), np.fliplr),
    "both": (lambda: hbDSPCvFlipParam(flipCode=HB_VP_FLIP_BOTH), lambda image: image[::-1, ::-1]),
    "90": (lambda: hbDSPCvRotateParam(rotateCode=HB_VP_ROTATE_90_CLOCKWISE), lambda image: np.rot90(image, -1)),
    "180": (lambda: hbDSPCvRotateParam(rotateCode=HB_VP_ROTATE_180), lambda image: np.rot90(image, 2)),
    "270": (lambda: hbDSPCvRotateParam(rotateCode=HB_VP_ROTATE_90_COUNTER_CLOCKWISE), np.rot90),
    "transpose": (hbDSPCvTransposeParam, lambda image: np.swapaxes(image, 0, 1)),
}


@each("turn", TURNS)
@each("size", [(37, 53), (48, 48), (1, 41), (29, 1), (1, 1)])
def test_one_plane(ddr: Ddr, photo: SimpleNamespace, turn: str, size: Any) -> None:
    make, expected = TURNS[turn]
    gray = photo.gray(*size)
    for image in (
        gray,
        photo.color(*size),
        gray.astype(np.int16) * 100 - 9000,
        gray.astype(np.int32) << 20,
        gray.astype(np.float32) / 7,
    ):
        param = make()
        turned = expected(image)
        param.src, param.dst = ddr.image(image, padding=5), ddr.blank(turned.shape, image.dtype, padding=2)
        np.testing.assert_array_equal(ddr.run(param)[0], turned)


@each("turn", TURNS)
@each("size", [(36, 52), (2, 40), (2, 2)])
def test_nv12(ddr: Ddr, photo: SimpleNamespace, turn: str, size: Any) -> None:
    make, expected = TURNS[turn]
    planes = photo.nv12(*size)
    param = make()
    turned = [expected(plane) for plane in planes]
    param.src = ddr.image(planes, "nv12", padding=6)
    param.dst = ddr.blank(turned[0].shape, name="nv12", padding=2)
    for got, plane in zip(ddr.run(param), turned, strict=True):
        np.testing.assert_array_equal(got, plane)
