"""The references of the samples' results: one table, with a check for each sample that the runner knows."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np


class Verdict(NamedTuple):
    """The comparison of a result with its reference.

    Attributes:
        max_error: Largest difference from the reference.
        passed: Whether that is within the sample's tolerance.
        more: Other facts on the result, by name.
    """

    max_error: float
    passed: bool
    more: dict[str, Any]


def verdict_of(group: str, name: str, result: Any, sample: SimpleNamespace, given: dict[str, Any]) -> Verdict | None:
    """Compare a sample's result with its reference; None if there is none.

    Args:
        group: Of the sample.
        name: Of the sample.
        result: The result of its ``main()``.
        sample: Names of its file.
        given: Arguments of its ``main()``, by name.
    """
    if group == "cv":
        from arm_client.commands.run.references_cv import expected

        return _within(result, expected(name, given.get("input_file", str(sample.PICTURE)), sample), 0)
    check = CHECKS.get((group, name))
    return None if check is None else check(result, sample, given)


def _within(result: Any, expected: Any, tolerance: float, **more: Any) -> Verdict:
    has_shape = np.shape(result) == np.shape(expected)
    largest = float(np.abs(np.asarray(result, np.float64) - expected).max()) if has_shape else float("inf")
    return Verdict(largest, largest <= tolerance, more)


def _softmax(result: Any, sample: SimpleNamespace, _given: dict[str, Any]) -> Verdict:
    logits = sample.LOGITS.astype(np.float64)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return _within(result, exponentials / exponentials.sum(axis=1, keepdims=True), 1e-6)


def _quantize(result: Any, sample: SimpleNamespace, _given: dict[str, Any]) -> Verdict:
    along = (1, -1, 1, 1)
    steps = sample.IMAGE / sample.SCALES.reshape(along) + sample.ZERO_POINTS.astype(np.float32).reshape(along)
    return _within(result, np.clip(np.rint(steps), -128, 127), 0)


def _dequantize(result: Any, sample: SimpleNamespace, _given: dict[str, Any]) -> Verdict:
    return _within(result, (sample.QUANTIZED.astype(np.float32) - sample.ZERO_POINT) * np.float32(sample.SCALE), 0)


def _point_cloud(result: Any, sample: SimpleNamespace, given: dict[str, Any]) -> Verdict:
    from arm_client.nn import CENTERPOINT, POINTPILLARS
    from arm_client.nn.pointcloud.reference import preprocess

    points = sample.load(given.get("points_file", ""))
    config = next(model for model in (CENTERPOINT, POINTPILLARS) if model.dims == points.shape[1])
    reference = preprocess(points, config)
    verdict = _within(result.features, reference.features, 0, points=len(points), pillars=result.voxel_count)
    return verdict._replace(passed=verdict.passed and np.array_equal(result.coordinates, reference.coordinates))


def _digits(result: Any, sample: SimpleNamespace, _given: dict[str, Any]) -> Verdict:
    accuracy = {name: float((result[name] == result["labels"]).mean()) for name in sample.NAMES}
    disagree = float((result[sample.NAMES[0]] != result[sample.NAMES[1]]).mean())
    return Verdict(disagree, min(accuracy.values()) >= 0.97 and disagree <= 0.02, {"accuracy": accuracy})


def _words(result: Any, _sample: SimpleNamespace, _given: dict[str, Any]) -> Verdict:
    if result is None:  # of files of the user's own
        return Verdict(0.0, passed=True, more={})
    cpu, *others = result.values()
    furthest = max(abs(rate - cpu) for rate in others)
    return Verdict(furthest, furthest <= 0.01, {"word_error_rates": result})


def _known_digits(result: Any, _sample: SimpleNamespace, _given: dict[str, Any]) -> Verdict:
    wrong = float((result["found"] != result["labels"]).mean())
    return Verdict(wrong, wrong <= 0.03, {"accuracy": 1 - wrong})


def _custom_op(result: Any, sample: SimpleNamespace, _given: dict[str, Any]) -> Verdict:
    scores = np.einsum("oi,nihw->nohw", sample.WEIGHTS[:, :, 0, 0], sample.X)
    return _within(result, scores / (1 + np.exp(-sample.BETA * scores)), 1e-5)


def _custom_op_in_c(result: Any, sample: SimpleNamespace, _given: dict[str, Any]) -> Verdict:
    sums = np.arange(np.prod(sample.SHAPE), dtype=np.float32).reshape(sample.SHAPE).sum(1).ravel() / 100
    return _within(result, sums / (1 + np.exp(-sample.BETA * sums)), 1e-5)


def _dynamic_shape(result: Any, sample: SimpleNamespace, _given: dict[str, Any]) -> Verdict:
    windows = (np.lib.stride_tricks.sliding_window_view(one, (3, 3), (2, 3)) for one in result["pictures"])
    features = (np.einsum("nihwab,oiab->nohw", one, sample.WEIGHTS) for one in windows)
    expected = [np.maximum(one, 0).mean((2, 3), keepdims=True) for one in features]
    return _within(np.stack(result["results"]), np.stack(expected), 1e-4)


def _custom_layer(result: Any, sample: SimpleNamespace, _given: dict[str, Any]) -> Verdict:
    scores = sample.X @ sample.WEIGHTS
    return _within(result, np.stack([scores.argmax(-1), scores.max(-1)], -1), 1e-5)


def _mobilenet(result: Any, sample: SimpleNamespace, given: dict[str, Any]) -> Verdict:
    """Compare with a run whose softmax stays on the BPU."""
    from contextlib import redirect_stdout
    from io import StringIO

    import arm_client as hb

    hb.hbDNNUnregisterLayerCreator("Softmax")
    with redirect_stdout(StringIO()):
        return _within(result, sample.main(**given), 1e-6)


def _forward(result: Any, sample: SimpleNamespace, _given: dict[str, Any]) -> Verdict:
    values = sample.INPUT
    for matrix in sample.WEIGHTS:
        sums = values.astype(np.int32) @ matrix.astype(np.int32)
        values = sums * 255 // sums.max()
    return _within(result, values, 0)


Check = Callable[[Any, SimpleNamespace, dict[str, Any]], Verdict]
CHECKS: dict[tuple[str, str], Check] = {
    ("asr", "words"): _words,
    ("fastrpc", "forward"): _forward,
    ("dnn", "custom_layer"): _custom_layer,
    ("dnn", "digits"): _digits,
    ("dnn", "mobilenetv1"): _mobilenet,
    ("nn", "centerpoint"): _point_cloud,
    ("nn", "dequantize"): _dequantize,
    ("nn", "pointpillars"): _point_cloud,
    ("nn", "quantize"): _quantize,
    ("nn", "softmax"): _softmax,
    ("rknn", "classification"): _known_digits,
    ("rknn", "custom_op"): _custom_op,
    ("rknn", "custom_op_c"): _custom_op_in_c,
    ("rknn", "dynamic_shape"): _dynamic_shape,
    ("rknn", "multi_batch"): _known_digits,
    ("rknn", "zero_copy"): _known_digits,
}
