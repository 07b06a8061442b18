"""/usr/lib/libpostprocess.so of RDK boards, opened by programs with ctypes: boxes and classes from outputs, as JSON.

On a machine without that file, a program gets this module instead. Each network has a ``...doProcess`` for
the outputs of one scale, and a ``...PostProcess`` that returns all results since its last call.

Source: programs of https://github.com/D-Robotics/x5-hobot-sp-samples, and the behavior of
https://github.com/HorizonRDK/hobot-spdev/tree/master/src/cpp_postprocess.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import threading
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hbrt.dnn_types import hbDNNQuantiType, hbDNNTensor

NAME = "libpostprocess.so"
Real = NDArray[np.float64]
_MAX_CANDIDATES = 400
_COCO = [
    name.strip()
    for name in """
    person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, traffic light, fire hydrant, stop sign,
    parking meter, bench, bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe, backpack, umbrella,
    handbag, tie, suitcase, frisbee, skis, snowboard, sports ball, kite, baseball bat, baseball glove, skateboard,
    surfboard, tennis racket, bottle, wine glass, cup, fork, knife, spoon, bowl, banana, apple, sandwich, orange,
    broccoli, carrot, hot dog, pizza, donut, cake, chair, couch, potted plant, bed, dining table, toilet, tv,
    laptop, mouse, remote, keyboard, cell phone, microwave, oven, toaster, sink, refrigerator, book, clock, vase,
    scissors, teddy bear, hair drier, toothbrush
    """.split(",")  # noqa: SIM905 - one name per line would be a hundred lines
]
_VOC = [
    name.strip()
    for name in """
    aeroplane, bicycle, bird, boat, bottle, bus, car, cat, chair, cow, diningtable, dog, horse, motorbike, person,
    pottedplant, sheep, sofa, train, tvmonitor
    """.split(",")  # noqa: SIM905 - one name per line would be a hundred lines
]
_YOLOV5 = ((10, 13, 16, 30, 33, 23), (30, 61, 62, 45, 59, 119), (116, 90, 156, 198, 373, 326))
_YOLOV3 = (
    (3.625, 2.8125, 4.875, 6.1875, 11.65625, 10.1875),
    (1.875, 3.8125, 3.875, 2.8125, 3.6875, 7.4375),
    (1.25, 1.625, 2.0, 3.75, 4.125, 2.875),
)
_SSD_STEPS = (15, 30, 60, 100, 150, 300)
_SSD_SIZES = ((60, -1), (105, 150), (150, 195), (195, 240), (240, 285), (285, 300))
_EFFICIENT_SCALES = (4.0, 5.039684199579493, 6.3496042078727974)


class _Info(ctypes.Structure):
    """A program's description of a picture, and its thresholds."""

    _fields_ = (
        ("height", ctypes.c_int),
        ("width", ctypes.c_int),
        ("ori_height", ctypes.c_int),
        ("ori_width", ctypes.c_int),
        ("score_threshold", ctypes.c_float),
        ("nms_threshold", ctypes.c_float),
        ("nms_top_k", ctypes.c_int),
        ("is_pad_resize", ctypes.c_int),
    )


