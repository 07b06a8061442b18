"""Programs and cores with the mailbox in C and in Python meet on one board, and nobody can tell them apart."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.limits import PATIENCE_S

CLIENT = Path(__file__).with_name("client.py")
IMAGE = Path(__file__).with_name("image.py")


def environment(board: Path) -> dict[str, str]:
    return {**os.environ, "HBRT_BOARD": board.name, "HBRT_HOME": str(board.parent)}


@pytest.fixture(scope="module")
def board() -> Iterator[Path]:
    where = Path(os.environ["HBRT_HOME"]) / f"meet-{os.getpid()}"
    hbrt = [sys.executable, "-m", "hbrt"]
    chosen = environment(where)
    start = [*hbrt, "start", "--image", str(IMAGE), "--ddr", "64M"]
    subprocess.run(start, env=chosen, check=True, capture_output=True, timeout=PATIENCE_S)
    yield where
    subprocess.run([*hbrt, "stop"], env=chosen, check=True, capture_output=True, timeout=PATIENCE_S)
    shutil.rmtree(where)


def run(board: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(CLIENT), *arguments],
        env=environment(board),
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize(
    "life", ["calls", "threads", "in_flight", "failures", "interrupted_polls", "callbacks", "forks", "urgent", "asked"]
)
def test_life(board: Path, life: str) -> None:
    answer = run(board, life)
    assert (answer.returncode, answer.stdout) == (0, f"{life}: good\n"), answer.stderr
    assert not answer.stderr
