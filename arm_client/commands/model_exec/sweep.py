"""``hrt_model_exec perf`` at several loads: threads, rates, and models at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from arm_client.commands.model_exec.perf import Load, perf
from arm_client.commands.model_exec.stats import Summary
from hbrt.cli.tables import Column, numbers

if TYPE_CHECKING:
    from arm_client.commands.model_exec.inputs import Frame
    from arm_client.dnn import Model
    from hbrt.dnn_types import hbDNNInferCtrlParam

COLUMNS = (
    Column("MODEL"),
    *numbers("THREADS", "RATE", "FPS", "AVERAGE MS", "P50 MS", "P90 MS", "P99 MS", "MAX MS", "SPREAD"),
)


class Point(NamedTuple):
    """What was measured of one model at one load."""

    model: str
    load: Load
    summary: Summary

    def row(self) -> tuple[object, ...]:
        """For the table."""
        found, spread = self.summary, self.summary.spread_percent
        return (
            self.model,
            self.load.threads,
            f"{self.load.rate:g}" if self.load.rate else "-",
            f"{found.fps:.1f}",
            *(f"{value:.3f}" for value in (found.average, *found.percentiles.values(), found.maximum)),
            "-" if spread is None else f"{spread:.2f} %",
        )

    def document(self) -> dict[str, Any]:
        """For ``--json``; a rate of null is as many frames as can be."""
        return {"model_name": self.model, "rate": self.load.rate or None, **self.summary.document()}


def loads(load: Load, threads: Sequence[int] | None, rates: Sequence[float] | None) -> list[Load]:
    """Every load of a sweep: each number of threads, at each rate.

    Args:
        load: Everything else.
        threads: How many; None for that of ``load``.
        rates: Frames a second; None for as many as can be.
    """
    return [
        replace(load, threads=count, rate=rate)
        for count in threads or (load.threads,)
        for rate in rates or (load.rate,)
    ]


def measure(
    targets: Sequence[tuple[Model, Frame]], ctrl: hbDNNInferCtrlParam, wanted: Sequence[Load], *, shows_progress: bool
) -> Iterator[Point]:
    """Measure at each load; see ``perf``."""
    for load in wanted:
        found = perf(targets, ctrl, load, on_cycle=lambda _: None, shows_progress=shows_progress)
        yield from (Point(model.name, load, one) for (model, _), one in zip(targets, found, strict=True))
