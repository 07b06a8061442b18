"""``hbrt start``: bring a board, or one core of it, to ``running``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from hbrt import settings
from hbrt.board.files import already_running, daemon_pid
from hbrt.board.launch import LOAD_SECONDS, DaemonConfig, Launched
from hbrt.board.paths import BoardPaths
from hbrt.cli.options import (
    aging_option,
    board_option,
    check_option,
    dma_order_option,
    image_option,
    option_given,
    profile_option,
    timeout_option,
    to_bytes,
    together,
    watchdog_option,
)
from hbrt.cli.report import Report, is_json, reports
from hbrt.ddr.layout import MAX_CORES
from hbrt.errors import BoardBusyError
from hbrt.profiles.profile import active

daemon_options = together(
    board_option,
    image_option(
        "--image",
        "-i",
        help="Image: a Python file, or a shared library from C, whose main() registers ops. Default: all packaged ops.",
    ),
    click.option(
        "--cores",
        metavar="N",
        type=click.IntRange(1, MAX_CORES),
        help="Number of DSP cores; each is a process. Default: HBRT_CORES, else that of the profile.",
    ),
    click.option(
        "--ddr",
        metavar="SIZE",
        callback=to_bytes,
        default=lambda: str(settings.size_bytes("HBRT_DDR")),
        help="Device memory, such as 512M; untouched pages cost nothing. Default: HBRT_DDR, else 2G.",
    ),
    click.option(
        "--reload",
        "is_reloading",
        is_flag=True,
        help="Restart the cores when the image, or a module next to it, changes; a broken image is ignored.",
    ),
    watchdog_option,
    click.option(
        "--recovery",
        type=click.Choice(["enabled", "disabled"]),
        default="enabled",
        show_default=True,
        help="Whether a crashed core restarts by itself.",
    ),
    aging_option,
    check_option,
    dma_order_option,
    profile_option,
    timeout_option(LOAD_SECONDS),
)
"""The options that say what to serve."""


@click.command(epilog="Example: hbrt start --image my_image.py --cores 2 --ddr 512M")
@daemon_options
@click.option("--foreground", is_flag=True, help="Stay in this terminal and show the log; Ctrl-C stops the board.")
@click.option("--core", metavar="N", type=click.IntRange(min=0), help="Start only this core of a running board.")
@reports
def command(board: BoardPaths, core: int | None, *, foreground: bool, **served: Any) -> Report | None:
    """Start a board and return once it is running, or say why it is not.

    With --core N, start a core of a running board that is offline or crashed.
    """
    if core is not None:
        return _start_core(board, core, served["timeout"])
    config = _config(board, **served)
    if foreground:
        if is_json():
            raise click.UsageError("Use either --foreground or --json: the log is not JSON.")
        _serve(config)
        return None
    if pid := daemon_pid(board):
        raise BoardBusyError(already_running(board, pid))
    from dsp_server.daemon.start import start_detached

    return _report(config, start_detached(config))


@click.command(
    epilog="Example: dsp_server --image my_image.py", context_settings={"help_option_names": ["-h", "--help"]}
)
@daemon_options
def daemon(board: BoardPaths, **served: Any) -> None:
    """Run a board's daemon in this terminal, and show its log; Ctrl-C ends it. Same as 'hbrt start --foreground'."""
    from hbrt.cli.group import mapped_exits

    with mapped_exits():
        _serve(_config(board, **served))


def main() -> None:
    """Run the ``dsp_server`` program once it is loaded (see hbrt.programs)."""
    from hbrt.cli.group import be_program

    be_program(daemon, "dsp_server")


def _config(
    board: BoardPaths,
    *,
    image: Path | None,
    cores: int | None,
    ddr: int,
    timeout: float,
    recovery: str,
    is_reloading: bool,
) -> DaemonConfig:
    return DaemonConfig(
        directory=str(board.path),
        image=str(image.absolute()) if image else None,
        cores=active().dsp_cores(cores),
        ddr_bytes=ddr,
        is_reloading=is_reloading,
        load_seconds=timeout,
        is_recovering=recovery == "enabled",
    )


def _serve(config: DaemonConfig) -> None:
    from dsp_server.daemon.start import serve_in_foreground

    def on_running(removed: list[str]) -> None:
        launched = Launched(BoardPaths(Path(config.directory)), os.getpid(), -1, tuple(removed))
        _report(config, launched).show(as_json=False)

    serve_in_foreground(config, on_running)


def _report(config: DaemonConfig, launched: Launched) -> Report:
    name, removed = launched.paths.name, list(launched.removed)
    fields = {"board": name, "directory": config.directory, "state": "running", "pid": launched.pid}
    cores, ddr = active().cores_text(config.cores), settings.format_size(config.ddr_bytes)
    return Report(
        {**fields, "removed": removed},
        *([f"Removed the files of a dead daemon: {', '.join(removed)}."] if removed else []),
        f"Board {name} is running: {cores}, {ddr} of DDR, daemon process {launched.pid}.",
    )


def _start_core(board: BoardPaths, core: int, timeout: float) -> Report:
    from hbrt.control.ask import ask

    if option := option_given("image", "cores", "ddr", "is_reloading", "foreground", "watchdog", "recovery"):
        raise click.UsageError(f"--core starts one core of a running board; {option} is only for a new board.")
    ask(board, "start_core", timeout, core=core)
    data = {"board": board.name, "core": core, "state": "running"}
    return Report(data, f"Core {core} of board {board.name} is running.")
