"""Boards of a test's own: a daemon process, its image, and clients of it in this process."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import hbrt.board.launch
from arm_client.client import Board
from arm_client.session.session import Session
from hbrt.board.files import remove_files
from hbrt.board.launch import DaemonConfig, Launched, launch
from hbrt.board.paths import BoardPaths, home
from hbrt.control.ask import ask
from tests.limits import PATIENCE_S, with_limits
from tests.waiting import await_end, until

LIVES = Path(__file__).parent / "images" / "lives.py"
NO_LIMITS: Mapping[str, float] = {}


class Which(NamedTuple):
    """Who answered."""

    core: int
    pid: int
    value: int


class Running:
    """A daemon that runs, and what a test does with it."""

    WHICH, HOLD, DIE, EXIT_SOON, TOUCH = range(0x1000, 0x1005)  # ops of lives.py
    EXIT, KILL, SEGFAULT = range(3)  # ways to DIE

    def __init__(self, config: DaemonConfig) -> None:
        self.config = config
        self.paths = BoardPaths(Path(config.directory))
        self.launched: Launched = launch(config)
        self.pid = self.launched.pid
        self.boards: list[Board] = []

    def attach(self) -> Board:
        """A client of its own, in this process."""
        session = Session(self.paths)
        session.users = 1
        board = Board(session)
        self.boards.append(board)
        return board

    def ask(self, verb: str, **args: Any) -> Any:
        return ask(self.paths, verb, PATIENCE_S, **args)

    def core(self, index: int) -> dict[str, Any]:
        cores: list[dict[str, Any]] = self.ask("status")["cores"]
        return cores[index]

    def log(self) -> str:
        return self.paths.log.read_text(encoding="utf-8")

    def hold(self, board: Board, core: int = 1) -> Held:
        """A task that runs on a core (a mask) until it is let go."""
        return Held(self, board, core).await_running()

    def which(self, board: Board, core: int = 0) -> Which:
        """Who answers a call: ``core`` is a mask."""
        answer = board.call(self.WHICH, None, board.alloc(12), core=core)
        raw = bytes(answer.view())
        answer.free()
        return Which(*(int.from_bytes(raw[at : at + 4], "little") for at in (0, 4, 8)))

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End the daemon by a signal, and collect it."""
        os.kill(self.pid, number)
        os.waitpid(self.pid, 0)

    until = staticmethod(until)
    await_end = staticmethod(await_end)

    def close(self) -> None:
        for board in self.boards:
            board.close()
        if self.launched.lifeline >= 0:
            os.close(self.launched.lifeline)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class Held:
    """A HOLD task and its block: running until it is let go."""

    def __init__(self, running: Running, board: Board, core: int = 1) -> None:
        self.block = board.alloc(64)
        self.flags = self.block.view()
        self.task = board.submit(running.HOLD, self.block, core=core)

    def await_running(self) -> Held:
        Running.until(lambda: self.flags[0], "a held task's start")
        return self

    def let_go(self) -> None:
        self.flags[1] = 1


@pytest.fixture
def directory() -> Path:
    """Where a board of this test may live; nothing is there yet."""
    return home() / f"board-{secrets.token_hex(4)}"


@pytest.fixture
def start(directory: Path) -> Iterator[Callable[..., Running]]:
    """``start(image=..., cores=..., **config)``: a board in ``directory`` (or ``path``) that ends with the test.

    ``limits`` are constants of its daemon that are to be others than the product's (see tests/limits.py).
    """
    started: list[Running] = []

    def make(
        image: Path | None = LIVES, *, path: Path | None = None, limits: Mapping[str, float] = NO_LIMITS, **options: Any
    ) -> Running:
        settings = {"cores": 2, "ddr_bytes": 64 << 20, "is_private": True, "load_seconds": PATIENCE_S, **options}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hbrt.board.launch, "PROGRAM", with_limits(limits, hbrt.board.launch.PROGRAM))
            running = Running(DaemonConfig(str(path or directory), str(image) if image else None, **settings))
        started.append(running)
        return running

    yield make
    for running in reversed(started):
        running.close()
        remove_files(running.paths, keep_log=False)  # what a daemon that was killed could not


@pytest.fixture
def write_image(tmp_path: Path) -> Callable[..., Path]:
    """``write_image(value=1, before="", instead="")``: an image whose WHICH answers with ``value``.

    ``before`` runs at the start of main(), ``instead`` in place of hb_dsp_start().
    """

    def write(value: int = 1, *, before: str = "pass", instead: str = "hb_dsp_start()", name: str = "image.py") -> Path:
        path = tmp_path / name
        source = LIVES.read_text(encoding="utf-8").replace("(1).to_bytes", f"({value}).to_bytes")
        source = source.replace("    hb_dsp_env_init()\n", f"    {before}\n    hb_dsp_env_init()\n")
        temporary = path.with_suffix(".new")
        temporary.write_text(source.replace("    hb_dsp_start()\n", f"    {instead}\n"), encoding="utf-8")
        temporary.replace(path)
        return path

    return write
