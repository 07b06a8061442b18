"""A C program by both APIs computes what onnxruntime does."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from arm_client.c_library.prototypes import Prototype
from rknn_api import c_names
from rknn_api.errors import RknnStatus
from tests.limits import PATIENCE_S
from tests.native.arm.conftest import Compile, Run, board, compiled, run  # noqa: F401 - fixtures
from tests.rknn_api.capi.models import model
from tests.rknn_api.capi.test_functions import picture, reference

if TYPE_CHECKING:
    import pytest


def test_a_function_without_a_body_is_refused_with_a_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    given = Prototype(ctypes.c_int32, (ctypes.c_uint64, ctypes.c_void_p))
    assert c_names.function("rknn_new", given, None)(1, 0) == RknnStatus.RKNN_ERR_FAIL
    assert "rknn_new is declared, but not supported" in capfd.readouterr().err


def test_a_c_program_computes_what_onnxruntime_does(compiled: Compile, tmp_path: Path, board_home: Path) -> None:  # noqa: F811
    program, file, x = compiled(str(Path(__file__).with_name("program.c"))), tmp_path / "net.rknn", picture()
    file.write_bytes(model("int8"))
    outer = {name: value for name, value in os.environ.items() if not name.startswith("HBRT_")}
    answer = subprocess.run(
        [program, file],
        input=x.tobytes(),
        env={**outer, "HBRT_HOME": str(board_home)},
        check=False,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert answer.returncode == 0, answer.stderr.decode()
    rows = [np.array(line.split(), np.float32) for line in answer.stdout.decode().splitlines()]
    assert len(rows) == 2
    for row in rows:
        np.testing.assert_array_equal(row, reference("int8", x)[1].reshape(-1))
    said = answer.stderr.decode()
    for sentence in (
        "rknn_destroy: The context 0x1001 was destroyed.",
        "which has 376 bytes",
        "has no memory anymore",
    ):
        assert sentence in said
    assert "leak" not in said


OWN = """#ifndef _RKNN_API_H
#define _RKNN_API_H
#include <stdint.h>
typedef uint64_t rknn_context;
typedef enum { RKNN_QUERY_IN_OUT_NUM = 0 } rknn_query_cmd;
int rknn_destroy(rknn_context context);
#endif
"""
MAIN = """#include "rknn_api.h"
#include "pool.h"
#include "rknn_matmul_api.h"
int main(void) { return rknn_destroy(0) == -7 ? 0 : 1; }
"""


def test_a_projects_own_header_wins_and_the_vendors_libraries_are_names_of_ours(
    compiled: Compile,  # noqa: F811
    run: Run,  # noqa: F811
    tmp_path: Path,
) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "rknn_api.h").write_text(OWN)
    (tmp_path / "include" / "pool.h").write_text('#include "rknn_api.h"\n')
    source = tmp_path / "main.c"
    source.write_text(MAIN.replace('#include "rknn_matmul_api.h"\n', ""))
    for library in ("-lrknnrt", "-lrknn_api"):
        assert run(compiled(str(source), f"-I{tmp_path / 'include'}", library)).returncode == 0
    source.write_text(MAIN.replace('#include "pool.h"\n', ""))
    assert run(compiled(str(source), "-Wall", "-Wextra", "-Werror")).returncode == 0


STRINGS = r"""
#include <stdio.h>
#include "rknn_custom_op.h"
#include "rknn_matmul_api.h"
RKNN_CUSTOM_OP_EXPORT int shown(void) {
  for (int at = 0; at <= RKNN_TENSOR_TYPE_MAX; at++) printf("%s ", get_type_string((rknn_tensor_type)at));
  for (int at = 0; at <= RKNN_TENSOR_QNT_MAX; at++) printf("%s ", get_qnt_type_string((rknn_tensor_qnt_type)at));
  for (int at = 0; at <= RKNN_TENSOR_FORMAT_MAX; at++) printf("%s ", get_format_string((rknn_tensor_format)at));
  printf("%s %s", get_matmul_type_string(RKNN_INT8_MM_INT4_TO_FLOAT16), get_matmul_type_string((rknn_matmul_type)99));
  return 0;
}
int main(void) { return shown(); }
"""


def test_names_of_types_are_those_that_logs_of_programs_have(
    compiled: Compile,  # noqa: F811
    run: Run,  # noqa: F811
    tmp_path: Path,
) -> None:
    for source in (tmp_path / "strings.c", tmp_path / "strings.cc"):
        source.write_text(STRINGS)
        answer = run(compiled(str(source), "-Wall", "-Wextra", "-Werror"))
        assert answer.stdout.split() == [
            *("FP32", "FP16", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "BOOL", "INT4", "BF16"),
            *("UNKNOW", "NONE", "DFP", "AFFINE", "UNKNOW", "NCHW", "NHWC", "NC1HWC2", "UNDEFINED", "UNKNOW"),
            *("RKNN_INT8_MM_INT4_TO_FLOAT16", "UNKNOW"),
        ]
