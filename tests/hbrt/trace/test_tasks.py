"""The copy of the history of a board: in time, in order, and what came too late is counted."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path

import pytest

from hbrt.ddr.layout import CORE_EPOCH, CORE_TASKS, HISTORY_RECORDS, Layout, plan
from hbrt.mailbox.history import HistoryRing
from hbrt.mailbox.table import ANSWER, ANSWER_OFFSET, REQUEST, State
from hbrt.trace.ring import SUFFIX, Recorded
from hbrt.trace.tasks import TaskRings, tasks_of


@dataclass
class Table:
    """The tables of a board, without a board."""

    map: mmap.mmap
    layout: Layout

    def end(self, numbers: range, core: int = 0) -> None:
        """End so many tasks of a core; each has its number as its submission time."""
        ring, record = HistoryRing(self, core), self.layout.record(0)
        for number in numbers:
            REQUEST.pack_into(self.map, record, number, 0, 0x400, 0, 0, 0, 0, 0, 0, 0, 0)
            ANSWER.pack_into(self.map, record + ANSWER_OFFSET, core, 0, 0, 0, number, number, number + 1, 9)
            ring.note(number, 0, State.DONE)


@pytest.fixture
def table() -> Table:
    layout = plan(1 << 16, 2)
    return Table(mmap.mmap(-1, layout.heap), layout)


def kept(directory: Path, core: int = 0) -> tuple[list[int], int]:
    [path] = directory.glob(f"*-tasks-{core}-*{SUFFIX}")
    ring = Recorded(path)
    return [task.request.sequence for task in tasks_of(ring)], ring.count_lost()


def test_every_task_is_kept_once_in_order(table: Table, tmp_path: Path) -> None:
    table.end(range(1, 50))  # before the trace
    rings = TaskRings(table, tmp_path, 100_000)
    at = 50
    for count in (1, 0, 5, HISTORY_RECORDS - 70, 3000, 1, HISTORY_RECORDS - 70, 2):
        table.end(range(at, at + count))
        rings.copy()
        at += count
    assert kept(tmp_path) == (list(range(50, at)), 0)
    assert kept(tmp_path, 1) == ([], 0)


def test_a_full_file_keeps_the_newest(table: Table, tmp_path: Path) -> None:
    rings = TaskRings(table, tmp_path, 1024)
    for at in range(1, 4000, 100):
        table.end(range(at, at + 100))
        rings.copy()
    tasks, lost = kept(tmp_path)
    assert tasks == list(range(4001 - len(tasks), 4001))
    assert len(tasks) > 900
    assert lost == 4000 - len(tasks)


def test_tasks_that_were_replaced_before_the_copy_are_counted(table: Table, tmp_path: Path) -> None:
    rings = TaskRings(table, tmp_path, 100_000)
    table.end(range(1, 11))
    rings.copy()
    table.end(range(11, 3 * HISTORY_RECORDS))
    rings.copy()
    tasks, lost = kept(tmp_path)
    assert tasks[:10] == list(range(1, 11))
    assert tasks[10:] == list(range(3 * HISTORY_RECORDS - (len(tasks) - 10), 3 * HISTORY_RECORDS))
    assert lost == 3 * HISTORY_RECORDS - 1 - len(tasks)


def test_the_past_of_a_board_can_be_kept_as_well(table: Table, tmp_path: Path) -> None:
    table.end(range(1, 21))
    rings = TaskRings(table, tmp_path, HISTORY_RECORDS, has_past=True)
    rings.copy()
    assert kept(tmp_path) == (list(range(1, 21)), 0)


def test_a_core_that_was_killed_and_counts_again_is_followed(table: Table, tmp_path: Path) -> None:
    rings = TaskRings(table, tmp_path, 1024)
    table.end(range(1, 21))
    rings.copy()
    core = table.layout.core(0)  # its process had written the number of its tasks before the last five
    table.map[core + CORE_TASKS : core + CORE_TASKS + 8] = (15).to_bytes(8, "little")
    table.map[core + CORE_EPOCH] = 2
    table.end(range(16, 19))
    rings.copy()
    tasks, _ = kept(tmp_path)
    assert tasks[:20] == list(range(1, 21))
    assert tasks[20:23] == [16, 17, 18]