class _Found:
    """The results of one network since the last query: rows of x0, y0, x1, y1, score, class."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rows: list[Real] = []

    def add(self, boxes: Real, scores: Real, classes: NDArray[Any]) -> None:
        """Keep boxes (n, 4) with their scores and classes (n,)."""
        with self.lock:
            self.rows.append(np.column_stack([boxes, scores, classes]))

    def taken(self) -> Real:
        """All rows (n, 6), the best first; they are then forgotten."""
        with self.lock:
            rows, self.rows = self.rows, []
        every = np.concatenate(rows) if rows else np.empty((0, 6))
        return every[np.argsort(-every[:, 4], kind="stable")]


class Postprocess:
    """The result of ``ctypes.CDLL("/usr/lib/libpostprocess.so")``: functions whose types a program may set."""

    def __init__(self) -> None:
        found = {name: _Found() for name in ("classification", "yolov3", "yolov5", "fcos", "ssd", "centernet")}
        found["efficient_det"] = _Found()
        functions: dict[str, Callable[..., Any]] = {
            "ClassificationDoProcess": lambda *given: _classify(found["classification"], *given[:2]),
            "ClassificationPostProcess": lambda info: _classes(found["classification"], info),
            "Yolov5doProcess": lambda *given: _yolov5(found["yolov5"], *given),
            "Yolov5PostProcess": lambda info: _boxes("yolov5", found["yolov5"], info, _COCO),
            "Yolov3doProcess": lambda *given: _yolov3(found["yolov3"], *given),
            "Yolov3PostProcess": lambda info: _boxes("yolov3", found["yolov3"], info, _COCO, _MAX_CANDIDATES),
            "FcosdoProcess": lambda *given: _fcos(found["fcos"], *given),
            "FcosPostProcess": lambda info: _boxes("fcos", found["fcos"], info, _COCO),
            "SsddoProcess": lambda *given: _ssd(found["ssd"], *given),
            "SsdPostProcess": lambda info: _boxes("ssd", found["ssd"], info, _VOC, _MAX_CANDIDATES),
            "EfficientdetdoProcess": lambda *given: _efficientdet(found["efficient_det"], *given),
            "EfficientdetPostProcess": lambda info: _efficientdet_boxes(found["efficient_det"], info),
            "CenternetdoProcess": lambda *given: _centernet(found["centernet"], *given),
            "Centernet_resnet101_doProcess": lambda *given: _centernet_101(found["centernet"], *given),
            "CenternetPostProcess": lambda _: _json("centernet", found["centernet"].taken(), _COCO),
        }
        for name, call in functions.items():
            setattr(self, name, _Function(call))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{NAME} of hbrt has no {name}; docs/rdk.md lists what it has.")


class _Function:
    """A function of the library; ``argtypes`` and ``restype`` may be set and have no effect."""

    argtypes: Any = None
    restype: Any = None

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *given: Any) -> Any:
        return self._call(*given)


def install() -> None:
    """Make ``ctypes.CDLL`` return ``Postprocess`` for a file of that name if the file does not exist."""

    def new(cls: type[ctypes.CDLL], name: Any = None, *args: Any, **how: Any) -> Any:
        del args, how
        text = os.fsdecode(name) if isinstance(name, (str, bytes, os.PathLike)) else ""
        if os.path.basename(text) == NAME and not os.path.exists(text):  # noqa: PTH119, PTH110 - a name, not a path
            return _library()
        return object.__new__(cls)

    ctypes.CDLL.__new__ = new  # type: ignore[method-assign, assignment]


_made: list[Postprocess] = []


def _library() -> Postprocess:
    if not _made:
        _made.append(Postprocess())
    return _made[0]


def _behind(value: Any, kind: Any) -> Any:
    """The structure that a program passes by value, by pointer or by reference, in our layout."""
    if isinstance(value, ctypes.Structure):
        return kind.from_address(ctypes.addressof(value))
    return kind.from_address(ctypes.cast(value, ctypes.c_void_p).value or 0)


def _info(value: Any) -> _Info:
    made: _Info = _behind(value, _Info)
    return made


def _real(tensor: Any, *, has_planes: bool = False, stored: type[np.generic] = np.int32) -> tuple[Real, bool]:
    """The numbers of a tensor (H, W, C), dequantized, and whether they were quantized.

    Args:
        tensor: The tensor; its shape, and the kind and the scales of its numbers, are checked.
        has_planes: Whether it is (C, H, W).
        stored: Type of quantized numbers.
    """
    told = _behind(tensor, hbDNNTensor)
    shape = _shape(tensor)
    is_scaled = told.properties.quantiType == hbDNNQuantiType.SCALE
    kind = np.dtype(stored if is_scaled else np.float32)
    address = int(told.sysMem[0].virAddr or 0)
    data = np.ctypeslib.as_array((ctypes.c_uint8 * (math.prod(shape) * kind.itemsize)).from_address(address)).view(kind)
    values = data.reshape(shape).astype(np.float64)
    if has_planes:
        values = np.moveaxis(values, -3, -1)
    if is_scaled:
        scales = ctypes.cast(told.properties.scale.scaleData, ctypes.POINTER(ctypes.c_float))
        values = values * np.ctypeslib.as_array(scales, (values.shape[-1],))
    return values[0] if values.ndim == 4 else values, is_scaled


def _shape(tensor: Any) -> list[int]:
    told = _behind(tensor, hbDNNTensor).properties
    valid = [size for size in told.validShape.dimensionSize if size > 0]
    return valid or [size for size in told.alignedShape.dimensionSize if size > 0]


def _sigmoid(values: Any) -> Any:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-values))


def _grid(height: int, width: int) -> tuple[Real, Real]:
    """Columns and rows (H, W, 1) of a grid."""
    rows, columns = np.mgrid[:height, :width].astype(np.float64)
    return columns[..., None], rows[..., None]


def _corners(x: Any, y: Any, width: Any, height: Any) -> Real:
    return np.stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2], axis=-1)


def _classify(found: _Found, tensor: Any, info: Any) -> None:
    scores = _real(tensor)[0].reshape(-1)
    classes = np.flatnonzero(scores > _info(info).score_threshold)
    found.add(np.zeros((len(classes), 4)), scores[classes], classes)


def _classes(found: _Found, info: Any) -> bytes:
    rows = found.taken()[: _info(info).nms_top_k]
    texts = [f'{{"prob":{row[4]:.5f},"label":{int(row[5])},"class_name":"class {int(row[5])}"}}' for row in rows]
    return f'"classification_result": [{",".join(texts)}]'.encode()


def _to_picture(boxes: Real, told: _Info) -> tuple[Real, NDArray[np.bool_]]:
    """Convert boxes (n, 4) of the model's input to the picture, clipped, and return which of them are valid boxes."""
    ratio = np.array([told.width / told.ori_width, told.height / told.ori_height])
    if told.is_pad_resize:
        ratio[:] = ratio.min()
    size = np.array([told.ori_width, told.ori_height], np.float64)
    padding = (np.array([told.width, told.height]) - ratio * size) / 2
    moved = (boxes - np.tile(padding, 2)) / np.tile(ratio, 2)
    good = (moved[:, 2:] > 0).all(axis=1) & (moved[:, :2] <= moved[:, 2:]).all(axis=1)
    inside = np.concatenate([np.maximum(moved[:, :2], 0), np.minimum(moved[:, 2:], size - 1)], axis=1)
    return inside, good


