"""Starts and stops boards through the ``hbrt`` command, and asks them for their processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

IMAGE = Path(__file__).with_name("board_image.py")
NOOP_CMD, ECHO_CMD, ADD_CMD = 0x1000, 0x1001, 0x1002


def hbrt(*arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run the ``hbrt`` of this Python's environment and return what it prints."""
    command = Path(sysconfig.get_path("scripts")) / "hbrt"
    program = [str(command)] if command.exists() else [sys.executable, "-m", "hbrt"]
    env = {**os.environ, **(environment or {})}
    done = subprocess.run([*program, *arguments], env=env, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise RuntimeError(f"hbrt {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def running_board(name: str, cores: int, image: Path = IMAGE) -> Iterator[None]:
    """Run a board with an image, the benchmarks' own; HBRT_HOME says where, for it and for its clients."""
    hbrt("start", "--board", name, "--image", str(image), "--cores", str(cores))
    try:
        yield
    finally:
        hbrt("stop", "--board", name)


def core_pids(environment: Mapping[str, str]) -> list[int]:
    """Return the process of each core of the board that ``environment`` names."""
    status = json.loads(hbrt("status", "--board", environment["HBRT_BOARD"], "--json", environment=environment))
    return [int(core["pid"]) for core in status["cores"]]
