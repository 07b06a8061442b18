"""Lives of the cores: start, stop, restart, crash. The only place with policy about core processes.

How a change of image goes is in changes.py; how a core that died comes back, in revival.py and recovery.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dsp_server.clients import Clients
from dsp_server.lifecycle.auto_restart import Revival
from dsp_server.lifecycle.child import CoreChild, Phase
from dsp_server.lifecycle.core_state import (
    ACTIVITY_BETWEEN,
    CRASHED,
    OFFLINE,
    RUNNING,
    BoardCore,
    CoreStateError,
)
from dsp_server.lifecycle.image_change import Changes, Done
from dsp_server.lifecycle.processes import Fleet
from dsp_server.lifecycle.restart_policy import History
from dsp_server.lifecycle.snapshots import Snapshots
from dsp_server.lifecycle.task_ends import Settler
from dsp_server.process.event_loop import Loop
from dsp_server.process.journal import Journal
from hbrt.ddr.layout import ACTIVITY_OFFLINE
from hbrt.status import Status


class Lifecycle:
    """All cores of a board.

    Args:
        cores: The board's cores, all offline.
        loop: Watches their processes.
        journal: Gets a line on every crash and recovery; its file is also where the processes write.
        ddr_fd: The board's DDR file.
        clients: Who is attached.
        settler: Ends the tasks that a core lost.
        snapshots: Copies of image files.
        load_seconds: How long an image may take to load, unless a request says otherwise.
    """

    def __init__(
        self,
        cores: list[BoardCore],
        loop: Loop,
        journal: Journal,
        ddr_fd: int,
        clients: Clients,
        settler: Settler,
        snapshots: Snapshots,
        load_seconds: float,
    ) -> None:
        self.cores = cores
        self.fleet = Fleet(loop, clients, ddr_fd, journal.log_fd, len(cores), self)
        self.image_error = ""  # why the last image that was asked for does not run
        self.on_change: Callable[[], None] = lambda: None  # called when cores run another image, or could not
        self._revival = Revival(self.fleet, loop, journal, load_seconds)
        self._journal = journal
        self._settler = settler
        self._snapshots = snapshots
        self._load_seconds = load_seconds
        self._changes = Changes(self.fleet, self._revival, journal, self._note_change, self._on_vacant)
        self._is_closing = False
        self._stops: dict[int, Done] = {}  # core -> who waits for it to be offline

    # -- what may be asked

    def start_all(self, done: Done) -> None:
        """Start every core; ``done`` hears how it went."""
        self._changes.begin([(core, core.image) for core in self.cores], done, self._load_seconds)

    def restart(self, index: int, image: str | None, done: Done, load_seconds: float | None = None) -> None:
        """Load an image in new processes and, when all are ready, put them in the old ones' places.

        Args:
            index: Core, or -1 for all.
            image: Its file; None takes each core's present one, as it is now.
            done: Hears how it went, once.
            load_seconds: How long the image may take to load; None takes what the daemon was started with.

        Raises:
            ImageError: the image cannot be read. CoreStateError: no such core, or another change is under way.
        """
        wanted = self.cores if index < 0 else [self.core(index)]
        self._refuse_while_changing()
        origins = {core.index: Path(image).absolute() if image else core.image.origin for core in wanted}
        taken = {origin: self._snapshots.take(origin) for origin in set(origins.values())}

        def end(status: Status, text: str) -> None:
            if not status:  # else whoever asked is told
                now = " and ".join(str(origin) for origin in dict.fromkeys(origins.values()))
                self._journal.say(f"{'All cores now run' if index < 0 else f'Core {index} now runs'} {now}.")
            done(status, text)

        self._changes.begin(
            [(core, taken[origins[core.index]]) for core in wanted], end, load_seconds or self._load_seconds
        )

    def start_core(self, index: int, done: Done) -> None:
        """Start an offline or crashed core with the image that it had.

        Raises:
            CoreStateError: it runs, there is no such core, or another change is under way.
        """
        core = self.core(index)
        if core.state == RUNNING:
            raise CoreStateError(f"Core {index} is already {RUNNING}; nothing was changed.")
        self._refuse_while_changing()
        self._changes.begin([(core, core.image)], done, self._load_seconds)

    def stop_core(self, index: int, done: Done) -> None:
        """Stop a core after its task; ``done`` hears when it is offline.

        Raises:
            CoreStateError: it is offline, there is no such core, or another change is under way.
        """
        core = self.core(index)
        if core.state == OFFLINE:
            raise CoreStateError(f"Core {index} is already {OFFLINE}; nothing was changed.")
        self._refuse_while_changing()
        core.is_wanted = False
        self._stops[index] = done
        self._revival.drop(core)
        core.publish(ACTIVITY_OFFLINE)
        if core.child is not None:
            core.child.end()
        else:
            self._went_offline(core)

    def supersede(self) -> None:
        """Give up a change that is still loading: a newer one is to come."""
        if not self._changes.is_committed:
            self._changes.give_up(Status.HB_DSP_TASK_CANCELLED, "A newer change took its place.")

    def refuse_image(self, problem: str) -> None:
        """Note that an image that somebody changed does not run, without having tried it."""
        self._note_change(problem)

    @property
    def is_recovering(self) -> bool:
        """Whether a crashed core starts again by itself; setting it starts those that have crashed before."""
        return self._revival.is_enabled

    @is_recovering.setter
    def is_recovering(self, enabled: bool) -> None:
        self._revival.is_enabled = enabled
        for core in self.cores:
            if enabled and core.state == CRASHED and not (core.is_wanted or core.candidate or self._is_closing):
                core.is_wanted = True
                core.history = History()
                core.publish(ACTIVITY_BETWEEN)
                self._revival.start(core, 0.0)

    @property
    def is_changing(self) -> bool:
        """Whether a start, stop or restart that was asked for is under way."""
        return self._changes.is_under_way or bool(self._stops)

    @property
    def is_committed(self) -> bool:
        """Whether the change under way can no longer be superseded."""
        return self._changes.is_committed

    def core(self, index: int) -> BoardCore:
        """A core by index.

        Raises:
            CoreStateError: there is none.
        """
        if not 0 <= index < len(self.cores):
            raise CoreStateError(f"There is no core {index}; this board has cores 0 to {len(self.cores) - 1}.")
        return self.cores[index]

    def close(self) -> None:
        """End every process, those that somebody waits for after their task; returns when all have ended."""
        self._is_closing = True
        for core in self.cores:
            core.is_wanted = False
        self._changes.give_up(Status.HB_DSP_BOARD_LOST, "The board was stopped.")
        for core in self.cores:
            self._revival.drop(core)
        self.fleet.end_all(self._settler.is_awaited)

    def _refuse_while_changing(self) -> None:
        if self._is_closing:
            raise CoreStateError("The board is being stopped.")
        self._changes.refuse_another()
        if self._stops:
            raise CoreStateError(f"Core {min(self._stops)} is being stopped; wait for it to be offline.")

    def _note_change(self, problem: str | None) -> None:
        if problem is not None:
            self.image_error = problem
        children = {child.image for child in self.fleet.children if not child.is_ending}
        self._snapshots.keep({core.image for core in self.cores} | children)
        self.on_change()

    # -- processes

    def on_ready(self, child: CoreChild) -> None:
        """A process has loaded its image."""
        core = self.cores[child.index]
        if core.candidate is not child:
            return
        if self._changes.concerns(core):
            self._changes.go_on()
        else:
            core.promote()
            self._journal.say(f"Core {core.index} runs again (process {child.pid}).")

    def on_end(self, child: CoreChild, how: str) -> None:
        """A process has ended."""
        core = self.cores[child.index]
        if core.candidate is child:
            core.candidate = None
            problem = child.problem or f"Core {core.index} {how} while it loaded the image."
            if self._changes.concerns(core):
                self._changes.fail(core, child, problem)
            else:
                core.last_crash = problem
                self._recover(core, child, had_task=False, why=f"could not load its image again ({problem})")
        elif core.child is child:
            core.child = None
            self._on_core_death(core, child, how)

    def _on_core_death(self, core: BoardCore, child: CoreChild, how: str) -> None:
        core.publish(ACTIVITY_BETWEEN if core.is_wanted else ACTIVITY_OFFLINE)
        lost = self._settler.lose_running(child, how)
        for text in lost:
            self._journal.say(f"{text}\n{child.trace}".rstrip())
        if not core.is_wanted:
            self._went_offline(core)
            return
        # A submitter may have rung the dead core for a task that another one, asleep, may run.
        self.fleet.ring(all_but=core.index)
        if not child.is_ending:
            core.crashes += 1
            core.last_crash = lost[0] if lost else f"Process {child.pid} {how}."
            core.move(CRASHED)
            core.publish()
            if core.candidate is None:
                self._recover(core, child, had_task=bool(lost), why=how)
        elif core.candidate is None:  # it died while its predecessor ended
            core.move(CRASHED)
            core.publish()
            self._revival.start(core, 0.0)
        elif core.candidate.phase is Phase.READY:
            core.promote()
            self._changes.go_on()

    def _on_vacant(self, core: BoardCore) -> None:
        if self._revival.is_enabled:
            self._revival.start(core, 0.0)
        else:
            self._stay_down(core)

    def _recover(self, core: BoardCore, child: CoreChild, *, had_task: bool, why: str) -> None:
        if not self._revival.after(core, child, had_task=had_task, why=why):
            self._stay_down(core)

    def _stay_down(self, core: BoardCore) -> None:
        core.is_wanted = False
        core.publish(ACTIVITY_OFFLINE)
        self._lose_unservable()

    def _went_offline(self, core: BoardCore) -> None:
        core.move(OFFLINE)
        core.publish(ACTIVITY_OFFLINE)
        self._lose_unservable()
        done = self._stops.pop(core.index, None)
        if done is not None:
            done(Status.HB_SYS_SUCCESS, "")

    def _lose_unservable(self) -> None:
        self._settler.lose_unservable({core.index for core in self.cores if core.is_wanted})
