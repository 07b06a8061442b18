"""Camera, Encoder, Decoder and Display of RDK boards, over files and pictures.

A call for which a board returns -1 does the same here, and prints the reason on standard error.
Source: RDK documentation, Python multimedia interface, https://github.com/D-Robotics/rdk_doc, and
https://github.com/HorizonRDK/hobot-spdev
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np

from hobot_vio import surroundings
from hobot_vio.pictures import DEFAULT_SIZE, CameraFrames, Picture, codecs, from_nv12, show, tell, to_nv12

_CODECS = {1: "h264", 2: "hevc", 3: "mjpeg"}
_SCALE, _CROP, _ROTATE, _ROTATE_CROP = 1, 2, 3, 4
_TURNS = {1: cv2.ROTATE_90_CLOCKWISE, 2: cv2.ROTATE_180, 3: cv2.ROTATE_90_COUNTERCLOCKWISE}
_ARGB_CHANNELS = range(2, 4)


class _Source(Protocol):
    def frame(self) -> Picture | None:
        """The next picture (H, W, 3) in BGR, or None."""


def _answers(call: Callable[..., int]) -> Callable[..., int]:
    """Print the error and return -1 if the call raises OSError or ValueError."""

    @wraps(call)
    def answered(*args: Any, **how: Any) -> int:
        try:
            return call(*args, **how)
        except (OSError, ValueError) as error:
            tell(f"{call.__qualname__}: {error}")
            return -1

    return answered


class Camera:
    """A camera's frames (``open_cam``), or a scaler for frames that are set or bound (``open_vps``)."""

    def __init__(self) -> None:
        self._frames: CameraFrames | None = None
        self._sizes: list[tuple[int, int]] = []
        self._source: _Source | None = None
        self._set: Picture | None = None
        self._input = DEFAULT_SIZE
        self._crops: list[Sequence[int]] = []
        self._turns: list[int] = []

    @_answers
    def open_cam(
        self,
        pipe_id: int = 0,
        video_index: int = -1,
        fps: int = 30,
        width: int | Sequence[int] = 0,
        height: int | Sequence[int] = 0,
        raw_height: int = -1,
        raw_width: int = -1,
        crop_rect: Sequence[Any] | None = None,
    ) -> int:
        """Open the camera given by HBRT_CAMERA, with frames at ``fps`` in each of the sizes. Returns 0 or -1.

        They are also delivered in the sensor's size, ``raw_width`` by ``raw_height``: 1920x1080 if either is 0 or less.
        A size of 0 means the sensor's, too. A size may have a crop, [x, y, width, height] in the sensor's size; a width
        or height of 0 or less means the full extent.
        """
        del pipe_id, video_index
        sensor = (raw_width, raw_height) if raw_width > 0 and raw_height > 0 else DEFAULT_SIZE
        crops = _rows(crop_rect)
        for crop in crops:
            _check_crop(crop, sensor)
        self._input = sensor
        self._sizes = [*(size or self._input for size in _sizes(width, height)), self._input]
        self._frames, self._set, self._source = CameraFrames(fps), None, None
        self._crops, self._turns = crops, []
        return 0

    @_answers
    def open_vps(
        self,
        pipe_id: int = 1,
        proc_mode: int = 0,
        src_width: int = 1920,
        src_height: int = 1080,
        dst_width: int | Sequence[int] = 0,
        dst_height: int | Sequence[int] = 0,
        crop_rect: Sequence[Any] = (),
        rotate: int | Sequence[int] = (),
        src_size: Sequence[int] = (),
        dst_size: Sequence[Any] = (),
        **spelled: int,
    ) -> int:
        """Scale (1), crop (2), rotate (3) or both (4) frames of one size to each of the sizes. Returns 0 or -1.

        A size of 0 means that of its crop, or the input's. ``process_mode`` is another spelling of ``proc_mode``.
        """
        del pipe_id
        mode = spelled.pop("process_mode", proc_mode)
        if mode < 0 or spelled:
            raise ValueError(f"Invalid process mode {mode}: must be 0 or more." if mode < 0 else f"Unknown: {spelled}.")
        self._input = (int(src_size[0]), int(src_size[1])) if src_size else (src_width, src_height)
        self._crops = _rows(crop_rect) if mode in {_CROP, _ROTATE_CROP} else []
        pairs = _rows(dst_size)
        sizes = _sizes([one[0] for one in pairs], [one[1] for one in pairs]) or _sizes(dst_width, dst_height)
        self._sizes = [*(size or self._cropped(at)[2:] for at, size in enumerate(sizes)), self._input]
        turns = [rotate] if isinstance(rotate, int) else list(rotate)
        self._turns = turns if mode in {_ROTATE, _ROTATE_CROP} else []
        self._frames = None
        return 0

    def close_cam(self) -> None:
        """Stop."""
        self._frames = self._source = self._set = None
        self._sizes = []

    def get_img(self, module: int = 2, width: int = 0, height: int = 0) -> bytes | None:
        """The next frame in NV12, in one of the opened sizes, the first by default; None if there is no frame.

        Args:
            module: Where on the board the frame is taken; all of them give NV12.
            width: Width of the frame.
            height: Height of the frame.
        """
        del module
        wanted = (width, height) if width and height else next(iter(self._sizes), DEFAULT_SIZE)
        if wanted not in self._sizes:
            opened = ", ".join(f"{one[0]}x{one[1]}" for one in self._sizes) or "none"
            tell(f"Camera.get_img: no frames of {wanted[0]}x{wanted[1]} were opened; there are {opened}.")
            return None
        picture = self.frame()
        return None if picture is None else to_nv12(self._processed(picture, self._sizes.index(wanted)), *wanted)

    @_answers
    def set_img(self, img: bytes) -> int:
        """Pass the scaler an NV12 frame of its input's size. Returns 0 or -1."""
        self._set = from_nv12(img, *self._input)
        return 0

    def frame(self) -> Picture | None:
        """The next picture (H, W, 3) in BGR, or None."""
        if self._source is not None:
            return self._source.frame()
        return self._set if self._frames is None else self._frames.next()

    def take(self, source: _Source | None) -> None:
        """Start or stop receiving another object's frames."""
        self._source = source

    def _cropped(self, at: int) -> tuple[int, int, int, int]:
        """X, y, width and height of the region that a size shows: the whole input if it has no crop."""
        x, y, width, height = self._crops[at][:4] if at < len(self._crops) else (0, 0, 0, 0)
        return (x, y, width, height) if width > 0 and height > 0 else (0, 0, *self._input)

    def _processed(self, picture: Picture, at: int) -> Picture:
        if at < len(self._crops):
            x, y, width, height = self._cropped(at)
            picture = np.asarray(cv2.resize(picture, self._input), np.uint8)
            picture = picture[y : y + height, x : x + width]
        if at < len(self._turns) and self._turns[at] in _TURNS:
            picture = np.asarray(cv2.rotate(picture, _TURNS[self._turns[at]]), np.uint8)
        return picture


