"""``hbrt stop``: stop a board, or one of its cores."""

from __future__ import annotations

from typing import Any

import click

from dsp_server.clients import RELAY
from hbrt.board.files import daemon_pid, leftovers, remove_stopped
from hbrt.board.paths import BoardPaths
from hbrt.cli.options import board_option, timeout_option
from hbrt.cli.report import Report, reports
from hbrt.control.ask import Daemon, ask
from hbrt.errors import RefusedError
from hbrt.findings.text import counted
from hbrt.status import Status
from hbrt.trace.ring import SUFFIX
from hbrt.trace.switch import FACTS

STOP_SECONDS = 30.0


@click.command(epilog="Example: hbrt stop --core 1")
@board_option
@click.option("--core", metavar="N", type=click.IntRange(min=0), help="Stop only this core, after its running task.")
@timeout_option(STOP_SECONDS)
@reports
def command(board: BoardPaths, core: int | None, timeout: float) -> Report:
    """Stop a board and return once its daemon is gone.

    Running tasks get 3 seconds to end; queued ones fail with HB_DSP_BOARD_LOST. The log is kept. If a board's daemon
    has died, this removes what it left behind, so that the board is offline.
    """
    if core is not None:
        ask(board, "stop_core", timeout, core=core)
        data = {"board": board.name, "core": core, "state": "offline"}
        return Report(data, f"Core {core} of board {board.name} is offline.")
    if daemon_pid(board) is None and leftovers(board):
        removed = remove_stopped(board)
        clients: list[dict[str, Any]] = []
    else:
        removed, clients = _stop(board, timeout)
    sentence = f"Board {board.name} is offline."
    if removed:
        sentence += f" Removed: {', '.join(_in_short(removed))}."
    clients = [client for client in clients if client["name"] != RELAY]  # the relay ends with its board
    if clients:
        names = ", ".join(f"{client['pid']} ({client['name']})" for client in clients)
        sentence += f" Processes that were attached: {names}; their calls return HB_DSP_BOARD_LOST."
    fields = {"board": board.name, "directory": str(board.path), "state": "offline", "removed": removed}
    return Report({**fields, "detached": [client["pid"] for client in clients]}, sentence)


def _in_short(removed: list[str]) -> list[str]:
    """Names of removed files; the many files of a trace are only counted."""
    others = [name for name in removed if not name.endswith((SUFFIX, FACTS))]
    count = len(removed) - len(others)
    return [*others, f"{counted(count, 'file')} of its trace"] if count else others


def _stop(board: BoardPaths, timeout: float) -> tuple[list[str], list[dict[str, Any]]]:
    """Stop the board; return names of the removed files, and the clients that were attached."""
    clients: list[dict[str, Any]] = []
    with Daemon(board) as daemon:
        before = [*leftovers(board), board.lock]
        try:
            clients = daemon.request("status", timeout)["clients"]
            daemon.request("stop", timeout)
        except RefusedError as error:
            if error.status == Status.HB_DSP_TIMEOUT:
                raise RefusedError(
                    error.status,
                    f"{error} If it hangs, 'kill -9 {daemon.pid}' ends it and its cores; "
                    "after that, 'hbrt stop' removes its files.",
                ) from None
            if error.status != Status.HB_SYS_BOARD_LOST:
                raise  # a daemon that ends before its answer arrives has done as asked, whoever asked
        if not daemon.await_end(timeout):
            raise TimeoutError(
                f"The daemon of board {board.name} (process {daemon.pid}) still runs after {timeout:g} s; see 'hbrt "
                f"log'. 'kill -9 {daemon.pid}' ends it and its cores."
            )
    return [path.name for path in before if not path.exists()], clients
