"""A point-cloud model's pre-processing parameters: range, grid, limits, scale, feature order."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from arm_client.checks import need_whole, refusal
from hbrt.behavior import MAX_GRID, MAX_PLACES, POINT_DIMS
from hbrt.nn_types import hbDSPPointCloudParam
from hbrt.types import HB_DSP_RPC_CMD_NN_CENTERPOINT, HB_DSP_RPC_CMD_NN_POINTPILLARS


@dataclass(frozen=True)
class PillarConfig:
    """Parameters of a model; lengths are in meters.

    Attributes:
        point_cloud_range: x, y, z of the near corner, then of the far one. A point is inside if low <= value < high on
            each axis.
        voxel_size: Size of a pillar along x and y; a pillar spans all of z.
        intensity_range: Scaling range of the fourth number. It does not filter points.
        dims: Numbers per point: x, y, z, intensity, and for 5 a time or ring, which is quantized without scaling.
        scale: Quantization scale of the model's input.
        max_voxels: Maximum number of pillars in the features.
        max_points: Maximum number of points per pillar.
        slot_major: Features are (1, dims, max_points, max_voxels), as in CenterPoint; else (1, dims, max_voxels,
            max_points), as in PointPillars.
        max_input_points: Maximum number of points per sweep.

    Raises:
        CallerError: values that do not make a grid; names them.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.5, for limits and orders.
    Emulator: ranges, sizes and scale belong to the model; those of the presets are the values of public models.
    """

    point_cloud_range: tuple[float, float, float, float, float, float]
    voxel_size: tuple[float, float]
    intensity_range: tuple[float, float]
    dims: int
    slot_major: bool
    scale: float = 1 / 127
    max_voxels: int = 40_000
    max_points: int = 20
    max_input_points: int = 300_000
    _param: hbDSPPointCloudParam = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._need_fields()
        back, right, bottom, front, left, top = self.point_cloud_range
        lower, upper = self.intensity_range
        if self.dims not in POINT_DIMS:
            raise refusal(f"dims is {self.dims}, but must be 4 or 5.")
        for name, value in (*(("voxel_size", size) for size in self.voxel_size), ("scale", self.scale)):
            if not (math.isfinite(value) and np.float32(value) > 0 and np.isfinite(np.float32(value))):
                raise refusal(f"{name} is {getattr(self, name)}: give finite numbers above 0.")
        lows, highs = np.array([[back, right, bottom, lower], [front, left, top, upper]], np.float32)
        if not (np.isfinite(highs - lows) & (highs > lows)).all():
            raise refusal(
                f"point_cloud_range {self.point_cloud_range} with intensity_range {self.intensity_range} is not a "
                "range: "
                "give each axis a far end above the near one, both finite."
            )
        for name in ("max_voxels", "max_points", "max_input_points"):
            if getattr(self, name) < 1:
                raise refusal(f"{name} is {getattr(self, name)}: give 1 or more.")
        if self.max_voxels * self.max_points * self.dims > MAX_PLACES:
            raise refusal(f"{self.max_voxels} pillars of {self.max_points} points are more than the features can hold.")
        param = hbDSPPointCloudParam(
            dims=self.dims,
            max_voxels=self.max_voxels,
            max_points=self.max_points,
            back=back,
            front=front,
            right=right,
            left=left,
            bottom=bottom,
            top=top,
            lower=lower,
            upper=upper,
            voxel_x=self.voxel_size[0],
            voxel_y=self.voxel_size[1],
            scale=self.scale,
        )
        param.grid_x = _cells("x", back, front, self.voxel_size[0])
        param.grid_y = _cells("y", right, left, self.voxel_size[1])
        object.__setattr__(self, "_param", param)

    def _need_fields(self) -> None:
        """Check that each field has the right number of numbers, before using them."""
        for name, count in (("point_cloud_range", 6), ("voxel_size", 2), ("intensity_range", 2)):
            _need_numbers(name, getattr(self, name), count)
        if not isinstance(self.scale, SupportsFloat):
            raise refusal(f"scale is {self.scale!r}: give a number.")
        for name in ("dims", "max_voxels", "max_points", "max_input_points"):
            need_whole(name, getattr(self, name))

    @property
    def grid(self) -> tuple[int, int]:
        """Cells along x and y: the range divided by the pillar size, rounded, as in public voxelizers."""
        return self._param.grid_x, self._param.grid_y

    @property
    def places(self) -> int:
        """Maximum number of points in all pillars together."""
        return self.max_voxels * self.max_points

    @property
    def feature_shape(self) -> tuple[int, int, int, int]:
        """Shape of the features."""
        order = (self.max_points, self.max_voxels) if self.slot_major else (self.max_voxels, self.max_points)
        return 1, self.dims, *order

    @property
    def strides(self) -> tuple[int, int]:
        """Strides in places: from a pillar's slot to its next slot, and from a pillar to the next."""
        return (self.max_voxels, 1) if self.slot_major else (1, self.max_points)

    @property
    def command(self) -> int:
        """Command number of the op that uses this order of places."""
        return HB_DSP_RPC_CMD_NN_CENTERPOINT if self.slot_major else HB_DSP_RPC_CMD_NN_POINTPILLARS

    def need_sweep(self, shape: tuple[int, ...]) -> None:
        """Check that points are a sweep for this model: (n, dims) numbers, n at most max_input_points.

        Raises:
            CallerError: names the shape, or the number of points and its limit.
        """
        if len(shape) != 2 or shape[1] != self.dims:
            raise refusal(f"points have the shape {shape}, but a sweep for this model is (n, {self.dims}).")
        if shape[0] > self.max_input_points:
            raise refusal(
                f"{shape[0]} points exceed max_input_points, {self.max_input_points}: pass fewer, or raise it "
                "in the configuration."
            )

    def param(self, step: int, **fields: int) -> hbDSPPointCloudParam:
        """Return a parameter structure for a step of this model, with these fields set.

        Raises:
            CallerError: `count` exceeds the number of points that the model takes.
        """
        if "count" in fields:
            self.need_sweep((fields["count"], self.dims))
        param = hbDSPPointCloudParam.from_buffer_copy(self._param)
        param.step = step
        for name, value in fields.items():
            setattr(param, name, value)
        return param

    def changed(self, **changes: Any) -> PillarConfig:
        """Return a copy with some parameters changed.

        Raises:
            CallerError: as for the constructor, or a name is not a parameter.
        """
        try:
            return replace(self, **changes)
        except (TypeError, ValueError) as error:
            if isinstance(error, ValueError) and "init=False" not in str(error):
                raise
            names = [one.name for one in fields(self) if one.init]
            unknown = ", ".join(name for name in changes if name not in names)
            raise refusal(f"Unknown parameters: {unknown}; known: {', '.join(names)}.") from None

    @cached_property
    def lows(self) -> NDArray[np.float32]:
        """(5,) float32, subtracted from the numbers of a point."""
        p = self._param
        return np.array([p.back, p.right, p.bottom, p.lower, 0], np.float32)[: self.dims]

    @cached_property
    def highs(self) -> NDArray[np.float32]:
        """(5,) float32, upper ends of the ranges."""
        p = self._param
        return np.array([p.front, p.left, p.top, p.upper, 1], np.float32)[: self.dims]


