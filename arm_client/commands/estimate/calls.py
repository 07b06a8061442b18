"""The calls to estimate: a program's calls on its own board, or the calls that a board remembers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import click

from arm_client.commands.estimate.what_if import as_toml
from hbrt import settings
from hbrt.board.paths import BoardPaths, BoardRef
from hbrt.board.private import private_daemon
from hbrt.control.ask import ask
from hbrt.models.run.accelerator import LOAD_PRIORITY
from hbrt.profiles.estimate import Call, calls_of
from hbrt.profiles.profile import Profile, from_answer

MOST = 1_000_000


class Known(NamedTuple):
    """The calls that a board remembers: it keeps the newest tasks of each core.

    Attributes:
        calls: Successful calls of DSP ops and models.
        unknown_runs: Number of successful model runs without a known time.
        forgotten: How many tasks it no longer remembers.
    """

    calls: list[Call]
    unknown_runs: int
    forgotten: int


def calls_of_board(board: BoardRef, cmd: int) -> tuple[Profile, Known]:
    """The profile of a running board, and the calls of a command that it remembers.

    Raises:
        click.UsageError: it remembers no such calls.
    """
    profile = from_answer(ask(board, "profile"))
    known = _known(board)
    calls = [one for one in known.calls if one.cmd == cmd]
    if not calls:
        raise click.UsageError(
            f"Board {board.name} has no record of a successful call of command {cmd:#x}; make one, then try again."
        )
    return profile, known._replace(calls=calls)


def _known(board: BoardRef) -> Known:
    rows: list[dict[str, Any]] = ask(board, "tasks", last=MOST)
    ended = sum(core["tasks"] for core in ask(board, "status")["cores"])
    unknown_runs = sum(
        row["kind"] != "dsp" and row["state"] == "done" and not row["modeled_ns"] and row["priority"] != LOAD_PRIORITY
        for row in rows
    )
    return Known(calls_of(rows), unknown_runs, max(0, ended - len(rows)))


def calls_of_program(command: list[str], profile: Profile, image: str) -> Known:
    """Run a program on its own board with a profile; the calls that it made.

    Raises:
        click.UsageError: the program cannot be executed, or makes no call that ends well.
        click.ClickException: it fails.
        DidNotStartError: the board does not start.
    """
    with board_of(profile, image) as board:
        environment = {**os.environ, "HBRT_BOARD": str(board.path), "HBRT_PROFILE": profile.origin}
        try:
            ran = subprocess.run(command, check=False, env=environment, stdout=sys.stderr)
        except OSError as error:
            raise click.UsageError(
                f"Cannot execute {command[0]}: {error.strerror}. A program is a .py or an executable file, a model an "
                ".onnx file."
            ) from None
        known = _known(board)
    what = " ".join(command)
    if ran.returncode:
        raise click.ClickException(
            f"{what} exited with code {ran.returncode}; `hbrt estimate` needs a successful run. It ran on a private "
            "board; for your own ops pass --image FILE."
        )
    if not known.calls and not known.unknown_runs:
        raise click.UsageError(f"{what} made no successful call.")
    return known


@contextmanager
def board_of(profile: Profile, image: str) -> Iterator[BoardPaths]:
    """A private board with a profile.

    Raises:
        DidNotStartError: it does not start.
    """
    with ExitStack() as board, os.fdopen(os.memfd_create("profile"), "w", encoding="utf-8") as file:
        file.write(as_toml(profile))  # into memory: nothing is left when this process is killed
        file.flush()
        with settings.set_to("HBRT_PROFILE", f"/proc/{os.getpid()}/fd/{file.fileno()}"):
            daemon = private_daemon(image, cores=profile.whole("cores.dsp.count"))
            paths = board.enter_context(daemon)
        yield paths
