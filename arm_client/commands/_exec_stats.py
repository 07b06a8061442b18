"""Latencies of many runs: what the summary of ``hrt_model_exec perf`` says of them. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

PERCENTILES = (50, 90, 99)


@dataclass(frozen=True)
class Summary:
    """Times in milliseconds.

    Attributes:
        thread_num: How many threads ran frames at once.
        frame_count: Frames of all threads.
        run_time: From the first frame's begin to the last one's end.
        total_latency: Sum of the latencies of all frames, so with n threads up to n times ``run_time``.
        average, minimum, maximum: Of a frame's latency: submit, wait and release, as a program sees them.
        percentiles: Latency by percent: so many of the frames took no longer.
        fps: Frames a second of ``run_time``.
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

    def document(self) -> dict[str, Any]:
        """For ``--json``: the fields, milliseconds with their unit in the name."""
        values = asdict(self)
        values["percentiles"] = {f"p{percent}": value for percent, value in self.percentiles.items()}
        return {name if name in _NO_TIMES else f"{name}_ms": value for name, value in values.items()}


_NO_TIMES = {"thread_num", "frame_count", "fps"}


def summary_of(latencies_ms: ArrayLike, run_time_ms: float, thread_num: int) -> Summary:
    """Summary of frames.

    Args:
        latencies_ms: (n,) of all frames, in any order; n >= 1.
        run_time_ms: Of the whole run.
        thread_num: How many threads ran them.

    Raises:
        ValueError: there is no frame.
    """
    values = np.asarray(latencies_ms, np.float64)
    if not values.size:
        raise ValueError("No frame ran: there is nothing to sum up.")
    return Summary(
        thread_num=thread_num,
        frame_count=int(values.size),
        run_time=float(run_time_ms),
        total_latency=float(values.sum()),
        average=float(values.mean()),
        minimum=float(values.min()),
        maximum=float(values.max()),
        percentiles={percent: float(np.percentile(values, percent)) for percent in PERCENTILES},
        fps=1e3 * values.size / run_time_ms,
    )


def progress_line(summary: Summary) -> str:
    """The line after every so many frames."""
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
        f"{percentiles}"
    )
