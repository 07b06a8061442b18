"""codegen: a folder with a model file, a program in Python and one in C that run it, and the simulator's results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rknn_api.container import Container, TensorInfo
from rknn_api.errors import invalid_parameter
from rknn_api.python_types import DTYPES
from rknn_api.run.feeds import TO_NHWC

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SAMPLE = re.compile(r"(input|golden)_\d+\.bin")
_PYTHON = '''\
"""Runs model.rknn by the run time's Python names, and compares with the toolkit's simulator. Made by RKNN.codegen."""

import os

import numpy as np
from rknnlite.api import RKNNLite

INPUTS = @INPUTS@

lite = RKNNLite()
assert lite.load_rknn("model.rknn") == 0
assert lite.init_runtime() == 0
arrays = []
for at, (dtype, shape) in enumerate(INPUTS):
    name = f"input_{at}.bin"
    arrays.append(np.fromfile(name, dtype).reshape(shape) if os.path.exists(name) else np.zeros(shape, dtype))
outputs = lite.inference(arrays)
assert outputs is not None
for at, output in enumerate(outputs):
    said = f"output {at}: {list(output.shape)}"
    if os.path.exists(f"golden_{at}.bin"):
        one, other = output.astype(np.float64).ravel(), np.fromfile(f"golden_{at}.bin", np.float32).astype(np.float64)
        lengths = np.linalg.norm(one) * np.linalg.norm(other)
        said += f", cosine {one @ other / lengths if lengths else float(np.array_equal(one, other)):.6f}"
    print(said)
lite.release()
'''

_C = """\
/* Runs model.rknn by the run time's C names, and compares with the toolkit's simulator. Made by RKNN.codegen. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rknn_api.h"

static const struct {
  rknn_tensor_type type;
  rknn_tensor_format fmt;
  uint32_t size;
} INPUTS[] = {
@INPUTS@};
enum { COUNT = sizeof INPUTS / sizeof *INPUTS };

/* The bytes of a file, which the caller frees; NULL where there is none. */
static void *content(const char *name, size_t *size) {
  FILE *file = fopen(name, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  void *data = malloc(*size ? *size : 1);
  if (data && fread(data, 1, *size, file) != *size) {
    free(data);
    data = NULL;
  }
  fclose(file);
  return data;
}

static void check(int status, const char *call) {
  if (status != RKNN_SUCC) {
    fprintf(stderr, "%s: %d\\n", call, status);
    exit(1);
  }
}

int main(void) {
  size_t size = 0;
  char name[64];
  void *model = content("model.rknn", &size);
  rknn_context context = 0;
  if (!model) return fprintf(stderr, "Cannot open model.rknn.\\n"), 1;
  check(rknn_init(&context, model, (uint32_t)size, 0, NULL), "rknn_init");
  rknn_input_output_num number;
  check(rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &number, sizeof number), "rknn_query");

  rknn_input inputs[COUNT] = {0};
  for (uint32_t at = 0; at < COUNT; at++) {
    snprintf(name, sizeof name, "input_%u.bin", at);
    inputs[at].index = at;
    inputs[at].type = INPUTS[at].type;
    inputs[at].fmt = INPUTS[at].fmt;
    inputs[at].size = INPUTS[at].size;
    inputs[at].buf = content(name, &size);
    if (!inputs[at].buf) inputs[at].buf = calloc(1, INPUTS[at].size);
  }
  check(rknn_inputs_set(context, COUNT, inputs), "rknn_inputs_set");
  check(rknn_run(context, NULL), "rknn_run");

  rknn_output *outputs = calloc(number.n_output, sizeof *outputs);
  for (uint32_t at = 0; at < number.n_output; at++) {
    outputs[at].index = at;
    outputs[at].want_float = 1;
  }
  check(rknn_outputs_get(context, number.n_output, outputs, NULL), "rknn_outputs_get");
  for (uint32_t at = 0; at < number.n_output; at++) {
    snprintf(name, sizeof name, "golden_%u.bin", at);
    float *golden = content(name, &size), *found = outputs[at].buf;
    printf("output %u: %u bytes", at, outputs[at].size);
    if (golden && size == outputs[at].size) {
      double both = 0, one = 0, other = 0;
      for (size_t i = 0; i < size / sizeof *found; i++) {
        both += (double)found[i] * golden[i];
        one += (double)found[i] * found[i];
        other += (double)golden[i] * golden[i];
      }
      printf(", cosine %.6f", one && other ? both / sqrt(one * other) : one == other);
    }
    printf("\\n");
    free(golden);
  }
  check(rknn_outputs_release(context, number.n_output, outputs), "rknn_outputs_release");
  check(rknn_destroy(context), "rknn_destroy");
  for (uint32_t at = 0; at < COUNT; at++) free(inputs[at].buf);
  free(outputs);
  free(model);
  return 0;
}
"""

_README = """\
# @NAME@, for @PLATFORM@

