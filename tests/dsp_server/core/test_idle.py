"""A board that has nothing to do does nothing, but for its heartbeat."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hbrt.ddr.layout import BEAT_SECONDS

if TYPE_CHECKING:
    from tests.dsp_server.conftest import Running

    Start = Callable[..., Running]

WINDOW_BEATS = 6


class Use(NamedTuple):
    """What the threads of a process have used so far: nanoseconds of CPU, and how often they went to sleep."""

    cpu_ns: int
    sleeps: int

    @classmethod
    def of(cls, pid: int) -> Use:
        cpu_ns = sleeps = 0
        for thread in Path(f"/proc/{pid}/task").iterdir():
            cpu_ns += int((thread / "schedstat").read_text().split()[0])
            lines = (thread / "status").read_text().splitlines()
            sleeps += next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
        return cls(cpu_ns, sleeps)

    def since(self, before: Use) -> Use:
        return Use(self.cpu_ns - before.cpu_ns, self.sleeps - before.sleeps)


def test_idle_board_sleeps_from_beat_to_beat(start: Start) -> None:
    running = start()
    board = running.attach()
    board.ping()
    status = running.ask("status")
    cores = [core["pid"] for core in status["cores"]]
    everybody = [status["pid"], *cores]
    running.until(lambda: _is_quiet(cores), "a board at rest")

    before, began = {pid: Use.of(pid) for pid in everybody}, time.monotonic()
    time.sleep(WINDOW_BEATS * BEAT_SECONDS)
    idle, idle_s = {pid: Use.of(pid).since(before[pid]) for pid in everybody}, time.monotonic() - began

    beats = idle_s / BEAT_SECONDS
    for pid in everybody:
        assert idle[pid].sleeps <= 2 * beats + 2, "woken more often than the heart beats"
    assert sum(use.cpu_ns for use in idle.values()) < idle_s * 1e9 / 10, "a core that polls takes all of a CPU"


def _is_quiet(pids: list[int]) -> bool:
    """Whether these processes slept through most of a beat."""
    before = [Use.of(pid) for pid in pids]
    time.sleep(BEAT_SECONDS)
    return all(Use.of(pid).since(was).sleeps <= 3 for pid, was in zip(pids, before, strict=True))
