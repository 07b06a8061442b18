"""The titles of a board's processes in ps and top."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

_KEEP_ENVIRONMENT = "SPT_NOENV"  # setproctitle's: the title takes the place of the arguments alone


def set_title(role: str, board: str) -> None:
    """Call this process ``hbrt <role> of board <board>``: ``hbrt daemon``, ``hbrt core 0``, ``hbrt relay``."""
    os.environ[_KEEP_ENVIRONMENT] = "1"
    try:
        _setter()(f"hbrt {role} of board {board}")
    finally:
        del os.environ[_KEEP_ENVIRONMENT]


@cache
def _setter() -> Callable[[str], object]:
    """The C function of setproctitle: its package loads logging, a twentieth of a board's start in each process."""
    package = find_spec("setproctitle")
    folders = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("setproctitle._setproctitle", folders) if folders else None
    if spec is None or spec.loader is None:
        return lambda title: title  # where it is not compiled, its package sets no title either
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    setter: Callable[[str], object] = module.setproctitle
    return setter
