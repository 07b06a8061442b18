"""Findings as human-readable text, one per line. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable

from hbrt.findings.record import Finding, Place

MAX_PLACES = 8
"""Maximum number of places of one kind in a finding's message."""


def counted(count: int, noun: str) -> str:
    """Format a count: ``1 block``, ``2 blocks``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def allocated_at(blocks: tuple[Place, ...]) -> str:
    """Return a sentence on where blocks were allocated, with a leading space; empty if no line is known.

    For several blocks from one line it gives their number, total bytes and first address.
    """

    def of_line(site: str, there: list[Place]) -> str:
        first = f"{there[0].phy_addr:#x}+{there[0].size_bytes or 0:#x}"
        if len(there) == 1:
            return f"{site} ({first})"
        size = counted(sum(one.size_bytes or 0 for one in there), "byte")
        return f"{site} ({len(there)} blocks, {size}, the first {first})"

    return _by_line("Allocated", blocks, of_line)


def submitted_at(tasks: tuple[Place, ...]) -> str:
    """Like ``allocated_at``, for where tasks were submitted."""
    return _by_line("Submitted", tasks, lambda site, there: f"{site} ({len(there)} of command {there[0].cmd or 0:#x})")


def _by_line(did: str, places: tuple[Place, ...], of_line: Callable[[str, list[Place]], str]) -> str:
    lines: dict[str, list[Place]] = {}
    for place in places:
        if place.site:
            lines.setdefault(place.site, []).append(place)
    known = [of_line(site, there) for site, there in lines.items()]
    if not known:
        return ""
    more = len(known) - MAX_PLACES
    others = f" and {counted(more, 'more line')}" if more > 0 else ""
    return f" {did} at {', '.join(known[:MAX_PLACES])}{others}."


def line_of(found: Finding) -> str:
    """Format as ``kind: message``, with the number of times if above 1."""
    often = "" if found.times == 1 else f" (found {found.times} times; this is the last)"
    return f"{found.kind}: {found.text}{often}"


def stderr_line_of(found: Finding) -> str:
    """Like ``line_of``, for standard error, where other libraries also write."""
    return f"hbrt: {found.severity}: {line_of(found)}"


def stamped_line_of(found: Finding) -> str:
    """Like ``line_of``, preceded by the time of day."""
    return f"{time.strftime('%H:%M:%S', time.localtime(found.time))} {line_of(found)}"


def log_line_of(found: Finding) -> str:
    """Like ``line_of``, for the board's log: preceded by the severity as log level."""
    return f"{found.severity.upper()} {line_of(found)}"
