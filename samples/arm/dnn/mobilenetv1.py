"""MobileNetV1 on a picture in NV12, its softmax on the DSP, with the C API's names.

    python mobilenetv1.py [MODEL [PICTURE]]

MODEL is an ONNX file whose description (a YAML file beside it) says that it takes NV12; without one,
samples/dnn/build_mobilenet.py builds MobileNetV1 with seeded weights into the user's cache, once. Its classes mean
nothing: a trained model is the user's to bring. PICTURE is any file that OpenCV reads.

HB_DNN_ENABLE_DSP=1 makes the runtime load its DSP plugin, which takes Softmax over. After the run the plugin's layer is
unregistered and the same picture is run once more, on the BPU alone, to compare.

`run()` returns op, status (0 is success), max_error (largest difference between the two runs), host_time_us (submit to
release with softmax on the DSP), classes (the five likeliest, with their scores), report (lines for the reader) and
passed.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import runpy
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import arm_client as hb
from arm_client.dnn.plugins_dsp_nn import DspSoftmax

SAMPLES = Path(__file__).resolve().parent.parent.parent
PICTURE = SAMPLES / "arm" / "cv" / "data" / "input.png"
BUILDER = SAMPLES / "dnn" / "build_mobilenet.py"
TOLERANCE = 1e-6


def run(model_file: str | None = None, image_file: str | None = None) -> dict[str, Any]:
    """Runs the model with softmax on the DSP, and again without."""
    picture_file = Path(image_file or PICTURE)
    if not picture_file.is_file():
        raise RuntimeError(f"There is no picture {picture_file}: name one, as in python mobilenetv1.py MODEL PICTURE.")
    picture = cv2.imread(str(picture_file), cv2.IMREAD_COLOR)
    if picture is None:
        raise RuntimeError(f"{picture_file} is not a picture that OpenCV can read.")
    file = model_file or str(built())

    os.environ["HB_DNN_ENABLE_DSP"] = "1"  # read when the first model is loaded
    packed, model = hb.hbPackedDNNHandle_t(), hb.hbDNNHandle_t()
    names: list[str] = []
    check(hb.hbDNNInitializeFromFiles(packed, [file], 1), "hbDNNInitializeFromFiles")
    check(hb.hbDNNGetModelNameList(names, ctypes.c_int32(), packed), "hbDNNGetModelNameList")
    check(hb.hbDNNGetModelHandle(model, packed, names[0]), "hbDNNGetModelHandle")
    data, prob = hb.hbDNNTensor(), hb.hbDNNTensor()
    check(hb.hbDNNGetInputTensorProperties(data.properties, model, 0), "hbDNNGetInputTensorProperties")
    check(hb.hbDNNGetOutputTensorProperties(prob.properties, model, 0), "hbDNNGetOutputTensorProperties")
    expect(data, hb.hbDNNDataType.HB_DNN_IMG_TYPE_NV12, f"the input of {file}")
    expect(prob, hb.hbDNNDataType.HB_DNN_TENSOR_TYPE_F32, f"the output of {file}")
    for tensor in (data, prob):
        mem = hb.hbSysMem()
        check(hb.hbSysAllocMem(mem, tensor.properties.alignedByteSize), "hbSysAllocMem")
        tensor.sysMem[0] = mem

    # NV12 tensors are NCHW: rows are dimension 2, columns 3, and a row in memory is as long as alignedShape says.
    height, width = data.properties.validShape.dimensionSize[2:4]
    stride = data.properties.alignedShape.dimensionSize[3]
    rows = data.sysMem[0].array(np.uint8, (height * 3 // 2, stride))
    rows[:, :width] = nv12(cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA))

    infer(model, data, prob)  # the first run loads the op's libraries in the core
    host_time_us = infer(model, data, prob)
    on_dsp = prob.sysMem[0].array(np.float32).copy()
    check(hb.hbDNNUnregisterLayerCreator("Softmax"), "hbDNNUnregisterLayerCreator")
    infer(model, data, prob)
    on_bpu = prob.sysMem[0].array(np.float32).copy()
    check(hb.hbDNNRegisterLayerCreator("Softmax", DspSoftmax), "hbDNNRegisterLayerCreator")  # as the plugin had it

    for tensor in (data, prob):
        check(hb.hbSysFreeMem(tensor.sysMem[0]), "hbSysFreeMem")
    check(hb.hbDNNRelease(packed), "hbDNNRelease")

    max_error = float(np.abs(on_dsp - on_bpu).max())
    classes = {int(number): float(on_dsp[number]) for number in np.argsort(-on_dsp, kind="stable")[:5]}
    return {
        "op": names[0],
        "status": 0,
        "max_error": max_error,
        "host_time_us": host_time_us,
        "classes": classes,
        "report": report(f"{names[0]} on {picture_file.name}", on_dsp, classes),
        "passed": max_error <= TOLERANCE,
    }


def report(what: str, scores: Any, classes: dict[int, float]) -> list[str]:
    """Lines for the reader; as percent only what a softmax made: a model may hand out its logits instead."""
    is_softmax = bool(scores.min() >= 0 and abs(scores.sum() - 1) < 1e-3)
    shown = "class {}, {:.2%}" if is_softmax else "class {}, score {:.4f}"
    ended = "softmax on the DSP" if is_softmax else "its output is no softmax's"
    return [f"{what}, {ended}:", *(f"top {at}: {shown.format(*found)}" for at, found in enumerate(classes.items(), 1))]


def built() -> Path:
    """MobileNetV1 in the user's cache, built when it is not there; a changed builder builds it anew."""
    if not BUILDER.is_file():
        raise RuntimeError(
            f"There is no {BUILDER}, which builds the model: name one, as in python mobilenetv1.py MODEL."
        )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hbrt"
    folder = cache / f"mobilenetv1-{hashlib.sha256(BUILDER.read_bytes()).hexdigest()[:12]}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as unfinished:
            runpy.run_path(str(BUILDER))["build"](Path(unfinished) / "whole")
            try:
                (Path(unfinished) / "whole").rename(folder)
            except OSError:
                if not folder.is_dir():  # else another process was faster
                    raise
    return folder / "mobilenetv1.onnx"