def _need_numbers(name: str, values: Any, count: int) -> None:
    try:
        is_right = [isinstance(value, SupportsFloat) for value in values] == [True] * count
    except TypeError:
        is_right = False
    if not is_right:
        raise refusal(f"{name} is {values!r}: give {count} numbers.")


def _cells(axis: str, low: float, high: float, size: float) -> int:
    cells = round((high - low) / size)
    if not 1 <= cells <= MAX_GRID:
        raise refusal(
            f"{high - low:g} m along {axis} in cells of {size:g} m are {cells} cells: the grid has 1..{MAX_GRID} "
            "along an axis."
        )
    return cells


CENTERPOINT = PillarConfig(
    point_cloud_range=(-51.2, -51.2, -5.0, 51.2, 51.2, 3.0),
    voxel_size=(0.2, 0.2),
    intensity_range=(0.0, 255.0),
    dims=5,
    slot_major=True,
)
"""512 x 512 cells of 0.2 m around the car, five numbers per point: a nuScenes sweep."""

POINTPILLARS = PillarConfig(
    point_cloud_range=(0.0, -39.68, -3.0, 69.12, 39.68, 1.0),
    voxel_size=(0.16, 0.16),
    intensity_range=(0.0, 1.0),
    dims=4,
    slot_major=False,
)
"""432 x 496 cells of 0.16 m ahead of the car, four numbers per point: a KITTI scan."""
