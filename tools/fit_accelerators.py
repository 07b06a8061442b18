"""Fit the parameters of accelerators to the published figures that are not held out: ``hbrt/accelerators/fitted.toml``.

Least squares of the logarithms of modelled by published times, each parameter within its bounds and held near a first
guess by a fiftieth of its logarithm's distance. The groups of channels are tried one after another. Held-out rows are
not read.

    python -m tools.fit_accelerators
"""

from __future__ import annotations

import sys
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from hbrt.accelerators.chips import FITTED
from hbrt.accelerators.figures import Figure, figures
from hbrt.accelerators.networks import layers_of
from hbrt.accelerators.time_model import Chip, times_of, work_of

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
"""First guesses of bytes of features, bytes of weights and elements of a table a us."""
INPUT_GROUPS, OUTPUT_GROUPS = (16, 32, 64), (8, 16, 32, 64)
PULL: Final = 0.02
_FITTED: Final = Chip._fields[:-2]
NINETY: Final = 1.645  # of a normal distribution


def _start(chip: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The first guess of each parameter, and its lowest and highest value, as logarithms."""
    peak = PEAKS[chip]
    features, weights, table = _MEMORY["rk" if chip.startswith("rk") else chip]
    guess = np.array([peak, peak / 12, peak / 8, features, weights, table, 1.0, 0.7, 10.0, 200.0])
    low = guess / [2.5, 12, 20, 6, 6, 30, 12, 7, 30, 20]
    high = guess * [1.6, 12, 20, 6, 6, 30, 3, 1 / 0.7, 5, 5]
    return np.log(guess), np.log(low), np.log(high)


def fit(chip: str, rows: list[Figure]) -> dict[str, tuple[float, float, float]]:
    """Fit a chip; returns value, low and high of each parameter."""
    guess, low, high = _start(chip)
    tried = []
    for groups in product(INPUT_GROUPS, OUTPUT_GROUPS):
        works = [work_of(layers_of(one.model), *groups) for one in rows]

        def errors(x: NDArray[Any], works: list[Any] = works) -> NDArray[Any]:
            it = Chip(*np.exp(x))
            modelled = [it.run_us + times_of(work, it).us.sum() for work in works]
            ratios = [np.log(us / one.published_us) for us, one in zip(modelled, rows, strict=True)]
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


def main() -> int:
    """Write the file."""
    lines = ["# Parameters of one core, with the range of 90 %: written by python -m tools.fit_accelerators.", ""]
    for chip in PEAKS:
        rows = [one for one in figures() if one.chip == chip and one.is_known and not one.is_held_out]
        lines += [f"# {len(rows)} published figures", f"[{chip}]"]
        for name, (value, low, high) in fit(chip, rows).items():
            lines.append(f"{name} = {{ value = {value:.4g}, low = {low:.4g}, high = {high:.4g} }}")
        lines.append("")
    FITTED.write_text("\n".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
