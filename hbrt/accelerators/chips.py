"""The parameters of each chip, fitted by ``python -m tools.fit_accelerators`` or assumed, and a run on a chip."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from hbrt.accelerators.layer import Layer
from hbrt.accelerators.time_model import Chip, Times, run_times

FITTED: Final = Path(__file__).parent / "fitted.toml"
ASSUMED: Final = Path(__file__).parent / "assumed.toml"
WIDE: Final = "wide"
"""Tables of ``ASSUMED`` with the speed of 16-bit multiplication, and its error."""
FAMILIES: Final = "families"
"""Table of ``FITTED`` with a fit's error for network families that it has not seen."""
ALIASES: Final = {"rk3568": "rk3566"}
"""Chips whose figures are published together with another chip's."""


class Family(NamedTuple):
    """Leave-one-out error: each network family's error under a fit to all the others.

    Attributes:
        families: Number of families.
        median: The median error, as a fraction.
        within_90: The error not exceeded by 90% of the rows, as a fraction.
    """

    families: int
    median: float
    within_90: float


class Assumed(NamedTuple):
    """A chip whose parameters are another's times assumed factors, each low, value, high."""

    like: str
    compute: tuple[float, float, float]
    memory: tuple[float, float, float]
    table: tuple[float, float, float]
    why: str

    def chip(self, at: int = 1) -> Chip:
        """Return its parameters with factors at 0: the lowest rates, 1: as assumed, 2: the highest."""
        one, compute, memory = chip_at(self.like, at), self.compute[at], self.memory[at]
        return one._replace(
            macs_per_us=one.macs_per_us * compute,
            depthwise_per_us=one.depthwise_per_us * compute,
            matmul_per_us=one.matmul_per_us * compute,
            table_per_us=one.table_per_us * self.table[at],
            feature_bytes_per_us=one.feature_bytes_per_us * memory,
            weight_bytes_per_us=one.weight_bytes_per_us * memory,
        )


@cache
def _fitted() -> dict[str, Any]:
    return tomllib.loads(FITTED.read_text(encoding="utf-8"))


@cache
def chips() -> dict[str, Chip]:
    """Return the chips with parameters fitted to published figures, by name."""
    tables = {name: table for name, table in _fitted().items() if name != FAMILIES}
    return {name: Chip(**{key: one["value"] for key, one in table.items()}) for name, table in tables.items()}


@cache
def _assumed() -> dict[str, Any]:
    return tomllib.loads(ASSUMED.read_text(encoding="utf-8"))


@cache
def assumed() -> dict[str, Assumed]:
    """Return the chips with assumed parameters, by name."""
    return {name: Assumed(**table) for name, table in _assumed().items() if name != WIDE}


def _wide(fitted: str) -> dict[str, Any]:
    """Return how fast a fitted chip multiplies 16-bit numbers, and why that is assumed."""
    return next(table for table in _assumed()[WIDE].values() if fitted in table["chips"])


def chip_at(name: str, at: int = 1) -> Chip:
    """Return a chip's parameters, with those no figure gives at 0: the lowest rate, 1: as assumed, 2: the highest."""
    return chips()[name]._replace(wide_rate=_wide(name)["rate"][at])


def family_of_chip(name: str) -> Family:
    """Return the error of a chip's fit for network families other than those it was fitted to."""
    return Family(**_fitted()[FAMILIES][ALIASES.get(name, name)])


def chip_named(name: str) -> Chip | None:
    """Return a chip's parameters, fitted or assumed; None if nothing is known."""
    if (one := assumed().get(name)) is not None:
        return one.chip()
    fitted = ALIASES.get(name, name)
    return chip_at(fitted) if fitted in chips() else None


class Run(NamedTuple):
    """A run of a model on one core, in modeled microseconds.

    Attributes:
        us: Time of the run.
        low_us: Lower end of the range that holds for 90% of networks of unseen families.
        high_us: Upper end. Both ends include assumptions: a chip's factors, the 16-bit rate.
        times: Times of each layer.
        why: The basis of assumed parameters; "" if they are fitted.
    """

    us: float
    low_us: float
    high_us: float
    times: Times
    why: str = ""


def run_of(layers: Sequence[Layer], name: str) -> Run:
    """Model a run of layers on a chip.

    Raises:
        KeyError: nothing is known of the chip.
    """
    one = assumed().get(name)
    fitted = one.like if one else ALIASES.get(name, name)
    at = one.chip if one else partial(chip_at, fitted)
    (slow, _), (us, times), (fast, _) = (run_times(layers, at(where)) for where in range(3))
    spread = family_of_chip(fitted).within_90
    low, high = fast / (1 + spread), slow / (1 - spread)
    why = [one.why] if one else []
    if any(layer.macs and layer.feature_bits > 8 for layer in layers):
        wide, is_wide = _wide(fitted), [layer.feature_bits > 8 for layer in layers]
        off = wide["off"] * float(times.us[is_wide].sum() / times.us.sum())
        low, high = min(low, us / (1 + off)), max(high, us / (1 - off))
        why.append(wide["why"])
    return Run(us, low, high, times, "; ".join(why))


def range_of_chip(name: str) -> tuple[float, float]:
    """Return the factors from any int8 model's time on a chip to its range's ends; wider than one model's range."""
    one = assumed().get(name)
    spread = family_of_chip(one.like if one else name).within_90
    low, high = 1 / (1 + spread), 1 / (1 - spread)
    if one is None:
        return low, high
    factors = one.compute, one.memory, one.table
    return low * min(value / most for _, value, most in factors), high * max(
        value / least for least, value, _ in factors
    )
