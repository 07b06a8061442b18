"""The data of ``hbrt status`` and ``hbrt ops``: the board as plain data."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import asdict
from typing import Any, NamedTuple

from dsp_server.clients import Client, Clients
from dsp_server.daemon.gateways import Gateways
from dsp_server.daemon.watches.lock_watch import LockWatch
from dsp_server.lifecycle import health
from dsp_server.lifecycle.core_state import BoardCore
from dsp_server.lifecycle.health import CoreHealth, OpRun
from dsp_server.lifecycle.life import CRASHED, OFFLINE, RUNNING
from dsp_server.lifecycle.lifecycle import Lifecycle
from dsp_server.lifecycle.watchdog import Watchdog
from dsp_server.memory.owners import BoardMemory
from dsp_server.process.journal import Journal
from dsp_server.registry import range_name
from hbrt import settings
from hbrt.board.paths import BoardPaths
from hbrt.ddr.layout import SLOT_COUNT
from hbrt.mailbox.history import EndedTask, ended_tasks
from hbrt.mailbox.schedule import OF_ANOTHER_BOARD, OF_ITS_OWNER
from hbrt.mailbox.table import Answer, Mailbox, Request, State
from hbrt.profiles.profile import active, to_answer
from hbrt.profiles.work import Cost, task_cost
from hbrt.types import HB_DSP_RPC_CMD_BUTT

_MAX_NS = (1 << 64) - 1  # the largest that an answer from the daemon can hold


class RunningTask(NamedTuple):
    """A task that a core is running: its slot, its request, and its answer so far."""

    slot: int
    task: Request
    on: Answer


class Report:
    """Reads the state of a board's parts; changes nothing."""

    def __init__(
        self,
        paths: BoardPaths,
        mailbox: Mailbox,
        clients: Clients,
        memory: BoardMemory,
        lifecycle: Lifecycle,
        watchdog: Watchdog,
        journal: Journal,
        locks: LockWatch,
        gateways: Gateways,
    ) -> None:
        self._paths = paths
        self._mailbox = mailbox
        self._clients = clients
        self._memory = memory
        self._lifecycle = lifecycle
        self._watchdog = watchdog
        self._journal = journal
        self._locks = locks
        self._gateways = gateways
        self._started_at = time.monotonic()

    def status(self) -> dict[str, Any]:
        """Return the whole board; sizes in bytes, ages and times in seconds, addresses as integers."""
        self._lifecycle.processes.read_messages()
        cores = self._lifecycle.present
        states = self._mailbox.slots_in
        now_ns = time.monotonic_ns()
        running = self.running(now_ns)
        running_rows = [self._running_row(one, now_ns) for one in running]
        ready = [self._mailbox.request(slot) for slot in states(State.READY)]
        inline = sum(one.core_mask == OF_ITS_OWNER for one in ready)  # run by its program in a thread of its own
        sent = [self._mailbox.request(slot) for slot in states(State.SENT)]
        # Waiting for a core or a relay.
        waiting = [
            *(one for one in ready if one.core_mask != OF_ITS_OWNER),
            *(one for one in sent if one.core_mask != OF_ANOTHER_BOARD),
        ]
        healths = self.healths(running, now_ns)
        clients = [client for client in self._clients.by_id.values() if not client.has_gone]
        return {
            "board": self._paths.name,
            "directory": str(self._paths.path),
            "state": self.state(),
            "pid": os.getpid(),
            "uptime_s": time.monotonic() - self._started_at,
            "image": str(self._lifecycle.dsp_cores[0].life.image.origin) if self._lifecycle.dsp_cores else "",
            "profile": {
                "name": active().name,
                "origin": active().origin,
                "cores": [asdict(one) for one in active().cores.values()],
            },
            "image_error": self._lifecycle.image_error,
            "healthy": health.of_board([beat for beat, _ in healths]) and not self._locks.problem,
            "claim_lock": self._locks.problem,  # why no core can claim a task; empty if they can
            "recovery": "enabled" if self._lifecycle.is_recovering else "disabled",
            "aging_ms": settings.integer("HBRT_AGING_MS"),
            "cores": [
                {
                    **_core(core),
                    "kind": "dsp" if core in self._lifecycle.dsp_cores else active().accelerator,
                    "health": beat.word,
                    "beat_age_s": beat.beat_age_s,
                    "problem": problem,
                }
                for core, (beat, problem) in zip(cores, healths, strict=True)
            ],
            "routed_tasks": sum(one.core_mask == OF_ANOTHER_BOARD for one in sent),
            "tasks": {"ready": len(ready) - inline, "running": len(states(State.RUNNING)) + inline},
            "oldest_waiting": self._oldest(waiting, now_ns),
            "waiting": _by_priority(waiting),
            "longest_running": running_rows[0] if running_rows else None,
            "running": running_rows,
            "slots": {
                "total": SLOT_COUNT,
                "leased": sum(len(client.slots) for client in clients),
                "free": self._clients.free_slots,
            },
            "memory": self._memory.summary(),
            "gateways": self._gateways.listing(),
            "clients": [self._client(client) for client in clients],
            "findings": [found.as_dict() for found in self._journal.findings],
        }

    def running(self, now_ns: int) -> list[RunningTask]:
        """Return the running tasks, longest first; they reveal hangs."""
        serving = {core.index for core in self._lifecycle.cores if core.child}
        slots = self._mailbox.slots_in(State.RUNNING)
        running = [RunningTask(slot, self._mailbox.request(slot), self._mailbox.answer(slot)) for slot in slots]
        # A claim time before the submission (the sequence is its time) belongs to an earlier task in the slot.
        of_now = [one for one in running if one.on.core in serving and one.task.sequence <= one.on.claim_ns <= now_ns]
        return sorted(of_now, key=lambda one: one.on.claim_ns)

    def healths(self, running: list[RunningTask], now_ns: int) -> list[tuple[CoreHealth, str]]:
        """Return each core's health and a message about it, given the running tasks."""
        runs = self._runs(running, now_ns)
        cores = [(core, runs.get(core.index)) for core in self._lifecycle.present]
        beats = [(core, core.health(now_ns, run), run) for core, run in cores]
        return [(beat, _problem(core, beat, run)) for core, beat, run in beats]

    def _running_row(self, one: RunningTask, now_ns: int) -> dict[str, Any]:
        return {
            "age_s": (now_ns - one.on.claim_ns) / 1e9,
            **self._named(one.task, one.on.core, one.on.claim_ns),
            "core": one.on.core,
            "client": one.task.client,
        }

    def _oldest(self, waiting: list[Request], now_ns: int) -> dict[str, Any] | None:
        """Return the task that has waited longest; it reveals starvation."""
        if not waiting:
            return None
        oldest = min(waiting, key=lambda request: request.sequence)
        return {
            "age_s": max(0, now_ns - oldest.sequence) / 1e9,
            **self._named(oldest, next((core.index for core in self._lifecycle.dsp_cores), -1), now_ns),
            "priority": oldest.priority,
            "custom_id": oldest.custom_id,
            "client": oldest.client,
        }

    def _runs(self, running: list[RunningTask], now_ns: int) -> dict[int, OpRun]:
        """Return the op that each core runs; if a core has two tasks, one has interrupted the other."""
        runs = {}
        for slot, task, on in running:
            core = self._lifecycle.cores[on.core]
            if core.child is not None:
                seen = core.progress(on.claim_ns)
                interrupted_ns = self._watchdog.interrupted_ns((slot, task.sequence))
                runs[on.core] = OpRun(
                    core.child.call_of(task.cmd),
                    (now_ns - on.claim_ns - interrupted_ns) / 1e9,
                    core.child.budget_us(task.cmd) / 1e6,
                    seen.still_ns / 1e9,
                    seen.cpu_ns / 1e9,
                    seen.longest_ns / 1e9,
                )
        return runs

    def state(self) -> str:
        """The board's state: running if any core runs, else crashed if any has crashed, else offline."""
        states = {core.life.state for core in self._lifecycle.dsp_cores} or {RUNNING}
        return next(state for state in (RUNNING, CRASHED, OFFLINE) if state in states)

    def ops(self) -> list[dict[str, Any]]:
        """Return the commands, each with the cores that serve it: cores may run different images."""
        serving: dict[tuple[int, str, str, int], list[int]] = {}
        for core in self._lifecycle.dsp_cores:
            for cmd, name, source, latency_us in core.child.ops if core.child else ():
                serving.setdefault((cmd, name, source, latency_us), []).append(core.index)
        return [
            {
                "cmd": cmd,
                "name": name,
                "range": range_name(cmd),
                "source": source,
                "latency_us": latency_us,
                "cores": cores,
            }
            for (cmd, name, source, latency_us), cores in sorted(serving.items())
        ]

    def profile(self) -> dict[str, Any]:
        """The constants of the modeled board."""
        return to_answer(active())

    def tasks(self, last: int) -> list[dict[str, Any]]:
        """Return the tasks that ended last, oldest first; times in ns, 0 for stages that were not reached."""
        to_unix_ns = time.time_ns() - time.monotonic_ns()
        return [self._ended(task, to_unix_ns) for task in ended_tasks(self._mailbox, last)]

    def _ended(self, task: EndedTask, to_unix_ns: int) -> dict[str, Any]:
        request, answer = task.request, task.answer
        return {
            **self._named(request, answer.core, answer.claim_ns, task.pid),
            "state": task.state.name.lower(),
            "result": answer.result,
            "core": answer.core,
            "priority": request.priority,
            "custom_id": request.custom_id,
            "pid": task.pid,
            "program": self._clients.names.get(task.pid, ""),
            "input_phy": request.input_phy,
            "input_bytes": request.input_bytes,
            "output_phy": request.output_phy,
            "output_bytes": request.output_bytes,
            "submitted_ns": request.sequence,
            "claimed_ns": answer.claim_ns,
            "started_ns": answer.start_ns,
            "ended_ns": answer.done_ns,
            "ended_unix_ns": answer.done_ns + to_unix_ns,
            "waited_ns": max(0, (answer.claim_ns or answer.done_ns) - request.sequence),
            "ran_ns": max(0, answer.done_ns - answer.start_ns) if answer.start_ns else 0,
            **_modeled(task, self._mailbox.layout.core_count),
        }

    def _named(self, request: Request, core: int, at_ns: int, pid: int = 0) -> dict[str, Any]:
        """Describe what a task runs: its command, the name of its op or model, and the kind of its core.

        Args:
            request: The task's request.
            core: The core that has claimed it; -1 for none.
            at_ns: The time of interest, by CLOCK_MONOTONIC.
            pid: The process that submitted it; 0 if that is its client, which is attached.
        """
        cores, cmd = self._lifecycle.cores[core : core + 1] if core >= 0 else (), request.cmd
        if _is_of_accelerator(request, self._mailbox.layout.core_count):
            client = self._clients.by_id.get(request.client)
            pid = pid or (client.pid if client else 0)
            return {"cmd": cmd, "name": self._clients.models.get(pid, ""), "kind": active().accelerator}
        return {"cmd": cmd, "name": next((one.name_at(cmd, at_ns) for one in cores), ""), "kind": "dsp"}

    def _client(self, client: Client) -> dict[str, Any]:
        blocks, size_bytes = self._memory.owned(client.id)
        return {
            "id": client.id,
            "pid": client.pid,
            "name": client.name,
            "age_s": time.monotonic() - client.attached_at,
            "blocks": blocks,
            "model_blocks": self._memory.kept_for_models(client.id),
            "bytes": size_bytes,
            "slots": len(client.slots),
            "tasks": sum(self._mailbox.map[self._mailbox.states + slot] != State.EMPTY for slot in client.slots),
        }


