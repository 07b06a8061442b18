"""A relay that listens on TCP, as a process of its own, for tests of either side."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from hbrt.board import RemoteBoard, board_paths

LIMIT_S = 20.0


class RemoteRelay:
    """A relay of a board that listens at a free port of loopback; a context manager."""

    def __init__(self, board: Path, keys: Path | None = None) -> None:
        command = [sys.executable, "-m", "dsp_server.relay", "--board", str(board), "--listen", "tcp://127.0.0.1:0"]
        if keys is not None:
            command += ["--keys", str(keys)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.communicate()[1])
        found = board_paths(line.partition("listens at ")[2].partition(";")[0])
        assert isinstance(found, RemoteBoard)
        self.board = found
        self.log = ""

    @property
    def address(self) -> str:
        """What HBRT_BOARD is to say."""
        return self.board.name

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send its process a signal."""
        os.kill(self.process.pid, number)

    def close(self) -> None:
        """End it; ``log`` then has what it said."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        self.log += self.process.communicate(timeout=LIMIT_S)[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
