"""Tests as programs with checks, on a board of the module's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hbrt.board.paths import BoardPaths
from hbrt.findings.record import Finding
from tests.arm_client.conftest import Chip
from tests.watched import findings_of, program_with, shared_board


@pytest.fixture(scope="module")
def watched_board() -> Iterator[BoardPaths]:
    with shared_board(Path(__file__).parents[1] / "images" / "ops.py") as paths:
        yield paths


@pytest.fixture
def check() -> str:
    """What the program watches; a test gives another one by its parameter."""
    return "memory"


@pytest.fixture
def watched(watched_board: BoardPaths, check: str) -> Iterator[Chip]:
    """The program, attached with these checks."""
    with program_with(watched_board, check) as board:
        chip = Chip(board)
        yield chip
        chip.free_all()


@pytest.fixture
def findings(watched: Chip) -> Callable[[], list[Finding]]:
    """``findings()``: those of the program so far, the latest last."""
    return lambda: findings_of(watched.board)
