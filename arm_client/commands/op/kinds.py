"""The choices of ``hbrt op new``: kinds of ops, element types, ways to compute, and the words for templates.

A kind is one file of template/kinds, in sections that begin with ``===``; plane.in has what kinds of two dimensions
share, flat.in that of the others. A file of an op is one skeleton of template/ with the sections of its kind; parts
that depend on the element type are words in both.
"""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import Final, NamedTuple

TEMPLATE: Final = Path(__file__).resolve().parent / "template"
KINDS: Final = ("elementwise", "rows", "image", "reduce")
ARRAYS: Final = frozenset({"rows", "image"})
"""Kinds of two dimensions."""
DTYPES: Final = ("uint8", "int8", "int16", "uint16", "int32", "float32")
WAYS: Final = ("numpy", "numba", "c")
MAX_HALO: Final = 8

_IMPORTS = (
    "DSP_ERR", "HB_DSP_DRAM0_POOL_SIZE", "HB_DSP_DRAM1_POOL_SIZE", "HB_DSP_INVALID_ARGUMENT", "HB_DSP_LOG_WARNING",
    "HB_DSP_REGISTER_CV_ALL", "HB_DSP_REGISTER_NN_ALL", "HB_ERR_MMAP_FAILED", "MAP_FAILED", "TileManager",
    "hb_dsp_charge", "hb_dsp_env_init", "hb_dsp_init_global_tm", "hb_dsp_mem_map", "hb_dsp_mem_unmap",
    "hb_dsp_register_fn", "hb_dsp_set_log_level", "hb_dsp_start",
)  # fmt: skip
_TILE_IMPORTS = {"rows": ("ping_pong",), "image": (
    "HB_DSP_OUT_OF_TCM", "TILE_SIZE", "XV_MEM_BANK_COLOR_0", "XV_MEM_BANK_COLOR_1", "idma_copy_desc", "idma_desc_done",
)}  # fmt: skip


class NewOp(NamedTuple):
    """An op to write.

    Attributes:
        name: Of the op, and in the names of its files.
        cmd: Its command number.
        way: The image's language, from WAYS; the program and the test are always Python.
        kind: Its computation, from KINDS.
        dtype: Of its elements, of DTYPES.
        halo: Rows and columns of neighbors that an image element needs on each side.
    """

    name: str
    cmd: int
    way: str = "numpy"
    kind: str = "elementwise"
    dtype: str = "float32"
    halo: int = 1

    @property
    def files(self) -> dict[str, str]:
        """Names of the files, and the template of each."""
        suffix = "c" if self.way == "c" else "py"
        return {
            f"{self.name}_param.py": "param.py.in",
            f"{self.name}_image.{suffix}": f"image.{suffix}.in",
            f"call_{self.name}.py": "call.py.in",
            f"test_{self.name}.py": "test.py.in",
            **({f"{self.name}_param.h": "param.h.in"} if self.way == "c" else {}),
        }

    def render(self, template: str) -> str:
        """Text of a file."""
        return rendered(TEMPLATE / template, words_of(self))

    @property
    def check_line(self) -> str:
        """The command that compares it with its reference."""
        check = (
            f"hbrt op check {self.cmd:#x} --against call_{self.name}.py:expected --params call_{self.name}.py:params"
        )
        dtype = "" if self.dtype == "float32" else f" --dtype {self.dtype}"
        return check + dtype + (" --shape 1-300x1-640" if self.kind in ARRAYS else "")


def bits_of(dtype: str) -> int:
    """Width of a type."""
    return int(dtype.lstrip("uintfloa"))


def limits_of(dtype: str) -> tuple[int, int]:
    """The least and the largest number of an integer type."""
    bits = bits_of(dtype)
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-1 << bits - 1, (1 << bits - 1) - 1)


def operations_of(op: NewOp) -> dict[str, int]:
    """The op's work per vector, as for ``hb_dsp_charge``."""
    if op.kind == "elementwise":  # integers are narrowed and clipped
        return {"load": 1, "mul": 1, **({} if op.dtype == "float32" else {"alu": 2, "pack": 1}), "store": 1}
    if op.kind == "rows":  # once for the largest, once for the differences
        return {"load": 2, "alu": 2, "store": 1}
    if op.kind == "reduce":
        return {"load": 1, "alu": 1}
    neighbors = (2 * op.halo + 1) ** 2
    return {"load": neighbors, "alu": neighbors, "store": 1}


