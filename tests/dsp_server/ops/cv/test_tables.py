"""Numbers, names and layouts: one list of commands, structures as documented, OpenCV only when it is needed."""

from __future__ import annotations

import ctypes
import importlib
import re
import subprocess
import sys
from pathlib import Path

import hbrt.cv_types as types
from dsp_server.builtin_ops import CV_OPS
from dsp_server.registry import Registry
from hbrt.cv.enums import hbDSPCvCmd
from hbrt.types import HB_DSP_RPC_CMD_CV_B, HB_DSP_RPC_CMD_CV_E
from tests.each import each
from tests.limits import PATIENCE_S

DOCS = Path(__file__).resolve().parents[4] / "docs" / "cv-ops.md"
MANUAL = [
    "BilateralFilter",
    "BoxFilter",
    "Canny",
    "CornerHarris",
    "CvtColor",
    "Dilate",
    "EqualizeHist",
    "Erode",
    "Filter2D",
    "Flip",
    "GaussianBlur",
    "Integral",
    "MedianBlur",
    "PyrDown",
    "PyrUp",
    "Remap",
    "Resize",
    "RoiResize",
    "Rotate",
    "SepFilter2D",
    "Sobel",
    "Threshold",
    "Transpose",
    "WarpAffine",
    "WarpPerspective",
]
STRUCTURES = {
    name: structure
    for name in vars(types)
    if isinstance(structure := getattr(types, name), type) and issubclass(structure, ctypes.Structure)
}
PARAMS = [name for name in STRUCTURES if re.fullmatch(r"hbDSPCv\w+Param", name)]


def test_the_25_ops_of_the_manual() -> None:
    assert len(CV_OPS) == len(MANUAL) == 25
    for cmd, name in zip(hbDSPCvCmd, MANUAL, strict=True):
        assert CV_OPS[cmd][0].replace("_", "") == name.lower()
        assert HB_DSP_RPC_CMD_CV_B <= cmd <= HB_DSP_RPC_CMD_CV_E
        assert getattr(types, cmd.name) is cmd
        assert f"hbDSPCv{name}Param" in PARAMS


def test_every_op_is_where_its_name_says() -> None:
    registry = Registry(print)
    for cmd, (name, source) in CV_OPS.items():
        registry.register_lazy(cmd, name, source)
        registration = registry.get(cmd)
        assert registration is not None
        op = registration.resolve()
        assert op.__name__ == f"hb_dsp_{name}"
        assert f"Input block: hbDSPCv{MANUAL[cmd - 0x800]}Param." in (op.__doc__ or "")


@each("cmd", CV_OPS)
def test_every_op_says_what_it_takes_what_lies_outside_and_whose_it_is(cmd: int) -> None:
    name, source = CV_OPS[cmd]
    module, _, attribute = source.partition(":")
    text = getattr(importlib.import_module(module), attribute).__doc__
    assert re.search(r"\b(U8: Y|Y of U8)", text), f"{name} names no types."
    assert "Source: " in text
    if "borderType" in dict(getattr(types, f"hbDSPCv{MANUAL[cmd - 0x800]}Param")._fields_):
        assert "border" in text


def field_rows(name: str) -> list[tuple[int, str]]:
    """Offset and field of a structure's own fields, as docs/cv-ops.md has them."""
    text = DOCS.read_text(encoding="utf-8")
    section = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, f"docs/cv-ops.md has no section {name}"
    return [(int(at), field) for at, field in re.findall(r"^\| (\d+) \| [^|]+ \| `(\w+)` \|", section[1], re.MULTILINE)]


@each("name", STRUCTURES)
def test_layout_as_documented(name: str) -> None:
    if name == "CvParam":
        return
    structure = STRUCTURES[name]
    own: list[tuple[int, str]] = []
    for kind in reversed(structure.__mro__):
        if kind is types.CvParam:
            own = []
        elif "_fields_" in vars(kind):
            own += [(getattr(structure, field[0]).offset, field[0]) for field in kind._fields_]  # type: ignore[attr-defined]
    assert field_rows(name) == [(at, field) for at, field in own if field not in {"src", "dst"}]
    assert f"`{name}`, {ctypes.sizeof(structure)} bytes" in DOCS.read_text(encoding="utf-8")


def test_the_table_in_the_docs_is_the_registrys() -> None:
    rows = re.findall(r"^\| (0x[0-9a-f]+) \| (\w+) \| `(\w+)` \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(f"{cmd:#x}", MANUAL[cmd - 0x800], f"hbDSPCv{MANUAL[cmd - 0x800]}Param") for cmd in CV_OPS]


def test_registering_the_ops_loads_neither_numpy_nor_opencv() -> None:
    check = "import sys, dsp_server.ops.cv; print({'numpy', 'cv2'} & set(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", check], check=True, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert answer.stdout == "set()\n"


def test_without_opencv_the_sentence_names_the_extra() -> None:
    check = "import sys; sys.modules['cv2'] = None; import dsp_server.ops.cv.resize"
    answer = subprocess.run(
        [sys.executable, "-c", check], check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert answer.returncode == 1
    last = answer.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: The CV ops need OpenCV, which this Python does not have (")
    assert last.endswith("pip install '.[cv]' in its clone, and restart the board.")


def test_an_opencv_that_cannot_be_mapped_is_not_called_missing(tmp_path: Path) -> None:
    reason = "libcv.so: failed to map segment from shared object"
    (tmp_path / "cv2.py").write_text(f"raise ImportError({reason!r})", encoding="utf-8")
    check = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import dsp_server.ops.cv.resize"
    answer = subprocess.run(
        [sys.executable, "-c", check], check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )
    last = answer.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: The CV ops need OpenCV, which is installed but cannot be loaded ({reason}).")
    assert last.endswith("larger ulimit -v.")


def test_a_core_is_one_core() -> None:
    module = importlib.import_module("dsp_server.ops.cv.opencv")
    assert module.cv2.getNumThreads() == 1
