"""The relay process: one for each board, found by its lock file, in a terminal or detached from it."""

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
    """Another relay serves the board."""


def write_log(sentence: str) -> None:
    """Write a line to the log of the board, or to the terminal."""
    stamp = time.strftime("%H:%M:%S", time.localtime())
    with contextlib.suppress(OSError):  # a full disk must not end the relay
        os.write(2, f"{stamp} relay {sentence}\n".encode("utf-8", "replace"))


def serve(paths: BoardPaths, idle_seconds: float, on_running: Callable[[], None]) -> None:
    """Serve as the relay of a board until a signal, the end of the board, or the idle limit.

    Args:
        paths: The board.
        idle_seconds: Idle limit: the relay ends after so long without clients; 0 for never.
        on_running: Called once, when the relay serves.

    Raises:
        RelayBusyError: the board has a relay. BoardError: no daemon serves the board, or it refused.
    """
    _refuse_second(paths)
    from dsp_server.relay.server import Relay
    from hbrt.attach.link import LocalLink

    raise_descriptor_limit()
    link = LocalLink(paths, RELAY)
    lock = None
    try:
        # The lock comes second: its directory belongs to the board only while the daemon runs.
        lock = lock_file(paths.relay_lock)
        if lock is None:
            _refuse_second(paths)
            raise RelayBusyError(f"The board {paths.name} has a relay already.")
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
    """Start a relay without this terminal; returns its process id, or that of the relay which serves the board.

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
    raise BoardError(word or f"The relay of board {paths.name} ended before it served; see 'hbrt log'.")


def detach(paths: BoardPaths, body: Callable[[Callable[[str], None]], None]) -> tuple[int, str]:
    """Run ``body(announce)`` in a process without this terminal.

    Returns:
        The process id and the announced word: the body's own, ``busy`` for a RelayBusyError, the sentence of another
        BoardError, or nothing when the process ended without a word.
    """
    pid, ready = fork_detached(partial(serve_and_announce, body), open_log(paths))
    with open(ready, "rb") as words:  # noqa: PTH123 - a descriptor, not a path
        return pid, words.read().decode()


def serve_and_announce(body: Callable[[Callable[[str], None]], None], ready_fd: int) -> int:
    """Run ``body(announce)``; ``ready_fd`` gets the word that ``detach`` describes. Returns an exit code."""

    def announce(word: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # the starter has ended
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
        raise RelayBusyError(f"The board {paths.name} has a relay already: process {holder}. Nothing was changed.")


def _remove_files(paths: BoardPaths, lock: int) -> None:
    """Remove the files of this relay, unless a later daemon has removed them before and a later relay has new ones."""
    with contextlib.suppress(OSError):
        if os.path.samestat(os.fstat(lock), paths.relay_lock.lstat()):
            paths.relay.unlink(missing_ok=True)
            paths.relay_tasks.unlink(missing_ok=True)
            paths.relay_lock.unlink(missing_ok=True)
    os.close(lock)
