"""Packages whose names are loaded when they are first used, from the stub that type checkers read."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import arm_client as hb
from hbrt import cv_types, nn_types
from hbrt.lazy import attach, stub_names
from tests.each import each

PACKAGES = ("arm_client", "arm_client.dnn", "dsp_server")


@each("name", PACKAGES)
def test_every_name_of_a_stub_is_there_and_shown_by_dir(name: str) -> None:
    package = importlib.import_module(name)
    names = stub_names(Path(str(package.__file__)).with_suffix(".pyi"))
    assert len(names) > 10
    for one, module in names.items():
        expected = importlib.import_module(f"{name}.{one}") if module == name else None
        assert getattr(package, one) is (expected or getattr(importlib.import_module(module), one))
    assert names.keys() <= set(dir(package))
    assert set(package.__all__) == {one for one, module in names.items() if module != name}


@each("name", PACKAGES)
def test_a_name_that_is_not_there_is_an_attribute_error(name: str) -> None:
    package = importlib.import_module(name)
    with pytest.raises(AttributeError, match=f"^module '{re.escape(name)}' has no attribute 'hbDSPRcp'$"):
        _ = package.hbDSPRcp


def test_every_structure_that_an_arm_program_needs_is_in_hb() -> None:
    for module in (cv_types, nn_types):
        structures = [name for name in vars(module) if re.match("hb(DSP|VP)", name)]
        assert structures
        for name in structures:
            assert getattr(hb, name) is getattr(module, name)


def test_an_interpreter_s_hint_names_the_nearest_of_the_lazy_names() -> None:
    program = "import arm_client as hb; hb.hbDNNInfre"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.stderr.endswith("has no attribute 'hbDNNInfre'. Did you mean: 'hbDNNInfer'?\n")


def test_a_stub_s_submodules_are_loaded_too_and_no_star_brings_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lazy_package"
    package.mkdir()
    (package / "__init__.py").write_text("value = 1\n")
    (package / "__init__.pyi").write_text("from lazy_package import (\n    part as part,\n)\n")
    (package / "part.py").write_text("inside = 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("lazy_package")
    lazy = attach("lazy_package", str(module.__file__))
    assert (lazy.getattr("part").inside, lazy.all) == (2, [])
    assert {"part", "value"} <= set(lazy.dir())


@each("name", PACKAGES)
def test_a_stub_is_read_as_python_reads_it(name: str) -> None:
    stub = Path(str(importlib.import_module(name).__file__)).with_suffix(".pyi")
    imports = [node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    assert stub_names(stub) == {alias.asname: node.module for node in imports for alias in node.names}
