"""What follows from what happens to a core: ``decide(life, event)`` gives the next state and what is to be done.

A change (a start, or a restart with an image) never leaves a board without an image that works. The old processes go on
until all new ones are ready; then each new one takes the place of its predecessor when that has ended its task. If one
of them does not get ready, all of them go and the old ones stay.

A core that should run and has no process has one that loads, or starts after a pause. restart_policy.py says how long
that is, and when a core that dies again and again stays down. A core that runs no op and does not beat is passed by,
and ended when it has been so for too long; one whose op outlives its time limit is ended, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsp_server.core.image_loader import ImageError, ImageLateError
from dsp_server.lifecycle import actions, events, restart_policy
from dsp_server.lifecycle.life import CRASHED, OFFLINE, RUNNING, STOP_GRACE_SECONDS, Change, Core, Life, Process
from dsp_server.lifecycle.snapshots import Image
from hbrt.ddr.layout import ACTIVITY_OFFLINE, ACTIVITY_RUNNING
from hbrt.status import Status

# Of a core that no process serves, submitters read one of these: its queue waits for the next process, which looks at
# everything first, so that nobody rings it; or nothing may be queued for it.
ACTIVITY_BETWEEN = ACTIVITY_RUNNING


def decide(life: Life, event: events.Event) -> tuple[Life, list[actions.Action]]:
    """The state that follows, and what is to be done, in its order. An event that comes late does nothing."""
    step = _Step(life)
    _RULES[type(event)](step, event)
    return step.life, step.actions


def refusal(life: Life, index: int, *, wants_stop: bool = False, wants_start: bool = False) -> str:
    """Why a core (-1: all of them) cannot be started, stopped or restarted now; empty when it can."""
    if index >= len(life.cores):
        return f"There is no core {index}; this board has cores 0 to {len(life.cores) - 1}."
    unwelcome = OFFLINE if wants_stop else RUNNING if wants_start else ""
    if index >= 0 and life.cores[index].state == unwelcome:
        return f"Core {index} is already {unwelcome}; nothing was changed."
    if life.is_closing:
        return "The board is being stopped."
    if life.change is not None:
        begun = f"A restart of core {', '.join(map(str, life.change.cores))} is under way"
        if not life.change.is_committed:
            return f"{begun}; wait for it to end."
        return (
            f"{begun} and waits for the tasks that run, for {STOP_GRACE_SECONDS:.0f} s at most; 'hbrt status' shows "
            "the longest."
        )
    stopping = [index for index, core in enumerate(life.cores) if core.stop is not None]
    return f"Core {stopping[0]} is being stopped; wait for it to be offline." if stopping else ""


class _Step:
    """One decision in the making: the state so far, and the actions so far."""

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
        """Core that has a process, as its own or as its candidate; None when none has it any more."""
        for index, core in enumerate(self.life.cores):
            if any(one is not None and one.id == process for one in (core.process, core.candidate)):
                return index
        return None

    # -- what somebody asks for

    def begin(self, asked: events.ChangeAsked) -> None:
        self.life = self.life._replace(change=Change(asked.request, tuple(index for index, _ in asked.images)))
        for index, _ in asked.images:
            self.drop_next(index)
        for index, image in asked.images:
            self.start(index, image, asked.load_s)

    def stop(self, asked: events.StopAsked) -> None:
        self.update(asked.core, is_wanted=False, stop=asked.request)
        self.drop_next(asked.core)
        self.do(actions.Publish(asked.core, ACTIVITY_OFFLINE))
        if self.core(asked.core).process is None:
            self.be_offline(asked.core)
        else:
            self.end(asked.core)

    def set_recovery(self, asked: events.RecoverySet) -> None:
        self.life = self.life._replace(is_recovering=asked.is_enabled)
        for index, core in enumerate(self.life.cores):
            may_start = asked.is_enabled and not (core.is_wanted or core.candidate or self.life.is_closing)
            if may_start and core.state == CRASHED:
                self.update(index, is_wanted=True, history=restart_policy.History())
                self.do(actions.Publish(index, ACTIVITY_BETWEEN))
                self.start_later(index, 0.0)

    def close(self, _: events.CloseAsked) -> None:
        cores = tuple(core._replace(is_wanted=False) for core in self.life.cores)
        self.life = self.life._replace(cores=cores, is_closing=True)
        self.give_up(Status.HB_DSP_BOARD_LOST, "The board was stopped.")
        for index in range(len(cores)):
            self.drop_next(index)
            if self.core(index).process is None:
                self.do(actions.Publish(index, ACTIVITY_OFFLINE))
            else:
                self.end(index)

    def supersede(self, _: events.SupersedeAsked) -> None:
        if self.life.change is not None and not self.life.change.is_committed:
            self.give_up(Status.HB_DSP_TASK_CANCELLED, "A newer change took its place.")

    # -- a change

    def go_on(self) -> None:
        """A candidate is ready, or has taken over: take the change's next step, if all are as far."""
        change = self.life.change
        if change is None:
            return
        if not change.is_committed:
            if not all((next_ := self.core(index).candidate) and next_.is_ready for index in change.cores):
                return
            change = change._replace(is_committed=True)
            self.life = self.life._replace(change=change)
            for index in change.cores:
                self.update(index, is_wanted=True, history=restart_policy.History())
                if self.core(index).process is None:
                    self.promote(index)
                else:
                    self.end(index)
        # One that has taken over is out of it: should it crash before the others are as far, it starts again by itself.
        change = change._replace(cores=tuple(index for index in change.cores if self.core(index).candidate))
        self.life = self.life._replace(change=change if change.cores else None)
        if not change.cores:
            status = ImageError.status if change.failure else Status.HB_SYS_SUCCESS
            self.do(actions.ImagesChanged(change.failure), actions.Answer(change.request, status, change.failure))

    def give_up(self, status: Status, text: str, problem: str | None = None) -> None:
        """End the change that is under way, and leave the old processes in their places."""
        change = self.life.change
        if change is None:
            return
        self.life = self.life._replace(change=None)
        for index in change.cores:
            self.drop_next(index)
            core = self.core(index)
            if core.is_wanted and core.process is None:  # it crashed meanwhile, or before: its old image goes on
                if self.life.is_recovering:
                    self.start_later(index, 0.0)
                else:
                    self.stay_down(index)
        self.do(actions.ImagesChanged(problem), actions.Answer(change.request, status, text))

    # -- what happens to a process

    def ready(self, news: events.Ready) -> None:
        index = self.find(news.process)
        candidate = self.core(index).candidate if index is not None else None
        if index is None or candidate is None or candidate.id != news.process or candidate.is_ready:
            return
        self.update(index, candidate=candidate._replace(is_ready=True))
        if self.life.change is not None and index in self.life.change.cores:
            self.go_on()
        else:
            self.promote(index)
            self.do(actions.Say(f"Core {index} runs again (process {news.pid})."))

    def not_started(self, news: events.NotStarted) -> None:
        index = self.find(news.process)
        if index is None:
            return
        self.update(index, candidate=None)
        if self.life.change is not None and index in self.life.change.cores:
            self.give_up(Status.HB_DSP_NOT_RUNNING, f"A core's process cannot be started: {news.why}.")
        else:
            self.do(actions.Say(f"A process for core {index} cannot be started: {news.why}; again soon."))
            self.start_later(index, restart_policy.MOST_PAUSE_SECONDS)

    def ended(self, news: events.Ended) -> None:
        index = self.find(news.process)
        if index is None:
            return
        process, candidate = self.core(index).process, self.core(index).candidate
        if process is not None and process.id == news.process:
            self.core_ended(index, process, news)
        elif candidate is not None:
            self.candidate_ended(index, candidate, news)

    def candidate_ended(self, index: int, candidate: Process, news: events.Ended) -> None:
        self.update(index, candidate=None)
        problem = news.problem or f"Core {index} {news.how} while it loaded the image."
        change = self.life.change
        if change is None or index not in change.cores:
            self.update(index, last_crash=problem)
            self.recover(
                index, restart_policy.Death(0.0, 0, had_task=False), f"could not load its image again ({problem})"
            )
            return
        text = f"The image {candidate.image.origin} did not load on core {index}:\n{problem}"
        if change.is_committed:  # its predecessor is ending, and will be followed by a process of the old image
            self.do(actions.Say(text))
            cores = tuple(other for other in change.cores if other != index)
            self.life = self.life._replace(change=change._replace(cores=cores, failure=text))
            self.go_on()
        else:
            self.give_up((ImageLateError if news.is_late else ImageError).status, text, problem)

    def core_ended(self, index: int, process: Process, news: events.Ended) -> None:
        self.update(index, process=None)
        self.do(*(actions.Say(f"{text}\n{news.trace}".rstrip()) for text in news.lost))
        core = self.core(index)
        if not core.is_wanted:
            self.be_offline(index)
            return
        self.update(index, state=CRASHED)
        if not process.is_ending:
            sentence = news.lost[0] if news.lost else f"Process {news.pid} {news.how}."
            self.update(index, crashes=core.crashes + 1, last_crash=sentence)
        # A submitter may have rung the dead core for a task that another one, asleep, may run.
        self.do(actions.Publish(index, ACTIVITY_BETWEEN), actions.RingOthers(index))
        if core.candidate is None:
            if process.is_ending:  # its candidate died while it ended
                self.start_later(index, 0.0)
            else:
                death = restart_policy.Death(news.served_s, news.tasks_ended, had_task=bool(news.lost))
                self.recover(index, death, news.how)
        elif self.life.change is not None and self.life.change.is_committed:  # else it waits for the others
            self.promote(index)
            self.go_on()

    def due(self, news: events.Due) -> None:
        core = self.core(news.core)
        if core.is_due:
            self.update(news.core, is_due=False)
            self.start(news.core, core.image, self.life.load_s)

    def beats(self, news: events.Beats) -> None:
        self.update_process(news.core, stalled_s=None)

    def stalls(self, news: events.Stalls) -> None:
        process = self.core(news.core).process
        if process is None or process.is_ending:
            return
        self.do(actions.MarkStalled(news.core))
        name, limit_s = f"Core {news.core} (process {news.pid})", self.life.stall_limit_s
        if process.stalled_s is None:
            sentence = f"{name} has missed its beat and runs no op: others are rung until it beats again."
            self.do(actions.Say(sentence))
        before_s = process.stalled_s or 0.0
        now_s = before_s if process.stalled_s is None else before_s + news.step_s
        self.update_process(news.core, stalled_s=now_s)
        if limit_s and before_s <= limit_s < now_s:
            text = f"{name} ran no op and was {news.how} for {now_s:.1f} s; it is ended."
            why = f"{news.how} for {now_s:.1f} s with no op to run"
            self.do(actions.Find("stalled-core", text), actions.Kill(process.id, why))

    def hangs(self, news: events.Hangs) -> None:
        process = self.core(news.core).process
        if process is not None and not process.is_over_limit:
            self.update_process(news.core, is_over_limit=True)
            self.do(actions.Say(news.sentence), actions.Trace(process.id, news.task))

    def traced(self, news: events.Traced) -> None:
        index = self.find(news.process)
        process = self.core(index).process if index is not None else None
        if index is None or process is None or not process.is_over_limit:
            return
        if news.still_hangs:
            self.do(actions.Kill(process.id))
        else:
            self.update_process(index, is_over_limit=False)
            self.do(actions.Forgive(process.id))

    # -- what all of these are made of

    def start(self, index: int, image: Image, load_s: float) -> None:
        process = Process(self.life.next_process, image)
        self.life = self.life._replace(next_process=process.id + 1)
        self.update(index, candidate=process)
        self.do(actions.Start(process.id, index, image, load_s))

    def start_later(self, index: int, seconds: float) -> None:
        self.update(index, is_due=True)
        self.do(actions.StartLater(index, seconds))

    def drop_next(self, index: int) -> None:
        """Forget the next start of a core, and the process that would have been it."""
        core = self.core(index)
        if core.is_due:
            self.do(actions.StartNever(index))
        if core.candidate is not None:
            self.do(actions.Kill(core.candidate.id))
        self.update(index, is_due=False, candidate=None)

    def end(self, index: int) -> None:
        process = self.core(index).process
        if process is not None and not process.is_ending:
            self.update_process(index, is_ending=True)
            self.do(actions.End(process.id))

    def promote(self, index: int) -> None:
        """Make the ready candidate the core's process."""
        core = self.core(index)
        candidate = core.candidate
        if candidate is not None:
            fields = {"process": candidate, "candidate": None, "image": candidate.image}
            self.update(index, state=RUNNING, epoch=core.epoch + 1, **fields)
            self.do(actions.Publish(index, ACTIVITY_BETWEEN), actions.Go(candidate.id))

    def recover(self, index: int, death: restart_policy.Death, why: str) -> None:
        """Start a core again whose process died, as restart_policy.py says, or leave it down."""
        core, again = f"Core {index} {why}", f"Run 'hbrt restart --core {index}'"
        if not self.life.is_recovering:
            self.do(actions.Say(f"{core}; recovery is disabled, so it stays crashed. {again} to start it again."))
            self.stay_down(index)
            return
        history, pause_s = restart_policy.after(self.core(index).history, death)
        self.update(index, history=history)
        if pause_s is None:
            died = f"it died {history.idle} times in a row as soon as it had started, with no task to blame"
            self.do(actions.Say(f"{core}; {died}, and stays crashed. {again} when the cause is removed."))
            self.stay_down(index)
        else:
            self.do(actions.Say(f"{core}; it starts again{f' in {pause_s:.1f} s' if pause_s else ''}."))
            self.start_later(index, pause_s)

    def stay_down(self, index: int) -> None:
        self.update(index, is_wanted=False)
        self.lose_unservable(index)

    def be_offline(self, index: int) -> None:
        request = self.core(index).stop
        self.update(index, state=OFFLINE, stop=None)
        self.lose_unservable(index)
        if request is not None:
            self.do(actions.Answer(request, Status.HB_SYS_SUCCESS, ""))

    def lose_unservable(self, index: int) -> None:
        served_by = frozenset(other for other, core in enumerate(self.life.cores) if core.is_wanted)
        self.do(actions.Publish(index, ACTIVITY_OFFLINE), actions.LoseUnservable(served_by))


_RULES: dict[type, Callable[[_Step, Any], None]] = {
    events.ChangeAsked: _Step.begin,
    events.StopAsked: _Step.stop,
    events.SupersedeAsked: _Step.supersede,
    events.RecoverySet: _Step.set_recovery,
    events.CloseAsked: _Step.close,
    events.Ready: _Step.ready,
    events.NotStarted: _Step.not_started,
    events.Due: _Step.due,
    events.Ended: _Step.ended,
    events.Beats: _Step.beats,
    events.Stalls: _Step.stalls,
    events.Hangs: _Step.hangs,
    events.Traced: _Step.traced,
}