def _yolo(found: _Found, tensor: Any, info: Any, anchors: Any, decode: Callable[..., Real]) -> None:
    told = _info(info)
    values = _real(tensor, has_planes=bool(_shape(tensor)[-1] % 3))[0]  # three anchors' numbers per row
    height, width, _ = values.shape
    cells = values.reshape(height, width, 3, -1)
    classes = cells[..., 5:].argmax(axis=-1)
    best = np.take_along_axis(cells[..., 5:], classes[..., None], axis=-1)[..., 0]
    scores = _sigmoid(cells[..., 4]) * _sigmoid(best)
    boxes = decode(cells, *_grid(height, width), np.reshape(anchors, (3, 2)))
    chosen = scores >= told.score_threshold
    inside, good = _to_picture(boxes[chosen], told)
    found.add(inside[good], scores[chosen][good], classes[chosen][good])


def _yolov5(found: _Found, tensor: Any, info: Any, layer: int) -> None:
    stride = 8 << layer

    def decode(cells: Real, x: Real, y: Real, anchors: Real) -> Real:
        at, size = _sigmoid(cells[..., :2]) * 2 - 0.5, (_sigmoid(cells[..., 2:4]) * 2) ** 2 * anchors
        return _corners((at[..., 0] + x) * stride, (at[..., 1] + y) * stride, size[..., 0], size[..., 1])

    _yolo(found, tensor, info, _YOLOV5[layer], decode)


def _yolov3(found: _Found, tensor: Any, info: Any, layer: int) -> None:
    stride = 32 >> layer

    def decode(cells: Real, x: Real, y: Real, anchors: Real) -> Real:
        at, size = _sigmoid(cells[..., :2]), np.exp(cells[..., 2:4]) * anchors * stride
        return _corners((at[..., 0] + x) * stride, (at[..., 1] + y) * stride, size[..., 0], size[..., 1])

    _yolo(found, tensor, info, _YOLOV3[layer], decode)


