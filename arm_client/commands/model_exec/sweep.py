"""``hrt_model_exec perf`` at several loads: threads, rates, and models at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from arm_client.commands.model_exec.perf import Load, perf
from arm_client.commands.model_exec.stats import PERCENTILES, Summary
from hbrt.cli.tables import Column, number

if TYPE_CHECKING:
    from arm_client.commands.model_exec.inputs import Frame
    from arm_client.dnn import Model
    from hbrt.dnn_types import hbDNNInferCtrlParam


def _percentile(percent: int) -> Callable[[Point], str]:
    return lambda point: f"{point.summary.percentiles[percent]:.3f}"


COLUMNS = (
    Column("MODEL"),
    number("THREADS", lambda point: point.load.threads),
    number("RATE", lambda point: f"{point.load.rate:g}" if point.load.rate else None),
    number("FPS", lambda point: f"{point.summary.fps:.1f}"),
    number("AVERAGE MS", lambda point: f"{point.summary.average:.3f}"),
    *(number(f"P{percent} MS", _percentile(percent)) for percent in PERCENTILES),
    number("MAX MS", lambda point: f"{point.summary.maximum:.3f}"),
    number("SPREAD", lambda one: None if (spread := one.summary.spread_percent) is None else f"{spread:.2f}%"),
)


class Point(NamedTuple):
    """The measurements of one model at one load."""

    model: str
    load: Load
    summary: Summary

    def document(self) -> dict[str, Any]:
        """For ``--json``; a rate of null is the maximum rate."""
        return {"model_name": self.model, "rate": self.load.rate or None, **self.summary.document()}


def loads(load: Load, threads: Sequence[int] | None, rates: Sequence[float] | None) -> list[Load]:
    """Every load of a sweep: each number of threads, at each rate.

    Args:
        load: Everything else.
        threads: Numbers of threads; None for that of ``load``.
        rates: Frames per second; None for the maximum.
    """
    return [
        replace(load, threads=count, rate=rate)
        for count in threads or (load.threads,)
        for rate in rates or (load.rate,)
    ]


def measure(
    targets: Sequence[tuple[Model, Frame]], ctrl: hbDNNInferCtrlParam, wanted: Sequence[Load]
) -> Iterator[Point]:
    """Measure at each load; see ``perf``."""
    for load in wanted:
        found = perf(targets, ctrl, load, on_cycle=lambda _: None)
        yield from (Point(model.name, load, one) for (model, _), one in zip(targets, found, strict=True))
