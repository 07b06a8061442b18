"""The tasks and the memory of a process that has other boards run some commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from arm_client.transport.routed.blocks import RoutedBlocks
from arm_client.transport.routed.tasks import RoutedTasks, routed
from hbrt import settings
from hbrt.errors import WrongUseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from arm_client.transport.routed.other_board import Dial
    from hbrt.attach.link import Link, LocalLink
    from hbrt.attach.task_slots import TaskSlots
    from hbrt.board.routes import Routing

_ALONE = ("HBRT_RECORD", "HBRT_SCHEDULE")


def attach_routed(
    link: LocalLink,
    kind: type[TaskSlots],
    routing: Routing,
    watch: Callable[[Link, type[TaskSlots]], tuple[type[TaskSlots], bool]],
    dial: Dial,
) -> tuple[RoutedTasks, RoutedBlocks]:
    """Attach to the boards of the routes.

    Args:
        link: The attachment to this board.
        kind: The class of its tasks.
        routing: As of HBRT_ROUTE and HBRT_ROUTE_COMPARE.
        watch: As of ``arm_client.transport.choose.attach``.
        dial: Attaches to another board.

    Raises:
        BoardError: one cannot be reached; names the route. WrongUseError: a setting goes with no route.
    """
    for name in _ALONE:
        if settings.is_given(name):
            raise WrongUseError(
                f"{name} and HBRT_ROUTE do not go together: what another board runs is not seen here. Unset one."
            )
    chosen, is_strict = watch(link, routed(kind))
    tasks = cast("type[RoutedTasks]", chosen)(link)
    blocks = RoutedBlocks(link, tasks, is_strict=is_strict)
    try:
        tasks.follow(routing, dial, blocks.all)
    except BaseException:
        tasks.close()
        raise
    return tasks, blocks
