"""The checks that one turns on: what each watches, and how their names become a number. Pure.

A program's checks stand in its record in the mailbox, so that a core knows them; so do those of its board.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntFlag


class Check(IntFlag):
    """What is watched. A value is a byte of the mailbox."""

    MEMORY = 1
    COHERENCE = 2
    DMA = 4
    LAYOUT = 8
    RACE = 16
    ADVICE = 32
    """What is no mistake, and may cost something on another day."""
    INJECT = 64
    """Not a watch either: the core looks whether a fault is to be injected."""
    FAIL_FAST = 128
    """Not a watch of its own: an op ends at the first mistake that a core finds in it."""


ALL = Check.MEMORY | Check.COHERENCE | Check.DMA | Check.LAYOUT | Check.RACE
OF_CORES = Check.MEMORY | Check.COHERENCE | Check.DMA
"""Those for which a core looks at ops."""
OF_SUBMISSIONS = Check.MEMORY | Check.COHERENCE | Check.LAYOUT | Check.RACE | Check.ADVICE
"""Those for which a program looks at each task that it submits."""
_WORDS = {"all": ALL, "advice": Check.ADVICE, "fail-fast": Check.FAIL_FAST} | {
    str(check.name).lower(): check for check in ALL
}


def checks_of(words: Collection[str]) -> Check:
    """What the words of HBRT_CHECK turn on; those that say only what follows from a finding turn on nothing."""
    found = Check(0)
    for word in words:
        found |= _WORDS.get(word, Check(0))
    return found


_WITHOUT_CORES = {
    Check.MEMORY: "memory looks at the blocks of tasks and at what is freed, not into ops",
    Check.COHERENCE: "coherence names bytes that miss a CLEAN when a task is submitted, whether an op uses them or not",
    Check.DMA: "dma looks at nothing",
    Check.FAIL_FAST: "fail-fast ends no op",
}


def without_cores(checks: int) -> str:
    """Clauses on what checks see where the cores do not watch a program; empty for those that see the same."""
    return "; ".join(clause for check, clause in _WITHOUT_CORES.items() if check & checks)
