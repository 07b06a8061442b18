"""A pytest plugin (``-p tests.arm_client.over_tcp``): every board of the run is used as from another machine.

Each board gets a relay that listens on loopback, and whoever attaches to it does so by that relay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from arm_client.session import session
from arm_client.transport.choose import Attachment, Kind, attach
from hbrt.attach.link import Link
from hbrt.board.files import daemon_pid
from hbrt.board.paths import BoardRef, RemoteBoard
from hbrt.board.routes import Routing
from hbrt.errors import NoDaemonError
from tests.remote_relay import RemoteRelay

# What is otherwise with another machine's board (docs/remote.md), by the tests that say how it is with one of this.
DIFFERS = {
    "bytes that an op or another program writes are seen after INVALIDATE, or a task's end": (
        "test_of_a_running_task_drops_its_result_and_gives_the_slot_back",
        "test_both_processes_see_the_same_bytes",
        "test_a_foreign_block_serves_tasks_once_it_is_registered",
        "test_a_part_of_a_block",
        "test_a_block_lives_until_the_last_lets_go",
        "test_a_block_outlives_the_process_that_allocated_it",
        "test_registered_memory_is_cached",
        "test_outlives_a_call_that_gave_up_while_a_core_ran_it",
        "test_their_blocks_live_until_they_end",
        "test_a_closed_connection",
    ),
    "what is written into a block that was freed goes nowhere": ("test_memory_of_a_running_task_lives_until_it_ends",),
    "what is written last by a program that ends without freeing goes nowhere": (
        "test_an_overrun_of_cached_memory_is_found_when_its_process_ends",
    ),
    "looks into the board's directory": ("test_an_unknown_mode_is_refused_where_it_is_read",),
}
_relays: dict[tuple[Path, int], RemoteRelay] = {}


def _attach(
    paths: BoardRef,
    watch: Callable[[Link, Kind], tuple[Kind, bool]],
    _routing: Routing,
    *,
    is_inline: bool = False,
) -> Attachment:
    if is_inline:
        return attach(paths, watch, is_inline=True)
    if isinstance(paths, RemoteBoard):
        return attach(paths, watch)
    pid = daemon_pid(paths)
    if pid is None:
        raise NoDaemonError(f"No board {paths.name} is running; start it with 'hbrt start'.")
    key = paths.path, pid
    if key not in _relays:
        _relays[key] = RemoteRelay(paths.path)
    return attach(_relays[key].board, watch)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what differs, and say why."""
    for why, names in DIFFERS.items():
        for item in items:
            if getattr(item, "originalname", item.name) in names:
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session", autouse=True)
def _over_tcp() -> Iterator[None]:
    session.attach = _attach  # type: ignore[attr-defined, assignment]
    yield
    for relay in _relays.values():
        relay.close()
