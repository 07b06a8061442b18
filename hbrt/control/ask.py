"""Query a board, on this machine or another, without being its client."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, Any, Self

from hbrt.board.files import boards_in, daemon_pid, leftovers
from hbrt.board.paths import BoardPaths, BoardRef, RemoteBoard, is_private_name
from hbrt.errors import NotRunningError, RefusedError, WrongUseError
from hbrt.status import Status

if TYPE_CHECKING:
    import zmq

    from hbrt.remote.observer import Observer

LAST_WORD_MS = 200
REQUEST_SECONDS = 10.0


class Daemon:
    """A connection to a running daemon; a context manager."""

    def __init__(self, paths: BoardPaths) -> None:
        """Find the daemon of a board.

        Raises:
            NotRunningError: no daemon is running. BoardError: the board's directory cannot be read.
        """
        self.paths = paths
        pid = daemon_pid(paths)
        if pid is None:
            raise NotRunningError(why_not_running(paths))
        self.pid = pid
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            raise NotRunningError(why_not_running(paths)) from None
        self._context: zmq.Context[Any] | None = None
        self._socket: zmq.Socket[bytes] | None = None
        self._next_id = 0

    def request(self, verb: str, timeout_s: float = REQUEST_SECONDS, **args: Any) -> Any:
        """Send one request; returns the answer's data.

        Raises:
            RefusedError: the daemon refused, ended meanwhile (HB_SYS_BOARD_LOST) or took too long (HB_DSP_TIMEOUT), or
                an argument is out of range or too long (HB_SYS_INVALID_ARGUMENT).
        """
        import zmq

        from hbrt.protocol import control

        socket = self._socket or self._connect()
        self._next_id += 1
        try:
            raw = control.encode_request(control.ControlRequest(self._next_id, verb, args))
        except control.MalformedMessageError as error:
            raise RefusedError(Status.HB_SYS_INVALID_ARGUMENT, str(error)) from None
        socket.send(raw)
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLIN)
        poller.register(self._pidfd, zmq.POLLIN)
        ready = dict(poller.poll(int(timeout_s * 1000)))
        if socket not in ready and ready and socket.poll(LAST_WORD_MS):
            ready = {socket: zmq.POLLIN}  # it answered and ended: its end shows at once, its answer a moment later
        if socket in ready:
            try:
                reply = control.decode_reply(socket.recv())
            except control.MalformedMessageError as error:
                raise RefusedError(
                    Status.HB_DSP_PERMISSION,
                    f"Cannot read the answer of the daemon of board {self.paths.name} (process {self.pid}): {error} If "
                    f"another version of hbrt started it, stop it with that version, or with 'kill {self.pid}', which "
                    "ends the board.",
                ) from None
            if reply.status:
                raise RefusedError(reply.status, reply.text)
            return reply.data
        if ready:
            raise RefusedError(
                Status.HB_SYS_BOARD_LOST,
                f"The daemon of board {self.paths.name} (process {self.pid}) ended before it answered; see 'hbrt log'.",
            )
        raise RefusedError(
            Status.HB_DSP_TIMEOUT,
            f"The daemon of board {self.paths.name} (process {self.pid}) did not answer '{verb}' in {timeout_s:g} s.",
        )

    def await_end(self, timeout_s: float) -> bool:
        """Wait until the daemon has ended; returns False if it is still running after the time limit."""
        return bool(select.select([self._pidfd], [], [], timeout_s)[0])

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None and self._context is not None:
            self._socket.close()
            self._context.term()
            self._socket = None
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self) -> zmq.Socket[bytes]:
        import zmq

        from hbrt.protocol import control

        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.maxmsgsize = control.MAX_REPLY_BYTES
        self._socket.connect(self.paths.control_endpoint)
        return self._socket


def why_not_running(paths: BoardPaths) -> str:
    """Return the message for a board without a daemon: unknown, dead or offline, and what to do."""
    start = f"hbrt start{how_to_name(paths)}"
    if not paths.path.is_dir():
        others = known_boards(paths)
        known = f"existing boards: {', '.join(others)}" if others else "no boards exist"
        return f"No board {paths.name} in {paths.path.parent} ({known}). Start one with '{start}'."
    if leftovers(paths):
        return (
            f"The daemon of board {paths.name} died and left its files. Start it again with '{start}', or remove "
            f"them with 'hbrt stop{how_to_name(paths)}'."
        )
    return f"Board {paths.name} is offline. Start it with '{start}'."


def known_boards(paths: BoardPaths) -> list[str]:
    """Return the names of the boards in the same home as this one, running or not."""
    try:
        boards = boards_in(paths.path.parent)
    except OSError:
        return []
    return [board.name for board in boards if board.log.exists() and not is_private_name(board.name)]


def how_to_name(paths: BoardRef) -> str:
    """Return the command-line option that names a board, empty for the default board."""
    from hbrt.board.paths import board_ref, home

    if paths == board_ref():
        return ""
    return f" --board {paths.name if paths.path.parent == home() else paths.path}"


def look_at(paths: BoardRef) -> Daemon | Observer:
    """Return a connection to a board of this machine or, read-only through its relay, of another machine.

    Raises:
        NotRunningError: no daemon is running. RefusedError: no relay answers, or it refuses this program.
        WrongUseError: a farm's address does not name a board.
    """
    if not isinstance(paths, RemoteBoard):
        return Daemon(paths)
    from hbrt.remote.observer import Observer

    return Observer(paths)


def ask(paths: BoardRef, verb: str, timeout_s: float = REQUEST_SECONDS, **args: Any) -> Any:
    """Send one request to a board's daemon; returns the answer's data.

    Raises:
        NotRunningError: no daemon is running. RefusedError: as for ``Daemon.request``.
    """
    with look_at(paths) as daemon:
        return daemon.request(verb, timeout_s, **args)


def farm_status(farm: BoardRef) -> Any:
    """Return a farm's boards, lessees and queue as plain data.

    Raises:
        WrongUseError: not a farm's address. RefusedError: no farm answers, or it refuses this program.
    """
    if not (isinstance(farm, RemoteBoard) and farm.is_leased):
        raise WrongUseError(f"{farm.name} is not a farm: give one as farm://HOST:PORT, or in HBRT_BOARD.")
    from hbrt.remote.lease import status_of

    return status_of(farm)