def nv12(picture: Any) -> Any:
    """A BGR picture as NV12, (H * 3 / 2, W): Y, then pairs of U and V; BT.601, 0..255."""
    height, width = picture.shape[:2]
    y, v, u = cv2.split(cv2.cvtColor(picture, cv2.COLOR_BGR2YCrCb))
    pairs = cv2.resize(cv2.merge([u, v]), (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    return np.vstack([y, pairs.reshape(height // 2, width)])


def infer(model: Any, data: Any, prob: Any) -> float:
    """Runs the model once; microseconds from submit to release."""
    ctrl = hb.hbDNNInferCtrlParam()
    hb.HB_DNN_INITIALIZE_INFER_CTRL_PARAM(ctrl)
    start = time.perf_counter()
    task = hb.hbDNNTaskHandle_t()
    check(hb.hbDNNInfer(task, prob, data, model, ctrl), "hbDNNInfer")
    check(hb.hbDNNWaitTaskDone(task, 0), "hbDNNWaitTaskDone")
    check(hb.hbDNNReleaseTask(task), "hbDNNReleaseTask")
    return (time.perf_counter() - start) * 1e6


def expect(tensor: Any, wanted: Any, what: str) -> None:
    """Stops when a tensor is of another type than this program handles."""
    found = hb.hbDNNDataType(tensor.properties.tensorType)
    if found != wanted:
        raise RuntimeError(f"{what} is {found.name}; this program takes {wanted.name}: see the YAML beside the model.")


def check(status: int, call: str) -> None:
    """Stops with the call's name and the runtime's sentence when a call failed."""
    if status != 0:
        raise RuntimeError(f"{call} returned {status}: {hb.last_error() or hb.hbDNNGetErrorDesc(status)}")


def main() -> int:
    """Prints the five likeliest classes; 0 when both runs agree."""
    model_file = sys.argv[1] if len(sys.argv) > 1 else None
    image_file = sys.argv[2] if len(sys.argv) > 2 else None
    try:
        got = run(model_file, image_file)
    except RuntimeError as error:
        print(f"mobilenetv1: {error}", file=sys.stderr)
        return 1
    print("\n".join(got["report"]))
    return 0 if got["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
