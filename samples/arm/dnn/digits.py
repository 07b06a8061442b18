"""Handwritten digits with a small trained network, as a float model and as an int8 one.

python digits.py [DIRECTORY] takes the models and the test images from DIRECTORY, or from samples/dnn.

One call loads both models. The float model's inputs and outputs are real numbers. The int8 model's tensors are S8 with
a scale and a zero point: the program quantizes its inputs and dequantizes its outputs. samples/dnn/train_digits.py made
the files.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.sample import check

FOLDER = Path(__file__).resolve().parent.parent.parent / "dnn"
NAMES = ("digits_float", "digits_int8")


def main(directory: str = str(FOLDER)) -> dict[str, Any]:
    """Prints how many images each model recognizes; returns the recognized digits, and the labels."""
    files = [f"{directory}/{name}.onnx" for name in NAMES]
    held = np.load(f"{directory}/digits_test.npz")
    images, labels = (held["images"] / 16).astype(np.float32), held["labels"]

    packed = hb.hbPackedDNNHandle_t()
    check(hb.hbDNNInitializeFromFiles(packed, files, len(files)), "hbDNNInitializeFromFiles")
    found: dict[str, Any] = {"labels": labels}
    for name in NAMES:
        model = hb.hbDNNHandle_t()
        check(hb.hbDNNGetModelHandle(model, packed, name), "hbDNNGetModelHandle")
        logits = classify(model, images)
        found[name] = logits.argmax(1)
        right = int((found[name] == labels).sum())
        print(top5(f"{name}: image 0, a {labels[0]}", logits[0]))
        print(f"{name}: {right} of {len(labels)} right ({right / len(labels):.2%})")
    check(hb.hbDNNRelease(packed), "hbDNNRelease")
    return found


def classify(model: hb.hbDNNHandle_t, images: Any) -> Any:
    """Logits (n, 10) of images (n, 8, 8)."""
    image, logits = hb.hbDNNTensor(), hb.hbDNNTensor()
    check(hb.hbDNNGetInputTensorProperties(image.properties, model, 0), "hbDNNGetInputTensorProperties")
    check(hb.hbDNNGetOutputTensorProperties(logits.properties, model, 0), "hbDNNGetOutputTensorProperties")
    for tensor in (image, logits):
        check(hb.hbSysAllocMem(tensor.sysMem[0], tensor.properties.alignedByteSize), "hbSysAllocMem")
        tensor.properties.alignedShape = tensor.properties.validShape  # rows without padding: the runtime pads

    ctrl = hb.hbDNNInferCtrlParam()
    hb.HB_DNN_INITIALIZE_INFER_CTRL_PARAM(ctrl)
    stored_image, stored_logits = values(image, (8, 8)), values(logits, (10,))
    results = np.empty((len(images), 10), np.float32)
    for at, picture in enumerate(images):
        stored_image[:] = quantize(picture, image.properties)
        task = hb.hbDNNTaskHandle_t()
        check(hb.hbDNNInfer(task, logits, image, model, ctrl), "hbDNNInfer")
        check(hb.hbDNNWaitTaskDone(task, 0), "hbDNNWaitTaskDone")
        check(hb.hbDNNReleaseTask(task), "hbDNNReleaseTask")
        results[at] = dequantize(stored_logits, logits.properties)
    for tensor in (image, logits):
        check(hb.hbSysFreeMem(tensor.sysMem[0]), "hbSysFreeMem")
    return results


def values(tensor: hb.hbDNNTensor, shape: tuple[int, ...]) -> Any:
    """The tensor's memory as an array of its type."""
    is_float = tensor.properties.tensorType == hb.hbDNNDataType.HB_DNN_TENSOR_TYPE_F32
    return tensor.sysMem[0].array(np.float32 if is_float else np.int8, shape)


def quantize(real: Any, properties: hb.hbDNNTensorProperties) -> Any:
    """Real numbers as stored in the tensor: x / scale + zero point, rounded to nearest even."""
    if properties.quantiType == hb.hbDNNQuantiType.NONE:
        return real
    scale, zero = properties.scale.scaleData[0], properties.scale.zeroPointData[0]
    return np.clip(np.rint(real / scale + zero), -128, 127).astype(np.int8)


def dequantize(stored: Any, properties: hb.hbDNNTensorProperties) -> Any:
    """Real numbers from stored ones: (y - zero point) * scale."""
    if properties.quantiType == hb.hbDNNQuantiType.NONE:
        return stored
    scale, zero = properties.scale.scaleData[0], properties.scale.zeroPointData[0]
    return (stored.astype(np.float32) - zero) * scale


def top5(what: str, logits: Any) -> str:
    """A line with the five likeliest digits."""
    likely = np.exp(logits - logits.max())
    likely /= likely.sum()
    return f"{what}: " + ", ".join(f"{digit} ({likely[digit]:.1%})" for digit in np.argsort(-likely)[:5])


if __name__ == "__main__":
    main(*sys.argv[1:])
