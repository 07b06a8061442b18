"""The image descriptor of the CV ops: format, type, size, stride in bytes, physical addresses; and its rules.

Field names and order are those of the public hbVPImage of the next chip generation (J6); the J5 structure is not
public. The numbers of formats and types are the emulator's choice; they start at 1, so that an unfilled structure is
refused.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from hbrt.cv.enums import hbVPImageFormat, hbVPImageType

MAX_SIDE = 32766
"""Largest width and height; the emulator's choice: OpenCV's remap does not support sides of 32767 or more."""


class Element(NamedTuple):
    """Parts of an image type: an element's numpy name and bytes, and channels per pixel."""

    dtype: str
    item_bytes: int
    channels: int


ELEMENTS: dict[int, Element] = {
    hbVPImageType.HB_VP_IMAGE_TYPE_U8C1: Element("uint8", 1, 1),
    hbVPImageType.HB_VP_IMAGE_TYPE_U8C3: Element("uint8", 1, 3),
    hbVPImageType.HB_VP_IMAGE_TYPE_S16C1: Element("int16", 2, 1),
    hbVPImageType.HB_VP_IMAGE_TYPE_S32C1: Element("int32", 4, 1),
    hbVPImageType.HB_VP_IMAGE_TYPE_F32C1: Element("float32", 4, 1),
    hbVPImageType.HB_VP_IMAGE_TYPE_F64C2: Element("float64", 8, 2),
    hbVPImageType.HB_VP_IMAGE_TYPE_F32C2: Element("float32", 4, 2),
}


class ImageKind(NamedTuple):
    """A format with one of its possible types."""

    format: hbVPImageFormat
    type: hbVPImageType

    def __str__(self) -> str:
        return f"{self.format.name.rpartition('_')[2]} {self.type.name.rpartition('_')[2]}"


Y_U8 = ImageKind(hbVPImageFormat.HB_VP_IMAGE_FORMAT_Y, hbVPImageType.HB_VP_IMAGE_TYPE_U8C1)
Y_S16 = ImageKind(hbVPImageFormat.HB_VP_IMAGE_FORMAT_Y, hbVPImageType.HB_VP_IMAGE_TYPE_S16C1)
Y_S32 = ImageKind(hbVPImageFormat.HB_VP_IMAGE_FORMAT_Y, hbVPImageType.HB_VP_IMAGE_TYPE_S32C1)
Y_F32 = ImageKind(hbVPImageFormat.HB_VP_IMAGE_FORMAT_Y, hbVPImageType.HB_VP_IMAGE_TYPE_F32C1)
NV12 = ImageKind(hbVPImageFormat.HB_VP_IMAGE_FORMAT_NV12, hbVPImageType.HB_VP_IMAGE_TYPE_U8C1)
RGB = ImageKind(hbVPImageFormat.HB_VP_IMAGE_FORMAT_RGB, hbVPImageType.HB_VP_IMAGE_TYPE_U8C3)
BGR = ImageKind(hbVPImageFormat.HB_VP_IMAGE_FORMAT_BGR, hbVPImageType.HB_VP_IMAGE_TYPE_U8C3)
KINDS: dict[tuple[int, int], ImageKind] = {
    (kind.format, kind.type): kind for kind in (Y_U8, Y_S16, Y_S32, Y_F32, NV12, RGB, BGR)
}
"""Every kind that a descriptor can describe, by its two numbers."""


class CvRuleError(ValueError):
    """An image or a parameter breaks a rule of its op; the message names it, its value and the allowed ones."""


def refuse(sentence: str) -> NoReturn:
    """Raise CvRuleError."""
    raise CvRuleError(sentence)


class Plane(NamedTuple):
    """Rows of pixels in DDR: `columns` pixels of `element.channels` elements each, rows `stride` bytes apart."""

    phy_addr: int
    rows: int
    columns: int
    stride: int
    element: Element

    @property
    def row_bytes(self) -> int:
        """Bytes of pixels per row, without padding."""
        return self.columns * self.element.channels * self.element.item_bytes

    @property
    def size_bytes(self) -> int:
        """Bytes from the first pixel to the end of the last one; padding after the last row is not required."""
        return self.stride * (self.rows - 1) + self.row_bytes


