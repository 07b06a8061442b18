"""The checks of HBRT_CHECK: what each one watches, and the encoding of their names as a number. Pure.

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
    """Reports uses that are right, and that may cost something on a real board."""
    HOOKS = 64
    """Finds nothing either: the core injects faults that are due, and records the calls of programs that want it."""
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
    """The checks that the words of HBRT_CHECK turn on; words about the consequence of a finding turn on none."""
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
    """Clauses about what checks miss if the cores do not watch a program; empty for checks that miss nothing."""
    return "; ".join(clause for check, clause in _WITHOUT_CORES.items() if check & checks)
