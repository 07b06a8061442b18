"""Picture operations of the 2D engine: crop, rotate, scale, convert, blend, fill; and their limits. Pure.

Source: librga, developer guide, limits of the engines, https://github.com/airockchip/librga
Emulator: OpenCV scales, bilinear unless a call says otherwise; pictures are at most 8192 pixels wide and high.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import cv2
import numpy as np

from rknn_api.rga.formats import (
    Format,
    Planes,
    byte_count,
    matrix,
    rgba_of,
    shown,
    views,
    write_rgba,
    write_yuv,
    yuv_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Rect = tuple[int, int, int, int]
_MAX_PIXELS, _MIN_PIXELS, _MAX_SCALE, _STRIDE_BYTES = 8192, 2, 16, 4
_ROT_90, _ROT_180, _ROT_270, _FLIP_H, _FLIP_V, _FLIP_H_V = (1 << at for at in range(6))
_PREMULTIPLY: Final = 1 << 25
_INTERPOLATIONS: Final = {2: cv2.INTER_CUBIC, 3: cv2.INTER_AREA}
_FACTORS: Final[dict[int, Callable[[Any, Any], tuple[Any, Any]]]] = {
    1 << 6: lambda a, _b: (1, 1 - a),
    1 << 7: lambda _a, _b: (1, 0),
    1 << 8: lambda _a, _b: (0, 1),
    1 << 9: lambda _a, b: (b, 0),
    1 << 10: lambda a, _b: (0, a),
    1 << 11: lambda _a, b: (1 - b, 0),
    1 << 12: lambda a, _b: (0, 1 - a),
    1 << 13: lambda _a, b: (1 - b, 1),
    1 << 14: lambda a, b: (b, 1 - a),
    1 << 15: lambda a, b: (1 - b, a),
    1 << 16: lambda a, b: (1 - b, 1 - a),
}
"""By Porter and Duff, the shares of source and destination by their alphas."""
_BLEND: Final = sum(_FACTORS)
_TURNS: Final = 0x3F
DONE: Final = _TURNS | _BLEND | _PREMULTIPLY | 1 << 19 | 1 << 20 | 1 << 21 | 1 << 26
"""Bits of a usage that this emulator does, or that ask for nothing else."""


class Picture(NamedTuple):
    """A picture in memory: bytes, format, size and strides in pixels, and the mode of its colors."""

    data: NDArray[np.uint8]
    format: Format
    width: int
    height: int
    wstride: int
    hstride: int
    mode: int = 0
    alpha: int = 255

    def planes(self, rect: Rect) -> Planes:
        """Views of a rectangle."""
        return views(self.data, self.format, self.wstride, self.hstride, rect)


def whole(rect: Rect, picture: Picture) -> Rect:
    """A rectangle; the whole picture if its sizes are 0."""
    return rect if rect[2] or rect[3] else (0, 0, picture.width, picture.height)


def refusal(name: str, picture: Picture, rect: Rect) -> str:
    """Why the engine cannot take a rectangle of a picture, as a sentence; empty when it can."""
    one, (x, y, width, height) = picture.format, rect
    if min(width, height) < _MIN_PIXELS or max(picture.width, picture.height) > _MAX_PIXELS:
        return (
            f"{name} is {width} x {height} of {picture.width} x {picture.height}: each size must be "
            f"{_MIN_PIXELS} to {_MAX_PIXELS}."
        )
    if picture.wstride < picture.width or picture.hstride < picture.height:
        return (
            f"{name} has strides {picture.wstride} x {picture.hstride}, less than {picture.width} x {picture.height}."
        )
    if x < 0 or y < 0 or x + width > picture.wstride or y + height > picture.hstride:
        return f"The rectangle {list(rect)} of {name} does not lie in its {picture.wstride} x {picture.hstride} pixels."
    if picture.wstride * one.row_bytes % _STRIDE_BYTES:
        each = _STRIDE_BYTES // (2 if one.row_bytes == 2 else 1)
        return (
            f"The stride of {name}, {picture.wstride} pixels of {shown(one)}, must be a multiple of {each}: rows begin "
            f"at {_STRIDE_BYTES} bytes."
        )
    across, down = one.down
    if one.has_chroma and any(value % each for value, each in zip(rect, (across, down, across, down), strict=True)):
        return f"The rectangle {list(rect)} of {name} must have even numbers, since chroma of {shown(one)} is shared."
    if picture.data.size < (needed := byte_count(one, picture.wstride, picture.hstride)):
        return (
            f"{name} has {picture.data.size} bytes; {picture.wstride} x {picture.hstride} of {shown(one)} has {needed}."
        )
    return ""


def scale_refusal(source: Rect, target: Rect, usage: int) -> str:
    """An error message if the engine cannot scale by this factor; otherwise empty."""
    width, height = source[2:][::-1] if usage & (_ROT_90 | _ROT_270) else source[2:]
    ratios = (target[2] / width, target[3] / height)
    if all(1 / _MAX_SCALE <= ratio <= _MAX_SCALE for ratio in ratios):
        return ""
    return (
        f"{width} x {height} cannot become {target[2]} x {target[3]}: the scale must be 1/{_MAX_SCALE} to {_MAX_SCALE}."
    )


def process(
    source: Picture, target: Picture, under: Picture | None, rects: tuple[Rect, Rect, Rect], usage: int, how: int
) -> None:
    """Transfer a rectangle of one picture to a rectangle of another.

    Args:
        source: Is read.
        target: Is written, and read where the source is blended with it.
        under: The picture to blend the source with instead.
        rects: Of source, target and ``under``.
        usage: IM_USAGE bits.
        how: IM_INTER_MODE.
    """
    taken, written, below = rects
    interpolation = _INTERPOLATIONS.get(how, cv2.INTER_LINEAR)
    size, planes = written[2:], target.planes(written)
    is_blended = bool(usage & _BLEND)
    if not is_blended and not source.format.is_rgb and not target.format.is_rgb:
        across, down = target.format.down
        parts = [_turned(part, usage) for part in yuv_of(source.planes(taken), source.format)]
        if len(parts) == 1:
            parts += [np.full((1, 1), 128, np.uint8)] * 2
        sizes = (size, *[(size[0] // across, size[1] // down)] * 2)
        made = [_scaled(part, one, interpolation) for part, one in zip(parts, sizes, strict=True)]
        write_yuv(made, planes, target.format)
        return
    colors = _scaled(_turned(_rgba(source, taken), usage), size, interpolation)
    if is_blended:
        other = target if under is None else under
        beneath = _scaled(_rgba(other, written if under is None else below), size, interpolation)
        colors = _blended(colors, beneath, usage, source.alpha)
    _write(colors, planes, target)


def fill(target: Picture, rect: Rect, color: int, thickness: int = 0) -> None:
    """Write a color, RGBA from the lowest byte on, into a rectangle, or along its edges."""
    x, y, width, height = rect
    sides = [rect]
    if thickness > 0:
        sides = [
            (x, y, width, thickness),
            (x, y + height - thickness, width, thickness),
            (x, y, thickness, height),
            (x + width - thickness, y, thickness, height),
        ]
    pixel = np.array([color >> shift & 255 for shift in (0, 8, 16, 24)], np.uint8)
    for side in sides:
        _write(np.broadcast_to(pixel, (side[3], side[2], 4)), target.planes(side), target)


def _rgba(picture: Picture, rect: Rect) -> NDArray[np.uint8]:
    planes = picture.planes(rect)
    if picture.format.is_rgb:
        return rgba_of(planes, picture.format)
    y, *chroma = yuv_of(planes, picture.format)
    size = (y.shape[1], y.shape[0])
    gray = [np.full(y.shape, 128, np.uint8)] * 2
    full = [y, *([_scaled(part, size, cv2.INTER_NEAREST) for part in chroma] or gray)]
    colors = _transformed(np.dstack(full), matrix(picture.mode, to_rgb=True))
    return np.dstack([colors, np.full(y.shape, 255, np.uint8)])


def _write(rgba: NDArray[np.uint8], planes: Planes, target: Picture) -> None:
    if target.format.is_rgb:
        write_rgba(rgba, planes, target.format)
        return
    yuv = _transformed(np.ascontiguousarray(rgba[..., :3]), matrix(target.mode, to_rgb=False))
    across, down = target.format.down
    size = (yuv.shape[1] // across, yuv.shape[0] // down)
    chroma = [_scaled(np.ascontiguousarray(yuv[..., at]), size, cv2.INTER_AREA) for at in (1, 2)]
    write_yuv([yuv[..., 0], *chroma], planes, target.format)


def _transformed(colors: NDArray[np.uint8], by: NDArray[np.float64]) -> NDArray[np.uint8]:
    made: NDArray[Any] = np.clip(np.rint(cv2.transform(colors.astype(np.float32), by)), 0, 255)
    return made.astype(np.uint8)


def _turned(part: NDArray[np.uint8], usage: int) -> NDArray[np.uint8]:
    quarters = 3 if usage & _ROT_90 else 2 if usage & _ROT_180 else 1 if usage & _ROT_270 else 0
    made = np.rot90(part, quarters)
    if usage & (_FLIP_H | _FLIP_H_V):
        made = made[:, ::-1]
    return made[::-1] if usage & (_FLIP_V | _FLIP_H_V) else made


def _scaled(part: NDArray[np.uint8], size: tuple[int, int], interpolation: int) -> NDArray[np.uint8]:
    if (part.shape[1], part.shape[0]) == size:
        return part
    made = cv2.resize(np.ascontiguousarray(part), size, interpolation=interpolation)
    return made.astype(np.uint8, copy=False)


def _blended(above: NDArray[np.uint8], below: NDArray[np.uint8], usage: int, opacity: int) -> NDArray[np.uint8]:
    one, other = above.astype(np.float32) / 255, below.astype(np.float32) / 255
    one[..., 3] *= opacity / 255
    if usage & _PREMULTIPLY:
        one[..., :3] *= one[..., 3:]
        other[..., :3] *= other[..., 3:]
    factors = next(made for bit, made in _FACTORS.items() if usage & bit)
    share, rest = factors(one[..., 3:], other[..., 3:])
    made: NDArray[np.uint8] = np.clip(np.rint((one * share + other * rest) * 255), 0, 255).astype(np.uint8)
    return made