class Encoder:
    """Frames in, a stream out."""

    def __init__(self) -> None:
        self._codec, self._size = "", DEFAULT_SIZE
        self._context: Any = None
        self._packets: deque[bytes] = deque()
        self._source: _Source | None = None

    @_answers
    def encode(self, video_chn: int, type: int, width: int, height: int, bits: int = 8000) -> int:
        """Begin: type 1 is H.264, 2 H.265, 3 MJPEG; bits in kbit/s. Returns 0 or -1."""
        del video_chn
        codec, context = _codec(type), None
        if codec != "mjpeg":
            context = codecs().CodecContext.create("libx265" if codec == "hevc" else "libx264", "w")
            context.width, context.height, context.pix_fmt = width, height, "yuv420p"
            context.time_base, context.bit_rate = Fraction(1, 30), bits * 1000
            # One frame in, one out, like the boards' encoder.
            context.options = {"preset": "ultrafast", "tune": "zerolatency"}
            if codec == "hevc":
                context.options["x265-params"] = "log-level=error"
        self._codec, self._size, self._context = codec, (width, height), context
        self._packets.clear()
        return 0

    @_answers
    def encode_file(self, img: bytes) -> int:
        """Encode an NV12 frame. Returns 0 or -1."""
        self._encode(from_nv12(img, *self._size))
        return 0

    def get_img(self) -> bytes | None:
        """The stream's next part: from a given frame or from the next frame of the bound object; otherwise None."""
        if self._codec and not self._packets and self._source is not None:
            picture = self._source.frame()
            if picture is not None:
                self._encode(np.asarray(cv2.resize(picture, self._size), np.uint8))
        return self._packets.popleft() if self._packets else None

    @_answers
    def close(self) -> int:
        """End. Returns 0 or -1."""
        if not self._codec:
            raise ValueError("it was not opened.")
        self._codec, self._context = "", None
        self._packets.clear()
        return 0

    def take(self, source: _Source | None) -> None:
        """Start or stop receiving another object's frames."""
        self._source = source

    def _encode(self, picture: Picture) -> None:
        if not self._codec:
            raise ValueError("call encode first.")
        if self._context is None:
            done, data = cv2.imencode(".jpg", picture)
            self._packets.extend([data.tobytes()] if done else [])
            return
        frame = codecs().VideoFrame.from_ndarray(picture, format="bgr24")
        self._packets.extend(bytes(packet) for packet in self._context.encode(frame.reformat(format="yuv420p")))


