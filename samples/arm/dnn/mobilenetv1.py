"""MobileNetV1 on an NV12 picture, with its softmax on the DSP: the cost of a model of this size.

python mobilenetv1.py [MODEL [PICTURE]]

MODEL is an ONNX file whose description (a YAML file next to it) declares an NV12 input; its five likeliest classes are
shown. Without one, samples/dnn/build_mobilenet.py builds MobileNetV1 with random weights into the user's cache, once:
it has the real size and speed but knows no classes (for those see digits.py). PICTURE is any file that OpenCV reads.
HB_DNN_ENABLE_DSP=1 makes the runtime load its DSP plugin, which takes over Softmax.
"""

import contextlib
import ctypes
import hashlib
import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import arm_client as hb
from arm_client.sample import PICTURE, check, read_picture

SAMPLES = Path(__file__).resolve().parent.parent.parent
BUILDER = SAMPLES / "dnn" / "build_mobilenet.py"


def main(model_file: str = "", input_file: str = PICTURE) -> Any:
    """Prints the five likeliest classes of a given model; returns the score of every class."""
    picture = read_picture(input_file)
    file = model_file or str(built())

    os.environ["HB_DNN_ENABLE_DSP"] = "1"  # read when the first model is loaded
    with contextlib.ExitStack() as held:  # resources are released in reverse order, also if a call fails
        name, scores = classify(file, picture, held)
    print("\n".join(report(f"{name} on {Path(input_file).name}", scores, is_random=not model_file)))
    return scores


def classify(file: str, picture: Any, held: contextlib.ExitStack) -> tuple[str, Any]:
    """The name of a model and its scores for a picture; ``held`` releases what was acquired."""
    packed, model = hb.hbPackedDNNHandle_t(), hb.hbDNNHandle_t()
    names: list[str] = []
    check(hb.hbDNNInitializeFromFiles(packed, [file], 1), "hbDNNInitializeFromFiles")
    held.callback(lambda: check(hb.hbDNNRelease(packed), "hbDNNRelease"))
    check(hb.hbDNNGetModelNameList(names, ctypes.c_int32(), packed), "hbDNNGetModelNameList")
    check(hb.hbDNNGetModelHandle(model, packed, names[0]), "hbDNNGetModelHandle")
    data, prob = hb.hbDNNTensor(), hb.hbDNNTensor()
    check(hb.hbDNNGetInputTensorProperties(data.properties, model, 0), "hbDNNGetInputTensorProperties")
    check(hb.hbDNNGetOutputTensorProperties(prob.properties, model, 0), "hbDNNGetOutputTensorProperties")
    expect(data, hb.HB_DNN_IMG_TYPE_NV12, f"the input of {file}")
    expect(prob, hb.HB_DNN_TENSOR_TYPE_F32, f"the output of {file}")
    for tensor in (data, prob):
        check(hb.hbSysAllocMem(tensor.sysMem[0], tensor.properties.alignedByteSize), "hbSysAllocMem")
        held.callback(lambda memory: check(hb.hbSysFreeMem(memory), "hbSysFreeMem"), tensor.sysMem[0])

    # NV12 tensors are NCHW: dimension 2 is rows, 3 is columns, and a row in memory is as long as alignedShape says.
    height, width = data.properties.validShape.dimensionSize[2:4]
    stride = data.properties.alignedShape.dimensionSize[3]
    rows = data.sysMem[0].array(np.uint8, (height * 3 // 2, stride))
    rows[:, :width] = nv12(cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA))

    ctrl = hb.hbDNNInferCtrlParam()
    hb.HB_DNN_INITIALIZE_INFER_CTRL_PARAM(ctrl)
    task = hb.hbDNNTaskHandle_t()
    check(hb.hbDNNInfer(task, prob, data, model, ctrl), "hbDNNInfer")
    held.callback(lambda: check(hb.hbDNNReleaseTask(task), "hbDNNReleaseTask"))
    check(hb.hbDNNWaitTaskDone(task, 0), "hbDNNWaitTaskDone")
    return names[0], prob.sysMem[0].array(np.float32).copy()


def report(what: str, scores: Any, *, is_random: bool = False) -> list[str]:
    """Lines for the reader; percentages only after a softmax: a model may return its logits instead."""
    is_softmax = bool(scores.min() >= 0 and abs(scores.sum() - 1) < 1e-3)
    shown = "class {}, {:.2%}" if is_softmax else "class {}, score {:.4f}"
    ended = "softmax on the DSP" if is_softmax else "its output is not a softmax's"
    if is_random:
        return [f"{what}, {ended}: {len(scores)} scores. Its weights are random; name a trained MODEL to see classes."]
    best = np.argsort(-scores, kind="stable")[:5]
    lines = [f"top {rank}: {shown.format(number, scores[number])}" for rank, number in enumerate(best, 1)]
    return [f"{what}, {ended}:", *lines]


def built() -> Path:
    """MobileNetV1 in the user's cache, built if it does not exist; a changed builder rebuilds it."""
    if not BUILDER.is_file():
        sys.exit(f"{BUILDER}, which builds the model, does not exist: name a model, as in python mobilenetv1.py MODEL.")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hbrt"
    folder = cache / f"mobilenetv1-{hashlib.sha256(BUILDER.read_bytes()).hexdigest()[:12]}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as unfinished:
            runpy.run_path(str(BUILDER))["build"](Path(unfinished) / "whole")
            try:
                (Path(unfinished) / "whole").rename(folder)
            except OSError:
                if not folder.is_dir():  # otherwise another process was faster
                    raise
    return folder / "mobilenetv1.onnx"


def nv12(picture: Any) -> Any:
    """A BGR picture as NV12, (H * 3 / 2, W): Y, then pairs of U and V; BT.601, 0..255."""
    height, width = picture.shape[:2]
    y, v, u = cv2.split(cv2.cvtColor(picture, cv2.COLOR_BGR2YCrCb))
    pairs = cv2.resize(cv2.merge([u, v]), (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    return np.vstack([y, pairs.reshape(height // 2, width)])


def expect(tensor: Any, wanted: int, what: str) -> None:
    """End the program if a tensor has a type that it does not handle."""
    if tensor.properties.tensorType != wanted:
        found, needed = hb.hbDNNDataType(tensor.properties.tensorType).name, hb.hbDNNDataType(wanted).name
        sys.exit(f"{what} is {found}; this program needs {needed}: see the YAML next to the model.")


if __name__ == "__main__":
    main(*sys.argv[1:])
