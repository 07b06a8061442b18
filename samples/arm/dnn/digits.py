"""Handwritten digits by a small net, as a float model and as an int8 one, with the C API's names.

    python digits.py [DIRECTORY]

Both models are loaded by one call. The float model takes and gives real numbers; the int8 model's tensors are S8 with
a scale and a zero point, by which this program quantises and dequantises. Every image of the test split goes through
both. DIRECTORY holds the models and the images, which samples/dnn/train_digits.py made; samples/dnn when none is named.

`run()` returns op, status (0 is success), max_error (share of the images on which the two models disagree),
host_time_us (submit to release of one inference of the int8 model, the median), accuracy of each model, report (lines
for the reader) and passed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import arm_client as hb

HERE = Path(__file__).resolve().parent.parent.parent / "dnn"
NAMES = ("digits_float", "digits_int8")
SHOWN = 3  # images whose five likeliest digits are printed
LEAST_ACCURACY, MOST_DISAGREE = 0.97, 0.02


def run(directory: str | None = None) -> dict[str, Any]:
    """Classifies the test split with both models."""
    where = Path(directory or HERE)
    models = [where / f"{name}.onnx" for name in NAMES]
    for file in (where / "digits_test.npz", *models):
        if not file.is_file():
            raise RuntimeError(f"There is no {file}: name the directory of it, as in python digits.py DIRECTORY.")
    held = np.load(where / "digits_test.npz")
    images, labels = (held["images"] / 16).astype(np.float32), held["labels"]

    packed = hb.hbPackedDNNHandle_t()
    check(hb.hbDNNInitializeFromFiles(packed, [str(file) for file in models], len(models)), "hbDNNInitializeFromFiles")
    logits, times_us = {}, {}
    for name in NAMES:
        model = hb.hbDNNHandle_t()
        check(hb.hbDNNGetModelHandle(model, packed, name), "hbDNNGetModelHandle")
        logits[name], times_us[name] = classify(model, images)
    check(hb.hbDNNRelease(packed), "hbDNNRelease")

    found = {name: values.argmax(1) for name, values in logits.items()}
    accuracy = {name: float((digits == labels).mean()) for name, digits in found.items()}
    disagree = float((found[NAMES[0]] != found[NAMES[1]]).mean())
    report = [top5(f"image {at}, a {labels[at]}", logits[NAMES[1]][at]) for at in range(SHOWN)]
    for name in NAMES:
        right = round(accuracy[name] * len(labels))
        report.append(
            f"{name}: {right} of {len(labels)} right ({accuracy[name]:.2%}), {times_us[name]:.0f} us an image"
        )
    return {
        "op": "digits",
        "status": 0,
        "max_error": disagree,
        "host_time_us": times_us[NAMES[1]],
        "accuracy": accuracy,
        "report": report,
        "passed": min(accuracy.values()) >= LEAST_ACCURACY and disagree <= MOST_DISAGREE,
    }


def classify(model: hb.hbDNNHandle_t, images: Any) -> tuple[Any, float]:
    """Logits (n, 10) of images (n, 8, 8), and the median time of an inference in microseconds."""
    image, logits = hb.hbDNNTensor(), hb.hbDNNTensor()
    check(hb.hbDNNGetInputTensorProperties(image.properties, model, 0), "hbDNNGetInputTensorProperties")
    check(hb.hbDNNGetOutputTensorProperties(logits.properties, model, 0), "hbDNNGetOutputTensorProperties")
    for tensor in (image, logits):
        mem = hb.hbSysMem()
        check(hb.hbSysAllocMem(mem, tensor.properties.alignedByteSize), "hbSysAllocMem")
        tensor.sysMem[0] = mem
        tensor.properties.alignedShape = tensor.properties.validShape  # rows without padding: the runtime pads

    ctrl = hb.hbDNNInferCtrlParam()
    hb.HB_DNN_INITIALIZE_INFER_CTRL_PARAM(ctrl)
    stored_image = values(image, (8, 8))
    stored_logits = values(logits, (10,))
    results, times_us = np.empty((len(images), 10), np.float32), []
    for at, picture in enumerate(images):
        stored_image[:] = quantize(picture, image.properties)
        start = time.perf_counter()
        task = hb.hbDNNTaskHandle_t()
        check(hb.hbDNNInfer(task, logits, image, model, ctrl), "hbDNNInfer")
        check(hb.hbDNNWaitTaskDone(task, 0), "hbDNNWaitTaskDone")
        check(hb.hbDNNReleaseTask(task), "hbDNNReleaseTask")
        times_us.append((time.perf_counter() - start) * 1e6)
        results[at] = dequantize(stored_logits, logits.properties)
    for tensor in (image, logits):
        check(hb.hbSysFreeMem(tensor.sysMem[0]), "hbSysFreeMem")
    return results, float(np.median(times_us))


def values(tensor: hb.hbDNNTensor, shape: tuple[int, ...]) -> Any:
    """The tensor's memory as an array of its type."""
    is_float = tensor.properties.tensorType == hb.hbDNNDataType.HB_DNN_TENSOR_TYPE_F32
    return tensor.sysMem[0].array(np.float32 if is_float else np.int8, shape)


def quantize(real: Any, properties: hb.hbDNNTensorProperties) -> Any:
    """Real numbers as the tensor stores them: x / scale + zero point, rounded to the nearest even."""
    if properties.quantiType == hb.hbDNNQuantiType.NONE:
        return real
    scale, zero = properties.scale.scaleData[0], properties.scale.zeroPointData[0]
    return np.clip(np.rint(real / scale + zero), -128, 127).astype(np.int8)


def dequantize(stored: Any, properties: hb.hbDNNTensorProperties) -> Any:
    """Real numbers of stored ones: (y - zero point) * scale."""
    if properties.quantiType == hb.hbDNNQuantiType.NONE:
        return stored
    scale, zero = properties.scale.scaleData[0], properties.scale.zeroPointData[0]
    return (stored.astype(np.float32) - zero) * scale


def top5(what: str, logits: Any) -> str:
    """A line with the five likeliest digits."""
    likely = np.exp(logits - logits.max())
    likely /= likely.sum()
    order = np.argsort(-likely)[:5]
    return f"{what}: " + ", ".join(f"{digit} ({likely[digit]:.1%})" for digit in order)


def check(status: int, call: str) -> None:
    """Stops with the call's name and the runtime's sentence when a call failed."""
    if status != 0:
        raise RuntimeError(f"{call} returned {status}: {hb.last_error() or hb.hbDNNGetErrorDesc(status)}")


def main() -> int:
    """Prints the report; 0 when both models are good."""
    try:
        got = run(sys.argv[1] if len(sys.argv) > 1 else None)
    except RuntimeError as error:
        print(f"digits: {error}", file=sys.stderr)
        return 1
    print("\n".join(got["report"]))
    return 0 if got["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
