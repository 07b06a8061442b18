"""A board of the module's own, on which each test is a program with checks; what it finds fails no test by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from arm_client.client import Board
from arm_client.session import session as sessions
from hbrt.board.paths import OF_A_TEST, BoardPaths, private_directory
from hbrt.findings.record import Finding, finding_of
from tests.arm_client.conftest import Chip

OPS = Path(__file__).parents[1] / "images" / "ops.py"


@pytest.fixture(scope="module")
def watched_board() -> Iterator[sessions.Session]:
    session = sessions.start_board(private_directory(OF_A_TEST), image=str(OPS))
    yield session
    session.close()


@pytest.fixture
def check() -> str:
    """What the program watches; a test gives another one by its parameter."""
    return "memory"


@pytest.fixture
def watched(watched_board: sessions.Session, check: str) -> Iterator[Chip]:
    """The program, attached with these checks."""
    paths = watched_board.link.paths
    assert isinstance(paths, BoardPaths)
    session = sessions.Session(paths, check=check)
    session.users, session.is_silent = 1, True
    before = sessions.set_default(session)
    chip = Chip(Board(session))
    try:
        yield chip
        chip.free_all()
    finally:
        sessions.set_default(before)
        session.close()


@pytest.fixture
def findings(watched: Chip) -> Callable[[], list[Finding]]:
    """``findings()``: those of the program so far, the latest last."""
    client = watched.board.session.link.client_id
    return lambda: [one for raw in watched.board.status()["findings"] if (one := finding_of(raw)).client == client]
