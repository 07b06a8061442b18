"""Pixel formats of the 2D engine: the byte layout of pictures, and conversion between RGB and YUV. Pure.

Source: librga, include/rga.h and its developer guide, https://github.com/airockchip/librga
Emulator: chroma is repeated when converting to RGB and averaged when converting back; of a pixel of 16 bits, the first
letter of its format has the lowest bits, as rga.h says; a gray picture has only Y.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Planes = list["NDArray[np.uint8]"]
_601_FULL, _709_LIMIT, _709_FULL = 4, 5, 6  # IM_YUV_BT..._RANGE, shifted down by eight bits


class Format(NamedTuple):
    """A pixel format.

    Attributes:
        name: As in its constant.
        letters: Of the data in memory: R, G, B, A and X; Y, U and V; "Y" for one byte of whatever.
        planes: Number of planes.
        down: Columns and rows that share a chroma sample, 1 and 1 without chroma.
        bits: Of each letter of a 16-bit pixel, from the lowest up; empty if each has a byte.
    """

    name: str
    letters: str
    planes: int = 1
    down: tuple[int, int] = (1, 1)
    bits: tuple[int, ...] = ()

    @property
    def is_rgb(self) -> bool:
        """Whether its pixels are red, green and blue."""
        return "R" in self.letters

    @property
    def has_chroma(self) -> bool:
        """Whether it is YUV with colors."""
        return "U" in self.letters

    @property
    def pixel_bits(self) -> int:
        """Over all planes together."""
        if self.has_chroma:
            return 8 + 16 // (self.down[0] * self.down[1])
        return sum(self.bits) or 8 * len(self.letters)

    @property
    def row_bytes(self) -> int:
        """Bytes of a pixel in the first plane."""
        if self.has_chroma:
            return 2 if self.planes == 1 else 1
        return self.pixel_bits // 8


def _rgb(letters: str) -> Format:
    return Format(f"{letters}_{'8' * len(letters)}", letters)


def _packed(letters: str, *bits: int) -> Format:
    widths = sorted(bits, reverse=True) if len(bits) > len("RGB") else bits  # a name has the alpha's last
    return Format(f"{letters}_{''.join(map(str, widths))}", letters, bits=bits)


_HALF, _QUARTER, _FULL = (2, 1), (2, 2), (1, 1)
FORMATS: Final = {
    0x00: _rgb("RGBA"),
    0x01: _rgb("RGBX"),
    0x02: _rgb("RGB"),
    0x03: _rgb("BGRA"),
    0x04: _packed("RGB", 5, 6, 5),
    0x05: _packed("RGBA", 5, 5, 5, 1),
    0x06: _packed("RGBA", 4, 4, 4, 4),
    0x07: _rgb("BGR"),
    0x08: Format("YCbCr_422_SP", "YUV", 2, _HALF),
    0x09: Format("YCbCr_422_P", "YUV", 3, _HALF),
    0x0A: Format("YCbCr_420_SP", "YUV", 2, _QUARTER),
    0x0B: Format("YCbCr_420_P", "YUV", 3, _QUARTER),
    0x0C: Format("YCrCb_422_SP", "YVU", 2, _HALF),
    0x0D: Format("YCrCb_422_P", "YVU", 3, _HALF),
    0x0E: Format("YCrCb_420_SP", "YVU", 2, _QUARTER),
    0x0F: Format("YCrCb_420_P", "YVU", 3, _QUARTER),
    0x13: Format("BPP8", "Y"),
    0x15: Format("YCbCr_400", "Y"),
    0x16: _rgb("BGRX"),
    0x18: Format("YVYU_422", "YVYU", 1, _HALF),
    0x1A: Format("VYUY_422", "VYUY", 1, _HALF),
    0x1C: Format("YUYV_422", "YUYV", 1, _HALF),
    0x1E: Format("UYVY_422", "UYVY", 1, _HALF),
    0x24: _packed("BGR", 5, 6, 5),
    0x25: _packed("BGRA", 5, 5, 5, 1),
    0x26: _packed("BGRA", 4, 4, 4, 4),
    0x28: _rgb("ARGB"),
    0x29: _rgb("XRGB"),
    0x2A: _packed("ARGB", 1, 5, 5, 5),
    0x2B: _packed("ARGB", 4, 4, 4, 4),
    0x2C: _rgb("ABGR"),
    0x2D: _rgb("XBGR"),
    0x2E: _packed("ABGR", 1, 5, 5, 5),
    0x2F: _packed("ABGR", 4, 4, 4, 4),
    0x31: Format("A8", "Y"),
    0x32: Format("YCbCr_444_SP", "YUV", 2, _FULL),
    0x33: Format("YCrCb_444_SP", "YVU", 2, _FULL),
    0x34: Format("Y8", "Y"),
}
"""By the constant's number, RK_FORMAT_*, shifted down by eight bits."""


def format_of(number: int) -> Format | None:
    """The format of a constant; None for one that this emulator cannot read, and for an invalid one."""
    return FORMATS.get(number >> 8) if not number & 0xFF else FORMATS.get(number)


def byte_count(one: Format, wstride: int, hstride: int) -> int:
    """Bytes of a picture with its strides, in pixels."""
    return wstride * hstride * one.pixel_bits // 8


