"""A pytest plugin (``-p tests.arm_client.over_tcp``): every board of the run is used as from another machine.

Each board gets a relay that listens on loopback, and whoever attaches to it does so by that relay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from arm_client.session import session
from arm_client.transport.choose import Attachment, attach
from hbrt.attach.link import Link
from hbrt.board.files import daemon_pid
from hbrt.board.paths import BoardRef, RemoteBoard
from hbrt.board.routes import Routing
from hbrt.errors import NoDaemonError
from tests.remote_relay import RemoteRelay

_relays: dict[tuple[Path, int], RemoteRelay] = {}


def attach_by_tcp(
    paths: BoardRef,
    watch: Callable[[Link], bool],
    _routing: Routing,
    *,
    is_inline: bool = False,
) -> Attachment:
    """Attach to a board of this machine by a relay that listens on loopback, one a board."""
    if is_inline:
        return attach(paths, watch, is_inline=True)
    if isinstance(paths, RemoteBoard):
        return attach(paths, watch)
    pid = daemon_pid(paths)
    if pid is None:
        raise NoDaemonError(f"Board {paths.name} is not running; start it with 'hbrt start'.")
    key = paths.path, pid
    if key not in _relays:
        _relays[key] = RemoteRelay(paths.path)
    return attach(_relays[key].board, watch)


def close_relays() -> None:
    """End the relays of this process."""
    while _relays:
        _relays.popitem()[1].close()


@pytest.fixture(scope="session", autouse=True)
def _over_tcp() -> Iterator[None]:
    session.attach = attach_by_tcp  # type: ignore[attr-defined, assignment]
    yield
    close_relays()
