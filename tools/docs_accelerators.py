"""The tables of docs/accuracy.md: what was fitted, and how far the held-out figures are off."""

from __future__ import annotations

import tomllib
from collections.abc import Callable

from hbrt.accelerators.chips import FAMILIES, FITTED, chips, family_of_chip
from hbrt.accelerators.figures import band_of, figures, judged, spread_of
from hbrt.settings import rounded
from tools.markdown import table


def parameters() -> str:
    """A line a parameter, a column a chip: the value, and the range of 90%."""
    fitted = tomllib.loads(FITTED.read_text(encoding="utf-8"))
    del fitted[FAMILIES]

    def cell(name: str, chip: str) -> str:
        one = fitted[chip][name]
        span = "" if one["low"] == one["high"] else f" ({rounded(one['low'])} to {rounded(one['high'])})"
        return f"{rounded(one['value'])}{span}"

    return table(
        ("parameter", *fitted),
        ((f"`{name}`", *(cell(name, chip) for chip in fitted)) for name in fitted[next(iter(fitted))]),
    )


def accuracy() -> str:
    """A line a chip: its published figures, and how those that are held out lie."""
    rows = []
    for chip in chips():
        of_chip = [one for one in judged() if one.figure.chip == chip]
        held_out = tuple(one for one in of_chip if one.figure.is_held_out)
        band = band_of(held_out)
        rows.append(
            (
                chip,
                sum(one.chip == chip for one in figures()),
                len(of_chip) - len(held_out),
                len(held_out),
                f"{band.median_error:.1%}",
                f"{band.within_30:.0%}",
                f"{band.geometric_mean:.3f}",
                f"{spread_of(chip):.0%}",
                f"{family_of_chip(chip).median:.1%}",
                f"{family_of_chip(chip).within_90:.0%}",
            )
        )
    return table(
        (
            "chip",
            "published",
            "fitted to",
            "held out",
            "median error",
            "within 30%",
            "geometric mean",
            "90% within",
            "family left out: median error",
            "90% within",
        ),
        rows,
    )


PARTS: dict[str, Callable[[], str]] = {"accelerator-parameters": parameters, "accelerator-accuracy": accuracy}
