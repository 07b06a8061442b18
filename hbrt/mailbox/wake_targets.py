"""The bytes and doorbells for each core mask, and ringing by the rule of ``schedule.cores_to_wake``."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from hbrt.ddr.layout import ACTIVITY_ASLEEP, ACTIVITY_LOOKING, ACTIVITY_OFFLINE, CORE_ACTIVITY, Layout
from hbrt.mailbox import doorbell
from hbrt.mailbox.schedule import eligible_cores


class Targets(NamedTuple):
    """What a submitter writes and rings for the cores that a mask allows.

    Attributes:
        announced: Offset of each core's announce bytes.
        bells: Offset of each core's activity byte, and its doorbell.
        urgent_bells: Each core's doorbell for a task that may interrupt what the core runs.
    """

    announced: tuple[int, ...]
    bells: tuple[tuple[int, int], ...]
    urgent_bells: tuple[int, ...]


class Served(Enum):
    """Which core serves a READY task, given the cores' activity afterwards."""

    SOON = auto()  # a core that scans or was rung
    LATER = auto()  # a core that is busy now
    NEVER = auto()  # none: each core is offline


def targets(layout: Layout, doorbells: Sequence[int], urgent_bells: Sequence[int]) -> dict[int, Targets]:
    """Return the targets of every mask on a board with this many DSP and accelerator cores.

    Args:
        layout: Layout of the board's DDR file.
        doorbells: Each core's doorbell; those of the accelerators last.
        urgent_bells: Each core's urgent bell; none if cores are rung on another machine.
    """
    dsp_count, count = layout.core_count, len(doorbells)
    found = {}
    for mask in (*range(1 << dsp_count), *range(1 << dsp_count, 1 << count, 1 << dsp_count)):
        cores = eligible_cores(mask, count, dsp_count)
        found[mask] = Targets(
            tuple(layout.announced(core) for core in cores),
            tuple((layout.core(core) + CORE_ACTIVITY, doorbells[core]) for core in cores),
            tuple(urgent_bells[core] for core in cores if core < len(urgent_bells)),
        )
    return found


def is_served(mm: mmap.mmap, wanted: Targets) -> bool:
    """Whether any of the cores is not offline."""
    for activity, _ in wanted.bells:  # noqa: SIM110 - the relay's hot path: a generator costs
        if mm[activity] != ACTIVITY_OFFLINE:
            return True
    return False


def ring(mm: mmap.mmap, wanted: Targets) -> Served:
    """Ring the core needed by a task that has just become READY, if any."""
    bell, offline = -1, 0
    for activity, its_bell in wanted.bells:
        doing = mm[activity]
        if doing == ACTIVITY_LOOKING:
            return Served.SOON
        if doing == ACTIVITY_ASLEEP:
            if bell < 0:
                bell = its_bell
        elif doing == ACTIVITY_OFFLINE:
            offline += 1
    if bell >= 0:
        doorbell.ring(bell)
        return Served.SOON
    return Served.NEVER if offline == len(wanted.bells) else Served.LATER


def ring_urgently(wanted: Targets) -> None:
    """Make each of the cores, which are all busy, check at once whether to preempt its op."""
    for bell in wanted.urgent_bells:
        doorbell.ring(bell)
