"""Plots of experiments, if matplotlib is installed (extra ``estimate``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def draw(
    directory: str,
    name: str,
    title: str,
    x: str,
    y: str,
    *,
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
    bars: Mapping[str, Mapping[str, float]] | None = None,
) -> None:
    """Draw NAME.png into a directory, as lines or stacked bars; does nothing without a directory or without matplotlib.

    Args:
        directory: Target directory; "" for no plot.
        name: Of the file, without its extension.
        title: Above the plot.
        x: Label of the axis.
        y: Label of the axis.
        lines: By label, the x and y of each line's points.
        bars: By label, the stacked parts of each bar, by their labels.
    """
    if not directory:
        return
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(f"No {name}.png: matplotlib is not installed (hbrt's extra 'estimate').")
        return
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for label, (across, up) in (lines or {}).items():
        axes.plot(across, up, marker="o", label=label)
    floor = dict.fromkeys(bars or {}, 0.0)
    for part in dict.fromkeys(part for parts in (bars or {}).values() for part in parts):
        heights = [parts.get(part, 0.0) for parts in (bars or {}).values()]
        axes.bar(list(floor), heights, bottom=list(floor.values()), label=part)
        floor = {label: low + height for (label, low), height in zip(floor.items(), heights, strict=True)}
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    axes.legend()
    file = Path(directory) / f"{name}.png"
    figure.savefig(file, dpi=110)
    print(f"Wrote {file}")
