"""Latencies of many runs: the data for the summary of ``hrt_model_exec perf``. Pure."""

from __future__ import annotations

import math
import random
from array import array
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np

PERCENTILES = (50, 90, 99)
MAX_KEPT = 1_000_000
"""Latencies that are kept for the percentiles; of more frames, as many are drawn by chance."""


@dataclass(frozen=True)
class Summary:
    """Times in milliseconds.

    Attributes:
        thread_num: Number of concurrent threads.
        frame_count: Frames of all threads.
        run_time: From the first frame's start to the last one's end.
        total_latency: Sum of the latencies of all frames; with n threads, up to n times ``run_time``.
        average, minimum, maximum: Of a frame's latency: submit, wait and release, as a program sees them.
        percentiles: Latency by percentage of frames that took no longer.
        fps: Frames a second of ``run_time``.
        rounds: How many rounds were run until the average was known well enough; 0 where that was not wanted.
        spread_percent: How well it is known then, see ``Rounds``.
    """

    thread_num: int
    frame_count: int
    run_time: float
    total_latency: float
    average: float
    minimum: float
    maximum: float
    percentiles: dict[int, float]
    fps: float
    rounds: int = 0
    spread_percent: float | None = None

    def document(self) -> dict[str, Any]:
        """For ``--json``: the fields, milliseconds with their unit in the name."""
        values = asdict(self)
        if self.spread_percent is None:
            del values["rounds"], values["spread_percent"]
        values["percentiles"] = {f"p{percent}": value for percent, value in self.percentiles.items()}
        return {name if name in _NO_TIMES else f"{name}_ms": value for name, value in values.items()}


_NO_TIMES = {"thread_num", "frame_count", "fps", "rounds", "spread_percent"}


MIN_ROUNDS, MAX_ROUNDS = 5, 100


class Rounds:
    """The stop rule: rounds of frames, until their averages agree.

    The spread is half the width of the 95% confidence interval of the average latency, as a percentage of it: by
    Student's t over the averages of the rounds, which are far more normal than single latencies are.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.5, for the quantile of t

    Args:
        frames: Of a round.
        wanted_percent: The spread at which the measurement ends; MAX_ROUNDS rounds also end it.
    """

    def __init__(self, frames: int, wanted_percent: float) -> None:
        self._frames, self._wanted = frames, wanted_percent
        self._averages: list[float] = []
        self._sum, self._count = 0.0, 0

    def add(self, latency_ms: float) -> None:
        """Take a frame's."""
        self._sum += latency_ms
        self._count += 1
        if self._count == self._frames:
            self._averages.append(self._sum / self._count)
            self._sum, self._count = 0.0, 0

    @property
    def count(self) -> int:
        """Rounds that are complete."""
        return len(self._averages)

    @property
    def spread_percent(self) -> float | None:
        """The spread so far; None before there are two rounds."""
        if self.count <= 1:
            return None
        freedom, z = self.count - 1, 1.959964
        quantile = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        return 100 * quantile * stdev(self._averages) / math.sqrt(self.count) / fmean(self._averages)

    @property
    def is_open(self) -> bool:
        """Whether more is to be run."""
        spread = self.spread_percent
        is_settled = self.count >= MIN_ROUNDS and spread is not None and spread <= self._wanted
        return not is_settled and self.count < MAX_ROUNDS


class Latencies:
    """Latencies of many frames, in memory that does not grow without end. For one thread at a time.

    Args:
        most_kept: Maximum number of frames with exact percentiles. Beyond that number, they come from a uniform sample
            of that size (reservoir sampling, algorithm R).
    """

    def __init__(self, most_kept: int = MAX_KEPT) -> None:
        self.count = 0
        self._total, self._least, self._most = 0.0, float("inf"), 0.0
        self._most_kept = most_kept
        self._sample = array("d")
        self._random = random.Random(0)  # noqa: S311 - a sample, no secret

    def add(self, latency_ms: float) -> None:
        """Take a frame's."""
        self.count += 1
        self._total += latency_ms
        self._least = min(self._least, latency_ms)
        self._most = max(self._most, latency_ms)
        if self.count <= self._most_kept:
            self._sample.append(latency_ms)
        elif (place := self._random.randrange(self.count)) < self._most_kept:
            self._sample[place] = latency_ms

    def summary(self, run_time_ms: float, thread_num: int, *, is_last: bool = True) -> Summary:
        """Summary of the frames so far.

        Args:
            run_time_ms: Of the whole run.
            thread_num: How many threads ran them.
            is_last: Whether percentiles are wanted; they take longer, the longer the run was.

        Raises:
            ValueError: there are no frames.
        """
        if not self.count:
            raise ValueError("No frame ran: there is nothing to summarize.")
        percentiles = np.percentile(np.frombuffer(self._sample), PERCENTILES).tolist() if is_last else ()
        return Summary(
            thread_num=thread_num,
            frame_count=self.count,
            run_time=run_time_ms,
            total_latency=self._total,
            average=self._total / self.count,
            minimum=self._least,
            maximum=self._most,
            percentiles=dict(zip(PERCENTILES, percentiles, strict=False)),
            fps=1e3 * self.count / run_time_ms,
        )


def progress_line(summary: Summary) -> str:
    """The line after every cycle of frames."""
    return (
        f"Frame count: {summary.frame_count},  Thread Average: {summary.average:.6f} ms,  "
        f"thread max latency: {summary.maximum:.6f} ms,  thread min latency: {summary.minimum:.6f} ms,  "
        f"FPS: {summary.fps:.6f}"
    )


def summary_block(summary: Summary) -> str:
    """The block at the end, as users of the board know it, and the percentiles."""
    percentiles = "\n".join(f"  p{percent} is: {value:.3f} ms" for percent, value in summary.percentiles.items())
    return (
        f"Running condition:\n"
        f"  Thread number is: {summary.thread_num}\n"
        f"  Frame count   is: {summary.frame_count}\n"
        f"  Program run time: {summary.run_time:.3f} ms\n"
        f"Perf result:\n"
        f"  Frame totally latency is: {summary.total_latency:.3f} ms\n"
        f"  Average    latency    is: {summary.average:.3f} ms\n"
        f"  Frame      rate       is: {summary.fps:.3f} FPS\n"
        f"Latency percentiles:\n"
        f"{percentiles}{_spread_line(summary)}"
    )


def _spread_line(summary: Summary) -> str:
    if summary.spread_percent is None:
        return ""
    rounds = f"{summary.rounds} rounds" + ", which is the most" * (summary.rounds >= MAX_ROUNDS)
    return f"\nSpread of the average is: {summary.spread_percent:.2f}% after {rounds}"
