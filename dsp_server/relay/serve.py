"""The relay process: one per board, found through its lock file, in a terminal or detached from it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from functools import partial

from dsp_server.clients import RELAY
from dsp_server.process.event_loop import ended_by_signals
from dsp_server.process.launch import fork_detached, raise_descriptor_limit, set_title
from hbrt.board.files import lock_file, lock_holder
from hbrt.board.launch import open_log
from hbrt.board.paths import BoardPaths
from hbrt.errors import BoardError, WrongUseError


class RelayBusyError(WrongUseError):
    """Another relay already serves the board."""


def write_log(sentence: str) -> None:
    """Write a line to the board's log, or to the terminal."""
    stamp = time.strftime("%H:%M:%S", time.localtime())
    with contextlib.suppress(OSError):  # a full disk must not end the relay
        os.write(2, f"{stamp} relay {sentence}\n".encode("utf-8", "replace"))


def serve(paths: BoardPaths, idle_seconds: float, on_running: Callable[[], None]) -> None:
    """Run a board's relay until a signal, the end of the board, or the idle limit stops it.

    Args:
        paths: The board.
        idle_seconds: Idle limit: the relay ends after this time without clients; 0 for never.
        on_running: Called once the relay is serving.

    Raises:
        RelayBusyError: the board already has a relay. BoardError: no daemon serves the board, or it refused.
    """
    _refuse_second(paths)
    from dsp_server.relay.server import Relay
    from hbrt.attach.link import LocalLink

    raise_descriptor_limit()
    link = LocalLink(paths, RELAY)
    lock = None
    try:
        # Take the lock second: its directory belongs to the board only while the daemon is running.
        lock = lock_file(paths.relay_lock)
        if lock is None:
            _refuse_second(paths)
            raise RelayBusyError(f"Board {paths.name} already has a relay.")
        relay = Relay(link, idle_seconds, write_log)
        try:
            with ended_by_signals(relay, relay.stop):
                on_running()
                set_title("relay", paths.name)
                relay.run()
        finally:
            relay.close()
    finally:
        link.close()
        if lock is not None:
            _remove_files(paths, lock)


def start_detached(paths: BoardPaths, idle_seconds: float) -> int:
    """Start a relay without this terminal; return its process id, or that of the relay that already serves the board.

    Raises:
        BoardError: the relay could not start; the text has the relay's reason.
    """
    pid, word = detach(paths, lambda announce: serve(paths, idle_seconds, lambda: announce("running")))
    if word == "running":
        return pid
    os.waitpid(pid, 0)
    holder = lock_holder(paths.relay_lock)
    if word == "busy" and holder is not None:
        return holder
    raise BoardError(word or f"The relay of board {paths.name} exited before it was running; see 'hbrt log'.")


def detach(paths: BoardPaths, body: Callable[[Callable[[str], None]], None]) -> tuple[int, str]:
    """Run ``body(announce)`` in a process without this terminal.

    Returns:
        The process id and the announced word: the body's own, ``busy`` for a RelayBusyError, the text of another
        BoardError, or nothing if the process ended without announcing any.
    """
    pid, ready = fork_detached(partial(serve_and_announce, body), open_log(paths))
    with open(ready, "rb") as words:  # noqa: PTH123 - a descriptor, not a path
        return pid, words.read().decode()


def serve_and_announce(body: Callable[[Callable[[str], None]], None], ready_fd: int) -> int:
    """Run ``body(announce)``; ``ready_fd`` receives the message that ``detach`` describes. Return an exit code."""

    def announce(word: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # the starter has exited
            os.write(ready_fd, word.encode())
        os.close(ready_fd)

    try:
        body(announce)
    except RelayBusyError:
        announce("busy")
        return 0
    except BoardError as error:
        announce(str(error))
        return 3
    return 0


def _refuse_second(paths: BoardPaths) -> None:
    holder = lock_holder(paths.relay_lock)
    if holder is not None:
        raise RelayBusyError(f"Board {paths.name} already has a relay: process {holder}. Nothing was changed.")


def _remove_files(paths: BoardPaths, lock: int) -> None:
    """Remove this relay's files, unless a later daemon has removed them and a later relay has created new ones."""
    with contextlib.suppress(OSError):
        if os.path.samestat(os.fstat(lock), paths.relay_lock.lstat()):
            paths.relay.unlink(missing_ok=True)
            paths.relay_tasks.unlink(missing_ok=True)
            paths.relay_lock.unlink(missing_ok=True)
    os.close(lock)
