"""A start or restart that somebody asked for: new processes load the image, and all of them take over, or none does.

A restart never leaves a board without an image that works. The old processes go on until all new ones are ready; then
each new one takes the place of its predecessor when that has ended its task. If one of them does not get ready, all of
them go and the old ones stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dsp_server.core.image_loader import ImageError, ImageLateError
from dsp_server.lifecycle import restart_policy
from dsp_server.lifecycle.auto_restart import Revival
from dsp_server.lifecycle.child import STOP_GRACE_SECONDS, CoreChild, Phase
from dsp_server.lifecycle.core_state import BoardCore, CoreStateError
from dsp_server.lifecycle.processes import Fleet
from dsp_server.lifecycle.snapshots import Image
from dsp_server.process.journal import Journal
from hbrt.status import Status

Done: TypeAlias = Callable[[Status, str], None]


class _Change:
    def __init__(self, cores: list[BoardCore], done: Done) -> None:
        self.cores = cores
        self.done = done
        self.is_committed = False  # every candidate was ready: the old processes are ending
        self.failure = ""  # of a candidate that ended after that


class Changes:
    """The change that is under way, if there is one; there is one at a time.

    Args:
        fleet: Starts processes.
        revival: Is told to leave a core alone that changes.
        journal: Gets a line when a process that was ready ends before it takes over.
        has_ended: Called when a change has ended, with what is wrong with its image: nothing, or None when the image
            was not tried.
        is_vacant: Called for a core that should run and has no process, when a change of it was given up.
    """

    def __init__(
        self,
        fleet: Fleet,
        revival: Revival,
        journal: Journal,
        has_ended: Callable[[str | None], None],
        is_vacant: Callable[[BoardCore], None],
    ) -> None:
        self._fleet = fleet
        self._revival = revival
        self._journal = journal
        self._has_ended = has_ended
        self._is_vacant = is_vacant
        self._change: _Change | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether there is one."""
        return self._change is not None

    @property
    def is_committed(self) -> bool:
        """Whether there is one whose processes are taking over: it cannot be given up any more."""
        return self._change is not None and self._change.is_committed

    def concerns(self, core: BoardCore) -> bool:
        """Whether a core's candidate belongs to the change that is under way."""
        return self._change is not None and core in self._change.cores

    def refuse_another(self) -> None:
        """Refuse what cannot be done while a change is under way.

        Raises:
            CoreStateError: one is.
        """
        if self._change is not None:
            names = ", ".join(str(core.index) for core in self._change.cores)
            begun = f"A restart of core {names} is under way"
            if self._change.is_committed:
                raise CoreStateError(
                    f"{begun} and waits for the tasks that run, for {STOP_GRACE_SECONDS:.0f} s at most; 'hbrt status' "
                    "shows the longest."
                )
            raise CoreStateError(f"{begun}; wait for it to end.")

    def begin(self, wanted: list[tuple[BoardCore, Image]], done: Done, load_seconds: float) -> None:
        """Start the new processes; ``done`` hears once what became of them."""
        self._change = _Change([core for core, _ in wanted], done)
        for core, _ in wanted:
            self._revival.drop(core)
        try:
            for core, image in wanted:
                core.candidate = self._fleet.start(core.index, image, load_seconds)
        except OSError as error:
            self.give_up(Status.HB_DSP_NOT_RUNNING, f"A core's process cannot be started: {error.strerror}.")

    def go_on(self) -> None:
        """A candidate is ready, or has taken over: take the next step, if all are as far."""
        change = self._change
        if change is None:
            return
        if not change.is_committed:
            if not all(core.candidate is not None and core.candidate.phase is Phase.READY for core in change.cores):
                return
            self._commit(change)
        if all(core.candidate is None for core in change.cores):
            self._change = None
            self._has_ended(change.failure)
            change.done(ImageError.status if change.failure else Status.HB_SYS_SUCCESS, change.failure)

    def fail(self, core: BoardCore, child: CoreChild, problem: str) -> None:
        """A candidate of the change has ended."""
        change = self._change
        if change is None:
            return
        text = f"The image {child.image.origin} did not load on core {core.index}:\n{problem}"
        if change.is_committed:  # its predecessor is ending, and will be followed by a process of the old image
            self._journal.say(text)
            change.failure = text
            change.cores.remove(core)
            self.go_on()
        else:
            kind = ImageLateError if child.is_late else ImageError
            self.give_up(kind.status, text, problem)

    def give_up(self, status: Status, text: str, problem: str | None = None) -> None:
        """End the change that is under way, and leave the old processes in their places."""
        change, self._change = self._change, None
        if change is None:
            return
        for core in change.cores:
            candidate, core.candidate = core.candidate, None
            if candidate is not None:
                candidate.end()
            if core.is_wanted and core.child is None:
                self._is_vacant(core)  # it crashed meanwhile, or before: its old image goes on
        self._has_ended(problem)
        change.done(status, text)

    @staticmethod
    def _commit(change: _Change) -> None:
        change.is_committed = True
        for core in change.cores:
            core.is_wanted = True
            core.history = restart_policy.History()
            if core.child is None:
                core.promote()
            else:
                core.child.end()
