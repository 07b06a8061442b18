"""Starting a core again that died by itself, as recovery.py says: at once, later, or not at all."""

from __future__ import annotations

from dsp_server.lifecycle import restart_policy
from dsp_server.lifecycle.child import CoreChild
from dsp_server.lifecycle.core_state import BoardCore
from dsp_server.lifecycle.processes import Fleet
from dsp_server.process.event_loop import Loop
from dsp_server.process.journal import Journal


class Revival:
    """Starts cores again with the image that they had."""

    def __init__(self, fleet: Fleet, loop: Loop, journal: Journal, load_seconds: float) -> None:
        self.is_enabled = True  # remoteproc's "recovery": whether a crashed core starts again by itself
        self._fleet = fleet
        self._loop = loop
        self._journal = journal
        self._load_seconds = load_seconds

    def after(self, core: BoardCore, child: CoreChild, *, had_task: bool, why: str) -> bool:
        """Have a core start again whose process died; False when it stays crashed."""
        if not self.is_enabled:
            self._journal.say(
                f"Core {core.index} {why}; recovery is disabled, so it stays crashed. "
                f"Run 'hbrt restart --core {core.index}' to start it again."
            )
            return False
        core.history, pause_s = restart_policy.after(core.history, core.death_of(child, had_task=had_task))
        if pause_s is None:
            self._journal.say(
                f"Core {core.index} {why}; it died {core.history.idle} times in a row as soon as it had started, "
                "with no task to blame, and stays crashed. "
                f"Run 'hbrt restart --core {core.index}' when the cause is removed."
            )
            return False
        self._journal.say(f"Core {core.index} {why}; it starts again{f' in {pause_s:.1f} s' if pause_s else ''}.")
        self.start(core, pause_s)
        return True

    def start(self, core: BoardCore, pause_s: float) -> None:
        """Start a core's next process after a pause."""
        core.retry = self._loop.later(pause_s, lambda: self._start_now(core))

    def drop(self, core: BoardCore) -> None:
        """Forget the next start of a core, and the process that would have been it."""
        if core.retry is not None:
            core.retry.cancel()
            core.retry = None
        candidate, core.candidate = core.candidate, None
        if candidate is not None:
            candidate.end()

    def _start_now(self, core: BoardCore) -> None:
        core.retry = None
        try:
            core.candidate = self._fleet.start(core.index, core.image, self._load_seconds)
        except OSError as error:
            self._journal.say(f"A process for core {core.index} cannot be started: {error.strerror}; again soon.")
            self.start(core, restart_policy.MOST_PAUSE_SECONDS)
