"""The connections on which programs send tasks: a message is a task, read by the thread that queues it.

The kernel bounds what waits: a program that sends faster than the relay reads waits in its own write.
"""

from __future__ import annotations

import contextlib
import socket
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dsp_server.process.event_loop import Loop
from hbrt.board.paths import socket_path
from hbrt.board.private_files import FILE_MODE
from hbrt.ddr.layout import SLOT_COUNT

MAX_AHEAD = SLOT_COUNT
MAX_AT_ONCE = 64  # messages of one program, before the others have their turn
MAX_BYTES = 256  # of a task, also of one that another msgpack wrote; a longer message is cut
RETRY_SECONDS = 0.1  # for a descriptor


class TaskIntake:
    """The listening socket and its connections.

    Args:
        loop: Reads them.
        path: The socket's file; one that is left there is replaced.
        on_task: Takes a message; False ends the connection that it came by.
        is_stream: Whether more messages may wait behind that one.
        log: Writes a sentence to the log.
    """

    def __init__(
        self,
        loop: Loop,
        path: Path,
        on_task: Callable[[bytes], bool],
        is_stream: Callable[[], bool],
        log: Callable[[str], None],
    ) -> None:
        self._loop, self._on_task, self._is_stream, self._log = loop, on_task, is_stream, log
        self._connections: dict[socket.socket, deque[bytes]] = {}  # with the messages that were read ahead
        self._has_read_ahead = False
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(socket_path(path))
        path.chmod(FILE_MODE)
        self._listener.listen(socket.SOMAXCONN)
        self._listener.setblocking(False)
        loop.watch(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return  # the program is gone again
        except OSError as error:
            self._log(f"The relay cannot accept a program: {error.strerror}. It tries again.")
            self._loop.unwatch(self._listener.fileno())  # which stays readable
            self._loop.later(RETRY_SECONDS, lambda: self._loop.watch(self._listener.fileno(), self._accept))
            return
        connection.setblocking(False)
        self._connections[connection] = deque()
        self._loop.watch(connection.fileno(), partial(self._receive, connection))

    def _receive(self, connection: socket.socket) -> None:
        """Take what waits; the loop calls again while there is more."""
        ahead = self._connections[connection]
        for _ in range(MAX_AT_ONCE):
            try:
                raw = ahead.popleft() if ahead else connection.recv(MAX_BYTES)
            except BlockingIOError:
                return
            except OSError:
                raw = b""
            if not raw or not self._on_task(raw):
                self._end(connection)
                return
            if not self._is_stream():
                return

    def read_ahead(self) -> None:
        """Read what waits, for later: for use while a task waits.

        A signal's handler may send tasks in a program that holds the claim lock, for which the relay waits.
        """
        self._has_read_ahead = True
        for connection, ahead in self._connections.items():
            with contextlib.suppress(OSError):  # the next read has it again
                while len(ahead) < MAX_AHEAD and (raw := connection.recv(MAX_BYTES)):
                    ahead.append(raw)

    def work_off(self) -> None:
        """Take what was read ahead."""
        while self._has_read_ahead:
            late = [connection for connection, ahead in self._connections.items() if ahead]
            self._has_read_ahead = bool(late)
            for connection in late:
                self._receive(connection)

    def _end(self, connection: socket.socket) -> None:
        del self._connections[connection]
        self._loop.unwatch(connection.fileno())
        connection.close()

    def close(self) -> None:
        """End all connections; what was sent and not read is lost."""
        for connection in list(self._connections):
            self._end(connection)
        self._loop.unwatch(self._listener.fileno())
        self._listener.close()
