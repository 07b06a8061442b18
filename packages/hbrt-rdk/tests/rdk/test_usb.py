"""hobot_vio.usb: a USB camera that does not exist."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from hobot_vio.usb import VideoCapture


def test_a_camera_that_is_not_there_shows_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cv2.imwrite(str(tmp_path / "red.png"), np.full((48, 64, 3), (0, 0, 255), np.uint8))
    monkeypatch.setenv("HBRT_CAMERA", str(tmp_path))
    camera = VideoCapture("/dev/video77", cv2.CAP_V4L2)
    assert camera.isOpened()
    assert camera.get(cv2.CAP_PROP_FRAME_WIDTH) == 640
    assert camera.set(cv2.CAP_PROP_FRAME_WIDTH, 32)
    assert camera.set(cv2.CAP_PROP_FRAME_HEIGHT, 24)
    for _ in range(2):  # over and over
        done, picture = camera.read()
        assert done
        assert picture.shape == (24, 32, 3)
        assert picture[12, 16].tolist() == [0, 0, 255]
    camera.release()
    assert not camera.isOpened()
    assert not VideoCapture(str(tmp_path / "missing.mp4")).isOpened()


def test_frames_come_in_order_from_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for level in (10, 50, 90):
        cv2.imwrite(str(tmp_path / f"{level}.png"), np.full((48, 64, 3), level, np.uint8))
    monkeypatch.setenv("HBRT_CAMERA", str(tmp_path))
    camera = VideoCapture("/dev/video77")
    assert [camera.read()[1][0, 0, 0] for _ in range(4)] == [10, 50, 90, 10]


def test_a_camera_without_pictures_does_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cv2, "VideoCapture", VideoCapture)  # as install does
    for name in (str(tmp_path), "/dev/video77"):
        monkeypatch.setenv("HBRT_CAMERA", name)
        camera = VideoCapture()
        assert not camera.open("/dev/video77")
        assert not camera.isOpened()
        assert camera.read() == (False, None)
        assert f"HBRT_CAMERA={name} contains no picture." in capfd.readouterr().err
