"""Remap, WarpAffine and WarpPerspective against scipy, on crops of photographs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.ndimage as nd
from numpy.typing import NDArray

from hbrt.cv_types import (
    HB_VP_INTER_LINEAR,
    HB_VP_INTER_NEAREST,
    hbDSPCvRemapParam,
    hbDSPCvWarpAffineParam,
    hbDSPCvWarpPerspectiveParam,
)
from tests.each import each

if TYPE_CHECKING:
    from tests.dsp_server.ops.cv.conftest import Ddr

Array = NDArray[Any]
SIZES = [(37, 53), (64, 48), (1, 41), (29, 1), (1, 1)]
MODES = {0: "grid-constant", 1: "nearest"}
AFFINE = np.array([[0.9, 0.2, 3.3], [-0.15, 1.1, 2.7]])
PERSPECTIVE = np.array([[1.05, 0.1, -2.4], [-0.08, 0.95, 1.6], [0.0006, -0.0004, 1.0]])
every_size = each("size", SIZES)
every_border = each("border, value", [(0, 0), (0, 90), (1, 0)])


def looked_up(image: Array, x: Array, y: Array, border: int, value: int, order: int = 1) -> NDArray[np.float64]:
    """The image at (x, y), each channel for itself, by scipy."""
    channels = np.atleast_3d(image).astype(float)
    found = [
        nd.map_coordinates(channels[..., channel], [y, x], order=order, mode=MODES[border], cval=value)
        for channel in range(channels.shape[2])
    ]
    return np.dstack(found).reshape(*x.shape, *image.shape[2:])


def places(height: int, width: int) -> Array:
    """A map that leaves the image on every side: (height, width, 2) float64."""
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    wave = 2.5 * np.sin(y / 5) + 1.3
    return np.dstack([x * 1.1 - wave, y * 0.97 + 3 * np.cos(x / 7) - 1.1])


def put_map(ddr: Ddr, values: Array) -> int:
    row_bytes = values.shape[1] * 2 * values.itemsize
    phy_addr = ddr.take(row_bytes * values.shape[0])
    ddr.array(phy_addr, values.shape, values.dtype, row_bytes)[...] = values
    return phy_addr


def remap_param(ddr: Ddr, values: Array, **fields: Any) -> hbDSPCvRemapParam:
    return hbDSPCvRemapParam(
        mapPhyAddr=put_map(ddr, values),
        mapWidth=values.shape[1],
        mapHeight=values.shape[0],
        dataType=6 if values.dtype == np.float64 else 7,
        **fields,
    )


@every_size
@every_border
@each("dtype", [np.float64, np.float32])
def test_remap_is_within_a_rounding(
    ddr: Ddr, photo: SimpleNamespace, size: Any, border: int, value: int, dtype: Any
) -> None:
    given = places(40, 33).astype(dtype)
    exact_map = given.astype(np.float32).astype(float)
    gray = photo.gray(*size)
    for image, tolerance in ((gray, 0.51), (photo.color(*size), 0.51), (gray.astype(np.float32), 0.01)):
        param = remap_param(
            ddr,
            given,
            src=ddr.image(image, padding=5),
            dst=ddr.blank((40, 33, *image.shape[2:]), image.dtype, padding=2),
            interpolation=HB_VP_INTER_LINEAR,
            borderType=border,
            borderValue=value,
        )
        expected = looked_up(image, exact_map[..., 0], exact_map[..., 1], border, value)
        assert np.abs(ddr.run(param)[0] - expected).max() <= tolerance


@every_border
def test_remap_to_the_nearest(ddr: Ddr, photo: SimpleNamespace, border: int, value: int) -> None:
    image, given = photo.gray(37, 53), places(40, 34)
    param = remap_param(
        ddr,
        given,
        src=ddr.image(image),
        dst=ddr.blank((40, 34)),
        interpolation=HB_VP_INTER_NEAREST,
        borderType=border,
        borderValue=value,
    )
    x, y = (np.rint(given.astype(np.float32)[..., axis]).astype(int) for axis in (0, 1))
    inside = (x >= 0) & (x < 53) & (y >= 0) & (y < 37)
    expected = image[np.clip(y, 0, 36), np.clip(x, 0, 52)]
    np.testing.assert_array_equal(ddr.run(param)[0], expected if border else np.where(inside, expected, value))


def test_remap_of_nv12_halves_the_map(ddr: Ddr, photo: SimpleNamespace) -> None:
    planes, given = photo.nv12(36, 52), places(40, 34).astype(np.float32)
    param = remap_param(
        ddr,
        given,
        src=ddr.image(planes, "nv12", padding=6),
        dst=ddr.blank((40, 34), name="nv12", padding=2),
        interpolation=HB_VP_INTER_LINEAR,
        borderType=0,
        borderValue=16,
    )
    y, uv = ddr.run(param)
    whole = given.astype(float)
    half = whole[::2, ::2] / 2
    assert np.abs(y - looked_up(planes[0], whole[..., 0], whole[..., 1], 0, 16)).max() <= 0.51
    assert np.abs(uv - looked_up(planes[1], half[..., 0], half[..., 1], 0, 128)).max() <= 0.51


def source_places(matrix: Array, height: int, width: int) -> tuple[Array, Array]:
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    u, v, w = np.tensordot(matrix, np.stack([x, y, np.ones_like(x)]), 1)
    return u / w, v / w


def forward(matrix: Array) -> Array:
    """What takes a point of the result to the source."""
    inverse: Array = np.linalg.inv(np.vstack([matrix, [0, 0, 1]]))
    return inverse


@every_size
@every_border
def test_warp_affine_maps_forward(ddr: Ddr, photo: SimpleNamespace, size: Any, border: int, value: int) -> None:
    for image in (photo.gray(*size), photo.color(*size)):
        param = hbDSPCvWarpAffineParam(
            src=ddr.image(image, padding=5),
            dst=ddr.blank((44, 50, *image.shape[2:]), padding=2),
            interpolation=HB_VP_INTER_LINEAR,
            borderType=border,
            borderValue=value,
        )
        param.transformMatrix[:] = AFFINE.reshape(-1).tolist()
        expected = looked_up(image, *source_places(forward(AFFINE), 44, 50), border, value)
        assert np.abs(ddr.run(param)[0] - expected).max() <= 0.51


@every_size
@every_border
def test_warp_perspective_maps_backward(ddr: Ddr, photo: SimpleNamespace, size: Any, border: int, value: int) -> None:
    for image in (photo.gray(*size), photo.color(*size)):
        param = hbDSPCvWarpPerspectiveParam(
            src=ddr.image(image, padding=5),
            dst=ddr.blank((44, 50, *image.shape[2:]), padding=2),
            interpolation=HB_VP_INTER_LINEAR,
            borderType=border,
            borderValue=value,
        )
        param.transformMatrix[:] = PERSPECTIVE.reshape(-1).tolist()
        expected = looked_up(image, *source_places(PERSPECTIVE, 44, 50), border, value)
        assert np.abs(ddr.run(param)[0] - expected).max() <= 0.51


@pytest.mark.parametrize("kind", ["affine", "perspective"])
def test_warps_to_the_nearest_and_of_nv12(ddr: Ddr, photo: SimpleNamespace, kind: str) -> None:
    planes = photo.nv12(36, 52)
    for method in (HB_VP_INTER_NEAREST, HB_VP_INTER_LINEAR):
        param: Any = hbDSPCvWarpAffineParam() if kind == "affine" else hbDSPCvWarpPerspectiveParam()
        param.src = ddr.image(planes, "nv12", padding=6)
        param.dst = ddr.blank((40, 34), name="nv12", padding=2)
        param.interpolation, param.borderType, param.borderValue = method, 0, 16
        matrix = AFFINE if kind == "affine" else PERSPECTIVE
        param.transformMatrix[:] = matrix.reshape(-1).tolist()
        to_source = forward(AFFINE) if kind == "affine" else PERSPECTIVE
        scale = np.diag([0.5, 0.5, 1])
        for got, image, matrix, value in zip(
            ddr.run(param), planes, (to_source, scale @ to_source @ np.linalg.inv(scale)), (16, 128), strict=True
        ):
            x, y = source_places(matrix, *got.shape[:2])
            if method == HB_VP_INTER_LINEAR:
                assert np.abs(got - looked_up(image, x, y, 0, value)).max() <= 0.51
            else:
                u, v = np.rint(x).astype(int), np.rint(y).astype(int)
                inside = (u >= 0) & (u < image.shape[1]) & (v >= 0) & (v < image.shape[0])
                expected = image[np.clip(v, 0, image.shape[0] - 1), np.clip(u, 0, image.shape[1] - 1)]
                expected = np.where(inside.reshape(*inside.shape, *(1,) * (got.ndim - 2)), expected, value)
                assert (got != expected).mean() < 0.01  # where a place is within 1/1024 of a tie
