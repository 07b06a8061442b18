"""Starting a daemon as a process of its own, and hearing whether it runs. Both sides use it; it imports neither."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from hbrt.board import BoardError, BoardPaths, make_directory

START_SECONDS = 60.0


class DaemonConfig(NamedTuple):
    """What a daemon is told when it starts."""

    directory: str
    image: str | None = None
    cores: int = 2
    ddr_bytes: int = 2 << 30
    is_reloading: bool = False
    is_private: bool = False  # ends with the process that started it, and removes its directory


class Launched(NamedTuple):
    """A daemon that runs."""

    pid: int
    lifeline: int  # a private daemon ends when this descriptor's last copy is closed; -1 for others


def launch(config: DaemonConfig, timeout_s: float = START_SECONDS) -> Launched:
    """Start a daemon, detached from this terminal and session, and wait until its board is running.

    Raises:
        BoardError: it could not start; the message has the daemon's own sentence, or the end of its log.
    """
    paths = BoardPaths(Path(config.directory))
    make_directory(paths)
    ready_read, ready_write = os.pipe()
    life_read, life_write = os.pipe()
    log = os.open(paths.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    high = [os.dup(fd) for fd in (ready_write, life_read)]
    root = str(Path(__file__).resolve().parent.parent)
    program = f"import sys; sys.path.append({root!r}); from dsp_server.supervisor import main; main()"
    argv = [sys.executable, "-P", "-c", program, json.dumps(config._asdict()), str(high[0]), str(high[1])]
    actions = [(os.POSIX_SPAWN_DUP2, null, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, log, standard) for standard in (1, 2)]
    for fd in high:
        os.set_inheritable(fd, True)
    try:
        pid = os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions, setsid=True)
    finally:
        for fd in (*high, log, null, ready_write, life_read):
            os.close(fd)
    try:
        message = _read_to_end(ready_read, timeout_s)
    finally:
        os.close(ready_read)
    answer = _parse(message)
    if not answer.get("ok"):
        os.close(life_write)
        why = answer.get("text") or f"it ended before it was ready. The end of its log:\n{log_tail(paths)}"
        _reap(pid)
        raise BoardError(f"The board {paths.name} did not start: {why}")
    if not config.is_private:
        os.close(life_write)
        life_write = -1
    return Launched(pid, life_write)


def _read_to_end(fd: int, timeout_s: float) -> bytes:
    deadline = time.monotonic() + timeout_s
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    message = b""
    while True:
        left_ms = (deadline - time.monotonic()) * 1000
        if left_ms <= 0 or not poller.poll(left_ms):
            text = f"it said nothing for {timeout_s:.0f} s"
            return json.dumps({"ok": False, "text": text}).encode()
        chunk = os.read(fd, 65536)
        message += chunk
        if not chunk:
            return message


def _parse(message: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(message)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass


def log_tail(paths: BoardPaths, lines: int = 15) -> str:
    """Last lines of a board's log, or a note that there is none."""
    try:
        text = paths.log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "(no log)"
    return "\n".join(text.splitlines()[-lines:]) or "(empty log)"
