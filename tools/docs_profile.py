"""The table of docs/cycles.md: the constants of the packaged profile."""

from __future__ import annotations

from collections.abc import Callable

from hbrt.profiles.keys import KEYS
from hbrt.profiles.profile import find
from tools.markdown import table


def constants() -> str:
    """Every constant of j5: value, range, where it is from."""
    known = find("j5").constants
    rows = (
        (
            f"`{key}`",
            rule.help,
            f"{known[key].value:g} {rule.unit}",
            f"{known[key].low:g} to {known[key].high:g}" if known[key].is_assumed else "",
            f"assumed: {known[key].why}" if known[key].is_assumed else known[key].source,
        )
        for key, rule in KEYS.items()
    )
    return table(("constant", "what it is", "value", "range", "source"), rows)


PARTS: dict[str, Callable[[], str]] = {"profile": constants}
