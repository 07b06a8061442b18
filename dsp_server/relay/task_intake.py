"""The connections on which programs send tasks: each message is a task, read by the thread that queues it.

The kernel limits the backlog: a program that sends faster than the relay reads is blocked in its own write.
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
MAX_AT_ONCE = 64  # messages from one program before the others get their turn
MAX_BYTES = 256  # per task, even if encoded by another msgpack; longer messages are truncated
RETRY_SECONDS = 0.1  # retry interval when out of descriptors


class TaskIntake:
    """The listening socket and its connections.

    Args:
        loop: Event loop that reads them.
        path: The socket's file; a leftover one is replaced.
        on_task: Receives a message; if it returns False, the connection that the message came on is closed.
        is_stream: Whether more messages may be waiting behind that one.
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
        self._connections: dict[socket.socket, deque[bytes]] = {}  # with the messages that have been read ahead
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
            return  # the program is already gone
        except OSError as error:
            self._log(f"The relay cannot accept a program: {error.strerror}. It will retry.")
            self._loop.unwatch(self._listener.fileno())  # it stays readable
            self._loop.later(RETRY_SECONDS, lambda: self._loop.watch(self._listener.fileno(), self._accept))
            return
        connection.setblocking(False)
        self._connections[connection] = deque()
        self._loop.watch(connection.fileno(), partial(self._receive, connection))

    def _receive(self, connection: socket.socket) -> None:
        """Take the waiting messages; the loop calls this again if there are more."""
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
        """Read waiting messages ahead, for later: for use while a task waits.

        A signal handler may send tasks in a program that holds the claim lock while the relay waits for the lock.
        """
        self._has_read_ahead = True
        for connection, ahead in self._connections.items():
            with contextlib.suppress(OSError):  # the next read will report it again
                while len(ahead) < MAX_AHEAD and (raw := connection.recv(MAX_BYTES)):
                    ahead.append(raw)

    def work_off(self) -> None:
        """Process the messages that were read ahead."""
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
        """End all connections; messages sent but not read are lost."""
        for connection in list(self._connections):
            self._end(connection)
        self._loop.unwatch(self._listener.fileno())
        self._listener.close()
