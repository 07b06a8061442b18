"""Sources and destinations of frames: NV12, pictures, videos, a test pattern, H.264 and H.265 through PyAV."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hbrt import settings

Picture = NDArray[np.uint8]
DEFAULT_SIZE = (1920, 1080)
OwnCapture = cv2.VideoCapture  # OpenCV's, even after ``usb.install`` has replaced it
PICTURES = {".bmp", ".jpeg", ".jpg", ".png", ".webp"}


@cache
def tell(text: str) -> None:
    """Print a message on standard error, once per process."""
    sys.stderr.write(f"hobot_vio: {text}\n")


def to_nv12(picture: Picture, width: int, height: int) -> bytes:
    """A BGR picture, resized, as Y followed by UV with ``width`` bytes per row; both sizes are even."""
    if picture.shape[:2] != (height, width):
        picture = np.asarray(cv2.resize(picture, (width, height)), np.uint8)
    planar = cv2.cvtColor(picture, cv2.COLOR_BGR2YUV_I420).reshape(-1)
    uv = planar[width * height :].reshape(2, -1).T
    return planar[: width * height].tobytes() + uv.tobytes()


def from_nv12(frame: bytes, width: int, height: int) -> Picture:
    """The BGR picture of an NV12 frame.

    Raises:
        ValueError: the frame has a different number of bytes.
    """
    if len(frame) != width * height * 3 // 2:
        raise ValueError(f"An NV12 frame of {width}x{height} has {width * height * 3 // 2} bytes, not {len(frame)}.")
    rows = np.frombuffer(frame, np.uint8).reshape(height * 3 // 2, width)
    return np.asarray(cv2.cvtColor(rows, cv2.COLOR_YUV2BGR_NV12), np.uint8)


def camera_frames() -> Iterator[Picture]:
    """BGR pictures from HBRT_CAMERA in an endless loop: a picture, a folder of them or a video; else a test pattern.

    Raises:
        OSError: HBRT_CAMERA is a file or folder without pictures.
    """
    name = settings.text("HBRT_CAMERA")
    if not name:
        tell("the camera shows a test pattern; set HBRT_CAMERA to a picture, a folder of pictures or a video.")
        yield from _pattern()
    file = Path(name)
    files = sorted(one for one in file.iterdir() if one.suffix.lower() in PICTURES) if file.is_dir() else [file]
    shown = 0
    while files:
        for one in files:
            for picture in _pictures(one):
                shown += 1
                yield picture
        if not shown:
            break
    raise OSError(f"HBRT_CAMERA={name} contains no picture.")


class CameraFrames:
    """The frames of a camera: ``camera_frames`` at a fixed rate.

    Args:
        fps: Frames per second; 30 if it is 0 or less.

    Raises:
        OSError: as ``camera_frames``.
    """

    def __init__(self, fps: float) -> None:
        frames = camera_frames()
        self._frames = chain([next(frames)], frames)
        self._period_s, self._due_s = 1 / (fps if fps > 0 else 30), 0.0

    def next(self) -> Picture:
        """Wait until the next frame is due, and return it."""
        left_s = self._due_s - time.monotonic()
        if left_s > 0:
            time.sleep(left_s)
        self._due_s = max(self._due_s, time.monotonic() - self._period_s) + self._period_s
        return next(self._frames)


def _pictures(file: Path) -> Iterator[Picture]:
    if file.suffix.lower() in PICTURES:
        picture = cv2.imread(str(file))
        if picture is not None:
            yield np.asarray(picture, np.uint8)
        return
    video = OwnCapture(str(file))
    try:
        while (got := video.read())[0]:
            yield np.asarray(got[1], np.uint8)
    finally:
        video.release()


def _pattern() -> Iterator[Picture]:
    """Colored bars that move one pixel per frame."""
    width, height = DEFAULT_SIZE
    colors = np.array(
        [[255, 255, 255], [0, 255, 255], [255, 255, 0], [0, 255, 0], [255, 0, 255], [0, 0, 255]], np.uint8
    )
    row = np.repeat(colors, width // len(colors), axis=0)
    bars = np.broadcast_to(row, (height, *row.shape))
    at = 0
    while True:
        yield np.roll(bars, at, axis=1)
        at = (at + 1) % width


def show(picture: Picture) -> None:
    """Write the display's picture to the file HBRT_DISPLAY; without it, print a note that nothing is displayed."""
    name = settings.text("HBRT_DISPLAY")
    if not name:
        tell("nothing is displayed; set HBRT_DISPLAY to a picture file for the display's contents.")
    elif not cv2.imwrite(name, picture):
        tell(f"HBRT_DISPLAY={name} cannot be written.")


def codecs() -> ModuleType:
    """PyAV, which supports H.264 and H.265.

    Raises:
        OSError: it is not installed.
    """
    try:
        import av
    except ImportError:
        raise OSError("H.264 and H.265 need PyAV: pip install 'hbrt-rdk[video]'. MJPEG needs nothing.") from None
    module: Any = av
    return module  # type: ignore[no-any-return]
