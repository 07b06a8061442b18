"""How this process reaches a board: directly, through a relay, or over a connection to another machine."""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from arm_client.memory.blocks import Blocks
from hbrt import settings
from hbrt.attach.link import Link, LocalLink
from hbrt.attach.tasks import Carrier, Tasks
from hbrt.board.paths import BoardRef, RemoteBoard
from hbrt.board.routes import Routing
from hbrt.errors import WrongUseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from arm_client.transport.remote_link import RemoteLink
    from arm_client.transport.remote_memory import RemoteMemory
    from hbrt.ddr.file import Ddr

CARRIERS = {
    "direct": ("hbrt.attach.tasks", "Direct"),
    "relay": ("arm_client.transport.relay", "Relay"),
    "inline": ("arm_client.transport.inline", "Inline"),
    "scheduled": ("arm_client.transport.scheduled", "Scheduled"),
    "remote": ("arm_client.transport.remote", "Remote"),
}
"""The carrier of each mode: its module, loaded when the mode is used, and its class."""
_HERE = "arm_client.transport"
_ALONE = ("HBRT_RECORD", "HBRT_SCHEDULE")
_NO_ROUTES = Routing()


class Attachment(NamedTuple):
    """A process's objects for a board."""

    link: Link
    tasks: Tasks
    blocks: Blocks


def attach(
    board: BoardRef,
    watch: Callable[[Link], bool],
    routing: Routing = _NO_ROUTES,
    *,
    is_inline: bool = False,
) -> Attachment:
    """Attach to a board.

    Args:
        board: The board.
        watch: Receives the link, starts watching this process's tasks, and returns whether cached memory is strict.
        routing: The commands that other boards run.
        is_inline: Whether this process runs the ops itself.

    Raises:
        BoardError: the board, or a route's board, cannot be reached or refuses this process. BadSettingError: unknown
            mode. WrongUseError: a setting cannot be combined with routes.
    """
    mode = _mode(board, is_inline=is_inline)
    if routing.routes:
        _check_routes(board)
    with contextlib.ExitStack() as undo:
        link: Link
        if isinstance(board, RemoteBoard):
            link = _dial(board, _load(f"{_HERE}.remote_memory", "RemoteMemory"))
        else:
            link = LocalLink(board)
        undo.callback(link.close)
        is_strict = watch(link)
        carrier: Carrier = _load(*CARRIERS[mode])()
        polls = mode in {"direct", "relay"}
        if routing.routes:
            tasks, blocks = _attach_routed(link, carrier, routing, polls=polls, is_strict=is_strict)
        else:
            tasks = Tasks(link, carrier, polls=polls)
            kind = _load(f"{_HERE}.remote_blocks", "RemoteBlocks") if mode == "remote" else Blocks
            blocks = kind(link, tasks, is_strict=is_strict)
        undo.pop_all()
    return Attachment(link, tasks, blocks)


def _mode(board: BoardRef, *, is_inline: bool) -> str:
    if isinstance(board, RemoteBoard):
        return "remote"
    if is_inline:
        return "scheduled" if settings.is_given("HBRT_SCHEDULE") else "inline"
    return "relay" if settings.is_relayed() else "direct"


def _load(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def _dial(board: RemoteBoard, new_memory: Callable[[Ddr, int], RemoteMemory]) -> RemoteLink:
    """Attach to a board on another machine."""
    kind = (
        _load(f"{_HERE}.leased_link", "LeasedLink") if board.is_leased else _load(f"{_HERE}.remote_link", "RemoteLink")
    )
    link: RemoteLink = kind(board, new_memory)
    return link


def _check_routes(board: BoardRef) -> None:
    if isinstance(board, RemoteBoard):
        raise WrongUseError(
            f"HBRT_ROUTE sends commands from a board on this machine to another one, but this "
            f"program's board is {board.name}: set HBRT_BOARD to a board on this machine, or unset it for "
            f"a private one."
        )
    for name in _ALONE:
        if settings.is_given(name):
            raise WrongUseError(
                f"{name} and HBRT_ROUTE cannot be combined: the other board's work is not visible here. Unset one."
            )


def _attach_routed(
    link: Link, inner: Carrier, routing: Routing, *, polls: bool, is_strict: bool
) -> tuple[Tasks, Blocks]:
    """Also attach to the boards of the routes."""
    from arm_client.transport.routed.blocks import RoutedBlocks
    from arm_client.transport.routed.carrier import Routed

    carrier = Routed(inner)
    tasks = Tasks(link, carrier, polls=polls)
    blocks = RoutedBlocks(link, tasks, carrier, is_strict=is_strict)
    try:
        carrier.follow(routing, _dial, blocks.all)
    except BaseException:
        tasks.close()
        raise
    return tasks, blocks
