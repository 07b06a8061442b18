"""``hbrt estimate --against``: compare an estimate with an earlier one, as a gate and as a table for a pull request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

from arm_client.commands.estimate.report import us
from hbrt.cli.exits import Exit
from hbrt.cli.report import Report

GONE: Final = "only before"
NEW: Final = "only now"


class BadEstimateError(ValueError):
    """A file is not a former estimate; the text is a sentence."""


class Change(NamedTuple):
    """A time before and now, in modeled microseconds; None if only one of the documents has it."""

    what: str
    before_us: float | None
    now_us: float | None

    @property
    def growth(self) -> float | None:
        """How much longer it takes now, as a share."""
        if self.before_us is None or self.now_us is None or not self.before_us:
            return None
        return self.now_us / self.before_us - 1


def read(file: Path) -> dict[str, Any]:
    """Read output of ``hbrt estimate --json``.

    Raises:
        BadEstimateError: it is not such a document.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        _times_of(document)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadEstimateError(f"{file} is not the output of 'hbrt estimate --json': {error!r}.") from None
    return dict(document)


def changes_of(before: dict[str, Any], now: dict[str, Any]) -> list[Change]:
    """Compare the times of two documents, by op, or by board."""
    old, new = _times_of(before), _times_of(now)
    return [Change(what, old.get(what), new.get(what)) for what in dict.fromkeys([*new, *old])]


def report(changes: list[Change], most_growth: float) -> Report:
    """A Markdown table; the exit code is 1 when something takes longer by more than ``most_growth``, a share."""
    slower = [one.what for one in changes if one.growth is not None and one.growth > most_growth]
    lines = ["| what | before | now | change |", "|---|---|---|---|"]
    for one in changes:
        before, now = ("" if time is None else us(time) for time in one[1:])
        mark = NEW if one.before_us is None else GONE if one.now_us is None else f"{one.growth or 0:+.1%}"
        lines.append(f"| {one.what} | {before} | {now} | {mark} |")
    if slower:
        lines.append(f"\nSlower by more than {most_growth:.1%}: {', '.join(slower)}.")
    rows = [{**one._asdict(), "growth": one.growth} for one in changes]
    code = Exit.FAILED if slower else Exit.GOOD
    return Report({"changes": rows, "slower": slower, "passed": not slower}, *lines, code=code)


def _times_of(document: dict[str, Any]) -> dict[str, float]:
    if "boards" in document:
        return {one["board"]: float(one["run_us"]) for one in document["boards"]}
    each = {f"{one['name']} ({one['cmd']:#x})": float(one["modeled_us"]) for one in document["calls"]}
    return {**each, "all calls": float(document["total"]["modeled_us"])}
