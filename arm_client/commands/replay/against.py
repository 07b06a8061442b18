"""``hbrt replay --against``: compare bits, cycles, TCM and DDR traffic with the recording's, as a gate. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from hbrt.recording.format import Call

QUANTITIES: Final = ("cycles", "ddr_bytes", "tcm_bytes")
_TITLES: Final = {"cycles": "cycles", "ddr_bytes": "DDR bytes", "tcm_bytes": "TCM bytes, the most"}


class Quantity(NamedTuple):
    """The times of an op's calls before and now; None if a recording lacks some."""

    before: int | None
    now: int | None

    @property
    def growth(self) -> float | None:
        """How much more it is now, as a share."""
        if self.before is None or self.now is None:
            return None
        if not self.before:
            return 0.0 if not self.now else float("inf")
        return self.now / self.before - 1

    def text(self) -> str:
        """Both, and by how much it has grown."""
        if self.growth is None:
            return "not recorded"
        return f"{self.before} | {self.now} ({self.growth:+.1%})" if self.growth else f"{self.before} | same"


class OpChange(NamedTuple):
    """An op before and now: its calls, the number that differ in status or bits, and their times."""

    op: str
    calls: int
    differing: int
    cycles: Quantity
    ddr_bytes: Quantity
    tcm_bytes: Quantity

    def grown(self, allow: float) -> list[str]:
        """The quantities that grew by more than a given share."""
        return [name for name in QUANTITIES if (growth := getattr(self, name).growth) is not None and growth > allow]

    def document(self) -> dict[str, Any]:
        """As plain data."""
        quantities = {name: {**getattr(self, name)._asdict()} for name in QUANTITIES}
        return {"op": self.op, "calls": self.calls, "differing": self.differing, **quantities}


def changes_of(pairs: Sequence[tuple[Call, Call, bool]]) -> list[OpChange]:
    """Compare calls by op.

    Args:
        pairs: For each call: the recorded one, the new one, and whether status and bits are equal.
    """
    by_op: dict[str, list[tuple[Call, Call, bool]]] = {}
    for pair in pairs:
        by_op.setdefault(f"{pair[0].op or pair[1].op or 'op'} ({pair[0].cmd:#x})", []).append(pair)
    return [
        OpChange(
            op,
            len(some),
            sum(not is_same for _, _, is_same in some),
            _quantity(some, "cycles", sum),
            _quantity(some, "ddr_bytes", sum),
            _quantity(some, "tcm_bytes", max),
        )
        for op, some in by_op.items()
    ]


def _quantity(some: Sequence[tuple[Call, Call, bool]], name: str, total: Any) -> Quantity:
    sides = [[getattr(pair[side], name) for pair in some] for side in range(2)]
    return Quantity(*(None if -1 in values else total(values) for values in sides))


def table(changes: Sequence[OpChange], allow: float) -> list[str]:
    """The lines of a Markdown table, and a line for each problem, if any."""
    heads = [part for name in QUANTITIES for part in (f"{_TITLES[name]}, before", "now")]
    lines = [f"| op | calls | bits | {' | '.join(heads)} |", "|---|---|---|" + "---|" * len(heads)]
    for one in changes:
        bits = f"{one.differing} differ" if one.differing else "same"
        cells = [text if " | " in (text := getattr(one, name).text()) else f"{text} | " for name in QUANTITIES]
        lines.append(f"| {one.op} | {one.calls} | {bits} | {' | '.join(cells)} |")
    bad = [f"{one.op}: {', '.join(_TITLES[name] for name in grown)}" for one in changes if (grown := one.grown(allow))]
    if bad:
        lines.append(f"\nGrown by more than {allow:.1%}: {'; '.join(bad)}.")
    if different := [one.op for one in changes if one.differing]:
        lines.append(f"\nBits or status differ: {', '.join(different)}.")
    return lines
