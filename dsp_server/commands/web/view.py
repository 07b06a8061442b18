"""What the page of ``hbrt web`` shows of a board; read once, no matter how many browsers are watching."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dsp_server.commands.mem import memory_line, owners, with_owners
from dsp_server.commands.status import clients_of
from dsp_server.commands.top.report import commands_of, waiting_of
from dsp_server.commands.top.sample import Sampler
from dsp_server.commands.why import document, look
from hbrt.board.log_file import Follower, last_lines
from hbrt.board.paths import BoardPaths, BoardRef, RemoteBoard
from hbrt.control.ask import ask, look_at
from hbrt.errors import BoardError
from hbrt.findings.record import finding_of, merged
from hbrt.findings.sarif import sarif_of
from hbrt.trace.save import save as save_trace

if TYPE_CHECKING:
    from hbrt.control.ask import Daemon
    from hbrt.remote.observer import Observer

MIN_SECONDS = 0.5
"""Time between two reads of the board; browsers that ask in between get the last result."""
TIMELINE_SECONDS = 10.0
MAX_BLOCKS, LOG_LINES = 2000, 200
TASK_KEYS = ("cmd", "name", "kind", "core", "state", "pid", "program", "priority", "claimed_ns", "started_ns",
             "ended_ns", "modeled_ns")  # fmt: skip


class View:
    """A board, in the form that the page needs.

    Args:
        board: The board; it may stop and start again in the meantime.
    """

    def __init__(self, board: BoardRef) -> None:
        self._board = board
        self._lock = threading.Lock()
        self._daemon: Daemon | Observer | None = None
        self._sampler: Sampler
        self._seen_at = 0.0
        self._document: dict[str, Any] = {}

    def document(self) -> dict[str, Any]:
        """The board now, or less than MIN_SECONDS ago; if it is gone, its name and the reason."""
        with self._lock:
            if time.monotonic() - self._seen_at >= MIN_SECONDS or not self._document:
                self._document = self._looked()
                self._seen_at = time.monotonic()
            return self._document

    def waits(self) -> dict[str, Any]:
        """Who waits for whom; this asks the programs where they wait, so it runs only when a user wants it.

        Raises:
            BoardError: no daemon is running, or the board is on another machine.
        """
        if not isinstance(self._board, BoardPaths):
            raise BoardError("'hbrt why' works only on the board's own machine: run it there.")
        return document(self._board, *look(self._board))

    def sarif(self) -> dict[str, Any]:
        """The findings as a SARIF log, for code review tools."""
        return sarif_of(merged(map(finding_of, self.document().get("findings", ()))), str(Path.cwd()))

    def trace(self) -> bytes:
        """The board's trace in Chrome's JSON format; if the board is not traced, its newest tasks.

        Raises:
            BoardError: no daemon is running, or the board is on another machine.
        """
        if not isinstance(self._board, BoardPaths):
            raise BoardError("For a board on another machine, run 'hbrt trace save FILE --board BOARD'.")
        directory = Path(ask(self._board, "trace", do="flush", events=0)["directory"])
        with TemporaryDirectory(prefix="hbrt-trace-") as made:
            save_trace(directory, file := Path(made) / "trace.json")
            return file.read_bytes()

    def close(self) -> None:
        """Release the board."""
        with self._lock:
            self._detach()

    def _looked(self) -> dict[str, Any]:
        try:
            if self._daemon is None:
                self._daemon = look_at(self._board)
                self._sampler = Sampler(self._daemon.request)
            return self._of(self._daemon.request, self._sampler)
        except (BoardError, OSError) as error:
            self._detach()
            return {"board": self._board.name, "gone": str(error), "log": self._log()}

    def _detach(self) -> None:
        daemon, self._daemon = self._daemon, None
        if daemon is not None:
            daemon.close()

    def _of(self, ask: Callable[..., Any], sampler: Sampler) -> dict[str, Any]:
        sample, memory = sampler.look(), ask("mem", most=MAX_BLOCKS)
        status, tasks = sampler.status, sampler.tasks
        newest_ns = tasks[-1]["ended_ns"] if tasks else 0  # another machine has a different clock
        end_ns = time.monotonic_ns() if isinstance(self._board, BoardPaths) else newest_ns
        start_ns = end_ns - TIMELINE_SECONDS * 1e9
        return {
            **sample._asdict(),
            "state": status["state"],
            "image": status["image"],
            "uptime_s": status["uptime_s"],
            "findings": status["findings"],
            "memory_text": memory_line(memory["summary"]),
            "blocks": with_owners(status, memory["blocks"]),
            "tables": {
                "commands": commands_of(sample).as_texts(),
                "programs": clients_of(sample.programs).as_texts(),
                "queue": waiting_of(sample).as_texts(),
                "owners": owners(status, memory["blocks"]).as_texts(),
            },
            "timeline": {
                "end_ns": end_ns,
                "seconds": TIMELINE_SECONDS,
                "tasks": [{key: task[key] for key in TASK_KEYS} for task in tasks if task["ended_ns"] >= start_ns],
            },
            "log": self._log(),
        }

    def _log(self) -> str:
        """The end of the log; empty for a board on another machine, which has its own."""
        if isinstance(self._board, RemoteBoard):
            return ""
        try:
            follower = Follower(self._board.log)
        except OSError:
            return ""
        try:
            return last_lines(self._board.log, LOG_LINES, follower.skip_to_end()).decode("utf-8", "replace")
        finally:
            follower.close()
