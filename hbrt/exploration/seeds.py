"""The meaning of a seed: the order of steps, of copies, and of the cache's write-backs. Pure."""

from __future__ import annotations

from collections.abc import Mapping

SCHEDULE, DMA_ORDER, CACHE = "HBRT_SCHEDULE", "HBRT_DMA_ORDER", "HBRT_CACHE"
LOG, BOARD = "_HBRT_SCHEDULE_LOG", "_HBRT_SCHEDULE_BOARD"
"""For the runs of a search: the file to which preemptions are appended, and the board whose memory they use."""


def settings_of(seed: int, given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a run: 0 for the default order, any other number for a different one.

    Args:
        seed: 0 or more. Odd seeds also randomize the order of copies; two of four seeds randomize the cache's
            write-backs.
        given: The user's own settings, which are kept.
    """
    found = {SCHEDULE: f"random:{seed}" if seed else "default"}
    if seed % 2:
        found[DMA_ORDER] = f"relaxed:{seed}"
    if seed % 4 > 1:
        found[CACHE] = f"evicting:{seed}"
    return {name: value for name, value in found.items() if name == SCHEDULE or not given.get(name)}


def simpler(found: Mapping[str, str]) -> list[dict[str, str]]:
    """Return these settings without the order of copies, and without the cache, where they differ."""
    ways = [way for way in (DMA_ORDER, CACHE) if way in found]
    return [{name: value for name, value in found.items() if name != way} for way in ways]