def _by_priority(waiting: list[Request]) -> list[dict[str, Any]]:
    """Return how many tasks of each priority wait, highest priority first."""
    counts = Counter(request.priority for request in waiting)
    return [{"priority": priority, "tasks": count} for priority, count in sorted(counts.items(), reverse=True)]


def _core(core: BoardCore) -> dict[str, Any]:
    life, next_ = core.life, core.candidate
    phase = "ready" if life.candidate and life.candidate.is_ready else "loading"
    return {
        "core": core.index,
        "state": life.state,
        "pid": core.child.pid if core.child else None,
        # The next process: it is loading its image, or is ready and waits for a task to end.
        "next": {"pid": next_.pid, "phase": phase} if next_ else None,
        "epoch": life.epoch,
        "crashes": life.crashes,
        "last_crash": life.last_crash,
        "last_crash_s": life.last_crash_s or None,
        "image": str(life.image.origin),
        "tcm": core.tcm(),
        **core.counters(),
    }


def _problem(core: BoardCore, beat: CoreHealth, run: OpRun | None) -> str:
    return health.problem(
        f"Core {core.index}{f' (process {core.child.pid})' if core.child else ''}",
        beat,
        run,
        core.life.last_crash,
        is_stopped=beat.word == "stalled" and core.is_stopped,
        comes_back=core.life.is_wanted,
    )


