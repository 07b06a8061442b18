"""What a map's results say as a whole: counts, percentiles, findings, and the worst items."""

from __future__ import annotations

import base64
import html
import io
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arm_client.commands.farm.options import MAX_SHOWN
from hbrt.cli.tables import short_time

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
        """Whether each item is good, and the boards found nothing."""
        return self.statuses["good"] == self.total and not self.findings

    def percentiles(self, name: str) -> dict[str, float] | None:
        """Percentiles of a column; None where it has no values."""
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
        for name, told in (("measured_ns", "Host time"), ("cycles", "Modelled cycles"), ("error", "Largest error")):
            if (found := self.percentiles(name)) is not None:
                text = short_time if name == "measured_ns" else "{:.6g}".format
                lines.append(f"{told}: {', '.join(f'{key} {text(value)}' for key, value in found.items())}.")
        if self.findings:
            lines.append(f"Findings: {', '.join(f'{count} {kind}' for kind, count in self.findings.most_common())}.")
        lines += [f"Item {one['index']} {one['status']}: {one['item']}: {one['text']}" for one in self.failed]
        if len(self.failed) < (left := self.total - self.statuses["good"]):
            lines.append(f"... and {left - len(self.failed)} more, in the results.")
        lines += [f"Off by {error:g}: {item}" for error, _, item in self.worst if error]
        return lines

    def page(self, title: str) -> str:
        """As HTML in one file, with plots where matplotlib is installed."""
        body = "".join(f"<p>{html.escape(line)}</p>\n" for line in self.lines())
        plots = "".join(_plot(self.values[name], name) for name in _COLUMNS if self.values[name].size)
        style = "body{font-family:sans-serif;max-width:60em;margin:2em auto}"
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
            f"<style>{style}</style><h1>{html.escape(title)}</h1>\n{body}{plots}</html>\n"
        )


def save_worst(directory: Path, rank: int, item: str, value: tuple[list[Any], list[Any]]) -> Path:
    """Save outputs and the reference's beside each other: ``made_0``, ``wanted_0`` and so on."""
    directory.mkdir(exist_ok=True)
    arrays = {f"{name}_{at}": one for name, several in zip(("made", "wanted"), value, strict=True)
              for at, one in enumerate(several)}  # fmt: skip
    file = directory / f"{rank}-{Path(item).stem}.npz"
    np.savez_compressed(file, **arrays)
    return file


def _worst_first(one: tuple[float, int, str]) -> tuple[float, int]:
    return -one[0], one[1]


def _plot(values: NDArray[np.float64], name: str) -> str:
    """How many items have which value, as a picture; nothing without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return ""
    figure = Figure(figsize=(7, 2.5), layout="constrained")
    axes = figure.subplots()
    axes.hist(finite / (1e6 if name == "measured_ns" else 1), bins=60)
    axes.set_xlabel({"measured_ns": "host time in ms", "cycles": "modelled cycles"}.get(name, "largest error"))
    axes.set_ylabel("items")
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=90)
    return f'<img alt="{name}" src="data:image/png;base64,{base64.b64encode(picture.getvalue()).decode()}">\n'
