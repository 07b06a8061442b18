"""Which way this process takes to a board: its own hands, a relay, or a connection to another machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from arm_client.memory.blocks import Blocks
from hbrt import settings
from hbrt.attach.link import Link, LocalLink
from hbrt.attach.task_slots import TaskSlots
from hbrt.board.paths import BoardRef, RemoteBoard
from hbrt.board.routes import Routing
from hbrt.errors import WrongUseError

if TYPE_CHECKING:
    from arm_client.transport.remote_link import RemoteLink
    from arm_client.transport.remote_memory import RemoteMemory
    from hbrt.ddr.file import Ddr

Kind: TypeAlias = type[TaskSlots]
_NO_ROUTES = Routing()


class Attachment(NamedTuple):
    """What a process has of a board."""

    link: Link
    tasks: TaskSlots
    blocks: Blocks


def attach(
    board: BoardRef,
    watch: Callable[[Link, Kind], tuple[Kind, bool]],
    routing: Routing = _NO_ROUTES,
    *,
    is_inline: bool = False,
) -> Attachment:
    """Attach to a board; the loads of a way that is not taken are not paid for.

    Args:
        board: The board.
        watch: Takes the link and a class of tasks. Returns the class that this process uses, with checks perhaps, and
            whether cached memory is strict.
        routing: The commands that other boards run.
        is_inline: Whether this process runs the ops itself.

    Raises:
        BoardError: the board cannot be reached, or refuses this process. BadSettingError: the mode is not one.
    """
    with contextlib.ExitStack() as undo:
        if isinstance(board, RemoteBoard):
            from arm_client.transport.remote_blocks import RemoteBlocks
            from arm_client.transport.remote_memory import RemoteMemory
            from arm_client.transport.remote_tasks import RemoteTasks

            if routing.routes:
                raise WrongUseError(
                    f"HBRT_ROUTE sends commands from a board of this machine to another one, and this program's board "
                    f"is {board.name}: name a board of this machine in HBRT_BOARD, or none for a private one."
                )
            remote = _dial(board, RemoteMemory)
            undo.callback(remote.close)
            kind, is_strict = watch(remote, RemoteTasks)
            tasks = kind(remote)
            found = Attachment(remote, tasks, RemoteBlocks(remote, tasks, is_strict=is_strict))
        else:
            link = LocalLink(board)
            undo.callback(link.close)
            kind = _local_tasks(is_inline=is_inline)
            if routing.routes:
                from arm_client.transport.routed.attach import attach_routed

                found = Attachment(link, *attach_routed(link, kind, routing, watch, _dial))
            else:
                kind, is_strict = watch(link, kind)
                tasks = kind(link)
                found = Attachment(link, tasks, Blocks(link, tasks, is_strict=is_strict))
        undo.pop_all()
    return found


def _dial(board: RemoteBoard, new_memory: Callable[[Ddr, int], RemoteMemory]) -> RemoteLink:
    """Attach to a board on another machine."""
    if board.is_leased:
        from arm_client.transport.leased.link import LeasedLink

        return LeasedLink(board, new_memory)
    from arm_client.transport.remote_link import RemoteLink

    return RemoteLink(board, new_memory)


def _local_tasks(*, is_inline: bool) -> Kind:
    if is_inline and settings.is_given("HBRT_SCHEDULE"):
        from arm_client.transport.scheduled_tasks import ScheduledTasks

        return ScheduledTasks
    if is_inline:
        from arm_client.transport.inline_tasks import InlineTasks

        return InlineTasks
    if not settings.is_relayed():
        return TaskSlots
    from arm_client.transport.relay_tasks import RelayTasks

    return RelayTasks
