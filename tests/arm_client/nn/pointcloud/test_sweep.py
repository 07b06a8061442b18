"""Sweeps that are made, files that are read, pictures that are written."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from arm_client.errors import CallerError
from arm_client.nn import CENTERPOINT, POINTPILLARS, lidar_sweep, read_kitti, read_nuscenes
from arm_client.nn.pointcloud.picture import GAP_PIXELS, birds_eye, captioned, write_png
from arm_client.nn.pointcloud.reference import preprocess
from arm_client.nn.pointcloud.sweep import (
    EGO_SPEED_MPS,
    HIGHEST_DEG,
    LOWEST_DEG,
    MAX_RANGE_M,
    SENSOR_HEIGHT_M,
    SWEEP_SECONDS,
)
from tests.each import each


def test_a_seed_makes_a_sweep() -> None:
    first = lidar_sweep(7, sweeps=2, azimuths=200)
    assert first.dtype == np.float32
    assert np.array_equal(first, lidar_sweep(7, sweeps=2, azimuths=200))
    assert not np.array_equal(first, lidar_sweep(8, sweeps=2, azimuths=200)[: len(first)])
    assert np.array_equal(lidar_sweep(7, sweeps=2, azimuths=200, max_points=100), first[:100])


@each(
    "arguments, message",
    [
        ({"dims": 3}, r"^dims is 3, but must be 4 or 5\."),
        ({"seed": -1}, r"^seed is -1, but must be at least 0\."),
        ({"rings": 0}, r"^rings is 0, but must be at least 1\."),
        ({"azimuths": 0}, r"^azimuths is 0, but must be at least 1\."),
        ({"sweeps": 1.5}, r"^sweeps is 1\.5, but must be an integer\."),
        ({"boxes": -1}, r"^boxes is -1, but must be at least 0\."),
        ({"max_points": -5}, r"^max_points is -5, but must be at least 0\."),
        ({"dropout": 1.5}, r"^dropout is 1\.5, but must be a fraction, 0 to 1\."),
        ({"dropout": float("nan")}, r"^dropout is nan, but must be a fraction, 0 to 1\."),
    ],
)
def test_what_makes_no_sweep(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(CallerError, match=message):
        lidar_sweep(**arguments)


def test_rings_of_the_ground() -> None:
    points = lidar_sweep(0, boxes=0, dropout=0.0, sweeps=1, rings=32, azimuths=90).astype(np.float64)
    elevations = np.radians(np.linspace(LOWEST_DEG, HIGHEST_DEG, 32))
    seen = [-SENSOR_HEIGHT_M / np.sin(angle) for angle in elevations if angle < 0]
    radii = [
        distance * np.cos(angle) for distance, angle in zip(seen, elevations, strict=False) if distance < MAX_RANGE_M
    ]
    assert len(points) == 90 * len(radii)
    by_azimuth = np.hypot(points[:, 0], points[:, 1]).reshape(90, len(radii))
    np.testing.assert_allclose(by_azimuth, np.broadcast_to(radii, by_azimuth.shape), atol=0.15)
    np.testing.assert_allclose(points[:, 2], -SENSOR_HEIGHT_M, atol=0.1)


def test_boxes_stand_on_the_ground_and_hide_it() -> None:
    points = lidar_sweep(3, boxes=80, sweeps=1, dropout=0.0)
    assert np.count_nonzero(points[:, 2] > -SENSOR_HEIGHT_M + 0.3) > 500
    assert points[:, 2].min() > -SENSOR_HEIGHT_M - 0.2
    assert np.hypot(np.hypot(points[:, 0], points[:, 1]), points[:, 2]).max() < MAX_RANGE_M + 0.2
    assert 0 <= points[:, 3].min() < points[:, 3].max() <= 255


def test_dropouts_take_their_share() -> None:
    everything = len(lidar_sweep(1, sweeps=1, dropout=0.0))
    assert len(lidar_sweep(1, sweeps=1, dropout=0.25)) == pytest.approx(0.75 * everything, rel=0.03)


def test_earlier_sweeps_are_older_and_were_made_further_back() -> None:
    points = lidar_sweep(0, boxes=0, sweeps=3, dropout=0.0, azimuths=360)
    times = sorted(set(points[:, 4].tolist()))
    assert times == pytest.approx([0, SWEEP_SECONDS, 2 * SWEEP_SECONDS])
    assert (np.diff(points[:, 4]) >= 0).all()
    for seconds in times:
        center = points[points[:, 4] == np.float32(seconds), 0].mean()
        assert center == pytest.approx(-EGO_SPEED_MPS * seconds, abs=0.05)
    four = lidar_sweep(0, boxes=0, sweeps=1, dims=4)
    assert four.shape[1] == 4
    assert four[:, 3].max() <= 1


@pytest.mark.parametrize(("read", "dims"), [(read_kitti, 4), (read_nuscenes, 5)])
def test_files_of_the_data_sets(tmp_path: Path, read: Any, dims: int) -> None:
    file = tmp_path / "sweep.bin"
    numbers = [float(number) for number in range(3 * dims)]
    file.write_bytes(struct.pack(f"<{3 * dims}f", *numbers))
    points = read(file)
    assert points.dtype == np.float32
    assert points.tolist() == [numbers[at : at + dims] for at in range(0, 3 * dims, dims)]
    points[0, 0] = 1  # one's own array
    file.write_bytes(b"")
    assert read(str(file)).shape == (0, dims)


def test_a_npy_file_is_no_scan(tmp_path: Path) -> None:
    np.save(tmp_path / "scan.npy", np.zeros((10, 4), np.float32))
    with pytest.raises(CallerError, match=r"is a \.npy file, but points are read without a header: convert it with"):
        read_kitti(tmp_path / "scan.npy")


@pytest.mark.parametrize(("read", "bytes_a_point"), [(read_kitti, 16), (read_nuscenes, 20)])
def test_a_file_that_is_cut_off(tmp_path: Path, read: Any, bytes_a_point: int) -> None:
    file = tmp_path / "cut.bin"
    file.write_bytes(b"\0" * (bytes_a_point + 4))
    message = f"has {bytes_a_point + 4} bytes, which is not a whole number of points of {bytes_a_point} bytes"
    with pytest.raises(CallerError, match=message):
        read(file)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.bin")


def decoded(file: Path) -> NDArray[np.uint8]:
    """Pixels of a PNG, by the specification: chunks with their checksums, rows that no filter changed."""
    raw = file.read_bytes()
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(raw):
        (length,) = struct.unpack_from(">I", raw, at)
        kind, data = raw[at + 4 : at + 8], raw[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", raw, at + 8 + length)[0] == zlib.crc32(kind + data)
        chunks[kind] = data
        at += 12 + length
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 2, 0, 0, 0]
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_a_png_has_the_pixels(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    write_png(tmp_path / "new" / "picture.png", pixels)
    assert np.array_equal(decoded(tmp_path / "new" / "picture.png"), pixels)


@pytest.mark.parametrize("config", [CENTERPOINT, POINTPILLARS])
def test_the_picture_shows_sweep_and_pillars(config: Any) -> None:
    grid_x, grid_y = config.grid
    x, y = (
        config.point_cloud_range[0] + 10.5 * config.voxel_size[0],
        config.point_cloud_range[1] + 3.5 * config.voxel_size[1],
    )
    points = np.zeros((2, config.dims), np.float32)
    points[:, :3] = [[x, y, -1.0], [x, y, 0.9]]
    picture = birds_eye(points, preprocess(points, config), config)
    assert picture.shape == (grid_x, 2 * grid_y + GAP_PIXELS, 3)
    whole = captioned(picture, config)
    assert any(np.array_equal(whole[34 : 34 + grid_x, left : left + picture.shape[1]], picture) for left in (0, 56)), (
        "the picture is not inside its frame"
    )
    row, column = grid_x - 1 - 10, grid_y - 1 - 3
    before, after = picture[:, :grid_y], picture[:, -grid_y:]
    for side in (before, after):
        assert np.argwhere(side.any(axis=2)).tolist() == [[row, column]]
    # The same height in the same color, but for a step of quantization.
    np.testing.assert_allclose(before[row, column].astype(int), after[row, column].astype(int), atol=4)
    full = config.changed(max_points=1)
    assert birds_eye(points, preprocess(points, full), full)[row, -grid_y:][column, 0] != before[row, column, 0]
