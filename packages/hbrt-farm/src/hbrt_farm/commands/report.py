"""Summarize the results of a map: counts, percentiles, findings, and the worst items."""

from __future__ import annotations

import base64
import html
import io
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbrt.cli.tables import short_time
from hbrt.settings import rounded
from hbrt_farm.result import MAX_SHOWN

PERCENTILES = (50, 90, 99, 100)
MAX_WORST = 5
_COLUMNS = ("measured_ns", "cycles", "error")


class Summary:
    """Counts and percentiles of all results."""

    def __init__(self, tables: Iterable[Any]) -> None:
        """``tables`` are batches of results, in order; one at a time is kept."""
        self.statuses: Counter[str] = Counter()
        self.findings: Counter[str] = Counter()
        self.failed: list[dict[str, Any]] = []  # the first ones
        self.worst: list[tuple[float, int, str]] = []
        self.total = 0
        values: dict[str, list[NDArray[np.float64]]] = {name: [] for name in _COLUMNS}
        for table in tables:
            rows = table.to_pydict()
            self.total += len(rows["index"])
            self.statuses.update(rows["status"])
            self.findings.update(one.partition(":")[0] for one in chain(*rows["findings"]))
            bad = [at for at, status in enumerate(rows["status"]) if status != "good"]
            self.failed += [
                {name: rows[name][at] for name in ("index", "item", "status", "text")}
                for at in bad[: MAX_SHOWN - len(self.failed)]
            ]
            errors = zip(rows["error"], rows["index"], rows["item"], strict=True)
            self.worst = sorted([*self.worst, *(one for one in errors if one[0] is not None)], key=_worst_first)
            del self.worst[MAX_WORST:]
            for name in _COLUMNS:
                values[name].append(np.array([one for one in rows[name] if one is not None], np.float64))
        self.values = {name: np.concatenate([*found, np.empty(0)]) for name, found in values.items()}

    @property
    def is_good(self) -> bool:
        """Whether every item passed and the boards reported no findings."""
        return self.statuses["good"] == self.total and not self.findings

    def percentiles(self, name: str) -> dict[str, float] | None:
        """Percentiles of a column; None if the column is empty."""
        values = self.values[name]
        found = np.percentile(values, PERCENTILES, method="higher") if values.size else ()
        return dict(zip((f"p{one}" for one in PERCENTILES), map(float, found), strict=True)) if values.size else None

    def document(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "items": self.total,
            "statuses": dict(self.statuses),
            "findings": dict(self.findings),
            **{name: self.percentiles(name) for name in _COLUMNS},
            "failed": self.failed,
            "worst": [{"index": index, "item": item, "error": error} for error, index, item in self.worst],
        }

    def lines(self) -> list[str]:
        """For people."""
        counts = ", ".join(f"{count} {status}" for status, count in sorted(self.statuses.items()))
        lines = [f"{self.total} items: {counts}."]
        for name, told in (("measured_ns", "Host time"), ("cycles", "Modeled cycles"), ("error", "Largest error")):
            if (found := self.percentiles(name)) is not None:
                text = short_time if name == "measured_ns" else partial(rounded, digits=6)
                lines.append(f"{told}: {', '.join(f'{key} {text(value)}' for key, value in found.items())}.")
        if self.findings:
            lines.append(f"Findings: {', '.join(f'{count} {kind}' for kind, count in self.findings.most_common())}.")
        lines += [f"Item {one['index']} {one['status']}: {one['item']}: {one['text']}" for one in self.failed]
        if len(self.failed) < (left := self.total - self.statuses["good"]):
            lines.append(f"... and {left - len(self.failed)} more, in the results.")
        lines += [f"Off by {rounded(error, 6)}: {item}" for error, _, item in self.worst if error]
        return lines

    def page(self, title: str, worst: Path | None = None) -> str:
        """As HTML in one file, with plots if matplotlib is installed.

        Args:
            title: Of the page.
            worst: Directory of ``save_worst``, whose pictures are shown.
        """
        body = "".join(f"<p>{html.escape(line)}</p>\n" for line in self.lines())
        plots = "".join(_plot(self.values[name], name) for name in _COLUMNS if self.values[name].size)
        files = sorted(worst.glob("*.npz")) if worst is not None and worst.is_dir() else []
        shown = "".join(_thumbnails(file) for file in files)
        style = (
            ":root{color-scheme:light dark}body{font-family:sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
            "figure{margin:1em 0}figcaption{font-size:.9em;opacity:.8}img{max-width:100%}"
        )
        return (
            '<!doctype html><html lang="en"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{html.escape(title)}</title><style>{style}</style><h1>{html.escape(title)}</h1>\n{body}{plots}"
            f"{f'<h2>Largest errors</h2>{shown}' if shown else ''}</html>\n"
        )


