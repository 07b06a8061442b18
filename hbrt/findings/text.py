"""Findings as text for people: a line each, and more where a finding came several times. Pure."""

from __future__ import annotations

import time

from hbrt.findings.record import Finding, Place

MOST_PLACES = 8
"""Places of one kind that a finding has and its sentence names."""


def allocated_at(blocks: tuple[Place, ...]) -> str:
    """Sentence on where blocks were allocated, with a space before it; empty where no line is known."""
    known = [f"{place.site} ({place.phy_addr:#x}+{place.size_bytes:#x})" for place in blocks if place.site]
    more = len(known) - MOST_PLACES
    if not known:
        return ""
    return f" Allocated at {', '.join(known[:MOST_PLACES])}{f' and {more} more' if more > 0 else ''}."


def line_of(found: Finding) -> str:
    """``kind: sentence``, and how often when it is not once."""
    often = "" if found.times == 1 else f" (found {found.times} times; this is the last)"
    return f"{found.kind}: {found.text}{often}"


def stamped_line_of(found: Finding) -> str:
    """As ``line_of``, after the time of day."""
    return f"{time.strftime('%H:%M:%S', time.localtime(found.time))} {line_of(found)}"


def log_line_of(found: Finding) -> str:
    """As ``line_of``, for the board's log: after the severity as the log's level."""
    return f"{found.severity.upper()} {line_of(found)}"
