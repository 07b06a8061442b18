"""The C parameter structure of the point-cloud ops, byte for byte as it lies in the input block of a call.

It is the emulator's choice, like the command numbers: the vendor's are not public. CENTERPOINT has the places of the
features in the order (max_points, max_voxels), slot-major; POINTPILLARS in the order (max_voxels, max_points),
pillar-major. docs/pointcloud.md has the steps, the formulas and the layout of every buffer.
"""

from __future__ import annotations

from typing import Final

from hbrt.structures import CStructure, float32_t, int32_t, structure, uint64_t

POINTCLOUD_ENCODE_POINTS: Final = 1
"""Step: points to pseudo-image coordinates and quantized words, for plan 2."""
POINTCLOUD_ENCODE_PILLARS: Final = 2
"""Step: places that hold float32 points to places that hold quantized bytes, for plan 1."""
POINTCLOUD_TRANSPOSE: Final = 3
"""Step: places of quantized bytes (array of structures) to one plane a dimension (structure of arrays)."""

HB_DSP_POINTCLOUD_DDR_PATH: Final = 1 << 0
"""Bit of `flags`: compute straight from DDR instead of by ping-pong through TCM, with the same result."""

POINT_DIMS: Final = (4, 5)
MAX_GRID: Final = (1 << 15) - 1
"""Cells along an axis: x lies in the high and y in the low 16 bits of an int32, and -1 is no cell."""
NO_CELL: Final = -1
"""Coordinate word of a point that was filtered out."""
MAX_PLACES: Final = (1 << 31) - 1
"""max_voxels * max_points * dims fits an int32."""


@structure
class hbDSPPointCloudParam(CStructure):  # noqa: N801 - spelled as the vendor's structures are
    """Input block of CenterPoint's (0x403) and PointPillars' (0x404) pre-processing: 96 bytes, with padding at 92.

    Attributes:
        input: Physical address of the step's input.
        step: POINTCLOUD_* step.
        dims: Numbers of a point, 4 or 5.
        count: Points at `input`, for ENCODE_POINTS; 0 is allowed.
        first_voxel: First pillar to convert, for the other steps.
        voxel_count: Pillars to convert, from `first_voxel` on. The places of all others keep what the output holds.
        max_voxels: Pillars that the buffers have room for.
        max_points: Points that a pillar has room for.
        back, front: Range of x, metres: back <= x < front.
        right, left: Range of y.
        bottom, top: Range of z.
        lower, upper: What the fourth number is scaled by; it is not filtered.
        voxel_x, voxel_y: Size of a pillar, metres.
        scale: Quantization scale, finite and above 0.
        grid_x, grid_y: Cells along x and y.
        flags: HB_DSP_POINTCLOUD_* bits; all others must be 0.

    Emulator: the whole structure is its choice. The range's names are those of the manual's encoding formula.
    """

    input: uint64_t
    step: int32_t
    dims: int32_t
    count: int32_t
    first_voxel: int32_t
    voxel_count: int32_t
    max_voxels: int32_t
    max_points: int32_t
    back: float32_t
    front: float32_t
    right: float32_t
    left: float32_t
    bottom: float32_t
    top: float32_t
    lower: float32_t
    upper: float32_t
    voxel_x: float32_t
    voxel_y: float32_t
    scale: float32_t
    grid_x: int32_t
    grid_y: int32_t
    flags: int32_t
