"""The accelerators' part of ``--self-check``: the published figures that no parameter was fitted to.

The tables are in hbrt/profiles/published; docs/accuracy.md describes their split and the band.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple

from hbrt.accelerators.chips import chips, family_of_chip, run_of
from hbrt.accelerators.figures import Judged, band_of, figures, judged, judged_wide, order_of, spread_of, within_90
from hbrt.cli.tables import Column, Table, number, numbers, time_of_us

LAYERS: Final = 300
"""Of the model whose estimate is timed."""
MAX_SECONDS: Final = 2


def held_out() -> tuple[Judged, ...]:
    """The held-out rows, grouped by chip, best first."""
    rows = (one for one in judged() if one.figure.is_held_out)
    return tuple(sorted(rows, key=lambda one: (one.figure.chip, abs(one.ratio - 1))))


class Goal(NamedTuple):
    """A goal from docs/accuracy.md, the result, and whether it meets the goal."""

    what: str
    goal: str
    found: str
    is_met: bool


def goals(rows: tuple[Judged, ...]) -> list[Goal]:
    """The goals for held-out rows."""
    band, models, boards = band_of(rows), order_of(rows, "chip"), order_of(rows, "model")
    mean = band.geometric_mean
    return [
        Goal("median error", "15% at most", f"{band.median_error:.1%}", band.median_error <= 0.15),
        Goal("within 30%", "90% at least", f"{band.within_30:.1%}", band.within_30 >= 0.9),
        Goal("geometric mean of the ratios", "0.95 to 1.05", f"{mean:.3f}", 0.95 <= mean <= 1.05),
        Goal("pairs of models on a chip in order", "97% at least", f"{models:.1%}", models >= 0.97),
        Goal("pairs of chips for a model in order", "90% at least", f"{boards:.1%}", boards >= 0.9),
    ]


def of_speed() -> list[Goal]:
    """The goal of the estimate's own time, measured here: of a large ONNX model, for every chip; empty without onnx."""
    try:
        from onnx import ModelProto, TensorProto, helper

        from hbrt.accelerators.onnx_layers import layers_of_model
    except ImportError:
        return []
    sizes = [1, 8, 64, 64]
    values = [helper.make_tensor_value_info(f"t{at}", TensorProto.FLOAT, sizes) for at in (0, LAYERS)]
    weights = helper.make_tensor("w", TensorProto.FLOAT, [8, 8, 3, 3], [0.0] * 576)
    nodes = [helper.make_node("Conv", [f"t{at}", "w"], [f"t{at + 1}"], pads=[1] * 4) for at in range(LAYERS)]
    graph = helper.make_graph(nodes, "chain", values[:1], values[1:], [weights])
    raw = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    start = perf_counter()
    layers = layers_of_model(ModelProto.FromString(raw))
    for name in chips():
        run_of(layers, name)
    taken_s = perf_counter() - start
    what = f"estimate of {len(layers)} layers for {len(chips())} chips, measured here"
    return [Goal(what, f"{MAX_SECONDS} s at most", f"{taken_s:.2f} s", taken_s <= MAX_SECONDS)]


def document(found: list[Goal]) -> dict[str, Any]:
    """All rows and the distribution of the held-out ones, for JSON."""
    rows = held_out()

    def as_dicts(rows: tuple[Judged, ...]) -> list[dict[str, Any]]:
        return [{**one.figure._asdict(), "modeled_us": one.modeled_us, "ratio": one.ratio} for one in rows]

    return {
        "held_out": as_dicts(rows),
        "float16": as_dicts(judged_wide()),
        "band": band_of(rows)._asdict(),
        "goals": [one._asdict() for one in found],
        "families": {name: family_of_chip(name)._asdict() for name in chips()},
        "spread": {name: spread_of(name) for name in chips()},
        "order_of_models": order_of(rows, "chip"),
        "order_of_chips": order_of(rows, "model"),
    }


_JUDGED: Final = (
    Column("CHIP", lambda one: one.figure.chip),
    number("PUBLISHED", lambda one: time_of_us(one.figure.published_us)),
    number("MODEL", lambda one: time_of_us(one.modeled_us)),
    number("RATIO", lambda one: f"{one.ratio:.2f}"),
)
_CHIPS: Final = (
    Column("CHIP"),
    *numbers("HELD OUT", "MEDIAN", "WITHIN 30%", "MEAN", "90% IN", "FAMILIES", "MEDIAN", "90% IN"),
)
_GOALS: Final = (
    Column("GOAL", "what"),
    number("IS", "goal"),
    *numbers("FOUND"),
    Column("", lambda one: "met" if one.is_met else "missed"),
)


def parts_shown(found: list[Goal]) -> Iterator[object]:
    """Each held-out row, their distribution, and each goal, as tables and lines."""
    rows, wide = held_out(), judged_wide()
    yield _of_models("HELD OUT", rows)
    known = len(judged())
    yield (
        f"\n{len(figures())} published figures; the layers of {known} are known: {known - len(rows)} "
        f"were fitted, {len(rows)} are held out.\n"
    )
    yield Table(_CHIPS, [_of_chip(name, rows) for name in chips()])
    yield "The last three: each family of networks left out of the fit in turn, and all its rows judged.\n"
    yield _of_models("FLOAT16", wide)
    yield (
        f"\nNothing is fitted to these {len(wide)}, and no goal holds for them: the rate of 16 bits is assumed. Median "
        f"error {band_of(wide).median_error:.0%}, 90% within {within_90(wide):.0%}, as the range of an estimate says.\n"
    )
    yield Table(_GOALS, found)


def _of_models(title: str, rows: tuple[Judged, ...]) -> Table:
    return Table((Column(title, lambda one: one.figure.model), *_JUDGED), rows)


def _of_chip(name: str, rows: tuple[Judged, ...]) -> tuple[object, ...]:
    band = band_of(tuple(row for row in rows if row.figure.chip == name))
    count, median, within_90 = family_of_chip(name)
    of_held_out = band.rows, f"{band.median_error:.1%}", f"{band.within_30:.0%}", f"{band.geometric_mean:.3f}"
    return name, *of_held_out, f"{spread_of(name):.0%}", count, f"{median:.1%}", f"{within_90:.0%}"


def write_plot(file: Path) -> None:
    """Draw modeled against published times, both fitted and held-out ones.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(8, 8), layout="constrained")
    FigureCanvasAgg(drawing)
    axes = drawing.subplots()
    for at, name in enumerate(chips()):
        for is_held_out, fill in ((False, "none"), (True, f"C{at}")):
            rows = [one for one in judged() if one.figure.chip == name and one.figure.is_held_out == is_held_out]
            axes.scatter(
                [one.figure.published_us / 1000 for one in rows],
                [one.modeled_us / 1000 for one in rows],
                s=28,
                facecolors=fill,
                edgecolors=f"C{at}",
                label=f"{name}, {'held out' if is_held_out else 'fitted'} ({len(rows)})",
            )
    ends = [0.5, 400.0]
    axes.plot(ends, ends, color="0.5", linewidth=1)
    for factor in (0.7, 1.3):
        axes.plot(ends, [factor * end for end in ends], color="0.7", linewidth=1, linestyle="--")
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel="published, ms", ylabel="modeled, ms")
    axes.set_title("A run on one core; dashed: 30% off")
    axes.legend(fontsize=8)
    drawing.savefig(file, dpi=110)