def save_worst(directory: Path, rank: int, item: str, value: tuple[list[Any], list[Any]]) -> Path:
    """Save the outputs next to the reference's: ``made_0``, ``wanted_0`` and so on."""
    directory.mkdir(exist_ok=True)
    arrays = {f"{name}_{at}": one for name, several in zip(("made", "wanted"), value, strict=True)
              for at, one in enumerate(several)}  # fmt: skip
    file = directory / f"{rank}-{Path(item).stem}.npz"
    np.savez_compressed(file, **arrays)
    return file


def _worst_first(one: tuple[float, int, str]) -> tuple[float, int]:
    return -one[0], one[1]


def _plot(values: NDArray[np.float64], name: str) -> str:
    """Return a captioned histogram of a column; empty without matplotlib."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError:
        return ""
    finite = values[np.isfinite(values)] / (1e6 if name == "measured_ns" else 1)
    if not finite.size:
        return ""
    title, unit = {"measured_ns": ("Host time", "ms"), "cycles": ("Modeled cycles", "cycles")}.get(
        name, ("Largest error of an item", "absolute difference")
    )
    if (least := finite.min()) == finite.max():
        return f"<p>{title}: {rounded(least, 6)} {unit} for each of {finite.size} items.</p>\n"
    figure = Figure(figsize=(7, 2.5), layout="constrained")
    axes = figure.subplots()
    axes.hist(finite, bins=min(60, max(5, finite.size // 2)))
    axes.set_xlabel(f"{title.lower()}, {unit}")
    axes.set_ylabel("items")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    caption = f"{title}: {finite.size} items, {rounded(least, 6)} to {rounded(finite.max(), 6)} {unit}."
    if len(values) > finite.size:
        caption += f" {len(values) - finite.size} without a finite value are omitted."
    return _figure(figure, title, caption)


def _thumbnails(file: Path) -> str:
    """Show an item's output next to the reference, and their difference; empty if the arrays are not pictures."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    with np.load(file) as arrays:
        made, wanted = (np.squeeze(arrays[name]) if name in arrays else None for name in ("made_0", "wanted_0"))
    if made is None or wanted is None or made.shape != wanted.shape:
        return ""
    if made.ndim not in {2, 3} or min(made.shape[:2]) < 2 or (made.ndim == 3 and made.shape[2] not in {3, 4}):
        return ""
    off = np.abs(made.astype(np.float64) - wanted.astype(np.float64))
    figure = Figure(figsize=(7, 2.4), layout="constrained")
    for axes, picture, title in zip(figure.subplots(1, 3), (made, wanted, off), ("board", "reference", "difference"),
                                    strict=True):  # fmt: skip
        axes.imshow(
            picture if picture.ndim == 2 else picture.mean(axis=2), cmap="gray" if title != "difference" else "magma"
        )
        axes.set_title(title, fontsize=9)
        axes.set_axis_off()
    rank, _, item = file.stem.partition("-")
    return _figure(
        figure, item, f"{rank}. {item}: off by up to {rounded(off.max(), 6)}, {rounded(off.mean(), 6)} on average."
    )


def _figure(figure: Any, alt: str, caption: str) -> str:
    """A plot inside the page, with its caption."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=90)
    data = base64.b64encode(picture.getvalue()).decode()
    return (
        f'<figure><img alt="{html.escape(alt)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>\n"
    )
