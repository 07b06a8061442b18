"""The claim lock when its holder does not let it go: who that is, what to do, and the repair when it has died.

A process that is stopped with the lock in hand lets no core claim a task and no client cancel one. The daemon cannot
take the lock from it, but it says who it is. Of a holder that dies the kernel takes the lock back, unless the list in
which it looks was broken; then the daemon does the same. So a holder is judged by two looks that find the same one.
"""

from __future__ import annotations

from dsp_server.clients import Clients
from dsp_server.process.journal import Journal
from hbrt.ddr.claim_lock import ClaimLock, ClaimLockBrokenError, ClaimLockHeldError
from hbrt.ddr.lock_holder import Holder, holder, is_of_our_namespace

HELD_SECONDS = 2.0  # a holder that is not stopped may wait for a CPU for so long


class LockWatch:
    """Looks at the claim lock of a board.

    Args:
        lock: The board's.
        clients: Who is attached.
        journal: Gets a finding on each holder that does not let the lock go.
    """

    def __init__(self, lock: ClaimLock, clients: Clients, journal: Journal) -> None:
        self.problem = ""  # why the lock cannot be had, and what to do
        self._lock = lock
        self._clients = clients
        self._journal = journal
        self._thread = 0  # the holder that the last look found
        self._since_ns = 0
        self._told = ""  # which problem was told of

    def look(self, now_ns: int) -> bool:
        """Look once; returns whether somebody keeps the lock. ``now_ns`` is CLOCK_MONOTONIC."""
        try:
            with self._lock:
                pass
        except ClaimLockHeldError:
            if thread := self._lock.thread:
                self._judge(holder(thread), now_ns)
        except ClaimLockBrokenError as error:
            self._tell(str(error), "broken")
        else:
            self._thread = 0
            if self.problem:
                self.problem = self._told = ""
                self._journal.say("The claim lock can be had again.")
        return bool(self._thread or self.problem)

    def _judge(self, found: Holder, now_ns: int) -> None:
        if found.thread != self._thread:
            self._thread, self._since_ns = found.thread, now_ns
        elif found.has_gone:
            self._take_over(found)
        elif found.is_stopped or now_ns - self._since_ns > HELD_SECONDS * 1e9:
            self._tell(
                f"The claim lock is held by {found}. Until it lets it go, no core claims a task and none is cancelled. "
                f"{found.advice}",
                f"{found.thread} {found.is_stopped}",
            )

    def _take_over(self, gone: Holder) -> None:
        if not all(is_of_our_namespace(client.pid) for client in self._clients.by_id.values() if not client.has_gone):
            self._tell(
                f"The claim lock is held by thread {gone.thread}, which has ended or is another container's. End the "
                "programs that are attached from other containers, or restart the board ('hbrt stop', 'hbrt start').",
                f"{gone.thread} elsewhere",
            )
        elif self._lock.disown(gone):
            self._tell(
                f"Thread {gone.thread} has ended with the claim lock in hand, and its list of robust mutexes was "
                "broken, so that the kernel did not let the lock go. The daemon has; the board goes on.",
                f"{gone.thread} repaired",
            )

    def _tell(self, problem: str, key: str) -> None:
        """Note a problem; it is a finding once for each ``key``, although its sentence may change."""
        if key != self._told:
            self._journal.find("claim-lock", problem)
        self.problem, self._told = problem, key
