"""A verb's answer, made once: data for ``--json``, the same as lines and tables for people, and the exit code."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

from hbrt.cli.exits import Exit
from hbrt.cli.tables import Table, show_json, show_table, show_text

_IS_JSON = "hbrt.cli.report"


class Report:
    """An answer.

    Args:
        data: What ``--json`` prints as one document.
        parts: Lines and tables, in reading order.
        code: The exit code.
        warnings: Lines for standard error; ``--json`` has them in its data.
    """

    def __init__(self, data: Any, *parts: object, code: int = Exit.GOOD, warnings: Sequence[str] = ()) -> None:
        self.data = data
        self.parts = parts
        self.code = code
        self.warnings = warnings

    def show(self, *, as_json: bool) -> None:
        """Print it."""
        if as_json:
            show_json(self.data)
            return
        for part in self.parts:
            if not isinstance(part, Table):
                show_text(part)
            elif part.rows or not part.empty:
                show_table(part.columns, part.rows)
            else:
                show_text(part.empty)
        for line in self.warnings:
            show_text(line, err=True)


def is_json() -> bool:
    """Whether the running verb got ``--json``: nothing else may be printed on its standard output."""
    return bool(click.get_current_context().meta.get(_IS_JSON))


def reports(function: Callable[..., Report | None]) -> Callable[..., Any]:
    """Add ``--json`` to a verb, print the report that it returns, and end with the report's exit code."""

    @wraps(function)
    def verb(*args: Any, as_json: bool, watch: float | None = None, **options: Any) -> None:
        context = click.get_current_context()
        context.meta[_IS_JSON] = as_json or is_json()
        while True:
            report = function(*args, **options)
            if watch is not None and not is_json():
                click.clear()  # does nothing unless the output is a terminal
            if report is not None:
                report.show(as_json=is_json())
            if watch is None:
                break
            sys.stdout.flush()
            time.sleep(watch)
        if report is not None:
            context.exit(report.code)

    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")(verb)


watched = click.option(
    "--watch",
    metavar="SECONDS",
    type=click.FloatRange(0.1, 3600),
    help="Repeat the report at this interval, until Ctrl-C or an error; with --json, print one document each time.",
)
"""Adds ``--watch`` to a verb that reports."""
