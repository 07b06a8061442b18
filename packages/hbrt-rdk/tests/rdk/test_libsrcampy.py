"""hobot_vio.libsrcampy: cameras, codecs and displays over files."""

from pathlib import Path

import cv2
import numpy as np
import pytest

import libsrcampy as srcampy
from hobot_spdev import libsppydev


@pytest.fixture
def camera(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> srcampy.Camera:
    """A camera at 1000 frames a second that sees a red and a blue picture in turn."""
    for at, color in enumerate([(0, 0, 255), (255, 0, 0)]):
        cv2.imwrite(str(tmp_path / f"{at}.png"), np.full((48, 64, 3), color, np.uint8))
    monkeypatch.setenv("HBRT_CAMERA", str(tmp_path))
    made = srcampy.Camera()
    assert made.open_cam(0, -1, 1000, [64, 32], [48, 24]) == 0
    return made


def bgr(frame: bytes | None, width: int, height: int) -> list[int]:
    """Color of the middle of an NV12 frame."""
    assert frame is not None
    picture = cv2.cvtColor(np.frombuffer(frame, np.uint8).reshape(height * 3 // 2, width), cv2.COLOR_YUV2BGR_NV12)
    return [round(int(one) / 255) for one in picture[height // 2, width // 2]]


def test_frames_come_in_the_sizes_that_were_opened(camera: srcampy.Camera, capsys: pytest.CaptureFixture[str]) -> None:
    assert bgr(camera.get_img(2, 32, 24), 32, 24) == [0, 0, 1]
    assert bgr(camera.get_img(2), 64, 48) == [1, 0, 0]
    assert bgr(camera.get_img(2, 32, 24), 32, 24) == [0, 0, 1]  # the folder starts over
    assert camera.get_img(2, 100, 100) is None
    assert "there are 64x48, 32x24, 1920x1080" in capsys.readouterr().err


def test_frames_come_in_the_sensors_size(camera: srcampy.Camera) -> None:
    assert camera.open_cam(0, -1, 1000, [32], [24], 96, 128) == 0
    assert bgr(camera.get_img(2, 128, 96), 128, 96) == [0, 0, 1]


def test_what_is_bound_passes_frames_on(camera: srcampy.Camera) -> None:
    """A camera into a scaler that crops and turns, into an encoder of MJPEG, into a decoder."""
    scaler, encoder, decoder = srcampy.Camera(), srcampy.Encoder(), srcampy.Decoder()
    assert scaler.open_vps(1, 4, 64, 48, 24, 32, [0, 0, 32, 24], [1]) == 0
    assert encoder.encode(0, 3, 24, 32) == 0
    assert decoder.decode("", 0, 3, 24, 32) == [0, 0]
    assert srcampy.bind(camera, scaler) == 0
    assert bgr(scaler.get_img(2, 24, 32), 24, 32) == [0, 0, 1]
    assert srcampy.bind(scaler, encoder) == 0
    part = encoder.get_img()
    assert part is not None
    assert decoder.set_img(part[:20]) == decoder.set_img(part[20:]) == 0
    assert bgr(decoder.get_img(), 24, 32) == [1, 0, 0]
    assert decoder.get_img() is None
    assert decoder.set_img(part) == decoder.close() == 0
    assert decoder.get_img() is None
    assert srcampy.unbind(scaler, encoder) == 0
    assert encoder.get_img() is None
    assert srcampy.bind(encoder, camera) == -1
    assert encoder.encode_file(bytes(24 * 32 * 3 // 2)) == encoder.close() == 0
    assert encoder.get_img() is None


def test_a_crop_is_of_the_size_that_the_scaler_was_opened_with(camera: srcampy.Camera) -> None:
    scaler = srcampy.Camera()
    assert scaler.open_vps(1, 2, 128, 96, 32, 24, [96, 72, 32, 24]) == srcampy.bind(camera, scaler) == 0
    assert bgr(scaler.get_img(2, 32, 24), 32, 24) == [0, 0, 1]


def test_a_size_of_zero_keeps_the_place_of_its_crop(
    camera: srcampy.Camera, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is of the crop's size of a scaler, of the sensor's size of a camera."""
    halves = np.full((48, 64, 3), (255, 0, 0), np.uint8)
    halves[:, :32] = 0, 0, 255
    cv2.imwrite(str(tmp_path / "halves.png"), halves)
    monkeypatch.setenv("HBRT_CAMERA", str(tmp_path / "halves.png"))
    crops = [[0, 0, 16, 48], [0, 0, 0, 0], [32, 0, 32, 48]]
    assert camera.open_cam(0, -1, 1000, [0, 24, 32], [0, 20, 24], 48, 64, crops) == 0
    assert bgr(camera.get_img(), 64, 48) == bgr(camera.get_img(2, 64, 48), 64, 48) == [0, 0, 1]
    assert bgr(camera.get_img(2, 24, 20), 24, 20) == bgr(camera.get_img(2, 32, 24), 32, 24) == [1, 0, 0]
    scaler = srcampy.Camera()
    assert scaler.open_vps(1, 2, 64, 48, [0, 32], [0, 24], [[0, 0, 16, 48], [32, 0, 32, 48]]) == 0
    assert srcampy.bind(camera, scaler) == 0
    assert bgr(scaler.get_img(2, 16, 48), 16, 48) == [0, 0, 1]
    assert bgr(scaler.get_img(2, 32, 24), 32, 24) == [1, 0, 0]


@pytest.mark.parametrize("crop", [[100, 0, 32, 24], [-1, 0, 32, 24], [0, 25, 32, 24], [5, 5]])
def test_a_crop_beyond_the_sensor_is_refused(
    camera: srcampy.Camera, capsys: pytest.CaptureFixture[str], crop: list[int]
) -> None:
    assert camera.open_cam(0, -1, 1000, 32, 24, 48, 64, crop) == -1
    assert f"Invalid crop {crop}: must " in capsys.readouterr().err
    assert bgr(camera.get_img(2, 32, 24), 32, 24) == [0, 0, 1]  # since it was opened before


def test_a_camera_does_not_crop_as_it_did_as_a_scaler(camera: srcampy.Camera) -> None:
    frame = camera.get_img(2, 32, 24)
    assert camera.open_vps(1, 2, 64, 48, 32, 24, [64, 48, 32, 24]) == 0
    camera.close_cam()
    assert camera.open_cam(0, -1, 1000, 32, 24) == 0
    assert camera.get_img(2, 32, 24) == frame


def test_the_calls_of_rdk_ultra_take_sizes_as_lists(camera: srcampy.Camera) -> None:
    ultra, scaler, encoder = libsppydev.Camera(), libsppydev.Camera(), libsppydev.Encoder()
    decoder, display = libsppydev.Decoder(), libsppydev.Display()
    assert ultra.open_cam(-1, [[64, 48], [32, 24]], fps=1000) == 0
    assert bgr(ultra.get_frame(2, [32, 24]), 32, 24) == [0, 0, 1]
    assert bgr(ultra.get_frame(2, 64, 48), 64, 48) == [1, 0, 0]
    assert scaler.open_vps([64, 48], [24, 32], [32, 24], 1) == 0
    assert encoder.encode(3, [24, 32]) == 0
    assert decoder.decode(3, [24, 32], "") == [0, 0]
    assert libsppydev.bind(ultra, scaler) == libsppydev.bind(scaler, encoder) == 0
    part = encoder.get_frame()
    assert part is not None
    assert decoder.set_frame(part) == 0
    assert bgr(decoder.get_frame(), 24, 32) == [0, 0, 1]
    assert display.display([64, 48]) == libsppydev.bind(ultra, display) == 0
    assert display.set_rect(8, 8, 40, 40, 1, 0xFF00FF00) == 0
    assert display.send_frame(b"") == -1


def pixel(file: Path) -> list[int]:
    """Color of the picture at (8, 8)."""
    picture = cv2.imread(str(file))
    assert picture is not None
    return [int(one) for one in picture[8, 8]]


def test_a_display_shows_graphics_over_a_frame(
    camera: srcampy.Camera, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = tmp_path / "shown.png"
    monkeypatch.setenv("HBRT_DISPLAY", str(shown))
    display = srcampy.Display()
    frame = camera.get_img(2, 64, 48)
    assert frame is not None
    assert display.set_img(frame) == -1  # the layer is not open
    assert display.get_display_res() == [(1920, 1080)]
    assert display.display(0, 64, 48) == 0
    assert display.set_graph_rect(8, 8, 40, 40, 2, 1, 0xFF00FF00, 2) == 0
    assert display.set_img(frame) == 0
    assert pixel(shown) == [0, 255, 0]
    assert display.set_graph_word(1, 1, "a".encode("gb2312"), 3, 1) == 0  # the rectangle goes
    assert pixel(shown)[2] > 200


def test_a_missing_codec_and_a_missing_file_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert srcampy.Encoder().encode(0, 4, 64, 48) == -1
    assert srcampy.Decoder().decode("missing.jpg", 0, 3, 64, 48) == [-1, 0]
    told = capsys.readouterr().err
    assert "must be 1 (H.264), 2 (H.265) or 3 (MJPEG)" in told
    assert "missing.jpg" in told


def test_h264_survives_where_pyav_is(tmp_path: Path, camera: srcampy.Camera) -> None:
    pytest.importorskip("av")
    encoder, decoder = srcampy.Encoder(), srcampy.Decoder()
    assert encoder.encode(0, 1, 64, 48) == 0
    assert srcampy.bind(camera, encoder) == 0
    file = tmp_path / "stream.h264"
    file.write_bytes(b"".join(encoder.get_img() or b"" for _ in range(4)))
    assert decoder.decode(str(file), 0, 1, 64, 48) == [0, 4]
    assert bgr(decoder.get_img(), 64, 48) == [0, 0, 1]
    assert decoder.close() == 0
    assert decoder.get_img() is None
