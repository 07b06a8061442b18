"""How the tasks of a process come to their cores: the verbs of a carrier, and the one that queues them in the mailbox.

arm_client/transport has the other carriers: a relay, a connection to another machine, the process's own cores, routes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from hbrt.mailbox.native import ASK
from hbrt.mailbox.submission import unserved
from hbrt.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from hbrt.attach.link import Link
    from hbrt.attach.tasks import Tasks
    from hbrt.findings.record import Finding
    from hbrt.mailbox.table import Answer, State
    from hbrt.trace.ring import Ring

_CANCELLED = b"The task was cancelled before a core claimed it."


class Lost(NamedTuple):
    """The end of a task that is in no slot any more: nobody says what became of it."""

    status: int
    why: str
    answer: Answer


class Carrier:
    """Publish, cancel, drop and state: the verbs of a task. All but the first are the mailbox's unless overridden."""

    is_direct = False
    """Whether C may prepare and publish a task in one call."""
    reaches_accelerators = False
    """Whether ``Tasks.accelerate`` brings tasks to the board's accelerator cores."""
    is_asking = False
    """Whether a request to a board other than the link's is under way, as ``Link.is_asking``."""
    tasks: Tasks

    def carry(self, tasks: Tasks) -> None:
        """Carry the tasks of a process from now on; before the first one."""
        self.tasks = tasks

    def elsewhere(self, cmd: int) -> int:  # noqa: ARG002 - routes go by it
        """The core mask of ``hbrt.mailbox.schedule`` for a command that no core of the board runs; 0 for any other."""
        return 0

    def publish(self, handle: int, given: tuple[int, ...]) -> int:
        """Bring a task to its core.

        Args:
            handle: The task, whose record is written, and which nobody else has yet: its state is SENT.
            given: As of ``Tasks.submit``.

        Returns:
            The handle; or a status, whose sentence ``Tasks.refuse`` has been given, and then nobody has the task.
        """
        raise NotImplementedError

    def cancel(self, slot: int) -> bool:
        """End a task that no core has claimed, which stays in its slot; False when one has, or it cannot be told."""
        tasks = self.tasks
        cancelled: int = tasks.lib.hbrt_cancel(tasks.client, slot, Status.HB_DSP_TASK_CANCELLED, _CANCELLED)
        return cancelled == 1

    def drop(self, slot: int, handle: int) -> None:  # noqa: ARG002 - the handle is not in use any more
        """Give up a task that has not ended: a queued one is cancelled, of a running one nobody hears any more.

        Its slot is used again later.
        """
        self.tasks.drop(slot)

    def state(self, handle: int, found: State) -> State:  # noqa: ARG002 - others ask
        """The state of a task that has not ended, by what its slot says."""
        return found

    # -- around them

    def load(
        self, image: str | None, report: Callable[[Finding], None], recording: tuple[str, int] | None = None
    ) -> None:
        """Become a core of the board, with the ops of an image, where ops run in this process.

        Args:
            image: Its file; None for the packaged ops.
            report: Takes findings.
            recording: Directory and limit of a recording of the calls, or None.

        Raises:
            BoardError: the image does not load.
        """

    def cause(self, handle: int) -> BaseException | None:  # noqa: ARG002 - only ops of this process have one
        """The exception of a failed task's op that ran in this process; None where only its text is known."""
        return None

    def own_ops(self) -> dict[int, str] | None:
        """Command numbers and names of the ops that run in this process; None where the board's cores run them."""
        return None

    def name_output(self, dtype: Any) -> None:
        """Say what the elements are of the output block of this thread's next task; None for bytes."""

    def discard_block(self, phy_addr: int) -> None:
        """Have nothing more to do with a block that is about to be freed."""

    def follow_trace(self, ring: Ring | None) -> None:
        """Note what else this does into a ring from now on, or with None no more."""

    def leave(self) -> list[Link]:
        """Before ``close``: the attachments to other boards, on which this process then has no memory anymore."""
        return []

    def close(self) -> None:
        """Close what this opened; no task is under way."""

    def detach_in_child(self) -> None:
        """In a fork's child: connections and tasks are the parent's."""


class Direct(Carrier):
    """The process queues its tasks in the board's mailbox."""

    is_direct = reaches_accelerators = True

    def publish(self, handle: int, given: tuple[int, ...]) -> int:  # noqa: ARG002 - the record has all
        """As ``Carrier.publish``."""
        tasks = self.tasks
        published: int = tasks.lib.hbrt_publish(tasks.client, handle)
        if published > 0:
            return published
        if published == ASK:  # this attachment is leaving the board
            return tasks.refuse(tasks.link.fault or Status.HB_DSP_NOT_RUNNING, tasks.link.why_faulty())
        return tasks.refuse(*unserved(tasks.link.core_count))
