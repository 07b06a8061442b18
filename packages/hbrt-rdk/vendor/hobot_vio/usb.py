"""A board's USB camera, window and name, for programs that look for them with OpenCV and in the file system.

With HBRT_CAMERA, a camera that OpenCV cannot open shows those frames; with HBRT_DISPLAY, an OpenCV without windows
writes its pictures to that file; with HBRT_PROFILE=s100, x5 or x3, the files that name the board exist.
"""

from __future__ import annotations

import os
import time
from typing import Any

import cv2
import numpy as np

from hbrt import settings
from hbrt.borders import board_files
from hobot_vio import BOARDS
from hobot_vio.pictures import CameraFrames, OwnCapture, Picture, show, tell

_FPS = 30.0


class VideoCapture:
    """``cv2.VideoCapture``, which shows HBRT_CAMERA for a camera (a number, or /dev/video...) that does not exist."""

    def __init__(self, *source: Any) -> None:
        self._own = OwnCapture()
        self._frames: CameraFrames | None = None
        self._picture: Picture | None = None
        self._sizes: dict[int, float] = {}
        if source:
            self.open(*source)

    def __getattr__(self, name: str) -> Any:
        """Further arguments of OpenCV's."""
        return getattr(self._own, name)

    def open(self, filename: Any, *how: Any) -> bool:
        """Like OpenCV's."""
        self._frames = self._picture = None
        name = f"/dev/video{filename}" if isinstance(filename, int) else str(filename)
        if not name.startswith(("/dev/video", "/dev/v4l/")) or os.path.lexists(name):
            return self._own.open(filename, *how)
        tell(f"the camera {name} shows HBRT_CAMERA.")
        try:
            self._frames = CameraFrames(_FPS)
        except OSError as error:
            tell(str(error))
        return self._frames is not None

    def isOpened(self) -> bool:
        """Like OpenCV's."""
        return self._frames is not None or self._own.isOpened()

    def grab(self) -> bool:
        """Like OpenCV's, 30 frames per second."""
        if self._frames is None:
            return self._own.grab()
        self._picture = self._frames.next()
        return True

    def retrieve(self, *how: Any) -> Any:
        """Like OpenCV's."""
        if self._frames is None or self._picture is None:
            return self._own.retrieve(*how)
        return True, np.asarray(cv2.resize(self._picture, self._size()), np.uint8)

    def read(self, *how: Any) -> Any:
        """Like OpenCV's."""
        return self.retrieve() if self._frames is not None and self.grab() else self._own.read(*how)

    def set(self, prop: int, value: float) -> bool:
        """Like OpenCV's: a size applies to the following frames."""
        if self._frames is None:
            return self._own.set(prop, value)
        self._sizes[prop] = value
        return True

    def get(self, prop: int) -> float:
        """Like OpenCV's."""
        if self._frames is None:
            return self._own.get(prop)
        width, height = self._size()
        known = {cv2.CAP_PROP_FRAME_WIDTH: width, cv2.CAP_PROP_FRAME_HEIGHT: height, cv2.CAP_PROP_FPS: _FPS}
        return float(known.get(prop, self._sizes.get(prop, 0)))

    def release(self) -> None:
        """Like OpenCV's."""
        self._frames = None
        self._own.release()

    def _size(self) -> tuple[int, int]:
        width, height = (int(self._sizes.get(one, 0)) for one in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
        return (width or 640, height or 480)


def install() -> None:
    """Install the replacements requested by the settings, once per process; each prints a note when it is used."""
    if settings.text("HBRT_CAMERA"):
        cv2.VideoCapture = VideoCapture  # type: ignore[misc, assignment]
        board_files.show({"/dev/video0": None})
    if settings.text("HBRT_DISPLAY") and "GUI:                           NONE" in cv2.getBuildInformation():
        cv2.imshow = _imshow
        cv2.waitKey = cv2.waitKeyEx = _wait_key
        cv2.getWindowProperty = lambda winname, prop_id: 1.0  # noqa: ARG005 - OpenCV's names
        for name in (
            "namedWindow",
            "resizeWindow",
            "moveWindow",
            "setWindowProperty",
            "destroyWindow",
            "setWindowTitle",
        ):
            setattr(cv2, name, _window)
        cv2.destroyAllWindows = _window
    board = BOARDS.get(settings.text("HBRT_PROFILE"))
    if board and board_files.show(dict.fromkeys(_files(), f"{board}\n")):
        tell(f"{' and '.join(_files())} name {board}, as set by HBRT_PROFILE.")


def _files() -> list[str]:
    return [f"/sys/class/{folder}/soc_name" for folder in ("boardinfo", "socinfo")]


def _imshow(winname: str, mat: Any) -> None:
    del winname
    show(np.asarray(mat, np.uint8))


def _wait_key(delay: int = 0) -> int:
    """No key is ever pressed. Without a delay, OpenCV waits forever; this returns."""
    time.sleep(max(delay, 0) / 1000)
    return -1


def _window(*_given: Any, **_how: Any) -> None:
    """A window that does not exist."""
