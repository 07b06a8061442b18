"""libpostprocess.so, as programs call it through ctypes."""

import ctypes
import json
from typing import Any

import numpy as np
import pytest

import hobot_dnn.pyeasy_dnn  # noqa: F401 - it has the library found
from hbrt.dnn_types import hbDNNTensor


class Info(ctypes.Structure):
    """As programs define it."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("height", "width", "ori_height", "ori_width")),
        ("score_threshold", ctypes.c_float),
        ("nms_threshold", ctypes.c_float),
        ("nms_top_k", ctypes.c_int),
        ("is_pad_resize", ctypes.c_int),
    )


@pytest.fixture
def library() -> Any:
    """What a program gets."""
    return ctypes.CDLL("/usr/lib/libpostprocess.so")


def tensor(values: np.ndarray[Any, Any], scale: np.ndarray[Any, Any] | None = None) -> hbDNNTensor:
    """A structure as programs fill it: shape, address, and scales of quantized numbers."""
    made = hbDNNTensor()
    made.properties.validShape.dimensionSize[: values.ndim] = values.shape
    made.sysMem[0].virAddr = values.ctypes.data
    if scale is not None:
        made.properties.quantiType = 2
        made.properties.scale.scaleData = scale.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    return made


def found(text: bytes, name: str) -> Any:
    """The list behind the name."""
    head = f'"{name}_result":'
    assert text.decode().startswith(head)
    return json.loads(text.decode()[len(head) :])


def test_classes_come_by_their_score(library: Any) -> None:
    info = Info(score_threshold=0.5, nms_top_k=2)
    scores = np.array([[0.1, 0.9, 0.6, 0.7]], np.float32)
    library.ClassificationDoProcess(tensor(scores), ctypes.pointer(info), 0)
    answer = library.ClassificationPostProcess
    answer.argtypes, answer.restype = [ctypes.POINTER(Info)], ctypes.c_char_p
    rows = found(answer(ctypes.pointer(info)), "classification")
    assert [(row["label"], row["prob"]) for row in rows] == [(1, 0.9), (3, 0.7)]
    assert found(answer(ctypes.byref(info)), "classification") == []  # they were taken


@pytest.mark.parametrize("is_scaled", [False, True])
def test_yolov5_finds_the_one_box(library: Any, is_scaled: bool) -> None:  # noqa: FBT001
    """A cell of the first scale whose numbers are 0 but for the score: an anchor in the middle of the cell."""
    info = Info(64, 64, 128, 128, 0.4, 0.45, 20, 0)
    values = np.full((1, 8, 8, 255), -20, np.float32)
    values[0, 4, 2, :4] = 0
    values[0, 4, 2, [4, 5 + 16]] = 20
    scale = np.full(255, 0.5, np.float32)
    stored = (values * 2).astype(np.int32) if is_scaled else values
    library.Yolov5doProcess(tensor(stored, scale if is_scaled else None), ctypes.pointer(info), 0)
    (row,) = found(library.Yolov5PostProcess(ctypes.pointer(info)), "yolov5")
    assert row == {"bbox": [30.0, 59.0, 50.0, 85.0], "score": 1.0, "id": 16, "name": "dog"}


def test_boxes_that_overlap_are_one_and_planes_are_read(library: Any) -> None:
    """FCOS on planes: two adjacent cells with nearly the same box."""
    info = Info(64, 64, 64, 64, 0.4, 0.5, 20, 0)
    classes, boxes = np.full((1, 80, 8, 8), -20, np.float32), np.zeros((1, 4, 8, 8), np.float32)
    classes[0, 0, 4, 4], classes[0, 0, 4, 5] = 10, 5
    boxes[0, :, 4, 4:6] = 16
    centers = np.full((1, 1, 8, 8), 10, np.float32)
    library.FcosdoProcess(tensor(classes), tensor(boxes), tensor(centers), info, 0)
    (row,) = found(library.FcosPostProcess(info), "fcos")
    assert row["bbox"] == [20.0, 20.0, 52.0, 52.0]
    assert row["name"] == "person"


def test_priors_of_ssd_and_efficientdet(library: Any) -> None:
    info = Info(300, 300, 300, 300, 0.4, 0.5, 20, 0)
    classes, boxes = np.zeros((1, 19, 19, 63), np.float32), np.zeros((1, 19, 19, 12), np.float32)
    classes[0, 10, 10, 15] = 20
    library.SsddoProcess(tensor(boxes), tensor(classes), info, 0)
    (row,) = found(library.SsdPostProcess(info), "ssd")
    assert row["bbox"] == [127.5, 127.5, 187.5, 187.5]
    assert row["name"] == "person"
    scores, moves = np.zeros((1, 8, 8, 720), np.float32), np.zeros((1, 8, 8, 36), np.float32)
    scores[0, 3, 3, 3 * 80 + 2] = 0.9  # the fourth anchor: as wide as high
    library.EfficientdetdoProcess(tensor(scores), tensor(moves), info, 0)
    (row,) = found(library.EfficientdetPostProcess(info), "efficient_det")
    assert row["bbox"] == [12.0, 12.0, 44.0, 44.0]
    assert row["name"] == "car"


def test_peaks_of_centernet(library: Any) -> None:
    info = Info(512, 512, 128, 128, 0.4, 0.5, 2, 0)
    heat = np.full((1, 80, 128, 128), -20, np.float32)
    heat[0, 2, 64, 32], heat[0, 2, 64, 33] = 5, 4  # one peak, and its slope
    sizes, offsets = np.full((1, 2, 128, 128), 8, np.float32), np.full((1, 2, 128, 128), 0.5, np.float32)
    library.CenternetdoProcess(tensor(heat), tensor(sizes), tensor(offsets), info, 0)
    (row,) = found(library.CenternetPostProcess(info), "centernet")
    assert row["bbox"] == [28.5, 60.5, 36.5, 68.5]
    assert row["id"] == 2


def test_other_libraries_are_opened_as_ever(library: Any) -> None:
    assert ctypes.CDLL(None).getpid() > 0
    with pytest.raises(AttributeError, match=r"docs/rdk\.md"):
        library.Missing  # noqa: B018 - the look-up is what is tested
    with pytest.raises(OSError, match="no_such"):
        ctypes.CDLL("/usr/lib/no_such.so")
