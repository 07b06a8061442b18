"""Which core is rung for a task, in words: what C does is compared with it, and the protocol is played by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hbrt.mailbox.schedule import ASLEEP, LOOKING, RUNNING, may_run


def cores_to_wake(mask: int, activity: Sequence[int]) -> tuple[int, ...]:
    """Whom a submitter rings: nobody if one that may run the task looks, else the lowest such core that sleeps."""
    doing = {core: state for core, state in enumerate(activity) if may_run(core, mask)}
    asleep = [core for core, state in doing.items() if state == ASLEEP]
    return () if LOOKING in doing.values() else tuple(asleep[:1])


def core_to_chain(claimer: int, masks: Iterable[int], activity: Sequence[int]) -> int | None:
    """Whom a core that has claimed a task rings for those that it leaves READY: one core, for the first it may."""
    others = [RUNNING if core == claimer else state for core, state in enumerate(activity)]
    return next((core for mask in masks for core in cores_to_wake(mask, others)), None)