def _fcos(found: _Found, classes: Any, boxes: Any, centers: Any, info: Any, layer: int) -> None:
    told = _info(info)
    has_planes = _shape(classes)[-1] != len(_COCO)
    scores, is_scaled = _real(classes, has_planes=has_planes)
    sides, center = (_real(one, has_planes=has_planes)[0] for one in (boxes, centers))
    stride = 8 << layer
    height, width, _ = scores.shape
    best = scores.argmax(axis=-1)
    total = np.sqrt(_sigmoid(scores.max(axis=-1)) * _sigmoid(center[..., 0]))
    x, y = _grid(height, width)
    # Distances of planes that are not dequantized are in cells, and not below 0.
    far = (np.maximum(sides, 0) * stride if is_scaled and has_planes else sides)[..., :4]
    at = np.concatenate([x + 0.5, y + 0.5], axis=-1) * stride
    longest = max(told.ori_height, told.ori_width)
    size = (longest, longest) if told.is_pad_resize else (told.ori_width, told.ori_height)
    scale = np.tile(np.array(size) / (told.width, told.height), 2)
    corners = np.concatenate([at - far[..., :2], at + far[..., 2:]], axis=-1) * scale
    chosen = total > told.score_threshold
    found.add(corners[chosen], total[chosen], best[chosen])


def _ssd(found: _Found, boxes: Any, classes: Any, info: Any, layer: int) -> None:
    told = _info(info)
    values = _real(classes)[0]
    height, width, _ = values.shape
    logits = values.reshape(-1, len(_VOC) + 1)
    moves = _real(boxes)[0].reshape(-1, 4)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    scores = weights[:, 1:].max(axis=-1) / weights.sum(axis=-1)
    best = weights[:, 1:].argmax(axis=-1)
    least, most = _SSD_SIZES[layer]
    sizes = [(least, least)] + ([(math.sqrt(least * most),) * 2] if most > 0 else [])
    ratios = (2, 0.5) if most < 0 else (2, 0.5, 3, 1 / 3)
    sizes += [(least * math.sqrt(ratio), least / math.sqrt(ratio)) for ratio in ratios]
    x, y = ((one + 0.5) * _SSD_STEPS[layer] for one in _grid(height, width))
    w, h = (np.broadcast_to([size[at] for size in sizes], (height, width, len(sizes))) for at in (0, 1))
    priors = np.stack([np.broadcast_to(x, w.shape), np.broadcast_to(y, w.shape), w, h], axis=-1).reshape(-1, 4)
    priors = priors / (told.width, told.height, told.width, told.height)
    at = moves[:, :2] * 0.1 * priors[:, 2:] + priors[:, :2]
    size = np.exp(moves[:, 2:] * 0.2) * priors[:, 2:]
    corners = _corners(at[:, 0], at[:, 1], size[:, 0], size[:, 1]) * np.tile([told.ori_width, told.ori_height], 2)
    corners[:, :2] = np.maximum(corners[:, :2], 0)
    corners[:, 2:] = np.minimum(corners[:, 2:], [told.ori_width - 1, told.ori_height - 1])
    chosen = (scores > told.score_threshold) & (weights[:, 1:].max(axis=-1) > weights[:, 0])
    chosen &= (corners[:, 2:] > 0).all(axis=1) & (corners[:, :2] <= corners[:, 2:]).all(axis=1)
    found.add(corners[chosen], scores[chosen], best[chosen])


def _efficientdet(found: _Found, classes: Any, boxes: Any, info: Any, layer: int) -> None:
    told = _info(info)
    values = _real(classes)[0]
    height, width, _ = values.shape
    scores, moves = values.reshape(-1, len(_COCO)), _real(boxes)[0].reshape(-1, 4)
    stride = 8 << layer
    sizes = []
    for ratio in (0.5, 1, 2):
        across = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5)
        sizes += [(across * scale, math.floor(across * ratio + 0.5) * scale) for scale in _EFFICIENT_SCALES]
    x, y = (one * stride + 0.5 * (stride - 1) for one in _grid(height, width))
    w, h = (np.broadcast_to([size[at] for size in sizes], (height, width, len(sizes))).reshape(-1) for at in (0, 1))
    x, y = (np.broadcast_to(one, (height, width, len(sizes))).reshape(-1) for one in (x, y))
    wide, high = np.exp(moves[:, 2]) * w - 1, np.exp(moves[:, 3]) * h - 1
    corners = _corners(moves[:, 0] * w + x, moves[:, 1] * h + y, wide, high)
    size = _efficientdet_sizes(told)[1]
    corners[:, :2] = np.maximum(corners[:, :2], 0)
    corners[:, 2:] = np.minimum(corners[:, 2:], size)
    chosen = scores.max(axis=-1) > told.score_threshold
    found.add(corners[chosen], scores.max(axis=-1)[chosen], scores.argmax(axis=-1)[chosen])


