"""The thread that holds a lock, as known to the kernel: for messages and diagnosis, never for access decisions."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_STOPPED = frozenset("Tt")  # stopped by a signal or a debugger
_GONE = frozenset({"", "Z", "X"})  # no longer running


class Holder(NamedTuple):
    """A thread, its process, and its state."""

    thread: int
    pid: int  # 0 if the thread is gone
    name: str
    state: str  # the kernel's letter, see proc_pid_stat(5); empty if the thread is gone

    @property
    def is_stopped(self) -> bool:
        """Whether a signal or a debugger has stopped it."""
        return self.state in _STOPPED

    @property
    def has_gone(self) -> bool:
        """Whether it has ended; the kernel has then already handled its locks."""
        return self.state in _GONE

    def __str__(self) -> str:
        if self.has_gone:
            return f"thread {self.thread}, which has ended"
        is_doing = "is stopped by a signal (SIGSTOP) or a debugger" if self.is_stopped else f"is in state {self.state}"
        return f"process {self.pid} ({self.name}), which {is_doing}"

    @property
    def advice(self) -> str:
        """Return advice on making it release the lock."""
        if self.has_gone:
            return "The daemon releases it; if it cannot, restart the board ('hbrt stop', then 'hbrt start')."
        go_on = f"'kill -CONT {self.pid}' resumes it, " if self.is_stopped else ""
        return f"{go_on}'kill -9 {self.pid}' ends it; the board then recovers by itself."


def holder(thread: int) -> Holder:
    """Look up a thread by its id."""
    try:
        text = Path(f"/proc/{thread}/status").read_text(encoding="utf-8", errors="replace")
        fields = dict(line.partition(":\t")[::2] for line in text.splitlines())
        return Holder(thread, int(fields["Tgid"]), fields["Name"], fields["State"][:1])
    except (OSError, KeyError, ValueError):
        return Holder(thread, 0, "", "")


def is_of_our_namespace(pid: int) -> bool:
    """Whether a process shares this one's thread ids; a thread in another container has a different id there."""
    try:
        return Path(f"/proc/{pid}/ns/pid").stat().st_ino == Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return False
