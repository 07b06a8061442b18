"""Which bytes a copy reads or writes: rows at a pitch. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """Rows of one length at a pitch, which is the distance of their starts in bytes; a flat range is one row."""

    start: int
    row_bytes: int
    num_rows: int = 1
    pitch_bytes: int = 0

    @property
    def end(self) -> int:
        """Address after the last row's last byte."""
        return self.start + (self.num_rows - 1) * self.pitch_bytes + self.row_bytes if self.size_bytes else self.start

    @property
    def size_bytes(self) -> int:
        """Bytes of all rows."""
        return self.row_bytes * self.num_rows

    def holds(self, address: int) -> bool:
        """Whether a row has the byte at an address."""
        if not self.start <= address < self.end:
            return False
        return not self.pitch_bytes or (address - self.start) % self.pitch_bytes < self.row_bytes

    def first_common(self, other: Span) -> int | None:
        """Address of the first common byte; None for none."""
        if self.start >= other.end or other.start >= self.end:
            return None
        for row in range(self.num_rows):
            start = self.start + row * self.pitch_bytes
            at = other.first_from(start)
            if at is not None and at < start + self.row_bytes:
                return at
        return None

    def first_from(self, address: int) -> int | None:
        """Address of the first byte at or after an address; None when there is none."""
        if address >= self.end or not self.size_bytes:
            return None
        if address <= self.start or self.holds(address):
            return max(address, self.start)
        return self.start + ((address - self.start) // self.pitch_bytes + 1) * self.pitch_bytes
