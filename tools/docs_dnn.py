"""Generated parts of the pages on models."""

from __future__ import annotations

from collections.abc import Callable

from arm_client.dnn import environment
from tools.markdown import table


def environment_rows() -> str:
    """Every variable of the board's runtime, and what becomes of it."""
    rows = [
        (f"`{one.name}`", one.meaning, one.here if one.is_honoured else f"no effect, and a warning: {one.here}")
        for one in environment.TABLE
    ]
    return table(("variable", "on the board", "here"), rows)


PARTS: dict[str, Callable[[], str]] = {"dnn-environment": environment_rows}
