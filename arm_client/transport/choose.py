"""Which way this process takes to a board: its own hands, a relay, or a connection to another machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from arm_client.memory.blocks import Blocks
from hbrt import settings
from hbrt.attach.link import Link, LocalLink
from hbrt.attach.task_slots import TaskSlots
from hbrt.attach.tasks import DirectTasks
from hbrt.board.paths import BoardRef, RemoteBoard

Kind: TypeAlias = type[TaskSlots]


class Attachment(NamedTuple):
    """What a process has of a board."""

    link: Link
    tasks: TaskSlots
    blocks: Blocks


def attach(board: BoardRef, checked: Callable[[Kind], Kind] = lambda kind: kind) -> Attachment:
    """Attach to a board; the loads of a way that is not taken are not paid for.

    Args:
        board: The board.
        checked: Makes of a class of tasks the one that this process uses: for strict mode.

    Raises:
        BoardError: the board cannot be reached, or refuses this process. BadSettingError: the mode is not one.
    """
    with contextlib.ExitStack() as undo:
        if isinstance(board, RemoteBoard):
            from arm_client.transport.remote_blocks import RemoteBlocks
            from arm_client.transport.remote_link import RemoteLink
            from arm_client.transport.remote_tasks import RemoteTasks

            remote = RemoteLink(board)
            undo.callback(remote.close)
            tasks: TaskSlots = checked(RemoteTasks)(remote)
            found = Attachment(remote, tasks, RemoteBlocks(remote, tasks))
        else:
            link = LocalLink(board)
            undo.callback(link.close)
            tasks = checked(_local_tasks())(link)
            found = Attachment(link, tasks, Blocks(link, tasks))
        undo.pop_all()
    return found


def _local_tasks() -> Kind:
    if not settings.is_relayed():
        return DirectTasks
    from arm_client.transport.relay_tasks import RelayTasks

    return RelayTasks
