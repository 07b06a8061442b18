"""What makes a configuration of a point-cloud model, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from arm_client.errors import CallerError
from arm_client.nn import CENTERPOINT, POINTPILLARS, PillarConfig
from hbrt.nn_types import POINTCLOUD_ENCODE_POINTS
from tests.each import each


def test_the_presets() -> None:
    assert (CENTERPOINT.grid, CENTERPOINT.feature_shape, CENTERPOINT.strides) == (
        (512, 512),
        (1, 5, 20, 40000),
        (40000, 1),
    )
    assert (POINTPILLARS.grid, POINTPILLARS.feature_shape, POINTPILLARS.strides) == (
        (432, 496),
        (1, 4, 40000, 20),
        (1, 20),
    )
    assert (CENTERPOINT.command, POINTPILLARS.command) == (0x403, 0x404)


def test_a_structure_has_every_parameter_of_the_model() -> None:
    config = CENTERPOINT.changed(
        point_cloud_range=(-1.0, -2.0, -3.0, 4.0, 5.0, 6.0),
        voxel_size=(0.5, 0.25),
        intensity_range=(7.0, 8.0),
        scale=0.125,
        max_voxels=9,
        max_points=10,
        dims=4,
    )
    param = config.param(POINTCLOUD_ENCODE_POINTS, count=11, input=1 << 40)
    got = {name: getattr(param, name) for name, *_ in param._fields_}
    assert got == {
        "input": 1 << 40,
        "step": 1,
        "dims": 4,
        "count": 11,
        "first_voxel": 0,
        "voxel_count": 0,
        "max_voxels": 9,
        "max_points": 10,
        "back": -1,
        "front": 4,
        "right": -2,
        "left": 5,
        "bottom": -3,
        "top": 6,
        "lower": 7,
        "upper": 8,
        "voxel_x": 0.5,
        "voxel_y": 0.25,
        "scale": 0.125,
        "grid_x": 10,
        "grid_y": 28,
        "flags": 0,
    }
    assert config.lows.tolist() == [-1, -2, -3, 7]
    assert config.highs.tolist() == [4, 5, 6, 8]
    assert config.param(POINTCLOUD_ENCODE_POINTS).count == 0  # each call makes its own


def test_the_grid_is_rounded_as_public_voxelizers_do() -> None:
    for low, high, size in ((-51.2, 51.2, 0.2), (0.0, 69.12, 0.16), (-74.88, 74.88, 0.32), (0.0, 1.0, 0.3)):
        config = CENTERPOINT.changed(point_cloud_range=(low, low, 0.0, high, high, 1.0), voxel_size=(size, size))
        public = np.round((np.float32(high) - np.float32(low)) / np.float32(size))
        assert config.grid == (int(public), int(public))


@each(
    "changes, message",
    [
        ({"dims": 6}, r"dims is 6, but must be 4 or 5\."),
        ({"voxel_size": (0.2, 0.0)}, r"voxel_size is \(0\.2, 0\.0\): give finite numbers above 0\."),
        ({"voxel_size": (0.2, math.nan)}, r"voxel_size is \(0\.2, nan\): give finite numbers above 0\."),
        ({"voxel_size": (0.2,)}, r"voxel_size is \(0\.2,\): give 2 numbers\."),
        ({"voxel_size": 0.2}, r"voxel_size is 0\.2: give 2 numbers\."),
        ({"voxel_size": "12"}, r"voxel_size is '12': give 2 numbers\."),
        ({"point_cloud_range": (0.0, 1.0)}, r"point_cloud_range is \(0\.0, 1\.0\): give 6 numbers\."),
        ({"intensity_range": (0.0, None)}, r"intensity_range is \(0\.0, None\): give 2 numbers\."),
        ({"scale": "a"}, r"scale is 'a': give a number\."),
        ({"dims": "5"}, r"dims is '5', but must be an integer\."),
        ({"max_points": 1.5}, r"max_points is 1\.5, but must be an integer\."),
        ({"max_voxels": True}, r"max_voxels is True, but must be an integer\."),
        ({"scale": 1e-60}, "scale is 1e-60: give finite numbers above 0"),
        ({"scale": math.nan}, "scale is nan"),
        (
            {"point_cloud_range": (0.0, 0.0, 0.0, 0.0, 1.0, 1.0)},
            "is not a range: give each axis a far end above the near",
        ),
        ({"intensity_range": (0.0, math.inf)}, "is not a range"),
        ({"max_points": 0}, "max_points is 0: give 1 or more"),
        ({"max_voxels": 1 << 28}, "268435456 pillars of 20 points are more than the features can hold"),
        (
            {"voxel_size": (0.001, 0.2)},
            r"102\.4 m along x in cells of 0\.001 m are 102400 cells: the grid has 1\.\.32767",
        ),
        ({"voxel_size": (0.2, 900.0)}, "along y in cells of 900 m are 0 cells"),
        ({"range": 1}, "Unknown parameters: range; known: "),
        ({"_param": None}, "Unknown parameters: _param; known"),
    ],
)
def test_what_no_grid_can_be_made_of(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CallerError, match=message):
        CENTERPOINT.changed(**changes)


def test_configurations_compare_by_value() -> None:
    assert CENTERPOINT.changed() == CENTERPOINT
    assert hash(CENTERPOINT.changed()) == hash(CENTERPOINT)
    assert CENTERPOINT.changed(scale=1.0) != CENTERPOINT
    assert isinstance(CENTERPOINT.changed(scale=1.0), PillarConfig)
