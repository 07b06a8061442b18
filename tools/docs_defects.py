"""Table of docs/detectors.md: the programs with a mistake each, and what names it."""

from __future__ import annotations

from arm_client.commands.run.defects import all_defects, kinds_of
from tools.markdown import table


def _defects() -> str:
    rows = []
    for one in all_defects().values():
        how = ", ".join(f"`{kind}`" for kind in kinds_of(one)) or "the task's text"
        rows.append((f"`{one.name}`", one.about, how))
    return table(("program", "mistake", "named as"), rows)


PARTS = {"defects": _defects}
