"""Task order: which task runs next, and which cores may run it.

Among the tasks that a core may run, the next is the one with
1. the higher priority (0..255; 254 and 255, PREEMPT, also interrupt a running op of lower priority, see core/loop.py);
2. then the smaller customId (signed 64-bit);
3. then the earlier submission (unsigned 64-bit sequence number).
With aging, ``rank`` replaces the priority: a waiting task gains a level at each tick of the clock.
A core mask has bit i set for core i; mask 0 is ANY: of the DSP cores. Accelerator cores have the indices after them.
An ANY task goes to whichever core is free first, and
no core sleeps while a task that it may run is READY.

That last guarantee needs an order of steps, each visible to all before the next:
- a submitter makes the task READY, then reads the cores' activity and rings a core (client.c: ring_core);
- a core that claimed a task writes RUNNING, then scans for READY tasks and rings a core for them (core.c: chain);
- a core that found nothing writes ASLEEP, then scans once more, and only then waits for its doorbell;
- a core that has finished, or was rung, writes LOOKING, then scans.
So if two processes act at once, the later one sees the other's step.
tests/properties/test_schedule_order.py checks this with random interleavings of these steps.

Source: DSP runtime API manual (J5 OE 1.1.77), 10.3.1.1.1.7 hbDSPRpcCtrlParam, for priority, then customId,
https://developer.horizon.auto/docs/J5/toolchain/1.1.77/DSPRuntimeAPIManual
Emulator: submission order as the last key, and the choice of a core for ANY, are its choice.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from hbrt.ddr.layout import ACTIVITY_ASLEEP, ACTIVITY_LOOKING, ACTIVITY_RUNNING, ACTIVITY_STALLED, MAX_CORES
from hbrt.mailbox import table

TaskKey: TypeAlias = tuple[int, int, int]
Entry: TypeAlias = tuple[TaskKey, int]

OF_ITS_OWNER: Final = 1 << MAX_CORES
"""Core mask of a task that no core may claim, because its program runs it itself."""
OF_ANOTHER_BOARD: Final = OF_ITS_OWNER << 1
"""Core mask of a task that no core of this board may claim, because another board runs it."""
ANY_CORE: Final = 0
PRIORITY_PREEMPT: Final = table.PRIORITY_PREEMPT
PRIORITY_URGENT: Final = table.PRIORITY_URGENT

ASLEEP: Final = ACTIVITY_ASLEEP
LOOKING: Final = ACTIVITY_LOOKING
RUNNING: Final = ACTIVITY_RUNNING
STALLED: Final = ACTIVITY_STALLED


def rank(priority: int, sequence: int, aging_ns: int) -> int:
    """Return the first sort key on a board with aging; a larger rank runs earlier.

    The board's clock ticks every ``aging_ns``, and at each tick every waiting task gains one level. Since all gain at
    the same moment, the difference between two never changes. So the rank is the priority minus the ticks before the
    submission, which is constant for a task, and a queue stays in order. 254 and 255 do not age, and no other priority
    reaches them, so no task preempts by waiting.

    Args:
        priority: As submitted, 0..255.
        sequence: CLOCK_MONOTONIC ns of the submission, as in the task's slot.
        aging_ns: Nanoseconds per tick; 0 for a board without aging.
    """
    return priority - sequence // aging_ns if aging_ns and priority < PRIORITY_URGENT else priority


def task_key(priority: int, custom_id: int, sequence: int) -> TaskKey:
    """Return a task's sort key by priority or rank: the smallest key runs next. Submission checks the ranges."""
    return (-priority, custom_id, sequence)


def may_run(core_index: int, core_mask: int, dsp_count: int = MAX_CORES) -> bool:
    """Whether a task's mask allows the core.

    Args:
        core_index: The core.
        core_mask: The task's mask.
        dsp_count: Number of DSP cores of the board. Later cores are accelerators, which ANY excludes.
    """
    return core_index < dsp_count if core_mask == ANY_CORE else bool(core_mask >> core_index & 1)