Made by RKNN.codegen of hbrt, an emulator; model.rknn is its own file format. In this folder:

    python main.py
    hbrt cc main.c -o main -lm && ./main

Both run the model once, on input_N.bin where it is there, else on zeros. Where golden_N.bin is there, they print the
cosine of the angle between the results and those of the toolkit's simulator.
"""


def write(
    folder: Path,
    container: Container,
    inputs: Sequence[NDArray[Any]] | None,
    outputs: Sequence[NDArray[Any]],
) -> None:
    """Write the folder.

    Args:
        folder: Created, or its files are overwritten.
        container: The model.
        inputs: Arrays for the inputs in the graph's layout; None without inputs.
        outputs: The simulator's outputs for them.

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: the model has several shapes, has custom ops, no inputs, or a type that C
            programs do not have.
        OSError: a file cannot be written.

    Source: RKNN SDK advanced guide (chapter 5), 5.12
    """
    metadata = container.metadata
    if metadata.dynamic_input or metadata.custom_ops or metadata.rknn_batch_size > 1:
        raise invalid_parameter("codegen needs a model with one shape and one image, without custom ops.")
    other = [one.name for one in (*metadata.inputs, *metadata.outputs) if one.stored not in DTYPES]
    if other or not metadata.inputs:
        what = f"; {', '.join(map(repr, other))} has another type" if other else ", but the model has none"
        raise invalid_parameter(f"codegen needs a model whose inputs have types of the C API{what}.")
    folder.mkdir(parents=True, exist_ok=True)
    for old in [one for one in folder.iterdir() if _SAMPLE.fullmatch(one.name)]:
        old.unlink()  # from another model, or from other inputs
    container.write(folder / "model.rknn")
    for at, (info, array) in enumerate(zip(metadata.inputs, inputs or (), strict=False)):
        turned = array.transpose(TO_NHWC) if info.layout == "NCHW" else array
        np.ascontiguousarray(turned).tofile(folder / f"input_{at}.bin")
    for at, output in enumerate(outputs):
        np.ascontiguousarray(output, np.float32).tofile(folder / f"golden_{at}.bin")
    shapes = [(info.dtype, list(_given(info))) for info in metadata.inputs]
    rows = "".join(f"    {{{_c_type(info)}, {_c_format(info)}, {_size(info)}}},\n" for info in metadata.inputs)
    texts = {
        "main.py": _PYTHON.replace("@INPUTS@", repr(shapes)),
        "main.c": _C.replace("@INPUTS@", rows),
        "README.md": _README.replace("@NAME@", metadata.name).replace("@PLATFORM@", metadata.target_platform),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _given(info: TensorInfo) -> tuple[int, ...]:
    return tuple(info.shape[at] for at in TO_NHWC) if info.layout == "NCHW" else info.shape


def _c_type(info: TensorInfo) -> str:
    return f"RKNN_TENSOR_{info.dtype.upper()}"


def _c_format(info: TensorInfo) -> str:
    return "RKNN_TENSOR_NHWC" if info.layout == "NCHW" else "RKNN_TENSOR_UNDEFINED"


def _size(info: TensorInfo) -> int:
    return int(np.prod(info.shape, dtype=np.int64)) * np.dtype(info.dtype).itemsize
