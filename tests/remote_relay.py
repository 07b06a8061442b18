"""A relay that listens on TCP, as its own process, for tests of either side."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from arm_client.client import Board
from arm_client.session.session import Session
from hbrt.board.paths import RemoteBoard, board_ref
from tests.limits import PATIENCE_S, with_limits
from tests.nursery import Server

BRISK_BEAT_S = 0.1  # draining counts beats of the gateway
BRISK = {"dsp_server.gateway.gateway.BEAT_SECONDS": BRISK_BEAT_S}

_PROGRAM = "from dsp_server.commands.relay import main; main()"


def relay_command(
    board: Path, keys: Path | None, limits: Mapping[str, float], listen: str = "tcp://127.0.0.1:0"
) -> list[str]:
    """What starts the process of a ``RemoteRelay``, which says its arguments."""
    command = [sys.executable, "-c", with_limits(limits, _PROGRAM), "--board", str(board), "--listen", listen]
    return command if keys is None else [*command, "--keys", str(keys)]


class RemoteRelay:
    """A relay of a board that listens at a free port of loopback; a context manager.

    Args:
        board: Its directory.
        keys: The relay's; None for a relay without.
        limits: Constants of its process ("module.NAME") that are to be others than the product's.
        listen: Its address, of one that has ended; else a free port.
    """

    def __init__(
        self,
        board: Path,
        keys: Path | None = None,
        limits: Mapping[str, float] = BRISK,
        listen: str = "tcp://127.0.0.1:0",
    ) -> None:
        self.of = board
        command = relay_command(board, keys, limits, listen)
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - until close; no pipe: one that nobody reads gets full
        self.process = Server(command, stdout=subprocess.PIPE, stderr=self._log, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.communicate()
            raise RuntimeError(self.log())
        found = board_ref(line.partition("listens at ")[2].partition(";")[0])
        assert isinstance(found, RemoteBoard)
        self.board = found

    @property
    def address(self) -> str:
        """What HBRT_BOARD is to say."""
        return self.board.name

    def log(self) -> str:
        """What it has said so far; not after ``close``."""
        self._log.seek(0)
        return self._log.read()

    def disconnects(self, program: str) -> list[str]:
        """Lines of its log on programs of a name that it disconnects."""
        return [line for line in self.log().splitlines() if f" {program}:" in line and "disconnects" in line]

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send its process a signal."""
        os.kill(self.process.pid, number)

    def close(self) -> None:
        """End it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        self.process.communicate(timeout=PATIENCE_S)
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class KeptRelays:
    """Relays of the boards that tests get, kept for the next test on the same board: each takes a third of a second."""

    def __init__(self) -> None:
        self._kept: dict[Path, RemoteRelay] = {}

    def of(self, board: Path) -> RemoteRelay:
        """The board's relay; another one when a test has ended the last."""
        relay = self._kept.get(board)
        if relay is None or relay.process.poll() is not None:
            if relay is not None:
                relay.close()
            relay = self._kept[board] = RemoteRelay(board)
        return relay

    def close(self) -> None:
        """End all."""
        for relay in self._kept.values():
            relay.close()


def far_board(relay: RemoteRelay) -> Board:
    """A program with its own connection; ``connect`` would share one."""
    session = Session(relay.board)
    session.users = 1
    return Board(session)


@pytest.fixture(scope="module")
def kept_relays() -> Iterator[KeptRelays]:
    """Relays for the tests of a module."""
    kept = KeptRelays()
    yield kept
    kept.close()