class Image:
    """Of hbVPImage."""

    imageFormat: int
    imageType: int
    width: int
    height: int
    stride: int
    dataPhyAddr: int
    uvPhyAddr: int
    uvStride: int

    def planes(self) -> tuple[Plane, ...]:
        """The image's planes: one, or two for NV12. Valid only if `check` passes."""
        element = ELEMENTS[self.imageType]
        first = Plane(self.dataPhyAddr, self.height, self.width, self.stride, element)
        if self.imageFormat != hbVPImageFormat.HB_VP_IMAGE_FORMAT_NV12:
            return (first,)
        pairs = Element("uint8", 1, 2)
        return first, Plane(self.uvPhyAddr, self.height // 2, self.width // 2, self.uvStride, pairs)

    def check(self, name: str) -> ImageKind:
        """Check the image and return its kind.

        Args:
            name: Its name in messages: "src", "dst".

        Raises:
            CvRuleError: a field is invalid; names it, its value and the allowed ones.
        """
        kind = KINDS.get((self.imageFormat, self.imageType))
        if kind is None:
            _refuse_kind(self, name)
        width, height, stride = self.width, self.height, self.stride
        if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
            refuse(f"{name} is {width} x {height} pixels: each side must have 1 to {MAX_SIDE}.")
        element = ELEMENTS[kind.type]
        pixel_bytes = element.item_bytes * element.channels
        if stride < width * pixel_bytes or stride % pixel_bytes:
            refuse(
                f"{name} has a stride of {stride} bytes: a row of {width} pixels takes {width * pixel_bytes}, and a "
                f"stride must be a whole number of {kind} pixels."
            )
        if not self.dataPhyAddr or self.dataPhyAddr % element.item_bytes:
            refuse(
                f"{name} starts at the physical address {self.dataPhyAddr:#x}: give that of its first pixel, "
                f"a multiple of {element.item_bytes}."
            )
        if kind is NV12:
            self._check_pairs(name)
        return kind

    def _check_pairs(self, name: str) -> None:
        width, height = self.width, self.height
        if width % 2 or height % 2:
            refuse(f"{name} is {width} x {height} pixels: NV12 has a UV pair per 2 x 2 pixels, so both must be even.")
        if self.uvStride < width or self.uvStride % 2:
            refuse(f"{name} has a uvStride of {self.uvStride} bytes: must be even and at least {width}.")
        if not self.uvPhyAddr:
            refuse(f"{name} has no uvPhyAddr: give the physical address of the UV plane.")


def _refuse_kind(image: Image, name: str) -> NoReturn:
    allowed = [kind for kind in KINDS.values() if kind.format == image.imageFormat]
    if not allowed:
        formats = dict.fromkeys(f"{kind.format.value} {kind.format.name.rpartition('_')[2]}" for kind in KINDS.values())
        refuse(f"{name} has imageFormat {image.imageFormat}: use one of {', '.join(formats)}.")
    types = ", ".join(f"{kind.type.value} {kind.type.name.rpartition('_')[2]}" for kind in allowed)
    refuse(f"{name} has imageType {image.imageType}: for its format use {types}.")


class FilterKernel:
    """Of hbVPFilterKernel."""

    width: int
    height: int
    dataType: int
    dataPhyAddr: int

    def check(self, name: str, kind: ImageKind, largest: int) -> None:
        """Check its type and size.

        Raises:
            CvRuleError: wrong type, a side outside 1..largest, or an unaligned address.
        """
        if self.dataType != kind.type:
            refuse(f"{name}.dataType is {self.dataType}: use {kind.type.value} {kind.type.name.rpartition('_')[2]}.")
        if not (0 < self.width <= largest and 0 < self.height <= largest):
            refuse(f"{name} has {self.width} x {self.height} elements: each side must have 1 to {largest}.")
        item_bytes = ELEMENTS[kind.type].item_bytes
        if not self.dataPhyAddr or self.dataPhyAddr % item_bytes:
            refuse(
                f"{name} is at the physical address {self.dataPhyAddr:#x}: must be a nonzero multiple of {item_bytes}."
            )

    def plane(self) -> Plane:
        """Where its elements lie."""
        element = ELEMENTS[self.dataType]
        return Plane(self.dataPhyAddr, self.height, self.width, self.width * element.item_bytes, element)
