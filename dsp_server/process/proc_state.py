"""The kernel's state letter of a process or thread: R runs or waits for a CPU, S sleeps, T is stopped.

Source: proc_pid_stat(5), fields 3 and 4, https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
"""

from __future__ import annotations

from pathlib import Path

STOPPED = frozenset("Tt")  # by a signal or a debugger
BUSY = frozenset("RD")  # it continues as soon as it gets a CPU or its page


def state_of(pid: int, thread: int = 0) -> str:
    """Return the state letter of a process or one of its threads; empty if it does not exist."""
    return next(iter(_fields(f"/proc/{pid}/task/{thread}/stat" if thread else f"/proc/{pid}/stat")), "")


def line_of(pid: int) -> list[int]:
    """Return a process and its ancestors, nearest first; those that are gone are omitted."""
    line: list[int] = []
    while pid > 1 and pid not in line and (fields := _fields(f"/proc/{pid}/stat")):
        line.append(pid)
        pid = int(fields[1])
    return line


def _fields(place: str) -> list[str]:
    """Return state and parent."""
    try:
        # The name before the state is in parentheses and may contain any character.
        return Path(place).read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[:2]
    except OSError:
        return []
