"""Packages whose names are loaded on first use; the stub next to ``__init__.py`` lists them.

Type checkers and editors read the stub (``__init__.pyi``); ``attach`` reads the same lines, so that each name is
written only once. Its lines have the form ``from package.module import name as name``, with several names in
parentheses, as the formatter writes them.
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
    """Say what to do if an extra of hbrt is missing: the end of a sentence, without the period.

    Args:
        extra: Its name.
        is_guest: Whether it comes with a separate distribution, ``hbrt-EXTRA``.
    """
    also = f" packages/hbrt-{extra}" if is_guest else ""
    return f"install hbrt with its extra {extra!r}, as in pip install '.[{extra}]'{also} in its clone"


class Lazy(NamedTuple):
    """The functions for a package's ``__init__.py``."""

    getattr: Callable[[str], Any]
    dir: Callable[[], list[str]]
    all: list[str]


def attach(package: str, init_file: str, *, optional: str = "", libraries: Collection[str] = ()) -> Lazy:
    """Make the names in a package's stub load on first use.

    Args:
        package: ``__name__`` of the package.
        init_file: ``__file__`` of the package; the stub is next to it.
        optional: Prefix of modules whose names ``import *`` skips while one of ``libraries`` is missing.
        libraries: What these modules need.
    """
    modules = stub_names(Path(init_file).with_suffix(".pyi"))
    namespace = vars(sys.modules[package])

    def load(name: str) -> Any:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        value = import_module(f"{module}.{name}") if module == package else _load(name, module)
        namespace[name] = value  # from now on it is found without this function, which takes a few microseconds
        return value

    names = sorted(name for name, module in modules.items() if module != package)
    if optional and not all(map(_is_installed, libraries)):
        names = [name for name in names if not modules[name].startswith(optional)]
    return Lazy(load, lambda: sorted({*namespace, *modules}), names)


def stub_names(stub: Path) -> dict[str, str]:
    """Return the names that a stub exports, and each one's module; for a submodule, the package."""
    # Every program start reads the stubs; loading ast and parsing them would take ten times as long.
    text = stub.read_text(encoding="utf-8")
    return {name: module for module, names in _IMPORT.findall(text) for name in _EXPORT.findall(names)}


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except (ImportError, ValueError):  # an import hook refuses it, or replaces it
        return False


def _load(name: str, module: str) -> Any:
    """Return the object behind a lazy name.

    Raises:
        ImportError: a library of one of hbrt's extras is missing (names the extra), or its file cannot be opened.
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
        raise ImportError(f"Cannot load {name}: {str(error).rstrip('.')}.", name=module) from None
