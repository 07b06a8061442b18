"""Picture operations of the 2D engine: crop, rotate, scale, convert, blend, combine, fill; and their limits. Pure.

Source: librga, developer guide, limits of the engines, https://github.com/airockchip/librga
Emulator: OpenCV scales, bilinear unless a call requests another mode, and blurs; pictures are at most 8192 pixels wide
and high. A square of a mosaic has the mean of its pixels, and the operations and color keys work on red, green and
blue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import cv2
import numpy as np

from rknn_api.rga.formats import (
    FORMATS,
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
    from collections.abc import Callable, Sequence

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
"""By Porter and Duff, the shares of source and destination given their alphas."""
_BLEND: Final = sum(_FACTORS)
_TURNS: Final = 0x3F
_ROTATIONS: Final = _ROT_90 | _ROT_180 | _ROT_270
_KEY_WITHIN, _KEY_OUTSIDE, _ROP = 1 << 17, 1 << 18, 1 << 24
_KEYS: Final = _KEY_WITHIN | _KEY_OUTSIDE
_OPERATIONS: Final[dict[int, Callable[[Any, Any], Any]]] = {
    0x88: lambda source, target: source & target,
    0xEE: lambda source, target: source | target,
    0x55: lambda _source, target: ~target,
    0x33: lambda source, _target: ~source,
    0xF6: lambda source, target: source ^ target,
    0xF9: lambda source, target: ~(source ^ target),
}
"""By IM_ROP_CODE."""
_MAX_BLUR: Final = 127  # pixels
_FLAGGED: Final = 1 << 8  # IM_INTERP_HORIZ_FLAG: the lowest bits have the mode of one direction
BIT_MAP: Final = 1 << 30  # IM_ALPHA_BIT_MAP: a picture's alpha0 and alpha1 are those of its one bit
DONE: Final = _TURNS | _BLEND | _PREMULTIPLY | _KEYS | _ROP | 1 << 19 | 1 << 20 | 1 << 21 | 1 << 26 | BIT_MAP
"""Bits of a usage that this emulator supports, or that request nothing else."""


class Picture(NamedTuple):
    """A picture in memory: bytes, format, size and strides in pixels, color mode, opacity, values of an alpha bit."""

    data: NDArray[np.uint8]
    format: Format
    width: int
    height: int
    wstride: int
    hstride: int
    mode: int = 0
    alpha: int = 255
    alphas: tuple[int, int] = (0, 255)

    def planes(self, rect: Rect) -> Planes:
        """Views of a rectangle."""
        return views(self.data, self.format, self.wstride, self.hstride, rect)


class How(NamedTuple):
    """A call's requests besides pictures.

    Attributes:
        usage: IM_USAGE bits.
        interpolation: IM_INTER_MODE.
        rop_code: IM_ROP_CODE, for IM_ROP.
        key_min: Lowest color of a key, with red in the lowest byte, then green and blue.
        key_max: Its highest color.
        border: Pixels to add above, below, left and right.
        border_type: IM_BORDER_REFLECT or IM_BORDER_WRAP, OpenCV's numbers for the same.
    """

    usage: int = 0
    interpolation: int = 0
    rop_code: int = 0
    key_min: int = 0
    key_max: int = 0
    border: tuple[int, int, int, int] = (0, 0, 0, 0)
    border_type: int = 0


def whole(rect: Rect, picture: Picture) -> Rect:
    """A rectangle; the whole picture if its sizes are 0."""
    return rect if rect[2] or rect[3] else (0, 0, picture.width, picture.height)


def refusal(name: str, picture: Picture, rect: Rect) -> str:
    """An error message if the engine cannot use a rectangle of a picture; otherwise empty."""
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
        return f"The rectangle {list(rect)} of {name} is not inside its {picture.wstride} x {picture.hstride} pixels."
    if picture.wstride * one.row_bytes % _STRIDE_BYTES:
        each = _STRIDE_BYTES // (2 if one.row_bytes == 2 else 1)
        return (
            f"The stride of {name}, {picture.wstride} pixels of {shown(one)}, must be a multiple of {each}: rows begin "
            f"at multiples of {_STRIDE_BYTES} bytes."
        )
    across, down = one.down
    if picture.hstride % down:
        return f"The height stride of {name}, {picture.hstride}, must be even, since chroma of {shown(one)} is shared."
    if one.has_chroma and any(value % each for value, each in zip(rect, (across, down, across, down), strict=True)):
        return f"The rectangle {list(rect)} of {name} must have even numbers, since chroma of {shown(one)} is shared."
    if picture.data.size < (needed := byte_count(one, picture.wstride, picture.hstride)):
        return (
            f"{name} has {picture.data.size} bytes; {picture.wstride} x {picture.hstride} {shown(one)} needs {needed}."
        )
    return ""


def scale_refusal(source: Rect, target: Rect, usage: int) -> str:
    """An error message if the engine cannot scale by this factor; otherwise empty."""
    width, height = source[2:][::-1] if usage & (_ROT_90 | _ROT_270) else source[2:]
    ratios = (target[2] / width, target[3] / height)
    if all(1 / _MAX_SCALE <= ratio <= _MAX_SCALE for ratio in ratios):
        return ""
    return f"Cannot scale {width} x {height} to {target[2]} x {target[3]}: must be 1/{_MAX_SCALE} to {_MAX_SCALE}."


def border_refusal(source: Rect, target: Rect, border: Rect, shared: tuple[int, int]) -> str:
    """An error message if a border is not what a target has around a source; otherwise empty.

    Args:
        source: The rectangle that is read.
        target: The rectangle that is written.
        border: Pixels above, below, left and right.
        shared: Columns and rows that share a chroma sample.
    """
    top, bottom, left, right = border
    across, down = shared
    if min(border) < 0 or (left % across or right % across or top % down or bottom % down):
        even = " and even, since chroma is shared" if across > 1 else ""
        return f"Invalid border of {top}, {bottom}, {left} and {right}: each side must be 0 or more{even}."
    width, height = source[2] + left + right, source[3] + top + bottom
    if (width, height) == target[2:]:
        return ""
    return f"dst is {target[2]} x {target[3]}; the picture and its border are {width} x {height}."


def how_refusal(how: How, source: Picture, blur: Sequence[int] | None) -> str:
    """An error message if a call's requests cannot be carried out; otherwise empty.

    Args:
        how: Its requests.
        source: The picture that is read.
        blur: Width and height of a blur, and its sigmas; None for no blur.
    """
    if (how.usage & _ROTATIONS).bit_count() > 1:
        return f"usage {how.usage:#x} has several rotations; choose one of IM_HAL_TRANSFORM_ROT_90, _180 and _270."
    if how.usage & _ROP and how.rop_code not in _OPERATIONS:
        return f"Invalid rop_code {how.rop_code:#x}: must be an IM_ROP_CODE: {', '.join(map(hex, _OPERATIONS))}."
    if how.usage & _KEYS and not source.format.is_rgb:
        return f"A color key needs a source of red, green and blue, got {shown(source.format)}."
    if blur is not None and (
        not all(0 < size <= _MAX_BLUR and size % 2 for size in blur[:2])
        or not all(0 <= one <= _MAX_BLUR for one in blur[2:])
    ):
        size, sigmas = f"{blur[0]} x {blur[1]}", f"{blur[2]} and {blur[3]}"
        return f"A blur of {size} with sigmas {sigmas}: sizes must be odd, and all at most {_MAX_BLUR}."
    return ""


def process(source: Picture, target: Picture, under: Picture | None, rects: tuple[Rect, Rect, Rect], how: How) -> None:
    """Transfer a rectangle of one picture to a rectangle of another.

    Args:
        source: Read.
        target: Written, and read if the source is blended or combined with it.
        under: The picture to blend the source with instead.
        rects: Of source, target and ``under``.
        how: The operations to apply.
    """
    taken, written, below = rects
    usage, mode = how.usage, how.interpolation
    interpolation = _INTERPOLATIONS.get(mode & 0xF if mode & _FLAGGED else mode, cv2.INTER_LINEAR)
    size, planes = written[2:], target.planes(written)
    is_combined = bool(usage & (_BLEND | _KEYS | _ROP))
    is_yuv = not source.format.is_rgb and not target.format.is_rgb
    if is_yuv and not is_combined and source.mode >> 8 == target.mode >> 8:
        across, down = target.format.down
        parts = [_turned(part, usage) for part in yuv_of(source.planes(taken), source.format)]
        parts = [_bordered(part, how, *(source.format.down if at else (1, 1))) for at, part in enumerate(parts)]
        if len(parts) == 1:
            parts += [np.full((1, 1), 128, np.uint8)] * 2
        sizes = (size, *[(size[0] // across, size[1] // down)] * 2)
        made = [_scaled(part, one, interpolation) for part, one in zip(parts, sizes, strict=True)]
        write_yuv(made, planes, target.format)
        return
    colors = _scaled(_bordered(_turned(_rgba(source, taken), usage), how), size, interpolation)
    if is_combined:
        other = target if under is None else under
        beneath = _scaled(_rgba(other, written if under is None else below), size, interpolation)
        colors = _combined(colors, beneath, how, (source.alpha, other.alpha))
    _write(colors, planes, target)


def _combined(
    colors: NDArray[np.uint8], beneath: NDArray[np.uint8], how: How, opacities: tuple[int, int]
) -> NDArray[np.uint8]:
    if how.usage & _ROP:
        made = colors.copy()
        made[..., :3] = _OPERATIONS[how.rop_code](colors[..., :3], beneath[..., :3])
        return made
    if how.usage & _KEYS:
        low, high = ([color >> shift & 255 for shift in (0, 8, 16)] for color in (how.key_min, how.key_max))
        is_within = ((colors[..., :3] >= low) & (colors[..., :3] <= high)).all(axis=2, keepdims=True)
        return np.where(is_within == bool(how.usage & _KEY_WITHIN), beneath, colors)
    return _blended(colors, beneath, how.usage, opacities)


def blurred(source: Picture, rect: Rect, blur: Sequence[int]) -> Picture:
    """A rectangle of a picture, blurred by a Gaussian: in a new RGBA array.

    Args:
        source: The picture.
        rect: The rectangle.
        blur: Width and height of the kernel, odd, and the horizontal and vertical sigmas; 0 for OpenCV's by the size.
    """
    width, height, across, down = blur
    made = cv2.GaussianBlur(_rgba(source, rect), (width, height), across, sigmaY=down)
    data = np.ascontiguousarray(made, np.uint8).reshape(-1)
    return Picture(data, FORMATS[0], rect[2], rect[3], rect[2], rect[3], alpha=source.alpha)


def mosaic(target: Picture, rect: Rect, side: int) -> None:
    """Fill each square of a rectangle, with ``side`` pixels, with the mean of its colors."""
    colors = _rgba(target, rect)
    rows, columns = (np.arange(0, length, side) for length in rect[:1:-1])
    heights, widths = np.diff(rows, append=rect[3]), np.diff(columns, append=rect[2])
    sums = np.add.reduceat(np.add.reduceat(colors, rows, axis=0, dtype=np.uint32), columns, axis=1)
    means = np.rint(sums / np.outer(heights, widths)[..., None]).astype(np.uint8)
    _write(means.repeat(heights, axis=0).repeat(widths, axis=1), target.planes(rect), target)


def sides_of(rect: Rect, thickness: int) -> list[Rect]:
    """A rectangle's sides of this thickness; the rectangle itself if they fill it, or the thickness is below 1."""
    x, y, width, height = rect
    if thickness < 1 or 2 * thickness >= min(width, height):
        return [rect]
    return [
        (x, y, width, thickness),
        (x, y + height - thickness, width, thickness),
        (x, y, thickness, height),
        (x + width - thickness, y, thickness, height),
    ]


