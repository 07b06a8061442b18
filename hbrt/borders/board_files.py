"""Files and devices that exist on a board but not on this machine, for Python programs that read them."""

from __future__ import annotations

import builtins
import io
import os
import platform
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
_HERE = str(Path(__file__).parents[2])
_shown: dict[str, str | None] = {}


def show(files: Mapping[str, str | None], *, machine: str = "") -> list[str]:
    """Make this process's ``open``, ``os.listdir``, ``os.path.exists`` and ``isfile`` find files that do not exist.

    Args:
        files: Text of each, by full path; None for a device, which exists but cannot be read.
        machine: What ``platform.machine()`` returns to the program, not to libraries; "" for this machine's value.

    Returns:
        The paths missing on this machine that appear from now on.
    """
    added = [path for path in files if path not in _shown and not os.path.lexists(path)]
    if not _shown and added:
        builtins.open = io.open = _Opened(builtins.open)
        os.listdir = _Listed(os.listdir)
        os.path.exists, os.path.isfile = _Found(os.path.exists), _FoundFile(os.path.isfile)
    _shown.update((path, files[path]) for path in added)
    if machine and not isinstance(platform.machine, _Machine):
        platform.machine = _Machine(machine, platform.machine)
    return added


class _Instead:
    """Wrap a standard library function to return something else for these paths."""

    def __init__(self, own: Any) -> None:
        self.own = own
        self.__name__ = getattr(own, "__name__", type(self).__name__)


class _Opened(_Instead):
    def __call__(self, file: Any, mode: str = "r", *rest: Any, **how: Any) -> Any:
        text = _shown.get(_path(file))
        if text is None or set(mode) & set("wax+"):
            return self.own(file, mode, *rest, **how)
        return io.BytesIO(text.encode()) if "b" in mode else io.StringIO(text)


class _Found(_Instead):
    def __call__(self, path: Any) -> bool:
        return _path(path) in _shown or bool(self.own(path))


class _FoundFile(_Instead):
    def __call__(self, path: Any) -> bool:
        return _shown.get(_path(path)) is not None or bool(self.own(path))


class _Listed(_Instead):
    def __call__(self, path: Any = ".") -> Any:
        found = self.own(path)
        parents = [Path(one) for one in _shown]
        return [*found, *(one.name for one in parents if isinstance(path, str) and one.parent == Path(path))]


class _Machine(_Instead):
    def __init__(self, machine: str, own: Any) -> None:
        super().__init__(own)
        self._machine = machine

    def __call__(self) -> str:
        caller = sys._getframe(1).f_code.co_filename  # noqa: SLF001 - who asks decides
        return str(self.own()) if caller.startswith((*_LIBRARIES, _HERE)) else self._machine


def _path(given: Any) -> str:
    return os.fspath(given) if isinstance(given, (str, os.PathLike)) else ""