def sections_of(kind: str) -> dict[str, str]:
    """The sections of a kind by their names."""
    files = ("plane" if kind in ARRAYS else "flat", kind)
    raw = "".join((TEMPLATE / "kinds" / f"{file}.in").read_text(encoding="utf-8") for file in files)
    parts = re.split(r"^=== (.+)\n", raw, flags=re.MULTILINE)[1:]
    return {name: text.rstrip("\n") for name, text in zip(parts[::2], parts[1::2], strict=True)}


def rendered(file: Path, words: dict[str, str]) -> str:
    """Text of a template with its words."""
    return Template(file.read_text(encoding="utf-8")).substitute(words).rstrip("\n") + "\n"


def words_of(op: NewOp) -> dict[str, str]:
    """The value of each template word for one op."""
    words = {
        "name": op.name,
        "NAME": op.name.upper(),
        "Param": "".join(part.capitalize() for part in op.name.split("_")) + "Param",
        "cmd": f"{op.cmd:#x}",
        "image": f"{op.name}_image.{'so' if op.way == 'c' else 'py'}",
        "halo": str(op.halo),
        "side": str(2 * op.halo + 1),
        "bits": str(bits_of(op.dtype)),
        "operations": ", ".join(f"{name}={count}" for name, count in operations_of(op).items()),
        "c_operations": ", ".join(f".{name} = {count}" for name, count in operations_of(op).items()),
        **_words_of_type(op.dtype),
    }
    sections = {name: Template(text).substitute(words) for name, text in sections_of(op.kind).items()}
    words |= {name.lower().replace(" ", "_").replace("-", "_"): text for name, text in sections.items()}
    words |= _words_of_python(op, sections) | _words_of_c(op, sections) | _words_of_test(op)
    return words | {"more_tests": _more_tests(op, words)}


def _words_of_type(dtype: str) -> dict[str, str]:
    is_real = dtype == "float32"
    low, high = limits_of(dtype)
    can_exceed = dtype.startswith("int")  # in a difference of two
    axis = "x.max(axis=1, keepdims=True)"
    tile = '"""Compute one tile in TCM; $name brings tiles in and takes results out."""'
    factor = "np.float32" if is_real else "int"
    head = "def compute_tile(y: NDArray[Any], x: NDArray[Any]"
    scaled = f"np.clip(x.astype(np.int64) * a + b, {low}, {high})"
    behind = f"np.minimum({axis}.astype(np.int64) - x, {high})" if can_exceed else f"{axis} - x"
    steps = "    np.multiply(x, a, out=y)\n    np.add(y, b, out=y)" if is_real else f"    y[:] = {scaled}"
    return {
        "dtype": dtype,
        "ctype": "float" if is_real else f"{dtype}_t",
        "saturated": "" if is_real else ", saturated,",
        "c_factor": "c_float" if is_real else "c_int32",
        "factor": "float" if is_real else "int",
        "factor_of_c": "float" if is_real else "int32_t",
        "factor_type": factor,
        "zero": "np.float32(0)" if is_real else "0",
        "a": "2.0" if is_real else "3",
        "b": "0.5" if is_real else "-5",
        "lowest": "-np.inf" if is_real else str(low),
        "compute_elementwise": f"{head}, a: {factor}, b: {factor}) -> None:\n    {tile}\n{steps}",
        "compute_rows": f"{head}) -> None:\n    {tile}\n    y[:] = {behind}",
        "expected_elementwise": "np.float32(a) * x + np.float32(b)" if is_real else f"{scaled}.astype(np.{dtype})",
        "expected_rows": f"{behind}.astype(np.{dtype})" if can_exceed else behind,
        "numba_elementwise": "a * x[i] + b" if is_real else f"min(max(a * x[i] + b, {low}), {high})",
        "numba_rows": f"min(np.int64(largest) - x[row, i], {high})" if can_exceed else "largest - x[row, i]",
        "c_elementwise": "a * x[i] + b" if is_real else "saturate((int64_t)a * x[i] + b)",
        "c_rows": "saturate((int64_t)largest - x[i])" if can_exceed else "largest - x[i]",
    }


def _words_of_python(op: NewOp, sections: dict[str, str]) -> dict[str, str]:
    is_image, is_numba = op.kind == "image", op.way == "numba"
    names = sorted({*_IMPORTS, *_TILE_IMPORTS.get(op.kind, ("TILE_SIZE", "ping_pong"))}, key=_import_order)
    standard = "from contextlib import ExitStack\n" if is_image else ""
    numba = "import numba\n" if is_numba else ""
    lines = "".join(f"    {name},\n" for name in names)
    constants = f"ITEM_BYTES = {bits_of(op.dtype) // 8}" + (f"\nHALO = {op.halo}" if is_image else "")
    compute = Template(sections[op.way]).substitute(name=op.name) if op.way != "c" else ""
    decorator = '@numba.njit(nogil=True, error_model="numpy")\n' if is_numba else ""
    compiles = f"    {sections['numba warm-up']}  # compiles here\n" if is_numba else ""
    return {
        "imports": f"{standard}from typing import Any\n\n{numba}import numpy as np\n"
        f"from dsp_server import (\n{lines})\nfrom numpy.typing import NDArray\n",
        "constants": constants + "\n",
        "compute": decorator + compute,
        "run_tiles": f"\n\n\n{sections['run_tiles'].strip()}" if is_image else "",
        "warm_up": compiles,
    }