def views(data: NDArray[np.uint8], one: Format, wstride: int, hstride: int, rect: tuple[int, int, int, int]) -> Planes:
    """A rectangle of a picture, as writable views: one per plane, with rows, columns and bytes.

    Args:
        data: All its bytes.
        one: Its format.
        wstride: Pixels from row to row.
        hstride: Rows of the first plane.
        rect: Left, top, width, height, in pixels.
    """
    x, y, width, height = rect
    across, down = one.down
    if not one.has_chroma or one.planes == 1:
        pixels = across if one.planes == 1 and one.has_chroma else 1  # that belong together
        whole = data[: wstride * hstride * one.row_bytes].reshape(hstride, wstride // pixels, -1)
        return [whole[y : y + height, x // pixels : (x + width) // pixels]]
    rows, columns = hstride // down, wstride // across
    first = wstride * hstride
    found = [data[:first].reshape(hstride, wstride, 1)[y : y + height, x : x + width]]
    samples = 3 - (one.planes - 1)  # in an element of a chroma plane
    for _ in range(one.planes - 1):
        size = rows * columns * samples
        plane = data[first : first + size].reshape(rows, columns, samples)
        found.append(plane[y // down : (y + height) // down, x // across : (x + width) // across])
        first += size
    return found


def rgba_of(planes: Planes, one: Format, alphas: tuple[int, int] = (0, 255)) -> NDArray[np.uint8]:
    """Red, green, blue and alpha of an RGB picture, rows by columns by four.

    Args:
        planes: Its bytes.
        one: Its format.
        alphas: What an alpha of one bit stands for, if it is 0 and if it is 1.
    """
    (raw,) = planes
    made = np.full((*raw.shape[:2], 4), 255, np.uint8)
    words, shift = raw[..., 0] if not one.bits else raw[..., 0] | raw[..., 1].astype(np.uint16) << 8, 0
    for at, letter in enumerate(one.letters):
        if letter == "X":
            continue
        part: NDArray[Any] = raw[..., at] if not one.bits else words
        if one.bits:
            most = (1 << one.bits[at]) - 1
            part = (words >> shift & most) * 255 // most
            shift += one.bits[at]
            part = np.where(part == 0, *alphas) if most == 1 else part
        made[..., "RGBA".index(letter)] = part
    return made


def write_rgba(rgba: NDArray[np.uint8], planes: Planes, one: Format) -> None:
    """Write red, green, blue and alpha to an RGB picture."""
    (raw,) = planes
    if one.bits:
        words, shift = np.zeros(rgba.shape[:2], np.uint16), 0
        for letter, width in zip(one.letters, one.bits, strict=True):
            words |= (rgba[..., "RGBA".index(letter)].astype(np.uint16) >> (8 - width)) << shift
            shift += width
        raw[..., 0], raw[..., 1] = words & 255, words >> 8
        return
    for at, letter in enumerate(one.letters):
        raw[..., at] = 255 if letter == "X" else rgba[..., "RGBA".index(letter)]


def yuv_of(planes: Planes, one: Format) -> Planes:
    """Y, U and V of a YUV picture at their stored resolution; only Y without color."""
    if not one.has_chroma:
        return [planes[0][..., 0]]
    if one.planes == 1:
        raw, luma = planes[0], [at for at, letter in enumerate(one.letters) if letter == "Y"]
        y = raw[..., luma].reshape(raw.shape[0], -1)
        return [y, *(raw[..., one.letters.index(letter)] for letter in "UV")]
    chroma = [plane[..., at] for plane in planes[1:] for at in range(plane.shape[2])]
    return [planes[0][..., 0], *(chroma if one.letters == "YUV" else chroma[::-1])]


def write_yuv(yuv: Planes, planes: Planes, one: Format) -> None:
    """Write Y, U and V to a YUV picture with the same chroma resolution."""
    if not one.has_chroma:
        planes[0][..., 0] = yuv[0]
        return
    if one.planes == 1:
        luma = [at for at, letter in enumerate(one.letters) if letter == "Y"]
        planes[0][..., luma] = yuv[0].reshape(planes[0].shape[0], -1, 2)
        for letter, plane in zip("UV", yuv[1:], strict=True):
            planes[0][..., one.letters.index(letter)] = plane
        return
    chroma = yuv[1:] if one.letters == "YUV" else yuv[:0:-1]
    places = [plane[..., at] for plane in planes[1:] for at in range(plane.shape[2])]
    planes[0][..., 0] = yuv[0]
    for place, plane in zip(places, chroma, strict=True):
        place[...] = plane


def matrix(mode: int, *, to_rgb: bool) -> NDArray[np.float64]:
    """A 3 by 4 matrix for cv2.transform from YUV to RGB, or back.

    Args:
        mode: IM_COLOR_SPACE_MODE: of the YUV picture, by imsetColorSpace, or of the call.
        to_rgb: The direction.
    """
    of_picture = mode >> 8 & 0xF
    number = mode & 3 if to_rgb else {0: 1, 1: 2, 2: 1, 3: 3}[mode >> 2 & 3]
    is_709, is_full = number == 3, number == 2
    if of_picture:
        is_709, is_full = of_picture in {_709_LIMIT, _709_FULL}, of_picture in {_601_FULL, _709_FULL}
    red, blue = (0.2126, 0.0722) if is_709 else (0.299, 0.114)
    scale_y, scale_c, offset = (1.0, 1.0, 0.0) if is_full else (219 / 255, 224 / 255, 16.0)
    green = 1 - red - blue
    luma = np.array([red, green, blue])
    rows = [luma * scale_y, (np.array([0, 0, 1]) - luma) / (2 - 2 * blue) * scale_c]
    rows.append((np.array([1, 0, 0]) - luma) / (2 - 2 * red) * scale_c)
    forward = np.concatenate([np.stack(rows), [[offset], [128], [128]]], axis=1)
    if not to_rgb:
        return forward
    back = np.linalg.inv(forward[:, :3])
    return np.concatenate([back, -back @ forward[:, 3:]], axis=1)


def shown(one: Any) -> str:
    """A format's name in a message."""
    return f"RK_FORMAT_{one.name}"
