"""Lives of the cores: start, stop, restart, crash, recovery. The only place with policy about core processes.

A restart never leaves a board without an image that works: new processes load the image first, and only when all of
them are ready do they take the places of the old ones, each when its predecessor has ended its task. If one of them
does not get there, all of them go and the old ones stay.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from dsp_server import recovery
from dsp_server.children import CoreChild, Phase
from dsp_server.clients import Clients
from dsp_server.cores import (
    ACTIVITY_BETWEEN,
    ACTIVITY_OFFLINE,
    CRASHED,
    OFFLINE,
    RUNNING,
    CoreSlot,
    CoreStateError,
)
from dsp_server.fleet import Fleet
from dsp_server.image import Image, ImageError, ImageLateError, Snapshots
from dsp_server.journal import Journal
from dsp_server.loop import Loop
from dsp_server.revival import Revival
from dsp_server.settle import Settler
from hbrt.status import Status

Done: TypeAlias = Callable[[Status, str], None]


class _Change:
    """A start or restart that somebody asked for, until its cores run the new image or it is given up."""

    def __init__(self, cores: list[CoreSlot], done: Done) -> None:
        self.cores = cores
        self.done = done
        self.is_committed = False  # every candidate was ready: the old processes are ending
        self.failure = ""  # of a candidate that ended after that


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
        cores: list[CoreSlot],
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
        self._change: _Change | None = None
        self._is_closing = False
        self._stops: dict[int, Done] = {}  # core -> who waits for it to be offline

    # -- what may be asked

    def start_all(self, done: Done) -> None:
        """Start every core; ``done`` hears how it went."""
        self._begin([(core, core.image) for core in self.cores], done, self._load_seconds)

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
        self._begin([(core, taken[origins[core.index]]) for core in wanted], done, load_seconds or self._load_seconds)

    def start_core(self, index: int, done: Done) -> None:
        """Start an offline or crashed core with the image that it had.

        Raises:
            CoreStateError: it runs, there is no such core, or another change is under way.
        """
        core = self.core(index)
        if core.state == RUNNING:
            raise CoreStateError(f"Core {index} is already {RUNNING}; nothing was changed.")
        self._refuse_while_changing()
        self._begin([(core, core.image)], done, self._load_seconds)

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
        if self._change is not None and not self._change.is_committed:
            self._abort(self._change, Status.HB_DSP_TASK_CANCELLED, "A newer change took its place.")

    def refuse_image(self, problem: str) -> None:
        """Note that an image that somebody changed does not run, without having tried it."""
        self.image_error = problem
        self._changed()

    @property
    def is_recovering(self) -> bool:
        """Whether a crashed core starts again by itself; may be set."""
        return self._revival.is_enabled

    @is_recovering.setter
    def is_recovering(self, enabled: bool) -> None:
        self._revival.is_enabled = enabled

    @property
    def is_changing(self) -> bool:
        """Whether a start, stop or restart that was asked for is under way."""
        return self._change is not None or bool(self._stops)

    @property
    def is_committed(self) -> bool:
        """Whether the change under way can no longer be superseded."""
        return self._change is not None and self._change.is_committed

    def core(self, index: int) -> CoreSlot:
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
        if self._change is not None:
            self._abort(self._change, Status.HB_DSP_BOARD_LOST, "The board was stopped.")
        for core in self.cores:
            self._revival.drop(core)
        self.fleet.end_all(self._settler.is_awaited)

    # -- changes

    def _refuse_while_changing(self) -> None:
        if self._is_closing:
            raise CoreStateError("The board is being stopped.")
        if self._change is not None:
            names = ", ".join(str(core.index) for core in self._change.cores)
            raise CoreStateError(f"A restart of core {names} is under way; wait for it to end.")
        if self._stops:
            raise CoreStateError(f"Core {min(self._stops)} is being stopped; wait for it to be offline.")

    def _begin(self, wanted: list[tuple[CoreSlot, Image]], done: Done, load_seconds: float) -> None:
        change = self._change = _Change([core for core, _ in wanted], done)
        for core in change.cores:
            self._revival.drop(core)
        try:
            for core, image in wanted:
                core.candidate = self.fleet.start(core.index, image, load_seconds)
        except OSError as error:
            self._abort(change, Status.HB_DSP_NOT_RUNNING, f"A core's process cannot be started: {error.strerror}.")

    def _commit(self, change: _Change) -> None:
        change.is_committed = True
        for core in change.cores:
            core.is_wanted = True
            core.history = recovery.History()
            if core.child is None:
                core.promote()
            else:
                core.child.end()
        self._finish_if_done(change)

    def _finish_if_done(self, change: _Change) -> None:
        if all(core.candidate is None for core in change.cores):
            self._change = None
            self.image_error = change.failure
            self._changed()
            change.done(ImageError.status if change.failure else Status.HB_SYS_SUCCESS, change.failure)

    def _abort(self, change: _Change, status: Status, text: str) -> None:
        self._change = None
        for core in change.cores:
            candidate, core.candidate = core.candidate, None
            if candidate is not None:
                candidate.end()
            if core.is_wanted and core.child is None:
                self._revival.start(core, 0.0)  # it crashed meanwhile, or had: its old image goes on
        self._changed()
        change.done(status, text)

    def _changed(self) -> None:
        children = {child.image for child in self.fleet.children if not child.is_ending}
        self._snapshots.keep({core.image for core in self.cores} | children)
        self.on_change()

    # -- processes

    def on_ready(self, child: CoreChild) -> None:
        """A process has loaded its image."""
        core, change = self.cores[child.index], self._change
        if core.candidate is not child:
            return
        if change is None or core not in change.cores:
            core.promote()
            self._journal.say(f"Core {core.index} runs again (process {child.pid}).")
        elif all(c.candidate is not None and c.candidate.phase is Phase.READY for c in change.cores):
            self._commit(change)

    def on_end(self, child: CoreChild, how: str) -> None:
        """A process has ended."""
        core = self.cores[child.index]
        if core.candidate is child:
            core.candidate = None
            self._on_candidate_death(
                core, child, child.problem or f"Core {core.index} {how} while it loaded the image."
            )
        elif core.child is child:
            core.child = None
            self._on_core_death(core, child, how)

    def _on_candidate_death(self, core: CoreSlot, child: CoreChild, problem: str) -> None:
        change = self._change
        text = f"The image {child.image.origin} did not load on core {core.index}:\n{problem}"
        if change is None or core not in change.cores:
            core.last_crash = text
            self._recover(core, child, had_task=False, why=f"could not load its image again ({problem})")
        elif change.is_committed:  # its predecessor is ending, and will be followed by one of the old image
            self._journal.say(text)
            change.failure = text
            change.cores.remove(core)
            self._finish_if_done(change)
        else:
            self.image_error = problem
            kind = ImageLateError if child.is_late else ImageError
            self._abort(change, kind.status, text)

    def _on_core_death(self, core: CoreSlot, child: CoreChild, how: str) -> None:
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
            if self._change is not None:
                self._finish_if_done(self._change)

    def _recover(self, core: CoreSlot, child: CoreChild, *, had_task: bool, why: str) -> None:
        if not self._revival.after(core, child, had_task=had_task, why=why):
            core.is_wanted = False
            core.publish(ACTIVITY_OFFLINE)
            self._lose_unservable()

    def _went_offline(self, core: CoreSlot) -> None:
        core.move(OFFLINE)
        core.publish(ACTIVITY_OFFLINE)
        self._lose_unservable()
        done = self._stops.pop(core.index, None)
        if done is not None:
            done(Status.HB_SYS_SUCCESS, "")

    def _lose_unservable(self) -> None:
        self._settler.lose_unservable({core.index for core in self.cores if core.is_wanted})
