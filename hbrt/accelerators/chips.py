"""The parameters of each chip, fitted by ``python -m tools.fit_accelerators``, and how far they are off."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from math import exp, log
from pathlib import Path
from typing import Final, NamedTuple

from hbrt.accelerators.figures import Figure, figures
from hbrt.accelerators.layer import Layer
from hbrt.accelerators.networks import layers_of
from hbrt.accelerators.time_model import Chip, Times, run_us, times_of, work_of

FITTED: Final = Path(__file__).parent / "fitted.toml"
ALIASES: Final = {"rk3568": "rk3566"}
"""Chips whose figures are published together with another's."""
WITHIN: Final = 0.9
"""The share of held-out rows that a spread holds."""


class Judged(NamedTuple):
    """A published figure and the model's, in microseconds."""

    figure: Figure
    modelled_us: float

    @property
    def ratio(self) -> float:
        """Modelled by published."""
        return self.modelled_us / self.figure.published_us


class Band(NamedTuple):
    """How judged rows lie: the median of the errors, the part within 30 %, the geometric mean of the ratios."""

    rows: int
    median_error: float
    within_30: float
    geometric_mean: float

    @property
    def is_met(self) -> bool:
        """Whether that is in the band that is stated: 15 % in the median, 90 % within 30 %, a mean of 0.95 to 1.05."""
        return self.median_error <= 0.15 and self.within_30 >= 0.9 and 0.95 <= self.geometric_mean <= 1.05


@cache
def chips() -> dict[str, Chip]:
    """The chips that have parameters, by name."""
    tables = tomllib.loads(FITTED.read_text(encoding="utf-8"))
    return {name: Chip(**{key: one["value"] for key, one in table.items()}) for name, table in tables.items()}


def chip_named(name: str) -> Chip | None:
    """The parameters of a chip; None where no figure of it is published."""
    return chips().get(ALIASES.get(name, name))


class Run(NamedTuple):
    """A run of a model on one core, in modelled microseconds, and within what 90 % of such figures lie.

    Attributes:
        us: The run.
        low_us: The lower end.
        high_us: The upper end.
        times: Of each layer.
    """

    us: float
    low_us: float
    high_us: float
    times: Times


def run_of(layers: Sequence[Layer], name: str) -> Run:
    """Model a run of layers on a chip.

    Raises:
        KeyError: no figure of the chip is published.
    """
    chip, spread = chips()[ALIASES.get(name, name)], spread_of(name)
    times = times_of(work_of(layers, chip.input_group, chip.output_group), chip)
    us = chip.run_us + float(times.us.sum())
    return Run(us, us / (1 + spread), us / (1 - spread), times)


@cache
def judged() -> tuple[Judged, ...]:
    """Every published row whose layers are known, with the model's time."""
    rows = (one for one in figures() if one.is_known and one.chip in chips())
    return tuple(Judged(one, run_us(layers_of(one.model), chips()[one.chip])) for one in rows)


def band_of(rows: tuple[Judged, ...]) -> Band:
    """How rows lie; there is at least one."""
    errors = sorted(abs(one.ratio - 1) for one in rows)
    middle = (errors[(len(errors) - 1) // 2] + errors[len(errors) // 2]) / 2
    near = sum(error <= 0.3 for error in errors) / len(errors)
    return Band(len(rows), middle, near, exp(sum(log(one.ratio) for one in rows) / len(rows)))


def spread_of(name: str) -> float:
    """The error within which 90 % of a chip's held-out rows lie, as a share."""
    chip = ALIASES.get(name, name)
    errors = sorted(abs(one.ratio - 1) for one in judged() if one.figure.chip == chip and one.figure.is_held_out)
    return errors[-(-int(WITHIN * len(errors) * 1000) // 1000) - 1]


def order_of(rows: tuple[Judged, ...], same: str) -> float:
    """The share of pairs, alike in a field of ``Figure``, that the model puts in the order of the published times."""
    right = pairs = 0
    for at, one in enumerate(rows):
        for other in rows[:at]:
            if getattr(one.figure, same) == getattr(other.figure, same):
                difference = one.figure.published_us - other.figure.published_us
                pairs += difference != 0
                right += difference * (one.modelled_us - other.modelled_us) > 0
    return right / pairs if pairs else 1.0
