"""``hrt_model_exec perf``: many frames in several threads, and the time of each."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arm_client.commands.model_exec.stats import Latencies, Rounds, Summary
from hbrt.cli.progress import progress

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
        threads: Number of concurrent threads.
        warms_up: Whether each thread first runs one frame that is not counted.
        cycle: Call ``on_cycle`` after this many frames.
        timeout_ms: Time limit of a task; 0 for none.
        rate: Target frames per second of all threads together; 0 for the maximum. A frame's latency then counts from
            its due time, so that waiting for a thread is included.
        spread: Percent; not 0: run rounds of ``frames`` until the average latency is known as well, see ``Rounds``.
    """

    frames: int
    seconds: float
    threads: int
    warms_up: bool
    cycle: int
    timeout_ms: int
    rate: float = 0.0
    spread: float = 0.0


def perf(
    targets: Sequence[tuple[Model, Frame]],
    ctrl: hbDNNInferCtrlParam,
    load: Load,
    *,
    on_cycle: Callable[[Summary], None],
    started: Callable[[], None] = lambda: None,
) -> list[Summary]:
    """Run one input of each model repeatedly, all models at once; the first to finish its runs ends all.

    Args:
        targets: Models, each with its inputs; each thread has its own tensors for them.
        ctrl: How tasks are scheduled.
        load: How much is run of each model.
        on_cycle: Receives the summary so far after every ``load.cycle`` frames.
        started: Called when all threads have warmed up, before the first frame that counts.

    Returns:
        A summary of each model's frames.

    Raises:
        HbrtError, TimeoutError: a task failed or took too long; the threads have ended.
    """
    runners: list[list[Runner]] = []
    try:
        for model, frame in targets:
            runners.append([])
            for _ in range(load.threads):
                runners[-1].append(frame.runner(model))
        if load.warms_up:
            for runner in itertools.chain(*runners):
                runner.run(ctrl, load.timeout_ms)
        started()
        over = threading.Event()
        return _summaries([_Run(each, ctrl, load, on_cycle, over) for each in runners], load, over)
    finally:
        for runner in itertools.chain(*runners):
            runner.free()


def _summaries(runs: list[_Run], load: Load, over: threading.Event) -> list[Summary]:
    for run in runs:
        run.start()
    try:
        unit, total = ("seconds", round(load.seconds)) if load.seconds else ("frames", load.frames)
        with progress(total, unit) as show:
            while any(run.is_alive for run in runs):
                runs[0].join(POLL_S)
                for run in runs[1:]:
                    run.join(0.0)
                show(int(runs[0].seconds) if load.seconds else runs[0].count)
                if not all(run.is_alive for run in runs):
                    over.set()
    finally:
        over.set()  # also when Ctrl-C ends the wait
        for run in runs:
            run.join()
    return [run.summary() for run in runs]


class _Run:
    """The measurement of one model.

    Args:
        runners: Tensors of the model, a set a thread.
        ctrl: How tasks are scheduled.
        load: How much is run.
        on_cycle: Receives the summary so far.
        over: Ends this measurement and those of the other models.
    """

    def __init__(
        self,
        runners: list[Runner],
        ctrl: hbDNNInferCtrlParam,
        load: Load,
        on_cycle: Callable[[Summary], None],
        over: threading.Event,
    ) -> None:
        self._ctrl, self._load, self._on_cycle, self._over = ctrl, load, on_cycle, over
        self._lock = threading.Lock()
        self._latencies, self._rounds = Latencies(), Rounds(load.frames, load.spread)
        self._taken = 0
        self._problem: BaseException | None = None
        self._start = self._end = time.perf_counter()
        self._threads = [threading.Thread(target=self._run, args=(runner,), daemon=True) for runner in runners]

    def start(self) -> None:
        self._start = time.perf_counter()
        for thread in self._threads:
            thread.start()

    def join(self, timeout_s: float | None = None) -> None:
        for thread in self._threads:
            thread.join(timeout_s)

    @property
    def is_alive(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    @property
    def count(self) -> int:
        return self._latencies.count

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def summary(self) -> Summary:
        if self._problem is not None:
            raise self._problem
        found = self._latencies.summary((self._end - self._start) * 1e3, self._load.threads)
        if not self._load.spread:
            return found
        return replace(found, rounds=self._rounds.count, spread_percent=self._rounds.spread_percent)

    def _run(self, runner: Runner) -> None:
        try:
            while (due := self._takes_one()) is not None:
                late_ms = self._await(due) if self._load.rate else 0.0
                latency_ms = runner.run(self._ctrl, self._load.timeout_ms)
                self._add(late_ms + latency_ms)
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            with self._lock:
                self._problem = self._problem or error
            self._over.set()

    def _takes_one(self) -> float | None:
        """The due time of this thread's next frame; None if none is left."""
        with self._lock:
            load = self._load
            if self._over.is_set() and self._taken:  # at least one frame, also of a model next to a quick one
                return None
            due = self._start + self._taken / load.rate if load.rate else self._start
            self._taken += 1
            if load.seconds:  # at least one frame, however short the time
                is_left = self._taken <= load.threads or time.perf_counter() - self._start < load.seconds
            else:
                is_left = self._rounds.is_open if load.spread else self._taken <= load.frames
            return due if is_left else None

    def _await(self, due: float) -> float:
        """Wait until a frame is due; returns its delay in milliseconds."""
        while (left := due - time.perf_counter()) > 0 and not self._over.wait(min(left, POLL_S)):
            pass
        return max(0.0, -left) * 1e3

    def _add(self, latency_ms: float) -> None:
        with self._lock:
            self._end = time.perf_counter()
            self._latencies.add(latency_ms)
            self._rounds.add(latency_ms)
            if self._latencies.count % self._load.cycle:
                return
            run_time_ms = (self._end - self._start) * 1e3
            summary = self._latencies.summary(run_time_ms, self._load.threads, is_last=False)
        self._on_cycle(summary)
