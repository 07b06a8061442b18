"""What a seed stands for: the order of steps, of copies, and of what the cache writes back. Pure."""

from __future__ import annotations

from collections.abc import Mapping

SCHEDULE, DMA_ORDER, CACHE = "HBRT_SCHEDULE", "HBRT_DMA_ORDER", "HBRT_CACHE"
LOG, BOARD = "_HBRT_SCHEDULE_LOG", "_HBRT_SCHEDULE_BOARD"
"""For the runs of a search: the file that their preemptions are appended to, and the board whose memory they use."""


def settings_of(seed: int, given: Mapping[str, str]) -> dict[str, str]:
    """The settings of a run: 0 for the order that comes by itself, each other number for another one.

    Args:
        seed: 0 or more. An odd one draws the order of copies too; so do two of four what the cache writes back.
        given: Settings of the user's own, which stay.
    """
    found = {SCHEDULE: f"random:{seed}" if seed else "default"}
    if seed % 2:
        found[DMA_ORDER] = f"relaxed:{seed}"
    if seed % 4 > 1:
        found[CACHE] = f"evicting:{seed}"
    return {name: value for name, value in found.items() if name == SCHEDULE or not given.get(name)}


def simpler(found: Mapping[str, str]) -> list[dict[str, str]]:
    """The same settings without the order of copies, and without the cache; those that there are."""
    ways = [way for way in (DMA_ORDER, CACHE) if way in found]
    return [{name: value for name, value in found.items() if name != way} for way in ways]
