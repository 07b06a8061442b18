"""``hbrt op check-layout`` as a process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.each import each

if TYPE_CHECKING:
    from tests.shared import Shell

PYTHON = """
import ctypes
import numpy as np

class ImageParam(ctypes.Structure):
    _fields_ = [
        ("width", ctypes.c_uint32), ("height", ctypes.c_uint32), ("stride", ctypes.c_uint32), ("addr", ctypes.c_uint64)
    ]

class Closed(ctypes.Structure):
    _fields_ = [("addr", ctypes.c_uint64), ("width", ctypes.c_uint32), ("height", ctypes.c_uint32)]

PACKED = np.dtype([("width", "<u4"), ("height", "<u4"), ("stride", "<u4"), ("addr", "<u8")])
NUMBER = 3
"""
C = """\
#include <stdint.h>
typedef struct {
    uint32_t width, height, stride;
    uint64_t addr;
} image_param_t;

typedef struct {
    unsigned long addr;
    uint32_t width;
    int32_t height;
} closed_t;
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "param.py").write_text(PYTHON)
    (tmp_path / "param.h").write_text(C)
    return tmp_path


def test_one_structure_is_shown_with_its_hole(shell: Shell, files: Path) -> None:
    lines = shell.good("op", "check-layout", "param.py:ImageParam").splitlines()
    assert lines[:6] == [
        "OFFSET  BYTES  FIELD   TYPE",
        "     0      4  width   uint32_t",
        "     4      4  height  uint32_t",
        "     8      4  stride  uint32_t",
        "    12      4  (hole)",
        "    16      8  addr    uint64_t",
    ]
    text = " ".join(line.strip() for line in lines[6:])
    assert f"{files / 'param.py'}:5: warning: 4 bytes of padding between `stride` (offset 8) and `addr`" in text
    assert text.endswith("param.py:ImageParam: 24 bytes, aligned to 8. No errors, 1 warning.")


def test_a_program_is_not_run(shell: Shell, files: Path) -> None:
    main = "import sys\nfrom arm_client import connect\nboard = connect(sys.argv[1])\nprint('runs')\nsys.exit(5)\n"
    (files / "program.py").write_text(f"{PYTHON}{main}")
    shown = shell.good("op", "check-layout", "program.py:Closed").replace("program.py", "param.py")
    assert shown == shell.good("op", "check-layout", "param.py:Closed")


def test_a_hole_fails_with_strict_alone(shell: Shell, files: Path) -> None:
    both = ("op", "check-layout", "param.py:ImageParam", "param.h:image_param_t")
    assert shell.good(*both).splitlines()[-1] == "No errors, 1 warning."
    answer = shell.hbrt(*both, "--strict")
    assert (answer.returncode, answer.stderr) == (1, "")


def test_every_difference_of_two_is_an_error_with_its_line(shell: Shell, files: Path) -> None:
    answer = shell.hbrt("op", "check-layout", "param.py:Closed", "param.h:closed_t")
    assert answer.returncode == 1
    text = " ".join(line.strip() for line in answer.stdout.splitlines())
    assert "param.h:10: error: `height` has an unsigned uint32_t in A and a signed int32_t in B" in text
    assert "param.h:8: error: `addr` (unsigned long) has 8 bytes on the ARM and 4 on the DSP. Use uint64_t or" in text
    assert text.endswith("2 errors, no warnings.")


def test_lines_fit_80_columns(shell: Shell, files: Path) -> None:
    answer = shell.python("-m", "hbrt", "op", "check-layout", "param:PACKED", "param.h:image_param_t")
    assert answer.returncode == 1
    assert max(map(len, answer.stdout.splitlines())) <= 80


def test_json_has_both_structures_and_the_remarks(shell: Shell, files: Path) -> None:
    document = shell.json("op", "check-layout", "param.py:ImageParam", "param.h:image_param_t", "--json")
    assert document["good"] is True
    assert [one["size_bytes"] for one in document["structures"]] == [24, 24]
    assert [one["holes"][0]["offset"] for one in document["structures"]] == [12, 12]
    assert [(one["severity"], one["kind"], one["field"]) for one in document["remarks"]] == [
        ("warning", "hole", "addr")
    ]


@each(
    "arguments, sentence",
    [
        ([], "Missing argument 'A [B]'"),
        (["param.py:ImageParam"] * 3, "Got 3 structures: expected one, or two to compare."),
        (["param.py"], "Invalid class 'param.py': expected MODULE:CLASS or FILE.py:CLASS."),
        (["param.h"], "'param.h' is the name of a file: expected param.h:STRUCT."),
        (["param.h:nope"], "param.h declares no struct or union 'nope'. It has closed_t, image_param_t."),
        (["gone.h:x"], "No such file or directory: gone.h."),
        (["gone.py:x"], "Cannot import gone.py:"),
        (["param.py:Nope"], "param.py has no class Nope."),
        (["param.py:NUMBER"], "param.py:NUMBER is not a ctypes.Structure, ctypes.Union or numpy dtype, but 3."),
        (["ctypes:Structure"], "Structure has no fields: define _fields_."),
        (["param.h:closed_t", "-I", "gone"], "Directory 'gone' does not exist."),
    ],
)
def test_wrong_use_is_a_sentence(shell: Shell, files: Path, arguments: list[str], sentence: str) -> None:
    code, said = shell.refused("op", "check-layout", *arguments)
    assert (code, sentence in said) == (2, True), said


def test_without_libclang_the_extra_is_named(shell: Shell, files: Path) -> None:
    (files / "clang.py").write_text("raise ImportError('no clang here')")  # in the place of the package
    answer = shell.python("-m", "hbrt", "op", "check-layout", "param.h:closed_t")
    assert answer.returncode == 2
    assert "install hbrt with its extra 'layout', as in pip install '.[layout]' in its clone." in answer.stderr
    assert shell.good("op", "check-layout", "param.py:Closed").endswith("No errors, no warnings.\n")
