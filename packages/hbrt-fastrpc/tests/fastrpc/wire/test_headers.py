"""Codes, names and layouts are the same in Python, in C, and in the profile of a board that has them."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fastrpc.wire import ring, types
from fastrpc.wire.aee import Aee
from hbrt.profiles.profile import find
from tools.docs_aee import HEADER, text


def test_codes_in_c() -> None:
    assert HEADER.read_text(encoding="utf-8") == text(), "run: python -m tools.docs_aee"


def test_codes_of_the_profile() -> None:
    assert find("sd865").codes == {name: one.value for name, one in Aee.__members__.items()}


INCLUDE = HEADER.parent
RINGS = {
    "DSPQUEUE_PACKET_FLAG_MESSAGE": ring.FLAG_MESSAGE,
    "DSPQUEUE_PACKET_FLAG_BUFFERS": ring.FLAG_BUFFERS,
    "DSPQUEUE_PACKET_FLAG_WAKEUP": ring.FLAG_WAKEUP,
    "DSPQUEUE_BUFFER_FLAG_REF": ring.BUFFER_REF,
    "DSPQUEUE_BUFFER_FLAG_DEREF": ring.BUFFER_DEREF,
    "sizeof(struct dspqueue_buffer)": ring.BUFFER.size,
}


def wanted() -> dict[str, int]:
    """C expression -> its value on the Python side."""
    found = dict(RINGS)
    text = "".join((INCLUDE / name).read_text(encoding="utf-8") for name in ("remote.h", "rpcmem.h", "dspqueue.h"))
    for name, one in vars(types).items():
        if isinstance(one, int) and not (name.startswith("_") or name == "TYPE_CHECKING"):
            found[name] = one
        elif (
            isinstance(one, type)
            and issubclass(one, (ctypes.Structure, ctypes.Union))
            and one.__module__ == types.__name__
            and name != "remote_rpc_domain"
        ):
            kind = name if re.search(rf"\}} {name};", text) else f"struct {name}"
            found[f"sizeof({kind})"] = ctypes.sizeof(one)
            for field, *_ in one._fields_:
                found[f"offsetof({kind}, {field})"] = getattr(one, field).offset
                found[f"sizeof((({kind} *)0)->{field})"] = getattr(one, field).size
    return found


@pytest.mark.parametrize("standard", ["c11", "c++17"])
def test_names_and_layouts_in_c(tmp_path: Path, standard: str) -> None:
    is_c = standard == "c11"
    compiler = shutil.which("cc" if is_c else "c++")
    if compiler is None:
        pytest.skip("no compiler is here")
    expected = wanted()
    assert len(expected) > 200
    holds = "_Static_assert" if is_c else "static_assert"
    source = tmp_path / ("all.c" if is_c else "all.cc")
    headers = sorted(one.name for one in INCLUDE.glob("*.h"))
    lines = [f"#include <{name}>" for name in ["stddef.h", *headers, *reversed(headers)]]
    lines += [f'{holds}({expression} == {value}, "{expression}");' for expression, value in expected.items()]
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic-errors", f"-std={standard}", "-fsyntax-only", f"-I{INCLUDE}"]
    done = subprocess.run([compiler, *strict, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