class Decoder:
    """Takes a stream, from a file or piece by piece, and returns frames."""

    def __init__(self) -> None:
        self._codec, self._size = "", DEFAULT_SIZE
        self._context: Any = None
        self._left = b""
        self._pictures: deque[Picture] = deque()
        self._packets: deque[Any] = deque()  # from a file; each is decoded when its frame is requested

    def decode(
        self,
        file: str,
        video_chn: int = 0,
        type: int = 1,
        width: int = 1920,
        height: int = 1080,
    ) -> list[int]:
        """Start with a stream file, or with "" for ``set_img``.

        Returns:
            [0, number of frames in the file], or [-1, 0].
        """
        del video_chn
        try:
            codec = _codec(type)
            self._context = None if codec == "mjpeg" else codecs().CodecContext.create(codec, "r")
            self._codec, self._size, self._left = codec, (width, height), b""
            self._pictures.clear()
            self._packets.clear()
            if not file:
                return [0, 0]
            data = Path(file).read_bytes()
            if self._context is None:
                self._feed(data, is_last=True)
            else:
                self._packets.extend([*self._context.parse(data), *self._context.parse(b"")])
        except (OSError, ValueError) as error:
            tell(f"Decoder.decode: {error}")
            return [-1, 0]
        frames = len(self._packets) or len(self._pictures)
        self._packets.extend([None] if self._packets else [])
        return [0, frames]

    def get_img(self) -> bytes | None:
        """The next frame in NV12, in the configured size, or None."""
        picture = self.frame()
        return None if picture is None else to_nv12(picture, *self._size)

    @_answers
    def set_img(self, img: bytes, chn: int = -1, eos: int = 0) -> int:
        """Pass the next part of the stream; eos is 1 for the last one. Returns 0 or -1."""
        del chn
        if not self._codec:
            raise ValueError("call decode first.")
        self._feed(img, is_last=bool(eos))
        return 0

    @_answers
    def close(self) -> int:
        """End. Returns 0 or -1."""
        if not self._codec:
            raise ValueError("it was not opened.")
        self._codec, self._context = "", None
        self._pictures.clear()
        self._packets.clear()
        return 0

    def frame(self) -> Picture | None:
        """The next picture (H, W, 3) in BGR, or None."""
        try:
            while self._packets and not self._pictures:
                self._decode(self._packets.popleft())
        except (OSError, ValueError) as error:
            tell(f"Decoder.get_img: {error}")
        return self._pictures.popleft() if self._pictures else None

    def _feed(self, data: bytes, *, is_last: bool) -> None:
        if self._context is None:
            begin, end = b"\xff\xd8", b"\xff\xd9"
            *pictures, self._left = (self._left + data).split(end)
            for one in pictures:
                picture = cv2.imdecode(np.frombuffer(one[max(one.find(begin), 0) :] + end, np.uint8), cv2.IMREAD_COLOR)
                if picture is None:
                    raise ValueError("not a JPEG picture.")
                self._pictures.append(np.asarray(picture, np.uint8))
            return
        packets = self._context.parse(data) + (self._context.parse(b"") if is_last else [])
        for packet in [*packets, *([None] if is_last else [])]:
            self._decode(packet)

    def _decode(self, packet: Any) -> None:
        """Decode a packet, or the remaining frames if the packet is None."""
        self._pictures.extend(frame.to_ndarray(format="bgr24") for frame in self._context.decode(packet))


