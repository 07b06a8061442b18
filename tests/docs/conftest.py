"""What the pages are run in: a directory and a home for their own boards, the commands of this installation."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hbrt.board.files import daemon_pid
from hbrt.board.paths import BoardPaths
from hbrt.control.ask import Daemon

OURS = ("HBRT_", "HB_", "PYTHON", "PYTEST_", "VIRTUAL_ENV", "PIP_")


def clean_environment(board_home: Path, programs: Path) -> dict[str, str]:
    """This process's environment without what would show in a page, and with ``programs`` first on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    path = f"{programs}{os.pathsep}{kept.get('PATH', '')}"
    kept.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))  # so that each run compiles no kernel anew
    return {**kept, "PATH": path, "HBRT_HOME": str(board_home), "HOME": str(board_home.parent), "COLUMNS": "100"}


@pytest.fixture
def page_environment(board_home: Path) -> Iterator[dict[str, str]]:
    """Environment in which a page's blocks run with this installation."""
    yield clean_environment(board_home, Path(sys.executable).parent)
    end_boards(board_home)


def end_boards(home: Path) -> list[str]:
    """End every board of a home; returns their names."""
    running = [paths for path in sorted(home.iterdir()) if daemon_pid(paths := BoardPaths(path)) is not None]
    for paths in running:
        with Daemon(paths) as daemon:
            daemon.request("stop")
            daemon.await_end(10)
    return [paths.name for paths in running]
