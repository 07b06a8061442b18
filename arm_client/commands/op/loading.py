"""Load what the user names as MODULE:NAME or FILE.py:NAME, with a traceback if it fails."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from arm_client.commands.op.declarations import needed_for
from hbrt.borders.traces import beyond
from hbrt.errors import WrongUseError


class BadNameError(WrongUseError):
    """The given MODULE:NAME is not usable; the message says why."""


def load_named(what: str, noun: str, *, is_declared: bool = False) -> Any:
    """The object named ``module:name`` or ``file.py:name``; modules are searched for in the current directory first.

    Args:
        what: The name.
        noun: The expected kind, such as "function", for messages.
        is_declared: Whether a declaration is wanted: then only the statements that it needs are run, not the rest of
            the program. A file that brings the name about in another way is run as a whole.

    Raises:
        BadNameError: no such module, file or name; or an import failed, with its error.
    """
    where, _, name = what.rpartition(":")
    if not where or not name:
        raise BadNameError(f"Invalid {noun} {what!r}: expected MODULE:{noun.upper()} or FILE.py:{noun.upper()}.")
    try:
        if where.endswith(".py"):
            sys.path.insert(0, str(Path(where).resolve().parent))
            module = _module_in(where, name if is_declared else None)
        else:
            sys.path.insert(0, str(Path.cwd()))
            module = importlib.import_module(where)
    except (ImportError, OSError, SyntaxError) as error:
        raise BadNameError(f"Cannot import {where}: {error}.") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module may raise anything when it is imported
        raise BadNameError(f"Cannot import {where}:\n{trace_of(error)}") from None
    if not hasattr(module, name):
        raise BadNameError(f"{where} has no {noun} {name}.")
    return getattr(module, name)


def _module_in(file: str, declared: str | None) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None:
        raise ImportError("it is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(module.__name__, module)  # the source of its classes is found there
    needed = needed_for(declared, Path(file).read_text(encoding="utf-8"), file) if declared is not None else None
    if needed is None:
        spec.loader.exec_module(module)
    else:
        exec(compile(needed, file, "exec", dont_inherit=True), vars(module))  # noqa: S102 - the user names the file
    return module


def trace_of(error: BaseException) -> str:
    """The traceback of an error, from the user's own code on."""
    trace = beyond(error, lambda frame: _is_ours(frame.f_code.co_filename)) or error.__traceback__
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip()


def _is_ours(file: str) -> bool:
    return (
        Path(file).parent == Path(__file__).parent or file == importlib.__file__ or file.startswith("<frozen importlib")
    )
