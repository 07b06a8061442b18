"""``hrt_model_exec perf``: many frames, by several threads at once, and how long each took."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arm_client.commands.model_exec.stats import Latencies, Summary

if TYPE_CHECKING:
    from arm_client.commands.model_exec.inputs import Frame
    from arm_client.dnn import Model
    from arm_client.dnn.python.runner import Runner
    from hbrt.dnn_types import hbDNNInferCtrlParam

POLL_S = 0.1


@dataclass(frozen=True)
class Load:
    """How much is run.

    Attributes:
        frames: How many frames, of all threads together; where ``seconds`` is 0.
        seconds: How long; wins over ``frames``.
        threads: How many run frames at once.
        warms_up: Whether each thread runs a frame that is not counted first.
        cycle: After so many frames ``on_cycle`` is called.
        timeout_ms: Time limit of a task; 0 for none.
    """

    frames: int
    seconds: float
    threads: int
    warms_up: bool
    cycle: int
    timeout_ms: int


def perf(
    model: Model,
    frame: Frame,
    ctrl: hbDNNInferCtrlParam,
    load: Load,
    *,
    on_cycle: Callable[[Summary], None],
    started: Callable[[], None] = lambda: None,
    shows_progress: bool = False,
) -> Summary:
    """Run one input again and again.

    Args:
        model: The model.
        frame: What it is given; each thread has tensors of its own that hold it.
        ctrl: How tasks are scheduled.
        load: How much is run.
        on_cycle: Gets the summary so far after every ``load.cycle`` frames.
        started: Called when all threads have warmed up, before the first frame that counts.
        shows_progress: Whether standard error, when it is a terminal, shows how far it is.

    Returns:
        Summary of all frames.

    Raises:
        HbrtError, TimeoutError: a task failed or took too long; the threads have ended.
    """
    runners: list[Runner] = []
    try:
        runners += [frame.runner(model) for _ in range(load.threads)]
        if load.warms_up:
            for runner in runners:
                runner.run(ctrl, load.timeout_ms)
        started()
        return _Run(runners, ctrl, load, on_cycle).summary(shows_progress=shows_progress)
    finally:
        for runner in runners:
            runner.free()


class _Run:
    """One measurement."""

    def __init__(
        self, runners: list[Runner], ctrl: hbDNNInferCtrlParam, load: Load, on_cycle: Callable[[Summary], None]
    ) -> None:
        self._runners, self._ctrl, self._load, self._on_cycle = runners, ctrl, load, on_cycle
        self._lock = threading.Lock()
        self._latencies = Latencies()
        self._taken = 0
        self._problem: BaseException | None = None
        self._start = time.perf_counter()
        self._must_end = False

    def summary(self, *, shows_progress: bool) -> Summary:
        threads = [threading.Thread(target=self._run, args=(runner,), daemon=True) for runner in self._runners]
        self._start = time.perf_counter()
        for thread in threads:
            thread.start()
        try:
            with _bar(self._load, is_shown=shows_progress) as advance:
                for thread in threads:
                    while thread.is_alive():
                        thread.join(POLL_S)
                        advance(self._latencies.count, time.perf_counter() - self._start)
        finally:
            self._must_end = True  # also when Ctrl-C ends the wait
            for thread in threads:
                thread.join()
        run_time_ms = (time.perf_counter() - self._start) * 1e3
        if self._problem is not None:
            raise self._problem
        return self._latencies.summary(run_time_ms, self._load.threads)

    def _run(self, runner: Runner) -> None:
        try:
            while self._takes_one():
                latency = runner.run(self._ctrl, self._load.timeout_ms)
                self._add(latency)
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            with self._lock:
                self._problem = self._problem or error
                self._must_end = True

    def _takes_one(self) -> bool:
        """Whether a frame is left to run; if so it is this thread's."""
        with self._lock:
            if self._must_end:
                return False
            self._taken += 1
            if self._load.seconds:  # one frame at least, however short the time
                return self._taken <= self._load.threads or time.perf_counter() - self._start < self._load.seconds
            return self._taken <= self._load.frames

    def _add(self, latency_ms: float) -> None:
        with self._lock:
            self._latencies.add(latency_ms)
            if self._latencies.count % self._load.cycle:
                return
            run_time_ms = (time.perf_counter() - self._start) * 1e3
            summary = self._latencies.summary(run_time_ms, self._load.threads, is_last=False)
        self._on_cycle(summary)


@contextmanager
def _bar(load: Load, *, is_shown: bool) -> Iterator[Callable[[int, float], None]]:
    """A bar on the terminal; the function gets the frames and the seconds so far."""
    if not is_shown or not sys.stderr.isatty():
        yield lambda _frames, _seconds: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    # Lines that are printed meanwhile go above the bar, but for those whose output is a file.
    with Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as progress:
        total = round(load.seconds) if load.seconds else load.frames
        row = progress.add_task("seconds" if load.seconds else "frames", total=total)
        yield lambda frames, seconds: progress.update(row, completed=int(seconds) if load.seconds else frames)
