"""Handwritten digits with the zero-copy API: inputs and outputs are in board memory, where the NPU uses them.

python zero_copy.py [DIRECTORY] takes the float model of the digits and the test images from DIRECTORY, or from
samples/dnn. The program uses the C names of the runtime (rknn_api); a C program makes the same calls in the same order.
"""

import ctypes
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import rknn_api as rk
from rknn.api import RKNN

FOLDER = Path(__file__).resolve().parent.parent.parent / "dnn"
REPORTS = True


def main(directory: str = str(FOLDER)) -> dict[str, Any]:
    """Prints how many images the model recognizes; returns the recognized digits, and the labels."""
    held = np.load(f"{directory}/digits_test.npz")
    images, labels = held["images"].astype(np.uint8), held["labels"]
    context = rk.rknn_context()
    with tempfile.TemporaryDirectory() as folder:
        convert(f"{directory}/digits_float.onnx", f"{folder}/digits.rknn")
        good(rk.rknn_init(context, f"{folder}/digits.rknn", 0, 0, None), "rknn_init")

    image, logits = rk.rknn_tensor_attr(index=0), rk.rknn_tensor_attr(index=0)
    good(rk.rknn_query(context, rk.RKNN_QUERY_NATIVE_INPUT_ATTR, image, ctypes.sizeof(image)), "rknn_query")
    good(rk.rknn_query(context, rk.RKNN_QUERY_NATIVE_OUTPUT_ATTR, logits, ctypes.sizeof(logits)), "rknn_query")
    image.type = rk.RKNN_TENSOR_UINT8  # the NPU subtracts the mean, and divides
    logits.type, logits.size = rk.RKNN_TENSOR_FLOAT32, logits.n_elems * 4
    mems = [memory(context, image.size_with_stride), memory(context, logits.size)]
    for mem, attr in zip(mems, (image, logits), strict=True):
        good(rk.rknn_set_io_mem(context, mem, attr), "rknn_set_io_mem")

    rows = mems[0].array(np.uint8, (8, image.w_stride))  # a row has 8 pixels plus padding
    scores = mems[1].array(np.float32)
    found = []
    for one in images:
        rows[:, :8] = one
        good(rk.rknn_run(context, None), "rknn_run")
        found.append(int(scores.argmax()))
    for mem in mems:
        good(rk.rknn_destroy_mem(context, mem), "rknn_destroy_mem")
    good(rk.rknn_destroy(context), "rknn_destroy")

    right = int((np.array(found) == labels).sum())
    print(f"in board memory: {right} of {len(labels)} right ({right / len(labels):.2%})")
    return {"found": np.array(found), "labels": labels}


def convert(onnx: str, rknn_file: str) -> None:
    """Write the model for an RK3588, unquantized."""
    rknn = RKNN()
    rknn.config(mean_values=[[0]], std_values=[[16]], target_platform="rk3588")
    good(rknn.load_onnx(onnx), "load_onnx")
    good(rknn.build(do_quantization=False), "build")
    good(rknn.export_rknn(rknn_file), "export_rknn")
    rknn.release()


def memory(context: rk.rknn_context, size: int) -> rk.rknn_tensor_mem:
    """Board memory."""
    mem = rk.rknn_create_mem(context, size)
    if mem is None:
        sys.exit("rknn_create_mem failed.")
    return mem


def good(status: int, call: str) -> None:
    """Stop if a call failed: it has printed the reason."""
    if status:
        sys.exit(f"{call} failed.")


if __name__ == "__main__":
    main(*sys.argv[1:])
