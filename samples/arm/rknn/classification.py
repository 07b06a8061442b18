"""Handwritten digits: convert a float model to int8 for an RK3588, export it, and run it with the runtime's API.

python classification.py [DIRECTORY] takes the model and the test images from DIRECTORY, or from samples/dnn. The
toolkit (rknn.api) quantizes with the first images; RKNNLite (rknnlite.api) is the API that a program on the board has.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from rknn.api import RKNN
from rknnlite.api import RKNNLite

FOLDER = Path(__file__).resolve().parent.parent.parent / "dnn"
CALIBRATION = 50
REPORTS = True


def main(directory: str = str(FOLDER)) -> dict[str, Any]:
    """Prints how many images the model recognizes; returns the recognized digits, and the labels."""
    held = np.load(f"{directory}/digits_test.npz")
    images, labels = held["images"][..., None].astype(np.float32), held["labels"]
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/digits.rknn"
        convert(f"{directory}/digits_float.onnx", images[:CALIBRATION], Path(folder), model)
        lite = RKNNLite()
        good(lite.load_rknn(model), "load_rknn")
    good(lite.init_runtime(core_mask=RKNNLite.NPU_CORE_0), "init_runtime")
    logits = []
    for image in images:
        outputs = lite.inference(inputs=[image[None]])  # NHWC, although the ONNX model is NCHW
        if outputs is None:
            sys.exit(lite.last_error)
        logits.append(outputs[0][0])
    lite.release()
    found = np.argmax(logits, axis=1)
    right = int((found == labels).sum())
    print(f"int8 on an RK3588: {right} of {len(labels)} right ({right / len(labels):.2%})")
    return {"found": found, "labels": labels}


def convert(onnx: str, samples: Any, folder: Path, rknn_file: str) -> None:
    """Quantize the model with some images, (n, H, W, C), and write it."""
    names = []
    for at, sample in enumerate(samples):
        names.append(f"{at}.npy")
        np.save(folder / names[-1], sample[None].transpose(0, 3, 1, 2))
    (folder / "dataset.txt").write_text("\n".join(names))
    rknn = RKNN()
    rknn.config(mean_values=[[0]], std_values=[[16]], target_platform="rk3588")
    good(rknn.load_onnx(model=onnx), "load_onnx")
    good(rknn.build(do_quantization=True, dataset=str(folder / "dataset.txt")), "build")
    good(rknn.export_rknn(rknn_file), "export_rknn")
    rknn.release()


def good(status: int, call: str) -> None:
    """Stop if a call failed: it has printed the reason."""
    if status:
        sys.exit(f"{call} failed.")


if __name__ == "__main__":
    main(*sys.argv[1:])