def _efficientdet_sizes(told: _Info) -> tuple[Real, Real]:
    """The scale from picture to model input, and the part of the input that the picture fills."""
    ratio = np.array([told.width / told.ori_width, told.height / told.ori_height])
    if not told.is_pad_resize:
        return ratio, np.array([told.width, told.height], np.float64)
    ratio[:] = ratio.min()
    return ratio, np.ceil(ratio * (told.ori_width, told.ori_height) / 128) * 128


def _efficientdet_boxes(found: _Found, info: Any) -> bytes:
    told = _info(info)
    rows = _suppressed(found.taken(), told)
    rows[:, :4] /= np.tile(_efficientdet_sizes(told)[0], 2)
    rows[:, 2:4] = np.minimum(rows[:, 2:4], [told.ori_width - 1, told.ori_height - 1]) + 1
    return _json("efficient_det", rows, _COCO)


def _centernet(found: _Found, heat: Any, sizes: Any, offsets: Any, info: Any, layer: int) -> None:
    del layer
    told = _info(info)
    values = _planes(heat)
    around = cv2.dilate(values.astype(np.float32), np.ones((3, 3), np.uint8))
    peaks = np.where(values.astype(np.float32) >= around.reshape(values.shape), _sigmoid(values), 0)
    _peaks(found, peaks, sizes, offsets, told)


def _centernet_101(found: _Found, heat: Any, sizes: Any, offsets: Any, info: Any, layer: int) -> None:
    del layer
    _peaks(found, _planes(heat, stored=np.int16), sizes, offsets, _info(info))


def _planes(tensor: Any, *, stored: type[np.generic] = np.int32) -> Real:
    """A tensor of planes (C, H, W) as (H, W, C)."""
    return _real(tensor, has_planes=True, stored=stored)[0]


def _peaks(found: _Found, scores: Real, sizes: Any, offsets: Any, told: _Info) -> None:
    """Keep the best points of a map of scores (H, W, C)."""
    height, width, _ = scores.shape
    best = np.argsort(-scores, axis=None, kind="stable")[: told.nms_top_k]
    best = best[scores.reshape(-1)[best] > told.score_threshold]
    rows, columns, classes = np.unravel_index(best, scores.shape)
    size, offset = _planes(sizes)[rows, columns], _planes(offsets)[rows, columns]
    corners = _corners(columns + offset[:, 0], rows + offset[:, 1], size[:, 0], size[:, 1])
    longest = max(told.ori_height, told.ori_width)
    if told.is_pad_resize:
        scale = np.array([longest / width, longest / height])
        padding = np.array([longest - told.ori_width, longest - told.ori_height]) // 2
    else:
        scale, padding = np.array([told.ori_width, told.ori_height]) / 128, np.zeros(2)
    found.add(corners * np.tile(scale, 2) - np.tile(padding, 2), scores.reshape(-1)[best], classes)


def _suppressed(rows: Real, told: _Info, most: int | None = None) -> Real:
    """The rows left after non-maximum suppression per class, best first."""
    left = rows[:most]
    kept: list[Real] = []
    while len(left) and len(kept) < told.nms_top_k:
        best, left = left[0], left[1:]
        kept.append(best)
        shared = np.clip(np.minimum(best[2:4], left[:, 2:4]) - np.maximum(best[:2], left[:, :2]), 0, None).prod(axis=1)
        areas = (left[:, 2:4] - left[:, :2]).prod(axis=1) + (best[2:4] - best[:2]).prod()
        with np.errstate(divide="ignore", invalid="ignore"):
            over = shared / (areas - shared) > told.nms_threshold
        left = left[~(over & (left[:, 5] == best[5]))]
    return np.array(kept).reshape(-1, 6)


def _boxes(name: str, found: _Found, info: Any, names: list[str], most: int | None = None) -> bytes:
    return _json(name, _suppressed(found.taken(), _info(info), most), names)


def _json(name: str, rows: Real, names: list[str]) -> bytes:
    """The text for the program: a name, and a list in JSON."""
    texts = []
    for *box, score, number in rows:
        corners = ",".join(f"{one:.6f}" for one in box)
        label = json.dumps(names[int(number)] if number < len(names) else f"class {int(number)}")
        texts.append(f'{{"bbox":[{corners}],"score":{score:.6f},"id":{int(number)},"name":{label}}}')
    return f'"{name}_result": [{",".join(texts)}]'.encode()
