"""A bird's-eye picture of a sweep and its pillars, and a minimal PNG writer."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arm_client.nn.pointcloud.config import PillarConfig
from arm_client.nn.pointcloud.voxels import coordinates
from hbrt.behavior import NO_CELL

if TYPE_CHECKING:
    from arm_client.nn.pointcloud.pointcloud import Pillars
    from arm_client.nn.pointcloud.reference import ReferencePillars

GAP_PIXELS = 8
# Red, green, blue from lowest to highest; empty cells are black.
COLORS = np.array([[40, 50, 140], [30, 130, 150], [80, 190, 90], [250, 220, 60]], np.float64)
BACKGROUND = 24


def birds_eye(points: ArrayLike, pillars: Pillars | ReferencePillars, config: PillarConfig) -> NDArray[np.uint8]:
    """Draw the highest point of every cell from above: the sweep on the left, the features on the right.

    Both sides use the same colors, so they differ only by quantization and where pillars were full or ran out.

    Args:
        points: The sweep, (n, dims).
        pillars: The result for that sweep.
        config: The model.

    Returns:
        (grid x, 2 * grid y + 8, 3) uint8, RGB; x (ahead) is up, y (left) is left.
    """
    sweep = np.ascontiguousarray(points, np.float32)
    words = coordinates(sweep, config)
    is_inside = words != NO_CELL
    height = (sweep[is_inside, 2] - config.lows[2]) / (config.highs[2] - config.lows[2])
    before = _seen(config, words[is_inside] >> 16, words[is_inside] & 0xFFFF, height)

    axis = 0 if config.slot_major else 1
    quantized = np.asarray(pillars.features)[0, 2].max(axis=axis)[: pillars.voxel_count]
    y, x = np.asarray(pillars.coordinates)[0, 0, : pillars.voxel_count, 2:].T
    after = _seen(config, x, y, quantized * np.float32(config.scale))

    gap = np.full((len(before), GAP_PIXELS, 3), BACKGROUND, np.uint8)
    return np.concatenate([_colored(before), gap, _colored(after)], axis=1)


def captioned(picture: NDArray[np.uint8], config: PillarConfig) -> NDArray[np.uint8]:
    """Add titles, axes in meters and a color bar to a ``birds_eye`` picture; without OpenCV, return it unchanged.

    Args:
        picture: Result of ``birds_eye``.
        config: Its model.

    Returns:
        (height, width, 3) uint8, RGB.
    """
    try:
        import cv2
    except ImportError:
        return picture
    rows, columns = config.grid
    left, top, right, bottom = 56, 34, 84, 40
    frame = np.full((rows + top + bottom, picture.shape[1] + left + right, 3), 250, np.uint8)
    frame[top : top + rows, left : left + picture.shape[1]] = picture

    def write(text: str, x: float, y: float, size: float = 0.42) -> None:
        """Write a text centered at x, on the line y."""
        (width, _), _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, size, 1)
        at = (round(x - width / 2), round(y))
        cv2.putText(frame, text, at, cv2.FONT_HERSHEY_SIMPLEX, size, (30, 30, 30), 1, cv2.LINE_AA)

    for part in range(5):  # x points ahead: up in the picture
        meters = config.lows[0] + part / 4 * (config.highs[0] - config.lows[0])
        write(f"{meters:.0f}", left - 18, top + rows - part / 4 * (rows - 8) + 2)
    write("x, m", left - 26, top - 12)
    for start, title in ((left, "Sweep: highest point"), (left + columns + GAP_PIXELS, "DSP: features of pillars")):
        write(title, start + columns / 2, top - 12, 0.5)
        for part in range(5):  # y points left: left in the picture
            meters = config.highs[1] - part / 4 * (config.highs[1] - config.lows[1])
            write(f"{meters:.0f}", start + 14 + part / 4 * (columns - 28), top + rows + 15)
        write("y, m", start + columns / 2, top + rows + 31)
    bar = _colored(np.linspace(1.0, 0.0, rows)[:, None].repeat(14, axis=1))
    frame[top : top + rows, left + picture.shape[1] + 14 :][:, :14] = bar
    for part in range(3):
        meters = config.lows[2] + part / 2 * (config.highs[2] - config.lows[2])
        write(f"{meters:.1f}", left + picture.shape[1] + 52, top + rows - part / 2 * (rows - 10))
    write("z, m", left + picture.shape[1] + 36, top - 12)
    return frame


def _seen(config: PillarConfig, x: NDArray[Any], y: NDArray[Any], height: NDArray[Any]) -> NDArray[np.float64]:
    """Return the highest value of each cell, -1 for none; x is up, y is left."""
    grid = np.full(config.grid, -1.0)
    np.maximum.at(grid, (x, y), height)
    return grid[::-1, ::-1]


def _colored(heights: NDArray[np.float64]) -> NDArray[np.uint8]:
    at = np.clip(heights, 0.0, 1.0) * (len(COLORS) - 1)
    channels = [np.interp(at, np.arange(len(COLORS)), COLORS[:, channel]) for channel in range(3)]
    image = np.stack(channels, axis=-1)
    image[heights < 0] = 0
    return image.astype(np.uint8)


def write_png(file: str | os.PathLike[str], pixels: NDArray[np.uint8]) -> None:
    """Write (height, width, 3) uint8 as an 8-bit RGB PNG file; creates the directory.

    Source: PNG specification (third edition), 5.2 and 11.2.1 to 11.2.4, https://www.w3.org/TR/png-3/
    The file has the signature, IHDR, one IDAT with unfiltered rows, and IEND.
    """
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # each row starts with its filter type, 0 for none
    rows[:, 1:] = pixels.reshape(height, -1)
    parts = (
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)),
        _chunk(b"IEND", b""),
    )
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
