"""Measures a program's calls of the C names from outside: command, core, status, and the time of each task."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import arm_client as hb
from arm_client.session.process import process
from hbrt.mailbox.handle import slot_of
from hbrt.profiles.work import Cost, Work, task_cost

SUBMIT = ("hbDSPRpc", "hbDNNInfer", "hbDNNRoiInfer")
WAIT = ("hbDSPWaitTaskDone", "hbDNNWaitTaskDone")
RELEASE = ("hbDSPReleaseTask", "hbDNNReleaseTask")


class Calls:
    """The tasks that a program submits with ``hb.NAME``, one at a time."""

    def __init__(self) -> None:
        self.command: int | None = None
        self.core: int | None = None
        self.status: int | None = None
        self.has_models = False
        self._times_us: list[float] = []
        self._ended: list[tuple[int, Work, int]] = []  # of the tasks of ops: cycles, work, bytes of the blocks
        self._start = 0.0

    def watch(self, text: str) -> None:
        """Wrap the C names that a program uses, for the life of the process.

        Args:
            text: Of the program. Other names stay as they are: access to a name of models loads them.
        """
        for names, seen in ((SUBMIT, self._submit), (WAIT, self._wait), (RELEASE, self._release)):
            for name in names:
                if f"hb.{name}(" in text:
                    setattr(hb, name, partial(seen, getattr(hb, name)))

    def restart(self) -> None:
        """Forget the times of the tasks so far."""
        self._times_us.clear()
        self._ended.clear()

    @property
    def count(self) -> int:
        """Tasks that ended since the last restart."""
        return len(self._times_us)

    def host_time_us(self) -> float | None:
        """Submit to release: all remote calls of a program together, or the median of a model's inferences."""
        if not self._times_us:
            return None
        return median(self._times_us) if self.has_models else sum(self._times_us)

    def document(self) -> dict[str, Any]:
        """All of it, by the names of the runner's report; unknown values are left out."""
        known = {
            "command": self.command,
            "core": self.core,
            "status": self.status,
            "host_time_us": self.host_time_us(),
            **self._modeled(),
        }
        return {name: value for name, value in known.items() if value is not None}

    def _modeled(self) -> dict[str, Any]:
        """The total time of the ops on the board; empty for a program that calls no ops."""
        session = process.default
        if session is None or not self._ended:
            return {}
        costs = [task_cost(*ended, session.profile, is_done=True) for ended in self._ended]
        cycles, *parts = map(sum, zip(*(cost[:-1] for cost in costs), strict=True))
        return {
            "modeled_cycles": cycles,
            "modeled_us": session.profile.us(cycles),
            **{f"modeled_{name}": count for name, count in zip(Cost._fields[1:-1], parts, strict=True)},
            "modeled_is_estimated": any(cost.is_estimated for cost in costs),
        }

    def _submit(self, call: Callable[..., int], task: Any, first: Any, second: Any, *rest: Any) -> int:
        ctrl = rest[-1] if rest else None
        if isinstance(ctrl, hb.hbDSPRpcCtrlParam):
            self.command, self.core = ctrl.rpcCmd, ctrl.dspCoreId
        else:
            self.has_models = True
        self._start = time.perf_counter()
        self.status = call(task, first, second, *rest)
        return self.status

    def _wait(self, call: Callable[..., int], *arguments: Any) -> int:
        self.status = call(*arguments)
        if isinstance(arguments[0], hb.hbDSPTask_t) and self.status == 0 and process.default is not None:
            tasks, handle = process.default.tasks, arguments[0].value or 0
            block_bytes = tasks.mailbox.block_bytes(slot_of(handle))
            self._ended.append((tasks.answer(handle).cycles, tasks.work(handle), block_bytes))
        return self.status

    def _release(self, call: Callable[..., int], *arguments: Any) -> int:
        status = call(*arguments)
        self._times_us.append((time.perf_counter() - self._start) * 1e6)
        return status
