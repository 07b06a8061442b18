"""The cores' state machine: ``decide(life, event)`` returns the next state and the actions.

An image rollout (a start, or a restart with an image) never leaves a board without a working image. The old processes
serve until all new ones are ready; then each new process takes over once its predecessor has finished its task. If one
new process fails to load, all new ones are killed and the old ones stay.

A core that should run but has no process is either loading one or will start one after a pause. restart_policy.py
decides how long to pause, and when a core that dies repeatedly stays down. A core without a heartbeat that runs no op
is not rung, and is killed after a limit; so is a core that is stopped while running a model, and a core whose op
exceeds its time limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsp_server.errors import ImageError, ImageLateError
from dsp_server.lifecycle import actions, events, restart_policy
from dsp_server.lifecycle.life import CRASHED, OFFLINE, RUNNING, STOP_GRACE_SECONDS, Core, ImageRollout, Life, Process
from dsp_server.lifecycle.snapshots import Image
from hbrt.ddr.layout import ACTIVITY_OFFLINE, ACTIVITY_RUNNING
from hbrt.status import Status

# What submitters read while a core's process is being replaced: they queue without ringing, since the next process
# first scans all tasks. ACTIVITY_OFFLINE means that nothing may be queued.
ACTIVITY_REPLACING = ACTIVITY_RUNNING


def decide(life: Life, event: events.Event) -> tuple[Life, list[actions.Action]]:
    """Return the next state, and the actions in order. Events that arrive too late do nothing."""
    step = _Step(life)
    _RULES[type(event)](step, event)
    return step.life, step.actions


def refusal(life: Life, index: int, *, wants_stop: bool = False, wants_start: bool = False) -> str:
    """Say why a core (-1: all of them) cannot be started, stopped or restarted now; empty if it can."""
    if index >= len(life.cores):
        return f"Core {index} is out of range: this board has cores 0 to {len(life.cores) - 1}."
    unwelcome = OFFLINE if wants_stop else RUNNING if wants_start else ""
    if index >= 0 and life.cores[index].state == unwelcome:
        return f"Core {index} is already {unwelcome}; nothing was changed."
    if life.is_closing:
        return "The board is being stopped."
    if life.rollout is not None:
        begun = f"A restart of core {', '.join(map(str, life.rollout.cores))} is in progress"
        if not life.rollout.is_committed:
            return f"{begun}; wait until it is done."
        return (
            f"{begun} and is waiting for running tasks, at most {STOP_GRACE_SECONDS:.0f} s; 'hbrt status' shows "
            "the longest."
        )
    stopping = [index for index, core in enumerate(life.cores) if core.stop is not None]
    return f"Core {stopping[0]} is being stopped; wait until it is offline." if stopping else ""


class _Step:
    """One decision: the state and the actions so far."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.actions: list[actions.Action] = []

    def do(self, *what: actions.Action) -> None:
        self.actions += what

    def core(self, index: int) -> Core:
        return self.life.cores[index]

    def update(self, index: int, **fields: Any) -> None:
        cores = self.life.cores
        self.life = self.life._replace(cores=(*cores[:index], cores[index]._replace(**fields), *cores[index + 1 :]))

    def update_process(self, index: int, **fields: Any) -> None:
        process = self.core(index).process
        if process is not None:
            self.update(index, process=process._replace(**fields))

    def find(self, process: int) -> int | None:
        """Return the core that a process or candidate belongs to; None if no core has it anymore."""
        for index, core in enumerate(self.life.cores):
            if any(one is not None and one.id == process for one in (core.process, core.candidate)):
                return index
        return None

    # -- requests

    def begin_rollout(self, event: events.RolloutAsked) -> None:
        self.life = self.life._replace(rollout=ImageRollout(event.request, tuple(index for index, _ in event.images)))
        for index, _ in event.images:
            self.drop_candidate(index)
        for index, image in event.images:
            self.start(index, image, event.load_s)

    def start_new(self, event: events.StartAsked) -> None:
        for index in event.cores:
            core = self.core(index)
            has_begun = core.is_wanted or core.candidate or core.epoch
            if not (has_begun or self.life.is_closing):
                self.update(index, is_wanted=True)
                self.do(actions.Publish(index, ACTIVITY_REPLACING))
                self.start(index, core.image, self.life.load_s)

    def stop(self, event: events.StopAsked) -> None:
        self.update(event.core, is_wanted=False, stop=event.request)
        self.drop_candidate(event.core)
        self.do(actions.Publish(event.core, ACTIVITY_OFFLINE))
        if self.core(event.core).process is None:
            self.set_offline(event.core)
        else:
            self.end(event.core)

    def set_recovery(self, event: events.RecoverySet) -> None:
        self.life = self.life._replace(is_recovering=event.is_enabled)
        for index, core in enumerate(self.life.cores):
            may_start = event.is_enabled and not (core.is_wanted or core.candidate or self.life.is_closing)
            if may_start and core.state == CRASHED:
                self.update(index, is_wanted=True, history=restart_policy.History())
                self.do(actions.Publish(index, ACTIVITY_REPLACING))
                self.start_later(index, 0.0)

    def close(self, _: events.CloseAsked) -> None:
        cores = tuple(core._replace(is_wanted=False) for core in self.life.cores)
        self.life = self.life._replace(cores=cores, is_closing=True)
        self.abort(Status.HB_DSP_BOARD_LOST, "The board was stopped.")
        for index in range(len(cores)):
            self.drop_candidate(index)
            if self.core(index).process is None:
                self.do(actions.Publish(index, ACTIVITY_OFFLINE))
            else:
                self.end(index)

    def supersede(self, _: events.SupersedeAsked) -> None:
        if self.life.rollout is not None and not self.life.rollout.is_committed:
            self.abort(Status.HB_DSP_TASK_CANCELLED, "A newer change replaced it.")

    # -- the rollout

    def advance(self) -> None:
        """Advance the rollout if all its candidates are ready for the next step."""
        rollout = self.life.rollout
        if rollout is None:
            return
        if not rollout.is_committed:
            if not all((next_ := self.core(index).candidate) and next_.is_ready for index in rollout.cores):
                return
            rollout = rollout._replace(is_committed=True)
            self.life = self.life._replace(rollout=rollout)
            for index in rollout.cores:
                self.update(index, is_wanted=True, history=restart_policy.History())
                if self.core(index).process is None:
                    self.promote(index)
                else:
                    self.end(index)
        # A core whose candidate serves leaves the rollout: if it crashes before the others serve, it restarts alone.
        rollout = rollout._replace(cores=tuple(index for index in rollout.cores if self.core(index).candidate))
        self.life = self.life._replace(rollout=rollout if rollout.cores else None)
        if not rollout.cores:
            status = ImageError.status if rollout.failure else Status.HB_SYS_SUCCESS
            self.do(actions.ImagesChanged(rollout.failure), actions.Answer(rollout.request, status, rollout.failure))

    def abort(self, status: Status, text: str, problem: str | None = None) -> None:
        """End the rollout, keeping the old processes."""
        rollout = self.life.rollout
        if rollout is None:
            return
        self.life = self.life._replace(rollout=None)
        for index in rollout.cores:
            self.drop_candidate(index)
            core = self.core(index)
            if core.is_wanted and core.process is None:  # it crashed: it restarts with its old image
                if self.life.is_recovering:
                    self.start_later(index, 0.0)
                else:
                    self.leave_crashed(index)
        self.do(actions.ImagesChanged(problem), actions.Answer(rollout.request, status, text))

    # -- events of processes

    def ready(self, event: events.Ready) -> None:
        index = self.find(event.process)
        candidate = self.core(index).candidate if index is not None else None
        if index is None or candidate is None or candidate.id != event.process or candidate.is_ready:
            return
        self.update(index, candidate=candidate._replace(is_ready=True))
        if self.life.rollout is not None and index in self.life.rollout.cores:
            self.advance()
        else:
            again = "again " if self.core(index).epoch else ""
            self.promote(index)
            self.do(actions.Log(f"Core {index} runs {again}(process {event.pid})."))

    def failed(self, event: events.Failed) -> None:
        if isinstance(event.action, actions.Start):
            self.not_started(event.action.process, event.why)
        elif not isinstance(event.action, actions.Log | actions.Report):  # there is no other way to report it
            name = type(event.action).__name__
            self.do(actions.Report("defect", f"The daemon's action {name} on a core failed: {event.why}"))

    def not_started(self, process: int, why: str) -> None:
        index = self.find(process)
        if index is None:
            return
        self.update(index, candidate=None)
        if self.life.rollout is not None and index in self.life.rollout.cores:
            self.abort(Status.HB_DSP_NOT_RUNNING, f"Cannot start a core's process: {why}.")
        elif not self.core(index).epoch:
            self.give_up_first_start(index, f"its process cannot be started: {why}")
        else:
            self.do(actions.Log(f"Cannot start a process for core {index}: {why}; will retry soon."))
            self.start_later(index, restart_policy.MAX_PAUSE_SECONDS)

    def ended(self, event: events.Ended) -> None:
        index = self.find(event.process)
        if index is None:
            return
        process, candidate = self.core(index).process, self.core(index).candidate
        if process is not None and process.id == event.process:
            self.core_ended(index, process, event)
        elif candidate is not None:
            self.candidate_ended(index, candidate, event)

    def candidate_ended(self, index: int, candidate: Process, event: events.Ended) -> None:
        self.update(index, candidate=None)
        problem = event.problem or f"Core {index} {event.how} while loading the image.\n{event.trace}".rstrip()
        rollout = self.life.rollout
        if rollout is None or index not in rollout.cores:
            self.update(index, last_crash=problem, last_crash_s=event.time_s)
            if not self.core(index).epoch:
                self.give_up_first_start(index, problem)
                return
            self.auto_restart(
                index, restart_policy.Death(0.0, 0, had_task=False), f"could not reload its image ({problem})"
            )
            return
        text = f"The image {candidate.image.origin} did not load on core {index}:\n{problem}"
        if rollout.is_committed:  # its predecessor is ending; a process with the old image follows
            self.do(actions.Log(text))
            cores = tuple(other for other in rollout.cores if other != index)
            self.life = self.life._replace(rollout=rollout._replace(cores=cores, failure=text))
            self.advance()
        else:
            self.abort((ImageLateError if event.is_late else ImageError).status, text, problem)

    def core_ended(self, index: int, process: Process, event: events.Ended) -> None:
        self.update(index, process=None)
        self.do(*(actions.Log(f"{text}\n{event.trace}".rstrip()) for text in event.lost))
        core = self.core(index)
        if not core.is_wanted:
            self.set_offline(index)
            return
        self.update(index, state=CRASHED)
        if not process.is_ending:
            sentence = event.lost[0] if event.lost else f"Process {event.pid} {event.how}."
            self.update(index, crashes=core.crashes + 1, last_crash=sentence, last_crash_s=event.time_s)
            self.end_domain(index, process)
        # A submitter may have rung the dead core for a task that another core, now asleep, may run.
        self.do(actions.Publish(index, ACTIVITY_REPLACING), actions.RingOthers(index))
        if core.candidate is None:
            if process.is_ending:  # the candidate has died meanwhile
                self.start_later(index, 0.0)
            elif process.is_lost and self.life.is_recovering:
                self.do(actions.Log(f"Core {index} {event.how}; it restarts."))
                self.start_later(index, 0.0)
            else:
                death = restart_policy.Death(event.served_s, event.tasks_ended, had_task=bool(event.lost))
                self.auto_restart(index, death, event.how)
        elif (
            self.life.rollout is not None and self.life.rollout.is_committed
        ):  # otherwise the candidate waits for the others
            self.promote(index)
            self.advance()

    def end_domain(self, index: int, process: Process) -> None:
        """Kill the other cores of a process domain after one of them has crashed."""
        if process.is_lost:
            return
        for other in (other for domain in self.life.domains if index in domain for other in domain):
            its = self.core(other).process
            if its is not None and not its.is_ending and not its.is_lost:
                self.update_process(other, is_lost=True)
                self.do(actions.Kill(its.id, f"ended with core {index}, which is in the same process domain"))

    def start_due(self, event: events.StartDue) -> None:
        core = self.core(event.core)
        if core.is_due:
            self.update(event.core, is_due=False)
            self.start(event.core, core.image, self.life.load_s)

    def beats(self, event: events.Beats) -> None:
        self.update_process(event.core, stalled_s=None)

    def stalls(self, event: events.Stalls) -> None:
        process = self.core(event.core).process
        if process is None or process.is_ending:
            return
        name, limit_s = f"Core {event.core} (process {event.pid})", self.life.stall_limit_s
        doing = "runs a model" if event.is_in_model else "runs no op"
        if not event.is_in_model:  # nobody rings a core that is running something
            self.do(actions.MarkStalled(event.core))
        if process.stalled_s is None:
            until = "" if event.is_in_model else ": submitters will ring other cores until its next heartbeat"
            self.do(actions.Log(f"{name} has missed its heartbeat and {doing}{until}."))
        before_s = process.stalled_s or 0.0
        now_s = before_s if process.stalled_s is None else before_s + event.step_s
        self.update_process(event.core, stalled_s=now_s)
        if limit_s and before_s <= limit_s < now_s:
            doing = "ran a model" if event.is_in_model else "ran no op"
            text = f"{name} {doing} and was {event.how} for {now_s:.1f} s; hbrt ends it."
            why = f"{event.how} for {now_s:.1f} s{'' if event.is_in_model else ' with no op to run'}"
            self.do(actions.Report("stalled-core", text), actions.Kill(process.id, why))

    def hangs(self, event: events.Hangs) -> None:
        process = self.core(event.core).process
        if process is not None and not process.is_over_limit:
            self.update_process(event.core, is_over_limit=True)
            self.do(actions.Log(event.sentence), actions.Trace(process.id, event.task))

    def traced(self, event: events.Traced) -> None:
        index = self.find(event.process)
        process = self.core(index).process if index is not None else None
        if index is None or process is None or not process.is_over_limit:
            return
        if event.still_hangs:
            self.do(actions.Kill(process.id))
        else:
            self.update_process(index, is_over_limit=False)
            self.do(actions.Forgive(process.id))

    # -- steps

    def start(self, index: int, image: Image, load_s: float) -> None:
        process = Process(self.life.next_process, image)
        self.life = self.life._replace(next_process=process.id + 1)
        self.update(index, candidate=process)
        self.do(actions.Start(process.id, index, image, load_s))

    def start_later(self, index: int, seconds: float) -> None:
        self.update(index, is_due=True)
        self.do(actions.StartLater(index, seconds))

    def drop_candidate(self, index: int) -> None:
        """Cancel a core's next start, and kill its candidate."""
        core = self.core(index)
        if core.is_due:
            self.do(actions.CancelStart(index))
        if core.candidate is not None:
            self.do(actions.Kill(core.candidate.id))
        self.update(index, is_due=False, candidate=None)

    def end(self, index: int) -> None:
        process = self.core(index).process
        if process is not None and not process.is_ending:
            self.update_process(index, is_ending=True)
            self.do(actions.End(process.id))

    def promote(self, index: int) -> None:
        """Make the candidate the core's process."""
        core = self.core(index)
        candidate = core.candidate
        if candidate is not None:
            fields = {"process": candidate, "candidate": None, "image": candidate.image}
            self.update(index, state=RUNNING, epoch=core.epoch + 1, **fields)
            self.do(actions.Publish(index, ACTIVITY_REPLACING), actions.Go(candidate.id))

    def auto_restart(self, index: int, death: restart_policy.Death, why: str) -> None:
        """Restart a core whose process died, following restart_policy.py, or leave it crashed."""
        core, again = f"Core {index} {why}", f"Run 'hbrt restart --core {index}'"
        if not self.life.is_recovering:
            self.do(actions.Log(f"{core}; recovery is disabled, so it stays crashed. {again} to restart it."))
            self.leave_crashed(index)
            return
        history, pause_s = restart_policy.after(self.core(index).history, death)
        self.update(index, history=history)
        if pause_s is None:
            died = f"it died {history.idle} times in a row right after starting, with no task to blame"
            self.do(actions.Log(f"{core}; {died}, and stays crashed. {again} once the cause is fixed."))
            self.leave_crashed(index)
        else:
            self.do(actions.Log(f"{core}; it restarts{f' in {pause_s:.1f} s' if pause_s else ''}."))
            self.start_later(index, pause_s)

    def give_up_first_start(self, index: int, problem: str) -> None:
        """Fail whoever waits for a core that has never served; the next one to need it has it started again."""
        self.do(actions.Log(f"Core {index} did not start: {problem}"))
        self.leave_crashed(index)

    def leave_crashed(self, index: int) -> None:
        self.update(index, is_wanted=False)
        self.fail_unservable(index)

    def set_offline(self, index: int) -> None:
        request = self.core(index).stop
        self.update(index, state=OFFLINE, stop=None)
        self.fail_unservable(index)
        if request is not None:
            self.do(actions.Answer(request, Status.HB_SYS_SUCCESS, ""))

    def fail_unservable(self, index: int) -> None:
        served_by = frozenset(other for other, core in enumerate(self.life.cores) if core.is_wanted)
        self.do(actions.Publish(index, ACTIVITY_OFFLINE), actions.FailUnservable(served_by))


_RULES: dict[type, Callable[[_Step, Any], None]] = {
    events.RolloutAsked: _Step.begin_rollout,
    events.StartAsked: _Step.start_new,
    events.StopAsked: _Step.stop,
    events.SupersedeAsked: _Step.supersede,
    events.RecoverySet: _Step.set_recovery,
    events.CloseAsked: _Step.close,
    events.Ready: _Step.ready,
    events.Failed: _Step.failed,
    events.StartDue: _Step.start_due,
    events.Ended: _Step.ended,
    events.Beats: _Step.beats,
    events.Stalls: _Step.stalls,
    events.Hangs: _Step.hangs,
    events.Traced: _Step.traced,
}
