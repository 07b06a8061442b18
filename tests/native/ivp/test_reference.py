"""The comments of the headers name what the headers define, no more and no less."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from native.ivp_names import expanded, headers, read, write_names
from tests.limits import PATIENCE_S
from tests.native.ivp.conftest import INCLUDE, Build, Load

NAME = re.compile(r"\b(?:IVP_\w+|xb_\w+_rtor_\w+)")


@pytest.fixture(scope="module")
def preprocessed(build: Build) -> str:
    """The header as the compiler sees it: with all names that macros make."""
    return build("reference.ii", "-E", "-P", text="#include <xtensa/tie/xt_ivpn.h>\n").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def preprocessed_macros(build: Build) -> dict[str, str]:
    """Every macro that the header leaves, and what it stands for."""
    text = build("macros.ii", "-E", "-dM", text="#include <xtensa/tie/xt_ivpn.h>\n").read_text(encoding="utf-8")
    return dict(re.findall(r"^#define (\w+) (.+)$", text, re.MULTILINE))


def test_every_name_that_the_headers_make_has_a_meaning(preprocessed: str) -> None:
    without_texts = re.sub(r'"(?:[^"\\]|\\.)*"', "", preprocessed)
    assert sorted(set(NAME.findall(without_texts)) - set(read().names)) == []


def test_every_name_with_a_meaning_can_be_used(build: Build) -> None:
    lines = [f"using ::{name};" for name in read().names if "ELI_" not in name and "SHFLI_" not in name]
    constants = [f"(int)::{name}," for name in read().names if "ELI_" in name or "SHFLI_" in name]
    text = "\n".join([
        "#include <xtensa/tie/xt_ivpn.h>",
        "namespace use {", *lines, "}",
        'extern "C" const int constants[];', "const int constants[] = {", *constants, "};",
    ])  # fmt: skip
    assert build("names.s", "-S", text=text).exists()


def test_c_sees_types_of_the_same_size_and_the_constants(build: Build) -> None:
    types = sorted(
        set(re.findall(r"\b(xb_vec\w+|vbool\w+)(?= =|;)", (INCLUDE / "hbrt/ivp/lanes.h").read_text("utf-8")))
    )
    assert len(types) > 15
    types += ["valign", "xb_gsr"]
    checks = "\n".join(f"int size_{name}[sizeof({name})], align_{name}[_Alignof({name})];" for name in types)
    text = f"#include <xtensa/tie/xt_ivpn.h>\n{checks}\nint pattern = IVP_SELI_32B_ROTATE_RIGHT_8;\n"
    in_c = build("types.s", "-x", "c", "-std=c11", "-S", text=text).read_text(encoding="utf-8")
    in_cpp = build("types_cpp.s", "-S", text=text.replace("_Alignof", "alignof")).read_text(encoding="utf-8")
    sizes = re.compile(r"^\s+\.size\s+(\w+), (\d+)$", re.MULTILINE)
    assert dict(sizes.findall(in_c)) == dict(sizes.findall(in_cpp))


def test_no_two_lines_name_the_same_and_every_source_is_known() -> None:
    words = {"guide", "halide", "tflm", "assumed"}
    for line in read().lines:
        assert words & set(re.split(r"[,;: ]+", line.source)), line
        assert line.meaning


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("IVP_A", ("IVP_A",)),
        ("IVP_{A,B}{,T}", ("IVP_A", "IVP_AT", "IVP_B", "IVP_BT")),
        ("IVP_R_{8..11}", ("IVP_R_8", "IVP_R_9", "IVP_R_10", "IVP_R_11")),
    ],
)
def test_a_pattern_stands_for_names(pattern: str, names: tuple[str, ...]) -> None:
    assert expanded(pattern) == names


def test_a_pattern_that_names_something_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        expanded("IVP_{A,A}")


def test_a_source_without_cycle_counters_needs_no_runtime(build: Build) -> None:
    main = "int main() { return IVP_EXTRNX16(IVP_SEQNX16(), 7) + hbrt_cycles_take() - 7; }"
    text = f"#include <xtensa/tie/xt_ivpn.h>\n{main}\n"
    program = build("alone", "-DHBRT_NO_CYCLES", text=text)
    assert subprocess.run([program], check=False, timeout=PATIENCE_S).returncode == 0


def test_the_example_of_the_page_halves_any_number_of_values(load: Load) -> None:
    page = (INCLUDE.parents[2] / "docs" / "ivp.md").read_text("utf-8")
    example = page[page.index("```cpp\n") + 7 : page.index("\n```", page.index("```cpp\n"))]
    library = load("example", text=f"{example}\n".replace("void halve", 'extern "C" void halve'))
    for count in (1, 31, 32, 33, 100):
        x = np.arange(-count, count, 2, dtype=np.int16) * 3
        y = np.full(count + 40, 77, np.int16)
        library.halve(ctypes.c_void_p(y.ctypes.data), ctypes.c_void_p(x.ctypes.data), count)
        assert (y[:count] == x >> 1).all()
        assert (y[count:] == 77).all()


def test_each_name_is_a_macro_too(preprocessed_macros: dict[str, str]) -> None:
    names = [name for name in read().names if name.startswith("IVP_")]
    assert {name: preprocessed_macros.get(name) for name in names} == {name: name for name in names}


def test_the_macros_are_written_where_they_are_missing_or_old_and_only_there(tmp_path: Path) -> None:
    target = tmp_path / "names.h"
    write_names(target)
    text = target.read_bytes()
    assert text == (INCLUDE / "hbrt/ivp/names.h").read_bytes(), "run: python native/build.py"
    os.utime(target, ns=(0, 0))
    write_names(target)
    assert target.stat().st_mtime_ns == 0
    target.write_text("#define IVP_OLD IVP_OLD\n", encoding="utf-8")
    write_names(target)
    assert target.read_bytes() == text


def test_every_header_is_listed() -> None:
    folder = INCLUDE / "hbrt" / "ivp"
    assert {path.name for path in folder.glob("*.h")} == {path.name for path in headers()} | {"names.h"}
