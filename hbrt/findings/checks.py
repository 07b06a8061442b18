"""The checks of HBRT_CHECK: what each one watches, and their encoding as a number. Pure.

The checks of a program and of its board are in the mailbox, where the cores read them.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntFlag


class Check(IntFlag):
    """A set of checks. Its value is a byte of the mailbox."""

    MEMORY = 1
    COHERENCE = 2
    DMA = 4
    LAYOUT = 8
    RACE = 16
    ADVICE = 32
    """Reports correct uses that may be costly on a real board."""
    HOOKS = 64
    """Also finds nothing: the core injects due faults, and records the calls of programs that request it."""
    FAIL_FAST = 128
    """Finds nothing by itself: an op ends at the first mistake that a core finds in it."""


ALL = Check.MEMORY | Check.COHERENCE | Check.DMA | Check.LAYOUT | Check.RACE
OF_SUBMISSIONS = Check.MEMORY | Check.COHERENCE | Check.LAYOUT | Check.RACE | Check.ADVICE
"""The checks for which a program examines each task that it submits."""
_WORDS = {"all": ALL, "advice": Check.ADVICE, "fail-fast": Check.FAIL_FAST} | {
    str(check.name).lower(): check for check in ALL
}


def check_words() -> list[str]:
    """The words of HBRT_CHECK, including those about the consequences of a finding."""
    return [*_WORDS, "fail"]


def checks_of(words: Collection[str]) -> Check:
    """Return the checks enabled by the words of HBRT_CHECK; words about the consequence of a finding enable none."""
    found = Check(0)
    for word in words:
        found |= _WORDS.get(word, Check(0))
    return found


_WITHOUT_CORES = {
    Check.MEMORY: "memory checks the blocks of tasks and freed memory, not inside ops",
    Check.COHERENCE: "coherence reports bytes that lack a CLEAN when a task is submitted, even if no op uses them",
    Check.DMA: "dma checks nothing",
    Check.FAIL_FAST: "fail-fast does not end ops",
}


def without_cores(checks: int) -> str:
    """Return clauses about what checks miss if the cores do not watch a program; none for checks that miss nothing."""
    return "; ".join(clause for check, clause in _WITHOUT_CORES.items() if check & checks)
