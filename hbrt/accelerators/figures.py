"""Published figures of accelerators: one row a model and chip, half of them for fitting and half for judging."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from hbrt.accelerators.networks import NETWORKS

FOLDER: Final = Path(__file__).parent.parent / "profiles" / "published"


class Figure(NamedTuple):
    """A published time of a run.

    Attributes:
        model: Its name, one of ``NETWORKS`` where its layers are known.
        chip: Name of the chip, such as rk3588.
        precision: int8 or fp16.
        published_us: Time of a run on one core, in microseconds.
        source: Where it was published, with version and date.
    """

    model: str
    chip: str
    precision: str
    published_us: float
    source: str

    @property
    def is_known(self) -> bool:
        """Whether the layers of the model are known, and its numbers are int8: only such a row is fitted or judged."""
        return self.model in NETWORKS and self.precision == "int8"

    @property
    def is_held_out(self) -> bool:
        """Whether the row is for judging alone: by a hash of its model and chip."""
        return hashlib.sha256(f"{self.model} {self.chip}".encode()).digest()[0] % 2 == 1


@cache
def figures() -> tuple[Figure, ...]:
    """All rows of all tables."""
    return tuple(row for file in sorted(FOLDER.glob("*.toml")) for row in _rows(file))


def _rows(file: Path) -> Iterator[Figure]:
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    source = f"{table['source']}, {table['version']} ({table['date']})"
    for model, (precision, *values) in table["figures"].items():
        for chip, value in zip(table["chips"], values, strict=True):
            if value:  # 0 where none is published
                us = 1_000_000 / value if table["unit"] == "fps" else 1000 * value
                yield Figure(model, chip, precision, us, source)
