"""HB_DNN_PROFILER_LOG_PATH: writes the step times of each model when it is released or the process ends."""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING

from arm_client.dnn import environment
from arm_client.dnn.profile.profiler import StepProfile
from hbrt.board.forked import in_child

if TYPE_CHECKING:
    from arm_client.dnn.run.plan import Plan
    from hbrt.models.run.steps import StepTime

VARIABLE = "HB_DNN_PROFILER_LOG_PATH"


class ModelProfile:
    """Collects the steps of one model; starts over when layers change the steps."""

    def __init__(self, plan: Plan, name: str) -> None:
        """Start observing the plan of the named model."""
        self._plan = plan
        self.name = name
        self._lock = threading.Lock()
        self._names: tuple[str, ...] = ()
        self._profile = StepProfile(())
        self._first_ns = self._last_ns = 0
        plan.observer = self.observe

    def observe(self, step: StepTime) -> None:
        """Record one step's times."""
        names = tuple(info.name for info in self._plan.steps)
        with self._lock:
            if names != self._names:
                self._names, self._profile = names, StepProfile(names)
                self._first_ns = perf_counter_ns()
            self._last_ns = perf_counter_ns()
            profile = self._profile
        profile.observe(step)

    def write(self, directory: Path) -> None:
        """Write profiler.log and profiler.csv if the model ran.

        Raises:
            OSError: they cannot be written.
        """
        count = self._profile.run_count
        if not count:
            return
        run_time_ms = (self._last_ns - self._first_ns) / 1e6
        latency_ms = self._profile.document()["task_latency"]["TaskRunningTime"]["avg_time"]
        self._profile.write(
            directory,
            {"FPS": 1000 * count / run_time_ms if run_time_ms else 0.0, "average_latency": latency_ms},
            {"model_name": self.name, "frame_count": count, "run_time": run_time_ms},
        )


_watched: dict[Plan, ModelProfile] = {}
_lock = threading.Lock()


def watch(plan: Plan, name: str) -> None:
    """Collect a model's times if the variable names a directory."""
    if os.environ.get(VARIABLE):
        with _lock:
            _watched[plan] = ModelProfile(plan, name)


def finish(plan: Plan, name: str) -> None:
    """Write a model's times to the directory named after it; a failure is only a warning."""
    with _lock:
        profile = _watched.pop(plan, None)
    text = os.environ.get(VARIABLE)
    if profile is None or not text:
        return
    try:
        profile.write(Path(text) / name.replace(os.sep, "_"))
    except OSError as error:
        environment.warn(f"{VARIABLE}: cannot write the times of {name!r}: {error}.")


def _finish_all() -> None:
    for plan, profile in list(_watched.items()):
        finish(plan, profile.name)


atexit.register(_finish_all)
in_child(_watched.clear)
