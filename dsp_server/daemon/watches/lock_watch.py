"""A claim lock that its holder keeps: the daemon names the holder and the remedy, and repairs a dead holder's lock.

While a stopped process holds the lock, cores cannot claim tasks and clients cannot cancel them. The daemon cannot take
the lock from the process, but reports it. The kernel releases the lock of a dead holder unless its list of the
holder's mutexes is corrupt; then the daemon releases it. The daemon acts only if two polls find the same holder.
"""

from __future__ import annotations

from dsp_server.clients import Clients
from dsp_server.process.journal import Journal
from hbrt.ddr.claim_lock import ClaimLock, ClaimLockBrokenError, ClaimLockHeldError
from hbrt.ddr.lock_holder import Holder, holder, is_of_our_namespace

HELD_SECONDS = 2.0  # a running holder may wait this long for a CPU


class LockWatch:
    """Checks the claim lock of a board.

    Args:
        lock: The board's claim lock.
        clients: The attached clients.
        journal: Receives a finding for each holder that keeps the lock.
    """

    def __init__(self, lock: ClaimLock, clients: Clients, journal: Journal) -> None:
        self.problem = ""  # why the lock is not available, and the remedy
        self._lock = lock
        self._clients = clients
        self._journal = journal
        self._thread = 0  # the holder's thread at the last poll
        self._since_ns = 0
        self._reported = ""  # key of the last reported problem

    def poll(self, now_ns: int) -> bool:
        """Check once; return whether a process keeps the lock. ``now_ns`` is CLOCK_MONOTONIC."""
        try:
            with self._lock:
                pass
        except ClaimLockHeldError:
            if thread := self._lock.thread:
                self._check_holder(holder(thread), now_ns)
        except ClaimLockBrokenError as error:
            self._report(str(error), "broken")
        else:
            self._thread = 0
            if self.problem:
                self.problem = self._reported = ""
                self._journal.say("The claim lock is available again.")
        return bool(self._thread or self.problem)

    def _check_holder(self, found: Holder, now_ns: int) -> None:
        if found.thread != self._thread:
            self._thread, self._since_ns = found.thread, now_ns
        elif found.has_gone:
            self._take_over(found)
        elif found.is_stopped or now_ns - self._since_ns > HELD_SECONDS * 1e9:
            self._report(
                f"The claim lock is held by {found}. Until it is released, no core can claim a task and no task can be "
                f"canceled. {found.advice}",
                f"{found.thread} {found.is_stopped}",
            )

    def _take_over(self, gone: Holder) -> None:
        if not all(is_of_our_namespace(client.pid) for client in self._clients.by_id.values() if not client.has_gone):
            self._report(
                f"The claim lock is held by thread {gone.thread}, which has ended or is in another container. End the "
                "programs attached from other containers, or restart the board ('hbrt stop', 'hbrt start').",
                f"{gone.thread} elsewhere",
            )
        elif self._lock.disown(gone):
            self._report(
                f"Thread {gone.thread} ended while holding the claim lock, and its list of robust mutexes was corrupt, "
                "so the kernel did not release the lock. The daemon has released it; the board keeps running.",
                f"{gone.thread} repaired",
            )

    def _report(self, problem: str, key: str) -> None:
        """Report a problem: one finding for each ``key``, even if the sentence changes."""
        if key != self._reported:
            self._journal.find("claim-lock", problem)
        self.problem, self._reported = problem, key