def _is_of_accelerator(request: Request, dsp_cores: int) -> bool:
    return bool(request.core_mask % OF_ITS_OWNER >> dsp_cores) or not dsp_cores


def _modeled(task: EndedTask, dsp_cores: int) -> dict[str, Any]:
    """What a task takes on the board; nonsense numbers in a record are clipped to what an answer can hold."""
    profile, request = active(), task.request
    if _is_of_accelerator(request, dsp_cores):  # these charge ns, by their model's layers
        cost, clock_hz, rule_ns = Cost(task.answer.cycles, 0, 0, 0, 0, 0, 0, is_estimated=False), 10**9, 1.0
    else:
        block_bytes = request.input_bytes + request.output_bytes
        has_run_well = task.state is State.DONE and request.cmd != HB_DSP_RPC_CMD_BUTT  # the core itself answers BUTT
        cost = task_cost(task.answer.cycles, task.work, block_bytes, profile, is_done=has_run_well)
        clock_hz, rule_ns = profile.clock_hz, profile.number("cores.dsp.rule_ns")
    cycles, *parts = (min(count, _MAX_NS) for count in cost[:-1])
    return {
        "modeled_cycles": cycles,
        "modeled_ns": min(round(cycles * 1e9 / clock_hz), _MAX_NS),
        "modeled_rule_ns": min(round(cycles * rule_ns), _MAX_NS),
        **{f"modeled_{name}": count for name, count in zip(cost._fields[1:-1], parts, strict=True)},
        "modeled_is_estimated": cost.is_estimated,
        "work": task.work._asdict(),
    }