class Display:
    """The display: a video layer, with graphics over it."""

    def __init__(self) -> None:
        self._sizes: dict[int, tuple[int, int]] = {}
        self._video: Picture | None = None
        self._graphics: list[Callable[[Picture], object]] = []

    @_answers
    def display(
        self,
        chn: int = 0,
        width: int = 1920,
        height: int = 1080,
        vot_intf: int = 0,
        vot_out_mode: int = 1,
        chn_width: int = 0,
        chn_height: int = 0,
    ) -> int:
        """Open a layer: 0 and 1 are video, 2 and 3 graphics. Returns 0 or -1."""
        del vot_intf, vot_out_mode
        self._sizes[chn] = (chn_width, chn_height) if chn_width and chn_height else (width, height)
        return 0

    @staticmethod
    def get_display_res() -> list[tuple[int, int]]:
        """Widths and heights that the display can show."""
        return [DEFAULT_SIZE]

    @_answers
    def set_img(self, img: bytes, chn: int = 0) -> int:
        """Show an NV12 frame on a video layer. Returns 0 or -1."""
        if chn not in self._sizes:
            raise ValueError(f"the layer {chn} was not opened by display().")
        self._show(from_nv12(img, *self._sizes[chn]))
        return 0

    @_answers
    def set_graph_rect(
        self,
        x0: int,
        y0: int,
        x1: int,
        y1: int,
        chn: int = 2,
        flush: int = 0,
        color: int = 0xFFFF0000,
        line_width: int = 4,
    ) -> int:
        """Draw a rectangle on a graphics layer, clearing it first if ``flush`` is 1; color is ARGB. Returns 0 or -1."""
        begin, end = (int(x0), int(y0)), (int(x1), int(y1))
        return self._draw(chn, flush, lambda canvas: cv2.rectangle(canvas, begin, end, _bgr(color), line_width))

    @_answers
    def set_graph_word(
        self,
        x: int,
        y: int,
        str: bytes | str,
        chn: int = 2,
        flush: int = 0,
        color: int = 0xFFFF0000,
        line_width: int = 1,
    ) -> int:
        """Draw text, given as bytes in GB 2312, on a graphics layer, like ``set_graph_rect``. Returns 0 or -1."""
        words = str.decode("gb2312", "replace") if isinstance(str, bytes) else str
        at, font = (int(x), int(y) + 16 * line_width), cv2.FONT_HERSHEY_SIMPLEX
        width = max(line_width, 1)
        return self._draw(
            chn, flush, lambda canvas: cv2.putText(canvas, words, at, font, 0.6 * width, _bgr(color), width)
        )

    @_answers
    def close(self) -> int:
        """End. Returns 0 or -1."""
        self._sizes, self._video, self._graphics = {}, None, []
        return 0

    def take(self, source: _Source | None) -> None:
        """Show a frame of another object; if it is bound, its next frame."""
        picture = None if source is None else source.frame()
        if picture is not None:
            self._show(picture)

    def _draw(self, chn: int, flush: int, one: Callable[[Picture], object]) -> int:
        if chn not in _ARGB_CHANNELS:
            raise ValueError(f"Invalid layer {chn}: graphics are on 2 and 3.")
        self._graphics = [one] if flush else [*self._graphics, one]
        if self._video is not None:
            self._show(self._video)
        return 0

    def _show(self, picture: Picture) -> None:
        self._video = picture
        canvas = picture.copy()
        for draw in self._graphics:
            draw(canvas)
        show(canvas)


def bind(src: Any, dst: Any) -> int:
    """Send a camera's or decoder's frames to another camera, encoder or display. Returns 0 or -1."""
    if not hasattr(src, "frame") or not hasattr(dst, "take"):
        tell(f"bind: a {type(src).__name__} cannot be bound to a {type(dst).__name__}.")
        return -1
    dst.take(src)
    return 0


def unbind(src: Any, dst: Any) -> int:
    """Undo ``bind``. Returns 0 or -1."""
    if not hasattr(src, "frame") or not hasattr(dst, "take"):
        tell(f"unbind: a {type(src).__name__} is not bound to a {type(dst).__name__}.")
        return -1
    dst.take(None)
    return 0


def _sizes(width: int | Sequence[int], height: int | Sequence[int]) -> list[tuple[int, int] | None]:
    """Pairs of sizes; None if one is 0 or less."""
    widths, heights = ([one] if isinstance(one, int) else list(one) for one in (width, height))
    if len(widths) != len(heights):
        raise ValueError(f"{len(widths)} widths and {len(heights)} heights: the numbers must be equal.")
    return [(int(w), int(h)) if w > 0 and h > 0 else None for w, h in zip(widths, heights, strict=True)]


def _rows(given: Sequence[Any] | None) -> list[Sequence[int]]:
    """Lists of numbers, from several or one."""
    return [given] if given and isinstance(given[0], int) else list(given or ())


def _check_crop(crop: Sequence[int], size: tuple[int, int]) -> None:
    """Check that a crop is inside a frame of this size.

    Raises:
        ValueError: it does not have four numbers, or exceeds the frame.
    """
    if len(crop) != 4:
        raise ValueError(f"Invalid crop {list(crop)}: must be [x, y, width, height].")
    x, y, width, height = crop
    if width > 0 and height > 0 and not (0 <= x <= size[0] - width and 0 <= y <= size[1] - height):
        raise ValueError(f"Invalid crop {list(crop)}: must lie inside the sensor's {size[0]}x{size[1]}.")


def _codec(kind: int) -> str:
    if kind not in _CODECS:
        raise ValueError(f"Invalid type {kind}: must be 1 (H.264), 2 (H.265) or 3 (MJPEG).")
    return _CODECS[kind]


def _bgr(argb: int) -> tuple[int, int, int]:
    return argb & 0xFF, argb >> 8 & 0xFF, argb >> 16 & 0xFF


surroundings()
