"""Table of docs/detectors.md: the programs with a mistake each, and what names it."""

from __future__ import annotations

from arm_client.commands.run.defects import FAULT, all_defects
from tools.markdown import table


def _defects() -> str:
    rows = []
    for one in all_defects().values():
        how = "the fault's sentence" if one.named == FAULT else f"`{one.named}`" if one.named else "the task's text"
        rows.append((f"`{one.name}`", one.about, how))
    return table(("program", "mistake", "named as"), rows)


PARTS = {"defects": _defects}
