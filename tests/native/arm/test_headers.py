"""The headers say what the ctypes side says: sizes, offsets, values, and which functions there are."""

import ctypes
import re
import subprocess
import sys
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

import arm_client
import arm_client.c_library.structures
import hbrt.cv_types
import hbrt.dnn_types
import hbrt.nn_types
import hbrt.pointcloud_types
import hbrt.types
from arm_client import c_library
from arm_client.c_library.host import guest_of
from arm_client.c_library.prototypes import parameters_of
from fastrpc.c_library import names as fastrpc_names
from hbrt.lazy import stub_names
from hbrt.native.files import include_dir
from hbrt.status import Status
from tests.limits import PATIENCE_S
from tests.native.arm.conftest import Compile

HEADERS = sorted(path.relative_to(include_dir("arm")).as_posix() for path in include_dir("arm").rglob("*.h"))
PLAIN = [name for name in HEADERS if "plugin/hb_dnn" not in name]
OURS = {"hbrt_last_error", "hbrt_register_fd", "hbrt_register_layer"}
MODULES = (hbrt.types, hbrt.dnn_types, hbrt.cv_types, hbrt.nn_types, hbrt.pointcloud_types, c_library.structures)
VENDOR = re.compile(r"hb(Sys|DSP|Dsp|DNN|VP|BPU)|hbPacked|hbrt[A-Z]")
CALLS = include_dir("arm").parents[1] / "arm" / "calls.h"


def structures() -> Iterator[tuple[str, Any]]:
    for module in MODULES:
        for name, found in vars(module).items():
            is_structure = isinstance(found, type) and issubclass(found, ctypes.Structure)
            if is_structure and VENDOR.match(name):
                yield name, found


def constants() -> Iterator[tuple[str, int]]:
    for module in MODULES:
        for found in vars(module).values():
            if isinstance(found, type) and issubclass(found, IntEnum):
                yield from ((name, int(one)) for name, one in found.__members__.items())
        for name, value in vars(module).items():
            if name.startswith(("HB_", "POINTCLOUD_", "QUANTI_S")) and isinstance(value, int) and "LOG" not in name:
                yield name, int(value)
    yield from ((status.name, int(status)) for status in Status)
    yield from (("HB_DSP_SUCCESS", 0), ("HB_DNN_SUCCESS", 0))


def wanted() -> dict[str, int]:
    """C expression -> its value by ctypes."""
    found = {f"(long long)({name})": value for name, value in constants()}
    for name, kind in structures():
        found[f"(long long)sizeof({name})"] = ctypes.sizeof(kind)
        for base in reversed(kind.__mro__):
            for field, *_ in base.__dict__.get("_fields_", ()):
                found[f"(long long)offsetof({name}, {field})"] = getattr(kind, field).offset
                found[f"(long long)sizeof((({name} *)0)->{field})"] = getattr(kind, field).size
    return found


def test_sizes_offsets_and_values_are_those_of_ctypes(compiled: Compile, tmp_path: Path) -> None:
    expected = wanted()
    lines = "\n".join(f'  printf("%lld\\n", {expression});' for expression in expected)
    includes = "\n".join(f'#include "{name}"' for name in PLAIN)
    source = tmp_path / "values.c"
    source.write_text(
        f"#include <stddef.h>\n#include <stdio.h>\n{includes}\nint main(void) {{\n{lines}\n  return 0;\n}}\n"
    )
    answer = subprocess.run([compiled(str(source))], check=True, capture_output=True, text=True, timeout=PATIENCE_S)
    assert len(expected) > 400
    assert dict(zip(expected, map(int, answer.stdout.split()), strict=True)) == expected


@pytest.mark.parametrize("standard", ["c11", "c++11"])
def test_every_header_compiles_alone_and_with_all_others(compiled: Compile, tmp_path: Path, standard: str) -> None:
    """C++17 is the standard of most programs in programs/."""
    names, suffix = (PLAIN, "c") if standard == "c11" else (HEADERS, "cc")
    for number, name in enumerate(names):
        (tmp_path / f"alone{number}.{suffix}").write_text(f'#include "{name}"\ntypedef int used{number};\n')
    every = "".join(f'#include "{name}"\n' for name in [*names, *reversed(names)])
    everything = tmp_path / f"every.{suffix}"
    everything.write_text(f"{every}int main(void) {{ return 0; }}\n")
    others = [str(tmp_path / f"alone{number}.{suffix}") for number in range(len(names))]
    compiled(str(everything), *others, f"-std={standard}", "-pedantic-errors", "-Wstrict-aliasing", "-Wshadow")


def entries() -> dict[str, str]:
    """Name -> parameters of the functions in calls.h."""
    text = "".join(file.read_text() for file in CALLS.parent.glob("*calls.h")).replace("\\\n", " ")
    found = re.findall(r"CALL\([\w *]+?, (\w+), [-\w\"()]+,\s*(\([^)]*\)),", text)
    return dict(found)


def test_the_library_has_every_function_of_the_client() -> None:
    stub = Path(str(arm_client.__file__)).with_suffix(".pyi")
    functions = {
        name
        for name, module in stub_names(stub).items()
        if re.match(r"hb(Sys|DSP|DNN)[A-Z]", name) and module.startswith("arm_client.")
    }
    made_in_cplusplus = {"hbDNNRegisterLayerCreator"}  # of hbrt_register_layer
    of_others = {name for name in entries() if guest_of(name)}
    assert functions - made_in_cplusplus == set(entries()) - of_others - OURS
    assert set(fastrpc_names.CALLS) == {name for name in of_others if not name.startswith(("rknn_", "hbrt_rga_"))}
    assert all(callable(function) for function in fastrpc_names.CALLS.values())
    for name, text in entries().items():
        guest = guest_of(name)
        _, kinds = (guest and guest.prototype(name)) or (None, parameters_of(text, guest.STRUCTURES if guest else {}))
        assert len(kinds) == (text.count(",") + 1) * (text != "(void)")


def test_a_prototype_that_python_cannot_read_is_named() -> None:
    with pytest.raises(ValueError, match="No type 'hbNone'"):
        parameters_of("(hbNone *one)")
    with pytest.raises(ValueError, match="is not a base type"):
        parameters_of("(int32_t (*call)(void))")
    assert parameters_of("(const char **a, const void **b, char *c)") == [
        ctypes.POINTER(ctypes.c_char_p),
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.c_void_p,
    ]


def test_starting_the_library_needs_nothing_of_python_at_build_time() -> None:
    """It is built once for every Python."""
    assert "Python.h" not in "".join(path.read_text() for path in CALLS.parent.glob("*.[ch]"))
    assert sys.version_info >= (3, 11)