def _import_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as ruff sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def _words_of_c(op: NewOp, sections: dict[str, str]) -> dict[str, str]:
    is_image, is_reduce, is_real = op.kind == "image", op.kind == "reduce", op.dtype == "float32"
    bound = op.dtype.upper()
    low = "-INFINITY" if is_real else "0" if op.dtype.startswith("u") else f"{bound}_MIN"
    clamped = f"(element)XT_MAX({low}, XT_MIN(value, {bound}_MAX))"
    saturate = f"static element saturate(int64_t value) {{\n  return {clamped};\n}}\n\n"
    begin = "XT_MAX(first - HALO, 0)" if is_image else "first"
    end = "XT_MIN(first + items_of_tile + HALO, items)" if is_image else "XT_MIN(first + items_of_tile, items)"
    if is_reduce:
        status, step = "    status = await(filled[now]);", "    compute_tile(&largest, in[now], here, param);"
    else:
        status = "    status = await(filled[now]);\n    if (status >= 0) status = await(drained[now]);"
        halo = f"    const int begin = {begin}, end = {end};\n" if is_image else ""
        more = ", first - begin, end - begin" if is_image else ""
        step = (
            f"{halo}    compute_tile(out[now], in[now], here, param{more});\n"
            "    IDMA_COPY(drained[now], out[now], y + (size_t)first * width, (size_t)here * width * sizeof(element))\n"
            "    status = drained[now];"
        )
    return {
        "c_includes": "#include <math.h>\n\n" if is_real and is_reduce else "",
        "c_halo": f", HALO = {op.halo}" if is_image else "",
        "c_saturate": saturate if "saturate(" in sections["C"] else "",
        "c_compute": sections["C"],
        "item": "row" if op.kind in ARRAYS else "element",
        "units": sections["C units"],
        "unit": sections["C unit"],
        "c_begin": begin,
        "c_end": end,
        "c_outs": "" if is_reduce else ", element *const out[2]",
        "c_less": " - 2 * HALO" if is_image else "",
        "c_before": f"  element largest = {low};\n" if is_reduce else "  int drained[2] = {0, 0};\n",
        "c_status": status,
        "c_step": step,
        "c_after": "  y[0] = largest;\n" if is_reduce else "",
        "c_tiles": "2" if is_reduce else "4",
        "c_have_tiles": "tiles[0] && tiles[1]" if is_reduce else "tiles[0] && tiles[1] && tiles[2] && tiles[3]",
        "c_pass_outs": "" if is_reduce else ", tiles + 2",
    }


def _words_of_test(op: NewOp) -> dict[str, str]:
    is_2d = op.kind in ARRAYS

    def data(rng: str, shape: str) -> str:
        if op.dtype == "float32":
            return f"{rng}.normal(size={shape}).astype(np.float32)"
        low, high = limits_of(op.dtype)
        return f"{rng}.integers({low}, {high}, {shape}, np.{op.dtype}, endpoint=True)"

    imported = {op.name, "expected", *(() if op.kind == "reduce" else ("params",))}
    constants = f"\nTILE = 50 * 1024 // {bits_of(op.dtype) // 8}  # elements that one TCM buffer of the op holds\n"
    return {
        "example_data": data("np.random.default_rng(0)", "(240, 320)" if is_2d else "50_000"),
        "test_data": data("rng", "shape"),
        "shape_type": "tuple[int, int]" if is_2d else "int",
        "test_constants": "" if is_2d else constants,
        "small_shape": "(4, 4)" if is_2d else "16",
        "test_errors": "" if op.kind == "reduce" else ", HbrtError",
        "test_param": "" if op.kind == "reduce" else f"from {op.name}_param import {op.name.upper()}_CMD\n",
        "test_imports": ", ".join(sorted(imported, key=_import_order)),
    }


def _more_tests(op: NewOp, words: dict[str, str]) -> str:
    return "" if op.kind == "reduce" else rendered(TEMPLATE / "more_tests.in", words)
