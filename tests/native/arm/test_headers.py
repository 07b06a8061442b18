"""The headers compile, and the library has the functions of the client."""

import re
import sys
from pathlib import Path

import pytest

import arm_client
from arm_client.c_library import host
from hbrt.lazy import stub_names
from hbrt.native.files import include_dir
from hbrt.status import Status
from tests.native.arm.conftest import Compile
from tools import abi

HEADERS = sorted(path.relative_to(include_dir("arm")).as_posix() for path in include_dir("arm").rglob("*.h"))
PLAIN = [name for name in HEADERS if "plugin/hb_dnn" not in name]
OURS = {"hbrt_last_error", "hbrt_register_fd", "hbrt_register_layer"}
ARM = include_dir("arm").parents[1] / "arm"


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


def test_the_library_has_every_function_of_the_client() -> None:
    stub = stub_names(Path(str(arm_client.__file__)).with_suffix(".pyi"))
    functions = {
        name for name in stub if re.match(r"hb(Sys|DSP|DNN)[A-Z]", name) and callable(getattr(arm_client, name))
    }
    kinds = {name for name in functions if isinstance(getattr(arm_client, name), type)}
    made_in_cplusplus = {"hbDNNRegisterLayerCreator"}  # of hbrt_register_layer
    assert functions - kinds - made_in_cplusplus == {one.name for one in abi.Declared(abi.HB).functions} - OURS


def test_a_function_without_a_body_is_refused_with_a_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    assert host._function("hbDNNSomethingNew")(1, 0) == Status.HB_SYS_NOT_SUPPORTED
    assert "hbDNNSomethingNew is declared, but not supported" in capfd.readouterr().err


def test_starting_the_library_needs_nothing_of_python_at_build_time() -> None:
    """It is built once for every Python."""
    assert "Python.h" not in "".join(path.read_text() for path in ARM.glob("*.[ch]"))
    assert sys.version_info >= (3, 11)
