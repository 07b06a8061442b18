"""``hbrt status``: a board at a glance, in the words of remoteproc."""

from __future__ import annotations

import time
from typing import Any

import click

from dsp_server.commands.mem import memory_line
from hbrt.board import BoardPaths, NotRunningError, daemon_pid, leftovers
from hbrt.cli_options import board_option, json_option
from hbrt.control_client import ask, why_not_running
from hbrt.settings import format_size
from hbrt.tables import Column, duration, show_json, show_table

_CORE_COLUMNS = (
    Column("CORE", is_number=True),
    Column("STATE"),
    Column("PID", is_number=True),
    Column("TASKS", is_number=True),
    Column("BUSY", is_number=True),
    Column("CYCLES", is_number=True),
    Column("RESTARTS", is_number=True),
    Column("LAST CRASH"),
)
_CLIENT_COLUMNS = (
    Column("CLIENT", is_number=True),
    Column("PID", is_number=True),
    Column("PROGRAM"),
    Column("ATTACHED", is_number=True),
    Column("TASKS", is_number=True),
    Column("BLOCKS", is_number=True),
    Column("MEMORY", is_number=True),
)


@click.command(short_help="Show a board: its cores, memory, clients and findings.")
@board_option
@json_option
@click.pass_context
def command(ctx: click.Context, board: BoardPaths, *, as_json: bool) -> None:
    """Show a board: state, cores, memory, attached programs, and mistakes that it found (overruns, leaks).

    A board that is offline, or whose daemon has died ('crashed'), is shown as such, with exit code 0.
    """
    if daemon_pid(board) is None:
        status = _without_daemon(ctx, board)
        if as_json:
            show_json(status)
        else:
            click.echo(f"Board {board.name} is {status['state']}. {why_not_running(board)}")
        return
    status = ask(board, "status")
    if as_json:
        show_json(status)
    else:
        _show(status)


def _without_daemon(ctx: click.Context, board: BoardPaths) -> dict[str, Any]:
    was_named = ctx.get_parameter_source("board") is not click.core.ParameterSource.DEFAULT
    if was_named and not board.path.is_dir():
        raise NotRunningError(why_not_running(board))
    left = [path.name for path in leftovers(board)]
    state = "crashed" if left else "offline"
    return {"board": board.name, "directory": str(board.path), "state": state, "pid": None, "cores": [], "left": left}


def _show(status: dict[str, Any]) -> None:
    tasks, slots, uptime = status["tasks"], status["slots"], duration(status["uptime_s"])
    click.echo(
        f"Board {status['board']} is {status['state']}: daemon process {status['pid']}, up {uptime}, in "
        f"{status['directory']}."
    )
    click.echo(f"Image {status['image']}.")
    if status["image_error"]:
        click.echo(f"It was changed and does not load; the last good one goes on.\n{status['image_error']}")
    click.echo(memory_line(status["memory"]))
    leased = f"{slots['leased']} of {slots['total']} slots leased"
    click.echo(f"Tasks: {tasks['ready']} ready, {tasks['running']} running; {leased}.")
    click.echo()
    show_table(_CORE_COLUMNS, [_core_row(core) for core in status["cores"]])
    click.echo()
    if status["clients"]:
        show_table(_CLIENT_COLUMNS, [_client_row(client) for client in status["clients"]])
    else:
        click.echo("No program is attached.")
    click.echo()
    if not status["findings"]:
        click.echo("No findings.")
    for found in status["findings"]:
        stamp = time.strftime("%H:%M:%S", time.localtime(found["time"]))
        click.echo(f"{stamp} {found['kind']}: {found['text']}")


def _core_row(core: dict[str, Any]) -> tuple[object, ...]:
    restarts = max(core["epoch"] - 1, 0)
    busy = duration(core["busy_ns"] / 1e9)
    return (
        core["core"],
        core["state"],
        core["pid"],
        core["tasks"],
        busy,
        core["cycles"],
        restarts,
        core["last_crash"] or "-",
    )


def _client_row(client: dict[str, Any]) -> tuple[object, ...]:
    return (
        client["id"],
        client["pid"],
        client["name"],
        duration(client["age_s"]),
        client["tasks"],
        client["blocks"],
        format_size(client["bytes"]),
    )
