"""A core that runs an op in C dies when it has written this or that of a task, in the build that users have.

As test_core_killed.py, whose op is in Python and whose build has points: one task at most is lost, and no caller waits
forever.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hbrt.ddr.layout import CLAIM_LOCK, CLIENT_ASLEEP, CORE_ACTIVITY, CORE_TASKS, HISTORY_RECORD_BYTES, HISTORY_RECORDS
from hbrt.mailbox.schedule import ASLEEP, LOOKING, RUNNING
from hbrt.mailbox.table import ANSWER_OFFSET, FIRST_END, State
from tests.faults import ops
from tests.faults.test_core_killed import check
from tests.faults.watchpoint import Watchpoint, why_not
from tests.faults.world import Call, World
from tests.shared import build_c
from tests.waiting import await_end, until

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())
IMAGE = """
#include <unistd.h>
#include "hb_dsp.h"
static int gated(void *input, void *output, void *tm) {
  volatile unsigned char *block = input;
  (void)output, (void)tm;
  block[0] = 1;
  while (!block[1]) usleep(500);
  block[2]++;
  return 0;
}
int main() {
  hb_dsp_env_init();
  hb_dsp_register_fn(0x1000, gated, 0);
  return hb_dsp_start();
}
"""


class Place(NamedTuple):
    """Where a core writes, and when that is the point: offset, bytes, a condition on the memory that is there now."""

    offset: int
    size_bytes: int
    is_met: Callable[[], bool]


class Written(NamedTuple):
    """The world as a place needs it."""

    world: World
    first: Call

    def state(self) -> int:
        return int(self.world.mailbox.state(self.first.slot))

    def value(self, offset: int, size_bytes: int) -> int:
        return int.from_bytes(self.world.mailbox.map[offset : offset + size_bytes], "little")

    def byte(self, offset: int, value: int, state: int | None = None) -> Place:
        """A byte gets a value, while the task has a state."""
        return Place(offset, 1, lambda: self.value(offset, 1) == value and state in {None, self.state()})

    def word(self, offset: int, size_bytes: int, *, is_zero: bool = False) -> Place:
        """A number is written, which is 0 or is not."""
        return Place(offset, size_bytes, lambda: (self.value(offset, size_bytes) == 0) == is_zero)

    @property
    def block(self) -> int:
        """Offset of the task's input block."""
        layout = self.world.mailbox.layout
        return self.first.block.phy_addr - layout.ddr_base

    @property
    def core(self) -> int:
        return self.world.mailbox.layout.core(0)

    @property
    def record(self) -> int:
        return self.world.mailbox.layout.record(self.first.slot)

    @property
    def history(self) -> int:
        """Where the next end of the core's goes."""
        number = self.value(self.core + CORE_TASKS, 8) + 1
        return self.world.mailbox.layout.history_ring(0) + number % HISTORY_RECORDS * HISTORY_RECORD_BYTES

    @property
    def state_at(self) -> int:
        return self.world.mailbox.layout.states + self.first.slot

    @property
    def asleep(self) -> int:
        return self.world.mailbox.layout.client(self.world.session.link.client_id) + CLIENT_ASLEEP


POINTS: dict[str, tuple[Callable[[Written], Place], str]] = {
    "the announce byte is cleared": (
        lambda it: it.byte(it.world.mailbox.layout.announced(0) + it.first.slot, 0),
        "done",
    ),
    "the claim lock is taken": (lambda it: it.word(CLAIM_LOCK, 4), "done"),
    "the slot is marked, under the lock": (lambda it: it.word(it.record + ANSWER_OFFSET + 16, 8), "done"),
    "RUNNING, under the lock": (lambda it: it.byte(it.state_at, State.RUNNING), "lost"),
    "RUNNING, the lock let go": (
        lambda it: Place(CLAIM_LOCK, 4, lambda: it.value(CLAIM_LOCK, 4) == 0 and it.state() == State.RUNNING),
        "lost",
    ),
    "the core says RUNNING": (lambda it: it.byte(it.core + CORE_ACTIVITY, RUNNING), "lost"),
    "the op has started": (lambda it: it.byte(it.block, 1), "lost"),
    "the op has done its work": (lambda it: it.byte(it.block + 2, 1), "lost"),
    "the task is counted": (lambda it: it.word(it.core + CORE_TASKS, 8), "lost"),
    "the place in the history is cleared": (lambda it: it.word(it.history, 8, is_zero=True), "lost"),
    "the end is in the history": (lambda it: it.word(it.history, 8), "lost"),
    "DONE": (lambda it: it.byte(it.state_at, State.DONE), "done"),
    "the core looks again": (lambda it: it.byte(it.core + CORE_ACTIVITY, LOOKING, State.DONE), "done"),
    "the caller is marked rung": (lambda it: it.byte(it.asleep, 0), "done"),
    "the core sleeps": (
        lambda it: Place(
            it.core + CORE_ACTIVITY,
            1,
            lambda: (
                it.value(it.core + CORE_ACTIVITY, 1) == ASLEEP and it.state() != State.RUNNING and bool(it.first.runs)
            ),
        ),
        "done",
    ),
}


@pytest.fixture(scope="module")
def world(environment: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A board whose op is in C."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler is here")
    folder: Path = tmp_path_factory.mktemp("gated")
    (folder / "gated.c").write_text(IMAGE)
    build_c("--dsp", folder / "gated.c", "-o", folder / "gated.so")
    made = World(image=folder / "gated.so")
    try:
        assert made.serves() == []
        made.settle()
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("what", POINTS)
def test_killed_after_a_write(world: World, what: str, note: Callable[..., None]) -> None:
    place_of, expected = POINTS[what]
    victim = world.core_pid(0)
    warm = world.call(1)  # a core that has ended a task is started again at once
    assert warm.end() == 0
    warm.let_go()
    world.await_asleep(0)
    watch = Watchpoint(victim)
    try:
        first = world.call(1, ops.GATED, gate_open=False)
        watch.go(*place_of(Written(world, first)))
        first.start_waiting()
        until(lambda: watch.look() or first.block.view[0], "the op, or the point")
        queued, anywhere = world.call(1), world.call(0)
        until(
            lambda: watch.look() or world.mailbox.state(anywhere.slot) >= FIRST_END, "the end of the task for any core"
        )
        until(
            lambda: watch.look() or world.sleeps(world.session.link.client_id) or first.status is not None,
            "a sleeping caller",
        )
        first.open_gate()
        until(watch.look, f"the point: {what}")
    finally:
        watch.leave()
    await_end(victim)
    calls = [first, queued, anywhere]
    outcome = check([call.end() for call in calls], [call.runs for call in calls])
    for call in calls:
        call.let_go()
    assert world.serves() == []
    world.settle()
    assert world.core_pid(0) != victim
    note("core-in-c", what, "SIGKILL", outcome)
    assert outcome == expected
