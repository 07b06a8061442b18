"""The calls that an estimate is of: those of a program on a board of its own, or those that a board remembers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from arm_client.commands.estimate.what_if import as_toml
from hbrt import settings
from hbrt.board.launch import DaemonConfig, launch
from hbrt.board.paths import BoardPaths, BoardRef, private_directory
from hbrt.control.ask import ask
from hbrt.profiles.estimate import Call, calls_of
from hbrt.profiles.profile import Profile, from_rows

MOST = 1_000_000


def calls_of_board(board: BoardRef, cmd: int | None) -> tuple[Profile, list[Call]]:
    """The profile of a running board, and the calls of a command that it remembers, of all commands for None.

    Raises:
        click.UsageError: it remembers none.
    """
    told = ask(board, "profile")
    profile = from_rows(told["name"], told["title"], told["origin"], told["constants"])
    calls = [one for one in calls_of(ask(board, "tasks", last=MOST)) if cmd is None or one.cmd == cmd]
    if not calls:
        what = "no call" if cmd is None else f"no call of command {cmd:#x}"
        raise click.UsageError(f"The board {board.name} remembers {what} that ended well; make one, then ask again.")
    return profile, calls


def calls_of_program(command: list[str], profile: Profile, image: Path | None) -> list[Call]:
    """Run a program on a board of its own with a profile; the calls that it made, at most the 4096 newest of a core.

    Raises:
        click.UsageError: the program cannot be executed, fails, or makes no call that ends well.
        DidNotStartError: the board does not start.
    """
    with board_of(profile, image) as board:
        environment = {**os.environ, "HBRT_BOARD": str(board.path), "HBRT_PROFILE": profile.origin}
        try:
            ran = subprocess.run(command, check=False, env=environment, stdout=sys.stderr)
        except OSError as error:
            raise click.UsageError(f"{command[-1]} cannot be executed: {error.strerror}.") from None
        rows: list[dict[str, Any]] = ask(board, "tasks", last=MOST)
    if ran.returncode:
        raise click.UsageError(f"{' '.join(command)} ended with {ran.returncode}: an estimate needs it to end well.")
    calls = calls_of(rows)
    if not calls:
        raise click.UsageError(f"{' '.join(command)} made no call that ended well.")
    return calls


@contextmanager
def board_of(profile: Profile, image: Path | None) -> Iterator[BoardPaths]:
    """A private board with a profile.

    Raises:
        DidNotStartError: it does not start.
    """
    before = os.environ.get("HBRT_PROFILE")
    directory = private_directory()
    with os.fdopen(os.memfd_create("profile"), "w", encoding="utf-8") as file:  # nothing is left when this is killed
        file.write(as_toml(profile))
        file.flush()
        os.environ["HBRT_PROFILE"] = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        try:
            named = str(image.absolute()) if image else settings.text("HBRT_IMAGE")
            daemon = launch(
                DaemonConfig(
                    directory=str(directory),
                    image=str(Path(named).absolute()) if named else None,
                    cores=profile.whole("cores.dsp.count"),
                    ddr_bytes=settings.size_bytes("HBRT_DDR"),
                    is_private=True,
                )
            )
        finally:
            if before is None:
                del os.environ["HBRT_PROFILE"]
            else:
                os.environ["HBRT_PROFILE"] = before
        try:
            yield BoardPaths(directory)
        finally:
            os.close(daemon.lifeline)
            os.waitpid(daemon.pid, 0)
