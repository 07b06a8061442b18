"""The tasks of a trace: each core's history, copied in time to a larger ring file."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hbrt.ddr.layout import CORE_EPOCH, CORE_TASKS, HISTORY_RECORD_BYTES, HISTORY_RECORDS, MAX_CORES
from hbrt.mailbox.history import EndedTask, task_of
from hbrt.trace.ring import RingFile

if TYPE_CHECKING:
    from hbrt.mailbox.table import Table
    from hbrt.trace.ring import Recorded

ROLE = "tasks"
_NUMBER = struct.Struct("<Q")
_OF_DAEMON = 16384  # maximum tasks failed by the daemon itself
_MAX_MAPPED = 32768  # tasks of a file that the daemon keeps in memory
_MARGIN = 64  # records of a history that its writer may replace during the copy


class TaskRings:
    """Copies a board's histories.

    Args:
        ddr: The board's memory.
        directory: Directory for the ring files.
        records: Number of tasks per file.
        has_past: Whether to copy tasks that ended earlier, too.
        accelerators: Number of accelerator cores, which follow the DSP cores.
    """

    def __init__(
        self, ddr: Table, directory: Path, records: int, *, has_past: bool = False, accelerators: int = 0
    ) -> None:
        rings = (*range(ddr.layout.core_count + accelerators), MAX_CORES)
        self._rings = [_TaskRing(ddr, ring, directory, records, has_past=has_past) for ring in rings]

    def copy(self) -> int:
        """Copy what has ended since the last call; returns the largest number of tasks copied from one history."""
        return max(ring.copy() for ring in self._rings)


class _TaskRing:
    def __init__(self, ddr: Table, ring: int, directory: Path, records: int, *, has_past: bool) -> None:
        self._map, self._source = ddr.map, ddr.layout.history_ring(ring)
        self._core = ddr.layout.core(ring) if ring < MAX_CORES else 0
        role = f"{ROLE} {ring if ring < MAX_CORES else 'of the daemon'}"
        name = f"{os.getpid()}-{role.replace(' ', '-')}-{os.urandom(3).hex()}"
        records = records if ring < MAX_CORES else min(records, _OF_DAEMON)
        self._file = RingFile(directory, name, records, HISTORY_RECORD_BYTES, role)
        self._count = 0
        newest = max(self._number_at(place) for place in range(HISTORY_RECORDS))
        self._next = max(1, newest - HISTORY_RECORDS + _MARGIN) if has_past else newest + 1
        self._epoch = self._of_core(CORE_EPOCH)

    def copy(self) -> int:
        epoch = self._of_core(CORE_EPOCH)
        if epoch != self._epoch:  # a killed Python core has counted fewer tasks than it ended
            self._epoch, self._next = epoch, min(self._next, self._of_core(CORE_TASKS) + 1)
        copied = 0
        while count := self._ready():
            self._copy(count)
            copied += count
        return copied

    def _ready(self) -> int:
        """Return how many consecutive records the history has from the next one on."""
        first = self._next
        found = self._number_at(first)
        if found > first and found % HISTORY_RECORDS == first % HISTORY_RECORDS:  # the core was faster
            self._count += found - first  # these numbers are missing from the file
            self._next = first = found
        count, most = 0, HISTORY_RECORDS - first % HISTORY_RECORDS
        while count < most and self._number_at(first + count) == first + count:
            count += 1
        return count

    def _copy(self, count: int) -> None:
        """Copy adjacent records to places that may not be adjacent."""
        before = self._count
        mm, at, file, size = self._map, self._at(self._next), self._file, HISTORY_RECORD_BYTES
        raw = bytearray(mm[at : at + count * size])
        is_whole = self._number_at(self._next) == self._next  # otherwise the core has begun to replace them
        for n in range(count):
            _NUMBER.pack_into(raw, n * size, self._count + 1 + n if is_whole else 0)
        while raw:
            place = (self._count + 1) % file.records
            part = raw[: (file.records - place) * size]
            to = file.start + place * size
            file.map[to : to + len(part)] = part
            self._count += len(part) // size
            del raw[: len(part)]
        self._next += count
        if self._count // _MAX_MAPPED != before // _MAX_MAPPED:
            file.map.madvise(mmap.MADV_DONTNEED)  # the file keeps them; this process's memory need not

    def _at(self, number: int) -> int:
        return self._source + number % HISTORY_RECORDS * HISTORY_RECORD_BYTES

    def _number_at(self, number: int) -> int:
        found: int = _NUMBER.unpack_from(self._map, self._at(number))[0]
        return found

    def _of_core(self, field: int) -> int:
        found: int = _NUMBER.unpack_from(self._map, self._core + field)[0] if self._core else 0
        return found


def tasks_of(ring: Recorded) -> Iterator[EndedTask]:
    """Yield the tasks of a ring file, in the order in which they ended on their core."""
    return map(task_of, ring.raw())
