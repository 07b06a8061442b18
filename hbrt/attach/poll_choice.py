"""Whether polling before sleeping pays: a process tries both ways again and again, and keeps the cheaper one.

Polling saves two wake-ups where CPUs are idle. Where other processes want the CPUs, it costs more than it saves: a
poller keeps the peer from its CPU, or gives a whole time slice away by a yield. Counts of CPUs and of processes do not
separate the two cases; the cost of tasks does. So a few tasks out of many are measured, both ways in turn. A trial
takes a small share of the time, however much the other way costs, and that bounds the loss.
"""

from __future__ import annotations

from collections import deque

SETTLING_TASKS = 2  # after a change, the core's habit lasts for one more task
SETTLING_NS = 10_000_000  # after a change, the kernel's load balancer moves processes within a few ticks
SAMPLE_TASKS, SAMPLE_NS = 16, 10_000_000  # a sample has at least so many tasks and costs at least so much
SAMPLES = 3  # of sleeping the least counts, of polling the median: another process may take the CPU during one
# A trial takes at most one part in so many of the time: after a change of mind, and when each trial has confirmed it.
MIN_HOLD, MAX_HOLD = 4, 64
# Where CPUs are idle, polling costs a third to a tenth of sleeping. A smaller gain is chance: on a busy machine,
# sleepers share a CPU, and become cheap, only some time after their trial has ended.
MIN_GAIN = 1.5


class PollChoice:
    """Decides for one process whether its waiters poll, by the measured cost of tasks.

    Attributes:
        polls: Whether the next wait polls.
        measures: Whether the next task is measured.
    """

    def __init__(self, *, may_poll: bool = True) -> None:
        """Begin with polling, and with a trial; never poll or measure unless ``may_poll``."""
        self.polls = self._best = self.measures = may_poll
        self._held_tasks = 0  # left until the next trial
        self._tasks = self._cost_ns = 0  # of this sample
        self._settling, self._settled_ns = SETTLING_TASKS, -1  # from the first task on
        self._hold = MIN_HOLD
        # Mean costs of a task in the latest samples, in ns: asleep, polling.
        self._samples: tuple[deque[float], deque[float]] = (deque(maxlen=SAMPLES), deque(maxlen=SAMPLES))

    def skip(self) -> None:
        """Count a wait that was not measured."""
        self._held_tasks -= 1
        self.measures = self._held_tasks <= 0

    def note(self, cost_ns: int, now_ns: int) -> None:
        """Take the cost of a task, and choose anew at the end of a trial."""
        if self._settled_ns < 0:
            self._settled_ns = now_ns + SETTLING_NS
        if self._settling > 0 or now_ns < self._settled_ns:
            self._settling -= 1
            return
        self._tasks += 1
        self._cost_ns += cost_ns
        tasks, total_ns = self._tasks, self._cost_ns  # other threads may take part
        if tasks < SAMPLE_TASKS or total_ns < SAMPLE_NS:
            return
        self._samples[self.polls].append(total_ns / tasks)
        if self.polls is not self._best and all(self._samples):
            self._choose(total_ns)
        self._tasks = self._cost_ns = 0
        if not self.measures and self.polls is self._best:
            return
        self.polls = not self.polls
        self._settling, self._settled_ns = SETTLING_TASKS, now_ns + SETTLING_NS

    def _choose(self, trial_ns: int) -> None:
        """Choose the cheaper way until the next trial."""
        asleep_samples, polled_samples = self._samples
        asleep, polled = min(asleep_samples), sorted(polled_samples)[len(polled_samples) // 2]
        pays = asleep > polled * MIN_GAIN
        if pays and len(asleep_samples) < SAMPLES:
            return
        was_best, self._best = self._best, pays
        self._hold = min(2 * self._hold, MAX_HOLD) if self._best is was_best else MIN_HOLD
        # The duration of a trial of both ways, in tasks of the cheaper one.
        trial_tasks = 2 * (trial_ns + SETTLING_NS) / (polled if self._best else asleep)
        self.measures, self._held_tasks = False, int(self._hold * trial_tasks)
