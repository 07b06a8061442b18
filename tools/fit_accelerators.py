"""Fit the parameters of accelerators to the published figures that are not held out: ``hbrt/accelerators/fitted.toml``.

Least squares of the logarithms of modeled by published times, each parameter within its bounds and held near a first
guess by a twentieth of its logarithm's distance. The groups of channels are tried one after another. No fit reads rows
that are held out. How far a fit is off for a family of networks that it has not seen is written next to the parameters:
each family is left out in turn, and all its rows are judged.

    python -m tools.fit_accelerators
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from hbrt.accelerators.chips import FAMILIES, FITTED, Family
from hbrt.accelerators.figures import WITHIN, Figure, figures
from hbrt.accelerators.networks import family_of, layers_of
from hbrt.accelerators.time_model import Chip, run_us, times_of, work_of

PEAKS: Final = {
    "rk3566": 460e3,
    "rk3562": 460e3,
    "rk3588": 1024e3,
    "rk3576": 1000e3,
    "x5": 5000e3,
    "s100": 40e6,
    "s100p": 64e6,
}
"""Multiplications of int8 a us that one core is announced with: tera-operations by two."""
_MEMORY: Final = {
    "rk": (8e3, 8e3, 4e3),
    "x5": (30e3, 20e3, 60e3),
    "s100": (90e3, 60e3, 180e3),
    "s100p": (90e3, 60e3, 180e3),
}
"""First guesses of bytes of features, bytes of weights and elements of a table per µs."""
INPUT_GROUPS, OUTPUT_GROUPS = (16, 32, 64), (8, 16, 32, 64)
PULL: Final = 0.05
_FITTED: Final = Chip._fields[:-3]  # but the groups and ``wide_rate``, which no figure tells
NINETY: Final = 1.645  # of a normal distribution


def _start(chip: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The first guess of each parameter, and its lowest and highest value, as logarithms."""
    peak = PEAKS[chip]
    features, weights, table = _MEMORY["rk" if chip.startswith("rk") else chip]
    # Published logs of layers of the RK3588 have a sixteenth of the array for depthwise convolutions. Products of two
    # tensors come with a Softmax, which such logs have on the CPU: their time may be far from the array's.
    guess = np.array([peak, peak / 16, peak / 8, features, weights, table, 1.0, 0.7, 10.0, 200.0])
    low = guess / [2.5, 3, 400, 6, 6, 30, 12, 7, 30, 20]
    high = guess * [1.6, 3, 20, 6, 6, 30, 3, 1 / 0.7, 5, 5]
    return np.log(guess), np.log(low), np.log(high)


def fit(chip: str, rows: list[Figure], groups_of: Iterable[tuple[int, int]]) -> dict[str, tuple[float, float, float]]:
    """Fit a chip, with the groups of channels that fit best; returns value, low and high of each parameter."""
    guess, low, high = _start(chip)
    tried = []
    for groups in groups_of:
        works = [work_of(layers_of(one.model), *groups) for one in rows]

        def errors(x: NDArray[Any], works: list[Any] = works) -> NDArray[Any]:
            it = Chip(*np.exp(x))
            modeled = [it.run_us + times_of(work, it).us.sum() for work in works]
            ratios = [np.log(us / one.published_us) for us, one in zip(modeled, rows, strict=True)]
            return np.array([*ratios, *(PULL * (x - guess))])

        tried.append((least_squares(errors, guess, bounds=(low, high), loss="soft_l1", f_scale=0.15), groups))
    found, groups = min(tried, key=lambda one: one[0].cost)
    left = found.fun[: len(rows)]
    variance = float(np.mean(left**2))
    spread = NINETY * np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)) * variance)
    edges = np.maximum(found.x - spread, low), np.minimum(found.x + spread, high)
    values = {
        name: (float(np.exp(x)), float(np.exp(a)), float(np.exp(b)))
        for name, x, a, b in zip(_FITTED, found.x, *edges, strict=True)
    }
    return values | {
        name: (group, group, group) for name, group in zip(("input_group", "output_group"), groups, strict=True)
    }


def by_family(chip: str, rows: list[Figure], groups: tuple[int, int]) -> Family:
    """Leave each family of networks out of a fit, and judge all its rows."""
    families = sorted({family_of(one.model) for one in rows})
    errors = []
    for family in families:
        seen = [one for one in rows if family_of(one.model) != family and not one.is_held_out]
        fitted = Chip(**{name: value for name, (value, _, _) in fit(chip, seen, [groups]).items()})
        unseen = [one for one in rows if family_of(one.model) == family]
        errors += [abs(run_us(layers_of(one.model), fitted) / one.published_us - 1) for one in unseen]
    median, within = np.quantile(errors, [0.5, WITHIN], method="inverted_cdf")
    return Family(len(families), float(median), float(within))


def main() -> int:
    """Write the file."""
    lines = ["# Parameters of one core, with the range of 90%: written by python -m tools.fit_accelerators.", ""]
    families = {}
    for chip in PEAKS:
        known = [one for one in figures() if one.chip == chip and one.is_known]
        rows = [one for one in known if not one.is_held_out]
        lines += [f"# {len(rows)} published figures", f"[{chip}]"]
        fitted = fit(chip, rows, product(INPUT_GROUPS, OUTPUT_GROUPS))
        for name, (value, low, high) in fitted.items():
            lines.append(f"{name} = {{ value = {value:.4g}, low = {low:.4g}, high = {high:.4g} }}")
        lines.append("")
        families[chip] = by_family(chip, known, (int(fitted["input_group"][0]), int(fitted["output_group"][0])))
    lines += ["# Errors of fits that have not seen the family of a network, of each family in turn.", f"[{FAMILIES}]"]
    for chip, (count, median, within) in families.items():
        lines.append(f"{chip} = {{ families = {count}, median = {median:.4f}, within_90 = {within:.4f} }}")
    FITTED.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
