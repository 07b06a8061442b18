"""Camera, Encoder, Decoder and Display of RDK Ultra: the classes of ``hobot_vio.libsrcampy``, with sizes as lists.

Source: RDK documentation, Python multimedia interface of RDK Ultra, https://github.com/D-Robotics/rdk_doc
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hobot_vio import libsrcampy
from hobot_vio.libsrcampy import bind, unbind
from hobot_vio.pictures import DEFAULT_SIZE, Picture

__all__ = ["Camera", "Decoder", "Display", "Encoder", "bind", "unbind"]

_ROTATE_CROP = 4  # from hobot_vio; it only scales if no crop or rotation is given


class Camera:
    """A camera's frames (``open_cam``), or a scaler for frames that are sent or bound (``open_vps``)."""

    def __init__(self) -> None:
        self._camera = libsrcampy.Camera()

    def open_cam(self, video_index: int = -1, *sizes: Any, fps: int = 30) -> int:
        """Open the camera that HBRT_CAMERA names, with frames in one or several sizes [width, height].

        Returns 0 or -1.
        """
        return self._camera.open_cam(0, video_index, fps, *map(list, zip(*_pairs(sizes), strict=True)))

    def open_vps(
        self,
        src_size: Sequence[int],
        dst_size: Sequence[Any],
        crop_rect: Sequence[Any] = (),
        rotate: int | Sequence[int] = 0,
    ) -> int:
        """Crop frames of one size from the upper left corner, rotate them, and scale them to each size.

        Returns 0 or -1.
        """
        crops = [[0, 0, width, height] for width, height in _pairs([crop_rect])] if crop_rect else []
        return self._camera.open_vps(
            1, _ROTATE_CROP, crop_rect=crops, rotate=rotate, src_size=src_size, dst_size=_pairs([dst_size])
        )

    def get_frame(self, module: int = 2, *size: Any) -> bytes | None:
        """The next frame in NV12, in one of the opened sizes, the first by default; None if there is no frame."""
        width, height = _pairs(size)[0] if size else (0, 0)
        return self._camera.get_img(module, width, height)

    def send_frame(self, img: bytes) -> int:
        """Pass the scaler an NV12 frame of its input's size. Returns 0 or -1."""
        return self._camera.set_img(img)

    def close(self) -> None:
        """Stop."""
        self._camera.close_cam()

    def frame(self) -> Picture | None:
        """The next picture (H, W, 3) in BGR, or None."""
        return self._camera.frame()

    def take(self, source: Any) -> None:
        """Start or stop receiving another object's frames."""
        self._camera.take(source)


class Encoder:
    """Frames in, a stream out."""

    def __init__(self) -> None:
        self._encoder = libsrcampy.Encoder()

    def encode(self, encode_type: int, size: Sequence[int] = DEFAULT_SIZE, bits: int = 8000) -> int:
        """Begin: type 1 is H.264, 2 H.265, 3 MJPEG; size is [width, height], bits in kbit/s. Returns 0 or -1."""
        return self._encoder.encode(0, encode_type, size[0], size[1], bits)

    def send_frame(self, img: bytes) -> int:
        """Encode an NV12 frame. Returns 0 or -1."""
        return self._encoder.encode_file(img)

    def get_frame(self) -> bytes | None:
        """The stream's next part, or None."""
        return self._encoder.get_img()

    def close(self) -> int:
        """End. Returns 0 or -1."""
        return self._encoder.close()

    def take(self, source: Any) -> None:
        """Start or stop receiving another object's frames."""
        self._encoder.take(source)


class Decoder:
    """Takes a stream, from a file or piece by piece, and returns frames."""

    def __init__(self) -> None:
        self._decoder = libsrcampy.Decoder()

    def decode(self, decode_type: int, size: Sequence[int] = DEFAULT_SIZE, file: str = "") -> list[int]:
        """Start with a stream file, or with "" for ``send_frame``: [0, number of frames in the file], or [-1, 0]."""
        return self._decoder.decode(file, 0, decode_type, size[0], size[1])

    def send_frame(self, img: bytes, chn: int = 0, eos: int = 0) -> int:
        """Pass the next part of the stream; eos is 1 for the last one. Returns 0 or -1."""
        return self._decoder.set_img(img, chn, eos)

    def get_frame(self) -> bytes | None:
        """The next frame in NV12, in the configured size, or None."""
        return self._decoder.get_img()

    set_img = set_frame = send_frame
    get_img = get_frame

    def close(self) -> int:
        """End. Returns 0 or -1."""
        return self._decoder.close()

    def frame(self) -> Picture | None:
        """The next picture (H, W, 3) in BGR, or None."""
        return self._decoder.frame()


class Display:
    """The display: one video layer, with graphics over it."""

    def __init__(self) -> None:
        self._display = libsrcampy.Display()

    def display(self, size: int | Sequence[int] = DEFAULT_SIZE) -> int:
        """Open the video layer with [width, height], or the graphics layer with this number. Returns 0 or -1."""
        return self._display.display(size) if isinstance(size, int) else self._display.display(0, size[0], size[1])

    def send_frame(self, img: bytes) -> int:
        """Show an NV12 frame. Returns 0 or -1."""
        return self._display.set_img(img)

    def set_rect(
        self, x0: int, y0: int, x1: int, y1: int, flush: int = 0, color: int = 0xFFFF0000, line_width: int = 4
    ) -> int:
        """Draw a rectangle, clearing the layer first if ``flush`` is 1; color is ARGB. Returns 0 or -1."""
        return self._display.set_graph_rect(x0, y0, x1, y1, 2, flush, color, line_width)

    def set_word(
        self, x: int, y: int, str: bytes | str, flush: int = 0, color: int = 0xFFFF0000, line_width: int = 1
    ) -> int:
        """Draw text, given as bytes in GB 2312, like ``set_rect``. Returns 0 or -1."""
        return self._display.set_graph_word(x, y, str, 2, flush, color, line_width)

    def close(self) -> int:
        """End. Returns 0 or -1."""
        return self._display.close()

    def take(self, source: Any) -> None:
        """Show a frame of another object; if it is bound, its next frame."""
        self._display.take(source)


def _pairs(given: Sequence[Any]) -> list[tuple[int, int]]:
    """Parse sizes from [width, height], lists of these, or two numbers; numbers before a list are ignored."""
    lists = [one for one in given if not isinstance(one, int)] or [list(given)[-2:]]
    rows = [row for one in lists for row in ([one] if one and isinstance(one[0], int) else one)]
    return [(int(row[0]), int(row[1])) for row in rows if len(row) > 1] or [DEFAULT_SIZE]
