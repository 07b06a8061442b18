"""The directory of a map.

Finished items are in Parquet files, each complete and exactly once, however the verb ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from hbrt.board.files import lock_file
from hbrt.borders.regular_files import read_regular
from hbrt.errors import WrongUseError
from hbrt_farm import Result

RESULTS, PLAN = "results.parquet", "plan.json"
MAX_PLAN_BYTES = 1 << 28
_PARTS, _LOCK = "parts", "lock"
_FLUSH_SECONDS = 1.0
_MAX_ROWS = 10_000
_MAX_PARTS = 64  # small ones; later merged into one

SCHEMA = pa.schema(
    [
        pa.field("index", pa.int64(), nullable=False),
        pa.field("item", pa.string(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("attempts", pa.int32(), nullable=False),
        pa.field("measured_ns", pa.int64(), nullable=False),
        ("cycles", pa.int64()),
        ("findings", pa.list_(pa.string())),
        ("digests", pa.list_(pa.string())),
        ("error", pa.float64()),
        ("text", pa.string()),
    ]
)


class Output:
    """Results of a map, added in item order; a context manager that locks the directory.

    A file of rows appears complete or not at all, and its name gives its range of rows: after a ``kill -9`` the
    directory has the first rows, each once.
    """

    def __init__(self, directory: Path, plan: dict[str, Any]) -> None:
        """``plan`` describes the run; a directory with a different plan is refused.

        Raises:
            WrongUseError: the directory holds other files, or another process is writing to it. OSError.
        """
        self.directory, self._parts = directory, directory / _PARTS
        directory.mkdir(parents=True, exist_ok=True)
        known = directory / PLAN
        if not known.exists() and any(path.name != _LOCK for path in directory.iterdir()):
            raise WrongUseError(
                f"{directory} has files that are not results of a farm; use an empty or a new directory."
            )
        lock = lock_file(directory / _LOCK)
        if lock is None:
            raise WrongUseError(f"Another process is writing its results to {directory}; use another directory.")
        self._lock = lock
        try:
            if known.exists():
                _refuse_other(_plan_of(known), plan, directory)
            else:
                with written(known) as file:
                    file.write(json.dumps(plan, indent=2).encode())
            self._parts.mkdir(exist_ok=True)
            self.is_finished = (directory / RESULTS).exists()
            self.done = _rows_of(directory / RESULTS) if self.is_finished else self._load()
        except BaseException:
            os.close(lock)
            raise
        self._rows: list[Result] = []
        self._flushed = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.flush()
        finally:
            os.close(self._lock)

    def add(self, result: Result) -> None:
        """Add the next result; it reaches a file within a second if ``look`` is called in the meantime."""
        self._rows.append(result)
        self.look()

    def look(self) -> None:
        """Write results that have been pending for a second."""
        if len(self._rows) >= _MAX_ROWS or time.monotonic() - self._flushed >= _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the results that are not in a file yet.

        Raises:
            OSError: the disk is full; results already written are kept.
        """
        self._flushed = time.monotonic()
        if not self._rows:
            return
        end = self.done + len(self._rows)
        self._write(self.done, end, [pa.Table.from_pylist([row_of(one) for one in self._rows], SCHEMA)])
        self.done, self._rows = end, []
        small = [part for part in self._ranges() if part[1] - part[0] < _MAX_ROWS]
        if len(small) > _MAX_PARTS:
            self._write(small[0][0], end, (pq.read_table(self._file(*part)) for part in self._ranges(small[0][0])))
            self._load()

    def finish(self) -> Path:
        """Merge all into one file; returns it."""
        self.flush()
        file = self.directory / RESULTS
        if not self.is_finished:
            with written(file) as raw, pq.ParquetWriter(raw, SCHEMA) as writer:
                for part in self._ranges():
                    writer.write_table(pq.read_table(self._file(*part)))
            self.is_finished = True
        for part in self._ranges():
            self._file(*part).unlink()
        return file

    def tables(self) -> Iterator[Any]:
        """The results already written, in order."""
        files = [self.directory / RESULTS] if self.is_finished else [self._file(*part) for part in self._ranges()]
        for file in files:
            with pq.ParquetFile(file) as held:
                yield from held.iter_batches()

    def _file(self, first: int, end: int) -> Path:
        return self._parts / f"{first:012d}-{end:012d}.parquet"

    def _ranges(self, first: int = 0) -> list[tuple[int, int]]:
        """The rows in each file, in order."""
        names = sorted(path.stem for path in self._parts.glob("*-*.parquet"))
        ranges = [(int(name[:12]), int(name[13:])) for name in names]
        return [one for one in ranges if one[0] >= first]

    def _write(self, first: int, end: int, tables: Iterable[Any]) -> None:
        with written(self._file(first, end)) as raw, pq.ParquetWriter(raw, SCHEMA) as writer:
            for table in tables:
                writer.write_table(table)

    def _load(self) -> int:
        """Remove files whose rows are also in a larger file; returns the number of rows."""
        done = 0
        for first, end in sorted(self._ranges(), key=lambda one: (one[0], -one[1])):
            if first == done:
                done = end
            else:
                self._file(first, end).unlink()
        return done


def row_of(result: Result) -> dict[str, Any]:
    """A result as a row of the table."""
    outcome = result.outcome
    return {
        "index": result.index,
        "item": result.item,
        "status": str(result.status),
        "attempts": result.attempts,
        "measured_ns": outcome.measured_ns,
        "cycles": outcome.cycles,
        "findings": list(outcome.findings),
        "digests": list(outcome.digests),
        "error": outcome.error,
        "text": outcome.text,
    }


@contextlib.contextmanager
def written(path: Path) -> Iterator[Any]:
    """A file to write that gets its name once it is complete and on disk.

    Raises:
        OSError: names the file, which was not created.
    """
    raw = path.with_name(f".{path.name}.new")
    try:
        with raw.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        raw.replace(path)
    except OSError as error:
        raw.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    except BaseException:
        raw.unlink(missing_ok=True)
        raise


def _plan_of(file: Path) -> dict[str, Any]:
    """The plan that produced a directory's results.

    Raises:
        WrongUseError: it is damaged.
    """
    try:
        plan: dict[str, Any] = json.loads(read_regular(file, MAX_PLAN_BYTES))
    except (ValueError, RecursionError):
        raise WrongUseError(f"{file} is damaged: not JSON. Use another directory.") from None
    return plan


def _rows_of(file: Path) -> int:
    """Number of results in a file.

    Raises:
        WrongUseError: it is damaged.
    """
    try:
        rows: int = pq.read_metadata(file).num_rows
    except pa.ArrowException as error:
        why = str(error).splitlines()[0]
        raise WrongUseError(f"{file} is damaged: {why} Remove it, or use another directory.") from None
    return rows


def _refuse_other(known: dict[str, Any], plan: dict[str, Any], directory: Path) -> None:
    other = [name for name in {**known, **plan} if known.get(name) != plan.get(name)]
    if other:
        raise WrongUseError(
            f"{directory} has results of another run: {', '.join(other)} changed since. Use another directory, or "
            "remove this one."
        )
