"""Published accelerator figures, one row per model and chip, and the errors and rank order of the modeled times.

Half of the rows are for fitting, half for validation.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from hbrt.accelerators.chips import ALIASES, chip_at, chips
from hbrt.accelerators.layer import Layer
from hbrt.accelerators.networks import NETWORKS, layers_of
from hbrt.accelerators.time_model import run_us

FOLDER: Final = Path(__file__).parent.parent / "profiles" / "published"
WITHIN: Final = 0.9
"""The fraction of held-out rows within a spread."""


class Figure(NamedTuple):
    """A published run time.

    Attributes:
        model: Its name, one of ``NETWORKS`` if its layers are known.
        chip: Name of the chip, such as rk3588.
        precision: int8 or fp16.
        published_us: Run time on one core, in microseconds.
        source: Where it was published, with version and date.
        clock: The core's clock, as given in the source.
    """

    model: str
    chip: str
    precision: str
    published_us: float
    source: str
    clock: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the model's layers are known and it is int8: only such rows are fitted or held out."""
        return self.model in NETWORKS and self.precision == "int8"

    @property
    def is_wide(self) -> bool:
        """Whether the model's layers are known and it is float16: no fit uses such a row."""
        return self.model in NETWORKS and self.precision == "fp16"

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Return the layers of the model, in its precision.

        Raises:
            KeyError: its layers are not known.
        """
        layers, bits = layers_of(self.model), 16 if self.is_wide else 8
        return tuple(one._replace(feature_bits=bits, weight_bits=bits) for one in layers)

    @property
    def is_held_out(self) -> bool:
        """Whether the row is only for validation, by a hash of its model and chip."""
        return hashlib.sha256(f"{self.model} {self.chip}".encode()).digest()[0] % 2 == 1


@cache
def figures() -> tuple[Figure, ...]:
    """Return all rows of all tables."""
    return tuple(row for file in sorted(FOLDER.glob("*.toml")) for row in _rows(file))


def _rows(file: Path) -> Iterator[Figure]:
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    source = f"{table['source']}, {table['version']} ({table['date']})"
    for model, (precision, *values) in table["figures"].items():
        for chip, value in zip(table["chips"], values, strict=True):
            if value:  # 0 if not published
                us = 1_000_000 / value if table["unit"] == "fps" else 1000 * value
                yield Figure(model, chip, precision, us, source, table["clock"])


class Judged(NamedTuple):
    """A published and a modeled time, in microseconds."""

    figure: Figure
    modeled_us: float

    @property
    def ratio(self) -> float:
        """Modeled time divided by published time."""
        return self.modeled_us / self.figure.published_us


class Band(NamedTuple):
    """Accuracy over rows: median error, fraction within 30%, geometric mean of the ratios."""

    rows: int
    median_error: float
    within_30: float
    geometric_mean: float


@cache
def judged() -> tuple[Judged, ...]:
    """Return every published int8 row with known layers, with its modeled time."""
    return _judged(one for one in figures() if one.is_known)


@cache
def judged_wide() -> tuple[Judged, ...]:
    """Return every published float16 row with known layers, with its modeled time; the rate is assumed."""
    return _judged(one for one in figures() if one.is_wide)


def _judged(rows: Iterable[Figure]) -> tuple[Judged, ...]:
    return tuple(Judged(one, run_us(one.layers, chip_at(one.chip))) for one in rows if one.chip in chips())


def band_of(rows: tuple[Judged, ...]) -> Band:
    """Return the accuracy over rows, at least one."""
    errors = [abs(one.ratio - 1) for one in rows]
    near = sum(error <= 0.3 for error in errors) / len(errors)
    return Band(len(rows), median(errors), near, exp(sum(log(one.ratio) for one in rows) / len(rows)))


def spread_of(name: str) -> float:
    """Return the error not exceeded by 90% of a chip's held-out rows, as a fraction."""
    chip = ALIASES.get(name, name)
    return within_90(tuple(one for one in judged() if one.figure.chip == chip and one.figure.is_held_out))


def within_90(rows: tuple[Judged, ...]) -> float:
    """Return the error not exceeded by 90% of rows, at least one, as a fraction."""
    errors = sorted(abs(one.ratio - 1) for one in rows)
    return errors[-(-int(WITHIN * len(errors) * 1000) // 1000) - 1]


def order_of(rows: tuple[Judged, ...], same: str) -> float:
    """Return the fraction of pairs with equal ``Figure`` field that the model orders like the published times."""
    right = pairs = 0
    for at, one in enumerate(rows):
        for other in rows[:at]:
            if getattr(one.figure, same) == getattr(other.figure, same):
                difference = one.figure.published_us - other.figure.published_us
                pairs += difference != 0
                right += difference * (one.modeled_us - other.modeled_us) > 0
    return right / pairs if pairs else 1.0
