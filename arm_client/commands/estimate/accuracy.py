"""The accelerators' part of ``--self-check``: the published figures that no parameter was fitted to.

The tables are in hbrt/profiles/published; docs/accuracy.md says how they are split, and what the band is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from arm_client.commands.estimate.report import us
from hbrt.accelerators.chips import Band, Judged, band_of, chips, judged, order_of, spread_of
from hbrt.accelerators.figures import figures
from hbrt.cli.tables import Column, numbers, show_table, show_text


def held_out() -> tuple[Judged, ...]:
    """The rows for judging, those of a chip together, the best first."""
    rows = (one for one in judged() if one.figure.is_held_out)
    return tuple(sorted(rows, key=lambda one: (one.figure.chip, abs(one.ratio - 1))))


def document() -> dict[str, Any]:
    """All rows and how the held-out ones lie, for JSON."""
    rows = held_out()
    return {
        "held_out": [{**one.figure._asdict(), "modelled_us": one.modelled_us, "ratio": one.ratio} for one in rows],
        "band": {**band_of(rows)._asdict(), "is_met": band_of(rows).is_met},
        "spread": {name: spread_of(name) for name in chips()},
        "order_of_models": order_of(rows, "chip"),
        "order_of_chips": order_of(rows, "model"),
    }


def show() -> None:
    """Print each held-out row, and how they lie."""
    rows = held_out()
    columns = (Column("HELD OUT"), Column("CHIP"), *numbers("PUBLISHED", "MODEL", "RATIO"))
    show_table(
        columns,
        [
            (one.figure.model, one.figure.chip, us(one.figure.published_us), us(one.modelled_us), f"{one.ratio:.2f}")
            for one in rows
        ],
    )
    known = len(judged())
    show_text(
        f"\n{len(figures())} published figures; of {known} the layers are known: {known - len(rows)} were fitted to, "
        f"{len(rows)} are held out."
    )
    show_text(f"Held out: {_text(band_of(rows))}. The band is 15 %, 90 %, and 0.95 to 1.05.")
    for name in chips():
        one = band_of(tuple(row for row in rows if row.figure.chip == name))
        show_text(f"  {name}: {one.rows} rows, {_text(one)}; 90 % of them within {spread_of(name):.0%}.")
    show_text(
        f"The order of two models on a chip is right in {order_of(rows, 'chip'):.0%} of the pairs, that of two chips "
        f"for a model in {order_of(rows, 'model'):.0%}."
    )


def _text(band: Band) -> str:
    return (
        f"median error {band.median_error:.1%}, {band.within_30:.0%} within 30 %, geometric mean of the ratios "
        f"{band.geometric_mean:.3f}"
    )


def write_plot(file: Path) -> None:
    """Draw modelled against published times, those that were fitted to and those that were held out.

    Raises:
        ImportError: there is no matplotlib.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(8, 8), layout="constrained")
    FigureCanvasAgg(drawing)
    axes = drawing.subplots()
    for number, name in enumerate(chips()):
        for is_held_out, fill in ((False, "none"), (True, f"C{number}")):
            rows = [one for one in judged() if one.figure.chip == name and one.figure.is_held_out == is_held_out]
            axes.scatter(
                [one.figure.published_us / 1000 for one in rows],
                [one.modelled_us / 1000 for one in rows],
                s=28,
                facecolors=fill,
                edgecolors=f"C{number}",
                label=f"{name}, {'held out' if is_held_out else 'fitted to'} ({len(rows)})",
            )
    ends = [0.5, 400.0]
    axes.plot(ends, ends, color="0.5", linewidth=1)
    for factor in (0.7, 1.3):
        axes.plot(ends, [factor * end for end in ends], color="0.7", linewidth=1, linestyle="--")
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel="published, ms", ylabel="modelled, ms")
    axes.set_title("A run on one core; dashed: 30 % off")
    axes.legend(fontsize=8)
    drawing.savefig(file, dpi=110)
