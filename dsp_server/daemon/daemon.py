"""A board's daemon process: its signals and limits, the board's lock and files, and the reply to its starter."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from dsp_server.daemon.console import Console
from dsp_server.daemon.supervisor import Stop, Supervisor, origin_of
from dsp_server.errors import ImageError
from dsp_server.lifecycle.snapshots import read_image
from dsp_server.process.event_loop import Loop, ended_by_signals
from dsp_server.process.launch import live, raise_descriptor_limit, set_title
from hbrt import settings
from hbrt.board.files import is_still, leftovers, remove_files, take_lock
from hbrt.board.launch import DaemonConfig, check_machine
from hbrt.board.paths import BoardPaths
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import LayoutError
from hbrt.errors import BoardError, WrongUseError
from hbrt.mailbox.native import NativeMissingError, native
from hbrt.profiles.profile import active
from hbrt.settings import BadSettingError
from hbrt.status import Status

REACH_SECONDS = 1.0  # between checks whether the board's files are still there

# Read by the cores' processes.
CORE_SETTINGS = ("HBRT_AGING_MS", "HBRT_CHECK", "HBRT_DMA_ORDER", "HBRT_FILL", "HBRT_SPIN_US", "HBRT_WATCHDOG_MS")


def serve(
    config: DaemonConfig, on_running: Callable[[list[str]], None], lifeline_fd: int = -1, console_fd: int = -1
) -> None:
    """Run a board's daemon until a signal, a request or the end of its starter stops it.

    Args:
        config: The configuration of the board.
        on_running: Called once the board is running, with the names of files left behind by a dead daemon.
        lifeline_fd: Its end of file ends a private board, and any board that is not running yet; -1 for none.
        console_fd: Receives what ops print and what the board finds; -1 to write only to the log.

    Raises:
        BoardError: the board's directory, its state, the descriptor limit or the C mailbox prevents the start.
        ImageError: the image does not load.
        LayoutError: the number of cores or the size of the DDR is out of range. BadSettingError: a setting is.
    """
    try:
        native()  # cores and programs need it: without it, each core would crash until the daemon gives it up
    except NativeMissingError as error:
        raise BoardError(str(error)) from None
    raise_descriptor_limit()
    check_machine()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a starter that ignores it would have its children's ends ignored
    settings.check(*CORE_SETTINGS)
    paths = BoardPaths(Path(config.directory))
    # Check the request before creating anything that would have to be removed.
    read_image(origin_of(config))
    base = active().whole("ddr.base") if config.ddr_base is None else config.ddr_base
    ddr = Ddr.create(config.ddr_bytes, config.cores, base)
    loop, stop = Loop(), Stop()
    with ended_by_signals(loop, stop.ask), _lock(paths, keep_log=not config.is_private) as (lock_fd, removed):
        if lifeline_fd >= 0:
            loop.watch(lifeline_fd, stop.ask)
        supervisor = Supervisor(config, paths, ddr, loop, stop)
        try:
            for name in removed:
                supervisor.journal.say(f"Removed a file left behind by an earlier daemon: {name}.")
            try:
                supervisor.open()
            except (BoardError, ImageError) as error:
                first, *trace = str(error).splitlines()  # the starter gets the full text
                supervisor.journal.say(f"Board {paths.name} did not start. {' '.join((first, *trace[-1:]))}")
                raise
            if console_fd >= 0:
                supervisor.console = Console(paths.log, console_fd, loop)
            loop.unwatch(lifeline_fd)
            if config.is_private:
                loop.watch(lifeline_fd, lambda: supervisor.end_with_starter(lifeline_fd))
            gc.freeze()
            gc.enable()
            supervisor.journal.say(
                f"Board {paths.name} is running: {active().cores_text(config.cores)}, image {origin_of(config)}."
            )
            on_running(removed)
            set_title("daemon", paths.name)
            _end_out_of_reach(supervisor, lock_fd, paths)
            supervisor.run()
        finally:
            supervisor.close()


def serve_and_announce(config: DaemonConfig, ready_fd: int, lifeline_fd: int = -1, console_fd: int = -1) -> int:
    """Run ``serve`` in a process whose starter is waiting; return an exit code.

    Args:
        config: The configuration of the board.
        ready_fd: Receives one JSON line ``{ok, status, text, removed}`` when the board runs or fails to start; see
            hbrt.board.launch.
        lifeline_fd: See ``serve``.
        console_fd: See ``serve``.
    """

    def announce(**fields: Any) -> None:
        nonlocal ready_fd
        fd, ready_fd = ready_fd, -1
        if fd >= 0:
            with contextlib.suppress(BrokenPipeError):  # the starter has exited
                os.write(fd, json.dumps(fields).encode())
            os.close(fd)

    try:
        serve(config, lambda removed: announce(ok=True, removed=removed), lifeline_fd, console_fd)
    except (BoardError, ImageError, LayoutError, BadSettingError) as error:
        announce(ok=False, status=int(_status_of(error)), text=str(error))
        return 3
    except Exception:
        import traceback  # a private board's log has the same text, but is removed with the board

        announce(ok=False, status=int(Status.HB_SYS_NOT_RUNNING), text=traceback.format_exc())
        raise
    return 0


def _end_out_of_reach(supervisor: Supervisor, lock_fd: int, paths: BoardPaths) -> None:
    """Check regularly whether the files of the board are still there: else nobody can reach it, so end it if unused."""
    if is_still(lock_fd, paths.lock) or supervisor.clients.by_id:
        supervisor.loop.later(REACH_SECONDS, lambda: _end_out_of_reach(supervisor, lock_fd, paths))
    else:
        supervisor.stop.ask()


@contextlib.contextmanager
def _lock(paths: BoardPaths, *, keep_log: bool) -> Iterator[tuple[int, list[str]]]:
    """Hold the board's lock; yield its descriptor and the names of files left behind by a dead daemon.

    At the end, all files are removed, unless they are another daemon's: someone may have removed the board's directory.
    """
    lock_fd = take_lock(paths)
    try:
        removed = []
        for path in leftovers(paths):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise BoardError(f"{path} is in the way of the board: {error.strerror}. Remove it.") from None
            removed.append(path.name)
        yield lock_fd, removed
    finally:
        if is_still(lock_fd, paths.lock):
            remove_files(paths, keep_log=keep_log)
        os.close(lock_fd)


def _status_of(error: BoardError | ImageError | LayoutError | BadSettingError) -> Status:
    if isinstance(error, ImageError):
        return error.status
    is_wrong_use = isinstance(error, (WrongUseError, LayoutError, BadSettingError))
    return Status.HB_SYS_INVALID_ARGUMENT if is_wrong_use else Status.HB_SYS_NOT_RUNNING


def main() -> NoReturn:
    """Run a launched daemon; arguments: ``config ready_fd lifeline_fd console_fd`` (see hbrt.board.launch)."""
    config = DaemonConfig(**json.loads(sys.argv[1]))
    ready_fd, lifeline_fd, console_fd = (int(argument) for argument in sys.argv[2:5])
    for fd in (ready_fd, lifeline_fd, console_fd):
        if fd >= 0:
            os.set_inheritable(fd, False)
    live(lambda: serve_and_announce(config, ready_fd, lifeline_fd, console_fd))
