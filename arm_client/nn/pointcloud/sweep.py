"""LiDAR sweeps for testing: generated from a seed, or read from the file formats of public data sets."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arm_client.checks import need_whole, refusal
from hbrt.behavior import POINT_DIMS

Floats = NDArray[np.float64]

NPY_MAGIC = b"\x93NUMPY"  # its header has 128 bytes, a whole number of 16-byte points
NPY_ADVICE = "convert it with np.load(FILE).tofile(OTHER)"
SENSOR_HEIGHT_M = 1.84
LOWEST_DEG, HIGHEST_DEG = -30.67, 10.67
"""Elevation of the lowest and highest ring of a 32-ring sensor on a car's roof."""
MAX_RANGE_M = 100.0
RANGE_NOISE_M = 0.02
SWEEP_SECONDS = 0.05
EGO_SPEED_MPS = 8.0

# Length, width, height of a car, a van, a person, a pole, a wall.
SIZES_M = np.array([[4.5, 1.9, 1.6], [6.0, 2.2, 2.6], [0.6, 0.6, 1.75], [0.3, 0.3, 6.0], [25.0, 0.4, 5.0]])
SHARES = np.array([0.4, 0.1, 0.2, 0.15, 0.15])


def lidar_sweep(
    seed: int = 0,
    *,
    dims: int = 5,
    rings: int = 32,
    azimuths: int = 1090,
    sweeps: int = 10,
    boxes: int = 60,
    dropout: float = 0.05,
    max_points: int | None = None,
) -> NDArray[np.float32]:
    """Generate a scene of ground and boxes, as seen by a rotating sensor.

    Each ray returns the nearest of ground and boxes within 100 m, with 2 cm of noise, or nothing; some returns are
    dropped. Points are in firing order, azimuth by azimuth and ring by ring; the newest sweep comes first.

    Args:
        seed: Seed of scene and noise; the same arguments give identical bits with the same numpy version.
        dims: 5 for x, y, z, intensity 0..255, seconds since the point was measured; 4 for x, y, z, intensity 0..1.
        rings: Rays at each azimuth.
        azimuths: Firings per turn.
        sweeps: Turns, 50 ms apart, of a car driving ahead at 8 m/s; all in the frame of the newest.
        boxes: Number of cars, vans, persons, poles and walls around it.
        dropout: Fraction of returns that are lost.
        max_points: Maximum number of points; the rest are dropped.

    Returns:
        (n, dims) float32.

    Raises:
        CallerError: an argument is out of range; names it.
    """
    if dims not in POINT_DIMS:
        raise refusal(f"dims is {dims!r}, but must be 4 or 5.")
    for name, value, least in (
        ("seed", seed, 0),
        ("rings", rings, 1),
        ("azimuths", azimuths, 1),
        ("sweeps", sweeps, 1),
        ("boxes", boxes, 0),
        ("max_points", 0 if max_points is None else max_points, 0),
    ):
        need_whole(name, value)
        if value < least:
            raise refusal(f"{name} is {value}, but must be at least {least}.")
    if not 0 <= dropout <= 1:
        raise refusal(f"dropout is {dropout!r}, but must be a fraction, 0 to 1.")
    random = np.random.default_rng(seed)
    scene = _scene(random, boxes)
    directions = _directions(rings, azimuths)
    parts = []
    for sweep in range(sweeps):
        seconds = sweep * SWEEP_SECONDS
        origin = np.array([-EGO_SPEED_MPS * seconds, 0.0, 0.0])
        distance, surface = _nearest(origin, directions, scene)
        is_seen = (distance < MAX_RANGE_M) & (random.random(len(distance)) >= dropout)
        measured = distance[is_seen] + random.normal(0.0, RANGE_NOISE_M, np.count_nonzero(is_seen))
        points = np.empty((len(measured), 5))
        points[:, :3] = origin + directions[is_seen] * measured[:, np.newaxis]
        brightness = 0.15 + 0.7 * (surface[is_seen] * 0.618 % 1.0) + random.normal(0.0, 0.05, len(measured))
        points[:, 3] = np.clip(brightness, 0.0, 1.0) * (255.0 if dims == 5 else 1.0)
        points[:, 4] = seconds
        parts.append(points[:, :dims].astype(np.float32))
    return np.concatenate(parts)[:max_points]


