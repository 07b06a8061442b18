"""Times of a plan's steps over many runs, written to profiler.log and profiler.csv."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hbrt.models.run.steps import StepTime

LOG, TABLE = "profiler.log", "profiler.csv"
COLUMNS = ("name", "processor", "count", "avg_time", "min_time", "max_time", "total_time")


@dataclass
class _Times:
    """Statistics of repeated measurements of one item, in milliseconds."""

    count: int = 0
    total: float = 0.0
    least: float = float("inf")
    most: float = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.least = min(self.least, value)
        self.most = max(self.most, value)

    def document(self) -> dict[str, float]:
        return {"avg_time": self.total / self.count, "max_time": self.most, "min_time": self.least}


class StepProfile:
    """Collects the steps of one plan's runs: ``plan.observer = profile.observe``. It is thread-safe.

    Args:
        steps: Names of a run's steps, in order; a run that fails before the last step is not counted.
    """

    def __init__(self, steps: Sequence[str]) -> None:
        self._steps = tuple(steps)
        self._lock = threading.Lock()
        self._nodes: dict[str, tuple[str, _Times]] = {}
        self._processors: dict[str, _Times] = {}
        self._task = _Times()
        self._open = threading.local()

    def observe(self, step: StepTime) -> None:
        """Record one step's times, in the thread that ran it."""
        steps = self._collected(step)
        if len(steps) < len(self._steps):
            return
        self._open.steps = []
        with self._lock:
            spent: dict[str, float] = {}
            for one in steps:
                milliseconds = (one.end_ns - one.start_ns) / 1e6
                self._nodes.setdefault(one.name, (one.processor, _Times()))[1].add(milliseconds)
                spent[one.processor] = spent.get(one.processor, 0.0) + milliseconds
            for processor, milliseconds in spent.items():
                self._processors.setdefault(processor, _Times()).add(milliseconds)
            self._task.add((steps[-1].end_ns - steps[0].start_ns) / 1e6)

    def clear(self) -> None:
        """Discard the runs so far, such as warm-up runs."""
        with self._lock:
            self._nodes, self._processors, self._task = {}, {}, _Times()

    @property
    def run_count(self) -> int:
        """Number of complete runs."""
        return self._task.count

    def document(self) -> dict[str, Any]:
        """Times in milliseconds: per step, per processor in a run, and of whole runs.

        A step is a segment that runs as a whole on a BPU core, or a node that a layer runs.
        """
        with self._lock:
            return {
                "model_latency": {name: times.document() for name, (_, times) in self._nodes.items()},
                "processor_latency": {
                    f"{processor}_inference_time_cost": times.document()
                    for processor, times in self._processors.items()
                },
                "task_latency": {"TaskRunningTime": self._task.document()} if self._task.count else {},
            }

    def write(self, directory: Path, perf_result: dict[str, Any], running_condition: dict[str, Any]) -> None:
        """Write profiler.log (two JSON objects with ``***`` between them) and profiler.csv (one row per step).

        Args:
            directory: Created if missing.
            perf_result: Overall results: FPS and average_latency.
            running_condition: What ran, how often, on which cores.

        Raises:
            OSError: a file cannot be written.
        """
        directory.mkdir(parents=True, exist_ok=True)
        first = {"perf_result": perf_result, "running_condition": running_condition}
        parts = [json.dumps(part, indent=2) for part in (first, self.document())]
        (directory / LOG).write_text("\n***\n".join(parts) + "\n", encoding="utf-8")
        with (directory / TABLE).open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(COLUMNS)
            for name, (processor, times) in self._nodes.items():
                numbers = (times.total / times.count, times.least, times.most, times.total)
                rows.writerow([name, processor, times.count, *(f"{number:.6f}" for number in numbers)])

    def _collected(self, step: StepTime) -> list[StepTime]:
        """The steps of this thread's run so far."""
        steps: list[StepTime] = getattr(self._open, "steps", [])
        if step.name == self._steps[0]:
            steps = []  # the rest is from a failed run
        steps.append(step)
        self._open.steps = steps
        return steps
