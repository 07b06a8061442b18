"""Observers of a process's tasks: its checks, and modes that act around tasks.

``Tasks.watchers`` holds them. Without any, the cost is one test of an empty list per call. A trace needs none: C
records submissions and waits itself.
"""

from __future__ import annotations


class Watcher:
    """Notified of each task; its methods may be called by any thread that uses the tasks."""

    def submitted(self, handle: int, given: tuple[int, ...]) -> int:  # noqa: ARG002 - see Tasks.submit
        """A task's record is written, and nobody has it yet; a core may read what is written to its slot now.

        Args:
            handle: The task.
            given: As for ``Tasks.submit``.

        Returns:
            0; or a status that refuses the task, with its message passed to ``Refusals.refuse``.
        """
        return 0

    def refused(self, given: tuple[int, ...], status: int, why: str) -> None:
        """A task is refused because of its fields; arguments as for ``submitted`` and ``Refusals.refuse``."""

    def waiting(self, handle: int, timeout_ms: float) -> int:  # noqa: ARG002 - see Tasks.wait
        """A thread is about to wait for a task; returns 0, or a status that ends the wait at once."""
        return 0

    def ended(self, handle: int) -> None:
        """The program sees that a task has ended, possibly not for the first time."""

    def released(self, handle: int) -> None:
        """The program has released a task."""