def fill(target: Picture, sides: Sequence[Rect], color: int) -> None:
    """Write a color, RGBA from the lowest byte up, into rectangles."""
    pixel = np.array([color >> shift & 255 for shift in (0, 8, 16, 24)], np.uint8)
    for side in sides:
        _write(np.broadcast_to(pixel, (side[3], side[2], 4)), target.planes(side), target)


def _rgba(picture: Picture, rect: Rect) -> NDArray[np.uint8]:
    planes = picture.planes(rect)
    if picture.format.is_rgb:
        return rgba_of(planes, picture.format, picture.alphas)
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


def _bordered(part: NDArray[np.uint8], how: How, across: int = 1, down: int = 1) -> NDArray[np.uint8]:
    top, bottom, left, right = how.border
    if not any(how.border):
        return part
    sides = (top // down, bottom // down, left // across, right // across)
    return cv2.copyMakeBorder(np.ascontiguousarray(part), *sides, how.border_type).astype(np.uint8, copy=False)


def _scaled(part: NDArray[np.uint8], size: tuple[int, int], interpolation: int) -> NDArray[np.uint8]:
    if (part.shape[1], part.shape[0]) == size:
        return part
    made = cv2.resize(np.ascontiguousarray(part), size, interpolation=interpolation)
    return made.astype(np.uint8, copy=False)


def _blended(
    above: NDArray[np.uint8], below: NDArray[np.uint8], usage: int, opacities: tuple[int, int]
) -> NDArray[np.uint8]:
    one, other = above.astype(np.float32) / 255, below.astype(np.float32) / 255
    for colors, opacity in zip((one, other), opacities, strict=True):
        colors[..., 3] *= opacity / 255
    if usage & _PREMULTIPLY:
        one[..., :3] *= one[..., 3:]
        other[..., :3] *= other[..., 3:]
    factors = next(made for bit, made in _FACTORS.items() if usage & bit)
    share, rest = factors(one[..., 3:], other[..., 3:])
    made: NDArray[np.uint8] = np.clip(np.rint((one * share + other * rest) * 255), 0, 255).astype(np.uint8)
    return made
