"""What tools/abi.py writes is what the headers declare, and the compiler sees structures and numbers as ctypes does."""

from __future__ import annotations

import ctypes
import importlib
import shutil
import subprocess
from pathlib import Path

import pytest

from hbrt.native.files import with_subfolders
from hbrt.structures import _fields_of
from tools import abi
from tools.packages import REPOSITORY

EVERY_API = pytest.mark.parametrize("api", abi.APIS, ids=lambda api: api.name)


@EVERY_API
def test_what_is_generated_is_what_the_headers_declare(api: abi.Api) -> None:
    stale = [path for path, text in abi.files(api).items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run: python -m tools.abi"


def test_a_declaration_alone_makes_the_entry_of_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abi, "_formatted", lambda text, _: text)  # formatting takes a program for each file
    before = abi.files(abi.HB)
    monkeypatch.setattr(abi, "HEADERS", tmp_path)
    shutil.copytree(REPOSITORY / "native" / "include", tmp_path / "native" / "include")
    header = abi.include_of(abi.HB) / "dnn" / "hb_sys.h"
    declared = header.read_text(encoding="utf-8")
    new = "/** What is new. */\nint32_t hbSysNew(const hbSysMem *mem, float x);\n\n"
    header.write_text(declared.replace("#ifdef __cplusplus\n}", f"{new}#ifdef __cplusplus\n}}"), encoding="utf-8")
    changed = [text for path, text in abi.files(abi.HB).items() if before[path] != text]
    line = '(const hbSysMem *mem, float x), (mem, x), "c_int32 hbSysMem* c_float")'
    assert [f"CALL(int32_t, hbSysNew, HB_SYS_NOT_RUNNING, {line}" in text for text in changed] == [True]


def numbers(api: abi.Api) -> dict[str, int]:
    """C expression -> its value in Python."""
    declared = abi.Declared(api)
    found: dict[str, int] = {}
    for module in api.modules:
        there = vars(importlib.import_module(module))
        enums = [declared.enums[name] for name in declared.of_module(module, declared.enums)]
        constants = [*declared.of_module(module, declared.constants), *(one for members in enums for one in members)]
        found |= {one: int(there[one]) for one in constants}
        for name in declared.of_module(module, declared.structures):
            kind, text = there[name], declared.structures[name].text
            found[f"sizeof({text})"] = ctypes.sizeof(kind)
            for field, _ in _fields_of(kind):
                found[f"offsetof({text}, {field})"] = getattr(kind, field).offset
                found[f"sizeof((({text} *)0)->{field})"] = getattr(kind, field).size
    return found


@EVERY_API
@pytest.mark.parametrize("standard", ["c11", "c++17"])
def test_the_compiler_sees_what_ctypes_does(api: abi.Api, standard: str, tmp_path: Path) -> None:
    is_c = standard == "c11"
    compiler = shutil.which("cc" if is_c else "c++")
    if compiler is None:
        pytest.skip("no compiler is here")
    expected = numbers(api)
    assert len(expected) > 200
    holds = "_Static_assert" if is_c else "static_assert"
    folders = with_subfolders(abi.include_of(api))
    named = folders[:1] if api.folder == "arm" else folders  # those below arm have modules, or are C++
    files = [one for each in named for one in each.glob("*.h")]
    headers = sorted(one.name for one in files if "#error" not in one.read_text(encoding="utf-8"))  # else: a refusal
    headers += [one for more in api.modules.values() for one in more]
    lines = [f"#include <{name}>" for name in ["stddef.h", *headers, *reversed(headers)]]
    lines += [f'{holds}((long long)({text}) == {value}, "{text}");' for text, value in expected.items()]
    source = tmp_path / ("all.c" if is_c else "all.cc")
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic-errors", f"-std={standard}", "-fsyntax-only"]
    done = subprocess.run(
        [compiler, *strict, *(f"-I{one}" for one in folders), str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:2000]
