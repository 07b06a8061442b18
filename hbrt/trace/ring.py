"""A ring file: the newest events of one process, in shared memory, so that they survive the process.

The file has a header page, a table of texts, and a fixed number of records: a new one replaces the oldest. A record
gets its number last, and a reader skips the few oldest, which may be replaced during the read. All times are
CLOCK_MONOTONIC ns, like those of tasks.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hbrt.board import private_files
from hbrt.trace.kinds import EventKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC = b"HBRTRING"
VERSION = 1
SUFFIX = ".ring"
HEAD = struct.Struct("<8sIIQII64s64s")  # magic, version, bytes of a record, records, process, 0, role, program
TEXTS_AT, TEXTS_BYTES = mmap.PAGESIZE, 1 << 18
_TEXTS_USED = struct.Struct("<I")  # bytes, after the header
_LENGTH = struct.Struct("<H")
MAX_TEXT = 500
THREAD = "\1"  # starts a text that names a thread: its id, a space, its name
OP = "\2"  # starts a text that names an op: its command, a space, its name; for a process with its own image
RECORD = struct.Struct("<QQQQQIHHIIQ")  # start, end, a, b, c, thread, kind, unit, text, d, number from 1
_MARGIN = 64  # oldest records of a full ring that a reader skips
_MOST = (1 << 64) - 1
_MAX_MAPPED = 1 << 23  # bytes of a file that a reader keeps in memory


class RingError(ValueError):
    """A file is not a ring of this version; the message says why."""


class RingFile:
    """Create a ring file.

    Args:
        directory: Its directory.
        name: Its name, without the suffix.
        records: Number of records.
        record_bytes: Bytes per record.
        role: Role of its writer: "program", "core 0", "daemon", "tasks 0".
        program: The writer's program.

    Raises:
        OSError: it cannot be created.
    """

    def __init__(
        self, directory: Path, name: str, records: int, record_bytes: int, role: str, program: str = ""
    ) -> None:
        self.records, self.start = records, TEXTS_AT + TEXTS_BYTES
        self.path = path = directory / f"{name}{SUFFIX}"
        fd = private_files.open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            os.posix_fallocate(fd, 0, self.start + records * record_bytes)  # a full disk later would kill the process
            self.map = mmap.mmap(fd, 0)
        except BaseException:
            path.unlink()
            raise
        finally:
            os.close(fd)
        texts = (text.encode("utf-8", "replace")[:64] for text in (role, program))
        HEAD.pack_into(self.map, 0, MAGIC, VERSION, record_bytes, records, os.getpid(), 0, *texts)


class Ring(RingFile):
    """The events of this process; any thread may record one. A forked child must not use it."""

    def __init__(self, directory: Path, records: int, role: str, program: str = "") -> None:
        super().__init__(directory, _name(role), records, RECORD.size, role, program)
        self._directory, self._role, self._program = directory, role, program
        self._numbers = count(1)
        self.newest = 0
        """Number of the newest event."""
        self._threads: dict[int, int] = {}
        self._texts: dict[str, int] = {"": 0}
        self._used = 0
        self._lock = threading.RLock()  # a signal handler may record in the middle of recording

    def of_role(self, role: str) -> Ring:
        """Create a ring for another role of this process. Raises OSError."""
        return Ring(self._directory, self.records, role, self._program)

    def beside(self, what: str) -> RingFile:
        """Create a file for events of this process recorded in C. Raises OSError."""
        name = _name(f"{self._role} {what}")
        return RingFile(self._directory, name, self.records, RECORD.size, self._role, self._program)

    def note(
        self,
        kind: EventKind,
        start_ns: int,
        end_ns: int,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        unit: int = 0,
        text: int = 0,
        d: int = 0,
    ) -> None:
        """Record an event of this thread; the meaning of ``a`` to ``d`` and ``unit`` depends on its kind."""
        try:
            thread = self._threads[threading.get_ident()]
        except KeyError:
            thread = self._new_thread()
        self.newest = number = next(self._numbers)
        at = self.start + number % self.records * RECORD.size
        try:
            RECORD.pack_into(self.map, at, start_ns, end_ns, a, b, c, thread, kind, unit, text, d, number)
        except struct.error:  # a program may pass any numbers; it gets its error elsewhere
            a, b, c, unit, d = a & _MOST, b & _MOST, c & _MOST, unit & 0xFFFF, d & 0xFFFF_FFFF
            RECORD.pack_into(self.map, at, start_ns, end_ns, a, b, c, thread, kind, unit, text, d, number)

    def text(self, text: str) -> int:
        """Return the number of a text, for ``note``; 0, the empty text, if there is no more room."""
        return self._texts[text] if text in self._texts else self._add(text)

    def name_ops(self, names: Mapping[int, str]) -> None:
        """Record the names of ops by command."""
        for cmd, name in names.items():
            self._add(f"{OP}{cmd} {name}")

    def _add(self, text: str) -> int:
        raw = text.encode("utf-8", "replace")[:MAX_TEXT]
        with self._lock:
            known = self._texts.get(text)
            if known is not None or self._used + _LENGTH.size + len(raw) > TEXTS_BYTES:
                return known or 0
            at = TEXTS_AT + self._used
            self.map[at : at + _LENGTH.size + len(raw)] = _LENGTH.pack(len(raw)) + raw
            self._used += _LENGTH.size + len(raw)
            _TEXTS_USED.pack_into(self.map, HEAD.size, self._used)
            self._texts[text] = len(self._texts)
            return self._texts[text]

    def _new_thread(self) -> int:
        thread = threading.current_thread()
        self._add(f"{THREAD}{thread.native_id or 0} {thread.name}")
        self._threads[threading.get_ident()] = thread.native_id or 0
        return thread.native_id or 0


def _name(role: str) -> str:
    return f"{os.getpid()}-{role.replace(' ', '-')}-{os.urandom(3).hex()}"


class Event(NamedTuple):
    """A recorded event, with its text."""

    start_ns: int
    end_ns: int
    a: int
    b: int
    c: int
    thread: int
    kind: int
    unit: int
    text: str
    d: int


class Recorded:
    """Reads a ring file, whether or not its writer is alive.

    Raises:
        RingError: it is not a ring of this version. OSError.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < TEXTS_AT + TEXTS_BYTES:
                raise RingError(f"{path} is too short for an event ring.")
            self._map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        magic, version, self.record_bytes, self.records, self.pid, _, role, program = HEAD.unpack_from(self._map)
        if (magic, version) != (MAGIC, VERSION) or self.record_bytes * self.records > len(self._map):
            raise RingError(f"{path} is not an event ring of version {VERSION}.")
        self._path = path
        self.role, self.program = (text.rstrip(b"\0").decode("utf-8", "replace") for text in (role, program))
        texts = list(self._read_texts())
        self.texts = ["", *texts]
        self.threads, self.ops = (
            {int(number): name for number, _, name in (text[1:].partition(" ") for text in texts if text[:1] == sign)}
            for sign in (THREAD, OP)
        )

    def events(self) -> Iterator[Event]:
        """Yield the events in recording order, which in each thread is the order of their ends."""
        rows = self._rows(_event_type())
        for at in self._released(self.order(self._column(_event_type(), "number"))):
            *found, text, d, _ = rows[at].item()
            yield Event._make((*found, self.texts[text] if text < len(self.texts) else "", d))

    def first_ns(self) -> int:
        """When the earliest event began; 0 for none."""
        places = self.order(self._column(_event_type(), "number"))
        return int(self._column(_event_type(), "start_ns")[places].min()) if len(places) else 0

    def count_lost(self) -> int:
        """Number of dropped records, for records that begin with their number."""
        self.order(self._numbers())
        return self.lost

    def raw(self) -> Iterator[bytes]:
        """Yield the records as bytes, each beginning with its number, in order."""
        for at in self._released(self.order(self._numbers())):
            start = TEXTS_AT + TEXTS_BYTES + int(at) * self.record_bytes
            yield self._map[start : start + self.record_bytes]

    def order(self, numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Yield the places of records, oldest first; for a full ring, without those about to be replaced."""
        import numpy as np

        places = np.flatnonzero(numbers % self.records == np.arange(len(numbers)))
        places = places[numbers[places] > 0]
        places = places[np.argsort(numbers[places], kind="stable")]
        newest = int(numbers[places[-1]]) if len(places) else 0
        if newest > self.records:
            places = places[numbers[places] > newest - self.records + min(_MARGIN, self.records // 2)]
        self.lost = newest - len(places)
        return places

    def _released(self, places: NDArray[np.int64]) -> Iterator[int]:
        """Yield places one by one."""
        step = self._step
        for first in range(0, len(places), step):
            self._release()
            yield from places[first : first + step].tolist()

    def _column(self, dtype: np.dtype[np.void], name: str) -> NDArray[np.uint64]:
        """Return a copy of one field of all records."""
        import numpy as np

        rows, step = self._rows(dtype)[name], self._step
        found = np.empty(len(rows), np.uint64)
        for first in range(0, len(rows), step):
            found[first : first + step] = rows[first : first + step]
            self._release()
        return found

    @property
    def _step(self) -> int:
        """Number of records read before their file pages are dropped from this process's memory."""
        return max(1, _MAX_MAPPED // max(int(self.record_bytes), 1))

    def _release(self) -> None:
        self._map.madvise(mmap.MADV_DONTNEED)

    lost = 0
    """Number of dropped events, after reading."""

    def _numbers(self) -> NDArray[np.uint64]:
        import numpy as np

        return self._column(np.dtype([("number", "<u8"), ("rest", f"V{self.record_bytes - 8}")]), "number")

    def _rows(self, dtype: np.dtype[np.void]) -> NDArray[np.void]:
        import numpy as np

        return np.frombuffer(self._map, dtype, self._filled(), TEXTS_AT + TEXTS_BYTES)

    def _filled(self) -> int:
        """Number of records before the hole at the file's end: reading that would take memory."""
        start = end = TEXTS_AT + TEXTS_BYTES
        try:
            file = self._path.open("rb")
        except FileNotFoundError:  # a new trace has started meanwhile
            return int(self.records)
        with file, suppress(OSError):  # ENXIO: no data follows
            while True:
                end = os.lseek(file.fileno(), os.lseek(file.fileno(), end, os.SEEK_DATA), os.SEEK_HOLE)
        return min(int(self.records), -(-(end - start) // max(int(self.record_bytes), 1)))

    def _read_texts(self) -> Iterator[str]:
        (used,) = _TEXTS_USED.unpack_from(self._map, HEAD.size)
        at, end = TEXTS_AT, TEXTS_AT + min(used, TEXTS_BYTES)
        while at + _LENGTH.size <= end:
            (length,) = _LENGTH.unpack_from(self._map, at)
            at += _LENGTH.size
            yield self._map[at : at + length].decode("utf-8", "replace")
            at += length


def _event_type() -> np.dtype[np.void]:
    import numpy as np

    fields = ("start_ns", "end_ns", "a", "b", "c", "thread", "kind", "unit", "text", "d", "number")
    sizes = ("<u8",) * 5 + ("<u4", "<u2", "<u2", "<u4", "<u4", "<u8")
    return np.dtype(list(zip(fields, sizes, strict=True)))
