"""The same tests by each way to a core: what a program sees must not depend on who carries its tasks.

``direct``: the program writes into the mailbox. ``relay``: a relay process does. ``remote``: the board is reached
by TCP, as from another machine. What only one way has is tested in tests/arm_client/transport/.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from arm_client.session import session
from tests.arm_client.conftest import chip, no_rest, peer, registered
from tests.arm_client.over_tcp import attach_by_tcp, close_relays

__all__ = ["chip", "no_rest", "peer", "registered"]


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers", "differs(mode, reason): the mode differs here on purpose, see docs/remote.md, or repeats another"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what differs by mode."""
    if dropped := [item for item in items if _differs(item)]:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if not _differs(item)]


def _differs(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    mode = callspec.params.get("mode") if callspec is not None else None
    return any(mode in mark.args[:1] for mark in item.iter_markers("differs"))


@pytest.fixture(autouse=True, params=["direct", "relay", "remote"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, _remote_relays_end: None) -> str:
    """Before the fixture that starts the board: the way is chosen when a process attaches."""
    chosen: str = request.param
    if chosen == "remote":
        monkeypatch.setattr(session, "attach", attach_by_tcp)
    else:
        monkeypatch.setenv("HB_DSP_RPC_MODE", chosen)
    return chosen


@pytest.fixture(scope="session")
def _remote_relays_end() -> Iterator[None]:
    yield
    close_relays()
