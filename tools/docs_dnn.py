"""Generated parts of the pages on models."""

from __future__ import annotations

from collections.abc import Callable

from arm_client.dnn import environment
from tools.markdown import table


def environment_rows() -> str:
    """Every variable of the board's runtime, and what becomes of it."""
    rows = [(f"`{one.name}`", one.meaning, _effect(one)) for one in environment.TABLE]
    return table(("variable", "on the board", "here"), rows)


def _effect(variable: environment.Variable) -> str:
    if variable.is_honored:
        return variable.here
    known = f" unless it is {variable.right_value}" if variable.right_value else ""
    return f"no effect, and a warning{known}: {variable.here}"


PARTS: dict[str, Callable[[], str]] = {"dnn-environment": environment_rows}
