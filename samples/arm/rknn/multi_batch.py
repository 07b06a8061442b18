"""Six images per run on the three NPU cores of an RK3588: rknn_batch_size.

python multi_batch.py [DIRECTORY] takes the float model of the digits and the test images from DIRECTORY, or from
samples/dnn. The images are concatenated along the first dimension, and so are the results.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from rknn.api import RKNN

FOLDER = Path(__file__).resolve().parent.parent.parent / "dnn"
BATCH = 6
REPORTS = True


def main(directory: str = str(FOLDER)) -> dict[str, Any]:
    """Prints how many images the model recognizes; returns the recognized digits, and the labels."""
    held = np.load(f"{directory}/digits_test.npz")
    images, labels = held["images"][..., None].astype(np.float32), held["labels"]
    rknn = RKNN()
    rknn.config(mean_values=[[0]], std_values=[[16]], target_platform="rk3588")
    good(rknn.load_onnx(f"{directory}/digits_float.onnx"), "load_onnx")
    good(rknn.build(do_quantization=False, rknn_batch_size=BATCH), "build")
    good(rknn.init_runtime(target="rk3588", core_mask=RKNN.NPU_CORE_0_1_2), "init_runtime")
    found: list[int] = []
    for first in range(0, len(images) - BATCH + 1, BATCH):
        outputs = rknn.inference([images[first : first + BATCH]])
        if outputs is None:
            sys.exit(rknn.last_error)
        found += outputs[0].argmax(1).tolist()
    rknn.release()
    right = int((np.array(found) == labels[: len(found)]).sum())
    print(f"{BATCH} images per run: {right} of {len(found)} right ({right / len(found):.2%})")
    return {"found": np.array(found), "labels": labels[: len(found)]}


def good(status: int, call: str) -> None:
    """Stop if a call failed: it has printed the reason."""
    if status:
        sys.exit(f"{call} failed.")


if __name__ == "__main__":
    main(*sys.argv[1:])
