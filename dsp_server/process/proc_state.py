"""The state of a process or thread, as the kernel's letter: R runs or waits for a CPU, S sleeps, T is stopped."""

from __future__ import annotations

from pathlib import Path

STOPPED = frozenset("Tt")  # by a signal, or by a debugger
BUSY = frozenset("RD")  # it continues as soon as it gets a CPU, or its page


def state_of(pid: int, thread: int = 0) -> str:
    """State letter of a process, or of one of its threads; empty when there is none.

    Source: proc_pid_stat(5), field 3, https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
    """
    place = f"/proc/{pid}/task/{thread}/stat" if thread else f"/proc/{pid}/stat"
    try:
        # The name before the state is in brackets and may hold any character.
        return Path(place).read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
