"""What a board says of the programs that are part of a run (``hbrt.board.run_record``)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from hbrt.board.run_record import RunRecord
from hbrt.findings.record import Finding


class RunRecords:
    """The records of the runs whose programs are attached."""

    def __init__(self) -> None:
        self._records: dict[int, RunRecord] = {}  # by client

    def join(self, client: int, path: str) -> None:
        """Note that a program is a part of a run; of one that is over, nobody wants to know."""
        with contextlib.suppress(OSError, ValueError):
            record = RunRecord(path)
            try:
                record.hold()
            except OSError:
                record.close()
                raise
            self._records[client] = record

    def part(self, client: int, findings: Iterable[Finding]) -> bool:
        """Say what was found of a program that has ended; returns False when nobody of its run is there to hear it."""
        record = self._records.pop(client, None)
        if record is None:
            return True
        record.add(findings)
        is_heard = not record.is_over
        record.close()
        return is_heard