def _scene(random: np.random.Generator, count: int) -> Floats:
    """Return boxes as rows: center x, y, z; half sizes; cosine and sine of the heading."""
    kinds = random.choice(len(SIZES_M), count, p=SHARES)
    half = SIZES_M[kinds] / 2 * random.uniform(0.85, 1.15, (count, 3))
    radius = 5.0 + 65.0 * np.sqrt(random.random(count))
    bearing, heading = random.uniform(0, 2 * math.pi, (2, count))
    center = np.stack([radius * np.cos(bearing), radius * np.sin(bearing), half[:, 2] - SENSOR_HEIGHT_M])
    return np.concatenate([center.T, half, np.cos(heading)[:, np.newaxis], np.sin(heading)[:, np.newaxis]], axis=1)


def _directions(rings: int, azimuths: int) -> Floats:
    """Return (azimuths * rings, 3) unit vectors."""
    elevation = np.radians(np.linspace(LOWEST_DEG, HIGHEST_DEG, rings))
    azimuth = np.arange(azimuths)[:, np.newaxis] * (2 * math.pi / azimuths)
    level = np.cos(elevation)
    rays = (level * np.cos(azimuth), level * np.sin(azimuth), np.broadcast_to(np.sin(elevation), (azimuths, rings)))
    return np.stack([ray.reshape(-1) for ray in rays], axis=1)


def _nearest(origin: Floats, directions: Floats, scene: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return the distance to each ray's nearest surface (infinite for none), and its index: 0 ground, else a box."""
    with np.errstate(divide="ignore"):
        distance = np.where(directions[:, 2] < 0, -SENSOR_HEIGHT_M / directions[:, 2], math.inf)
    surface = np.zeros(len(directions), np.int64)
    ahead, aside = np.ascontiguousarray(directions[:, :2].T)
    level = np.hypot(ahead, aside)
    for number, (x, y, z, *half, cosine, sine) in enumerate(scene, 1):
        # Most rays miss: seen from above, they pass farther from the box's center than its corners are.
        to_x, to_y = x - origin[0], y - origin[1]
        is_near = np.abs(ahead * to_y - aside * to_x) <= math.hypot(half[0], half[1]) * level
        near = np.flatnonzero(is_near & (ahead * to_x + aside * to_y > 0))
        into_box = np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1]])
        start = (origin - (x, y, z)) @ into_box
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = 1.0 / (directions[near] @ into_box)
            sides = np.stack([(-np.array(half) - start) * slope, (np.array(half) - start) * slope])
        enter, leave = sides.min(axis=0).max(axis=1), sides.max(axis=0).min(axis=1)
        is_hit = (enter > 0.5) & (enter <= leave) & (enter < distance[near])
        hit = near[is_hit]
        distance[hit], surface[hit] = enter[is_hit], number
    return distance, surface


def read_kitti(file: str | os.PathLike[str]) -> NDArray[np.float32]:
    """Read a KITTI scan: (n, 4) float32, x, y, z in meters, intensity 0..1.

    Raises:
        CallerError: the file does not hold a whole number of points. OSError: it cannot be read.
    """
    return _read(file, ("x", "y", "z", "intensity"))


def read_nuscenes(file: str | os.PathLike[str]) -> NDArray[np.float32]:
    """Read a nuScenes sweep: (n, 5) float32, x, y, z in meters, intensity 0..255, ring (time in merged sweeps).

    Raises:
        CallerError: the file does not hold a whole number of points. OSError: it cannot be read.
    """
    return _read(file, ("x", "y", "z", "intensity", "ring or time"))


def _read(file: str | os.PathLike[str], numbers: tuple[str, ...]) -> NDArray[Any]:
    raw = Path(file).read_bytes()
    if raw.startswith(NPY_MAGIC):
        raise refusal(f"{os.fspath(file)} is a .npy file, but points are read without a header: {NPY_ADVICE}.")
    if len(raw) % (4 * len(numbers)):
        raise refusal(
            f"{os.fspath(file)} has {len(raw)} bytes, which is not a whole number of points of {4 * len(numbers)} "
            "bytes "
            f"({', '.join(numbers)}, float32): it has a different format, or is truncated."
        )
    return np.frombuffer(raw, "<f4").astype(np.float32).reshape(-1, len(numbers))
