"""A program with checks on a board that several tests share; what it finds fails no test by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from arm_client.client import Board
from arm_client.session import session as sessions
from hbrt.board.paths import OF_A_TEST, BoardPaths, private_directory
from hbrt.findings.record import Finding, finding_of


@contextmanager
def shared_board(image: Path | None = None, **options: Any) -> Iterator[BoardPaths]:
    """A board with an image, None for the packaged ops, and options of ``start_board``; nothing is watched on it."""
    session = sessions.start_board(private_directory(OF_A_TEST), image=None if image is None else str(image), **options)
    paths = session.link.paths
    assert isinstance(paths, BoardPaths)
    try:
        yield paths
    finally:
        session.close()


@contextmanager
def program_with(paths: BoardPaths, check: str) -> Iterator[Board]:
    """This process as a program on the board, with checks, and its C names on it."""
    session = sessions.Session(paths, check=check)
    session.users, session.is_silent = 1, True
    before = sessions.set_default(session)
    try:
        yield Board(session)
    finally:
        sessions.set_default(before)
        session.close()


def findings_of(board: Board) -> list[Finding]:
    """What was found of this program so far, the latest last."""
    client = board.session.link.client_id
    return [one for raw in board.status()["findings"] if (one := finding_of(raw)).client == client]
