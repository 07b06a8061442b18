"""The stream on which tasks go to a relay, written by the thread that submits: no thread of ZeroMQ's comes between."""

from __future__ import annotations

import socket
import struct

from hbrt.protocol import zmtp

_NO_SIGNAL = int(socket.MSG_NOSIGNAL)


class TaskStream:
    """A connection to a relay's socket for tasks.

    Args:
        path: The socket's file.
        patience_s: For the greetings; and for a relay that reads nothing, at each task.

    Raises:
        OSError: nobody answers there.
    """

    def __init__(self, path: str, patience_s: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # The kernel's limits: one of Python's costs a call more at each task.
            for limited in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
                self._socket.setsockopt(socket.SOL_SOCKET, limited, struct.pack("@ll", int(patience_s), 0))
            self._socket.connect(path)
            self._socket.sendall(zmtp.GREETING)
            self._take(len(zmtp.GREETING))
            self._socket.sendall(zmtp.READY_TO_PUSH)
            head = self._take(2)
            self._take(zmtp.needed_bytes(head) - len(head))  # its READY: what is left unread would end the stream early
        except BaseException:
            self.close()
            raise
        self._send = self._socket.send

    def _take(self, size_bytes: int) -> bytes:
        found = self._socket.recv(size_bytes, socket.MSG_WAITALL)
        if len(found) < size_bytes:
            raise ConnectionResetError("The relay has closed the connection.")
        return found

    def send(self, message: bytes) -> None:
        """Send a message, whole or not at all: one write of it takes no partial one.

        Raises:
            BlockingIOError: the relay has read nothing for the time of its patience.
            OSError: it has closed the connection.
        """
        self._send(zmtp.frame(message), _NO_SIGNAL)

    def close(self) -> None:
        """Close the connection; what was sent still arrives."""
        self._socket.close()
