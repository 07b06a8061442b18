"""The boards that this process is attached to. Lightweight: the C names import this at once, and the rest on demand."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import weakref
from typing import TYPE_CHECKING

from arm_client.memory.freed import freed_block_at
from hbrt import settings
from hbrt.board import forked
from hbrt.types import hbSysMem

if TYPE_CHECKING:
    from pathlib import Path

    from arm_client.session.session import Session
    from hbrt.board.run_record import FirstProcess


class Process:
    """The sessions of this process: one per board, and which of them the C names use."""

    def __init__(self) -> None:
        self.default: Session | None = None
        self.sessions: dict[Path, Session] = {}
        self.known: weakref.WeakSet[Session] = weakref.WeakSet()  # includes sessions held only by a board or a fixture
        self.lock = threading.RLock()
        self.run: FirstProcess | None = None  # the run that this process started
        self.is_reported = False  # whether the findings of the run were reported

    def begin_run(self) -> None:
        """Become the first process of a run, if the settings ask for its findings."""
        if settings.is_given("HBRT_SARIF") or settings.is_given("HBRT_CHECK"):
            from hbrt.board.run_record import begun

            self.run = begun()

    def all(self) -> list[Session]:
        """Return all sessions."""
        return list(self.known)

    def take_all(self) -> list[Session]:
        """Remove and return all sessions."""
        forked.notice()
        with self.lock:
            sessions = self.all()
            self.sessions.clear()
            self.known.clear()
            self.default = None
        return sessions


process = Process()


def _end() -> None:
    """Close everything; a second Ctrl-C ends the process at once, without further output."""
    try:
        _close_all()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)


def _close_all() -> None:
    sessions = process.take_all()
    for session in sessions:
        session.close()
    if not process.is_reported and (process.run is not None or "arm_client.session.exit_report" in sys.modules):
        from arm_client.session.exit_report import end_run, end_with_exit_code

        end_with_exit_code(end_run(process.run))


def _before_fork() -> None:
    """Wait for other threads that are attaching, so their modules and locks are consistent in the child."""
    process.lock.acquire()


def _after_fork_in_parent() -> None:
    process.lock.release()


def _detach_in_child() -> None:
    """In a forked child: drop the parent's lease; inherited handles are refused with that reason."""
    process.lock = threading.RLock()
    for session in process.all():
        session.detach_in_child()
    process.sessions = {}
    process.run = None


def _bytes_at(address: int, size_bytes: int) -> memoryview | None:
    """Return the bytes of one of this process's blocks, by address.

    Raises:
        ValueError: the block was freed.
    """
    looked = (session.blocks.bytes_at(address, size_bytes) for session in process.all())
    found = next((view for view in looked if view is not None), None)
    if found is None and (gone := freed_block_at(address)) is not None:
        raise ValueError(f"This hbSysMem holds no memory: {gone}. Do not use a block after freeing it.")
    return found


hbSysMem.locate = staticmethod(_bytes_at)
if "hbrt.cli" not in sys.modules:  # a command-line verb is not a program: it starts a run itself, or none
    process.begin_run()
atexit.register(_end)
os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent)
forked.in_child(_detach_in_child)
