"""Packages whose names are loaded when they are first used: the stub beside ``__init__.py`` lists them, once.

The stub (``__init__.pyi``) is what type checkers and editors read; ``attach`` reads the same lines, so that each name
is written in one place. Its lines have the form ``from package.module import name as name``, as the formatter has them:
several names stand in brackets.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

EXTRA_OF = {"onnx": "dnn", "onnxruntime": "dnn", "ml_dtypes": "dnn", "yaml": "dnn", "cv2": "dnn"}
"""Library -> the extra of hbrt that installs it."""

_IMPORT = re.compile(r"^from (\S+) import (\([^)]*\)|.*)$", re.MULTILINE)
_EXPORT = re.compile(r"\b(\w+) as \1\b")


def how_to_install(extra: str, *, is_guest: bool = False) -> str:
    """What to do where an extra of hbrt is missing: the end of a sentence, without its full stop.

    Args:
        extra: Its name.
        is_guest: Whether a distribution beside the core, ``hbrt-EXTRA``, comes with it.
    """
    also = f" packages/hbrt-{extra}" if is_guest else ""
    return f"install hbrt with its extra {extra!r}, as in pip install '.[{extra}]'{also} in its clone"


class Lazy(NamedTuple):
    """What a package's ``__init__.py`` takes over."""

    getattr: Callable[[str], Any]
    dir: Callable[[], list[str]]
    all: list[str]


def attach(package: str, init_file: str, *, optional: str = "", libraries: Collection[str] = ()) -> Lazy:
    """Make the names of a package's stub load when they are first used.

    Args:
        package: ``__name__`` of the package.
        init_file: ``__file__`` of the package; the stub lies beside it.
        optional: Prefix of modules whose names ``import *`` leaves out while one of ``libraries`` is missing.
        libraries: What these modules need.
    """
    modules = stub_names(Path(init_file).with_suffix(".pyi"))
    namespace = vars(sys.modules[package])

    def load(name: str) -> Any:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        value = import_module(f"{module}.{name}") if module == package else _load(name, module)
        namespace[name] = value  # from now on it is found without this function, which costs some microseconds
        return value

    names = sorted(name for name, module in modules.items() if module != package)
    if optional and not all(map(_is_installed, libraries)):
        names = [name for name in names if not modules[name].startswith(optional)]
    return Lazy(load, lambda: sorted({*namespace, *modules}), names)


def stub_names(stub: Path) -> dict[str, str]:
    """The names that a stub exports, and the module of each; of a submodule, the package."""
    # Every start of a program reads its stubs: loading ast and parsing them takes ten times as long.
    text = stub.read_text(encoding="utf-8")
    return {name: module for module, names in _IMPORT.findall(text) for name in _EXPORT.findall(names)}


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except (ImportError, ValueError):  # an import hook refuses it; something stands in for it
        return False


def _load(name: str, module: str) -> Any:
    """The object behind a lazy name.

    Raises:
        ImportError: a library of one of hbrt's extras is missing; says which extra. Or its file cannot be opened.
    """
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        extra = EXTRA_OF.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise ImportError(
            f"{name} needs {error.name}, which is not installed: {how_to_install(extra)}.",
            name=error.name,
        ) from None
    except OSError as error:
        raise ImportError(f"{name} cannot be loaded: {error}.", name=module) from None
