"""What looks at a process's tasks: its checks, and a mode that has something to do around them.

``Tasks.watchers`` holds them. A process without any pays one test of an empty list a call. A trace needs none: C notes
submissions and waits itself.
"""

from __future__ import annotations


class Watcher:
    """Told of each task; each method may be called by any thread that calls the tasks."""

    def submitted(self, handle: int, given: tuple[int, ...]) -> int:  # noqa: ARG002 - see Tasks.submit
        """A task's record is written, and nobody has it yet; a core may read what is written to its slot now.

        Args:
            handle: The task.
            given: As for ``Tasks.submit``.

        Returns:
            0; or a status that refuses the task, whose sentence ``Tasks.refuse`` has been given.
        """
        return 0

    def refused(self, given: tuple[int, ...], status: int, why: str) -> None:
        """A task is refused, for what its fields say; arguments as for ``submitted`` and ``Tasks.refuse``."""

    def waiting(self, handle: int, timeout_ms: float) -> int:  # noqa: ARG002 - see Tasks.wait
        """A thread is about to wait for a task: 0, or the status with which the wait ends at once."""
        return 0

    def ended(self, handle: int) -> None:
        """The program sees that a task has ended, perhaps again."""

    def released(self, handle: int) -> None:
        """The program has given a task up."""
