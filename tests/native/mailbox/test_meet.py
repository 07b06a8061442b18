"""Programs and cores with the mailbox in C and in Python meet on one board, and nobody can tell them apart."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hbrt.mailbox.native import native
from tests.limits import PATIENCE_S

pytestmark = pytest.mark.skipif(native()[0] is None, reason="the mailbox in C is not built here")
CLIENT = Path(__file__).with_name("client.py")
IMAGE = Path(__file__).with_name("image.py")
KINDS = ["c", "py"]


def environment(board: Path, kind: str) -> dict[str, str]:
    return {**os.environ, "HBRT_BOARD": board.name, "HBRT_HOME": str(board.parent), "HBRT_NATIVE": "10"[kind == "py"]}


@pytest.fixture(params=KINDS, ids=[f"core-{kind}" for kind in KINDS], scope="module")
def board(request: pytest.FixtureRequest) -> Iterator[Path]:
    where = Path(os.environ["HBRT_HOME"]) / f"meet-{request.param}-{os.getpid()}"
    hbrt = [sys.executable, "-m", "hbrt"]
    chosen = environment(where, request.param)
    start = [*hbrt, "start", "--image", str(IMAGE), "--ddr", "64M"]
    subprocess.run(start, env=chosen, check=True, capture_output=True, timeout=PATIENCE_S)
    yield where
    subprocess.run([*hbrt, "stop"], env=chosen, check=True, capture_output=True, timeout=PATIENCE_S)
    shutil.rmtree(where)


def run(board: Path, kind: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(CLIENT), *arguments],
        env=environment(board, kind),
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize("kind", KINDS, ids=[f"client-{kind}" for kind in KINDS])
@pytest.mark.parametrize(
    "life", ["calls", "threads", "in_flight", "failures", "interrupted_polls", "callbacks", "forks", "urgent", "asked"]
)
def test_life(board: Path, kind: str, life: str) -> None:
    answer = run(board, kind, life)
    assert (answer.returncode, answer.stdout) == (0, f"{life}: good\n"), answer.stderr
    assert not answer.stderr
