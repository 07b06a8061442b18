"""The connection on which tasks go to a relay, written by the thread that submits."""

from __future__ import annotations

import socket
import struct

_NO_SIGNAL = int(socket.MSG_NOSIGNAL)


class TaskStream:
    """A connection to a relay's socket for tasks.

    Args:
        path: The socket's file.
        patience_s: For a relay that reads nothing, at each task.

    Raises:
        OSError: nobody answers there.
    """

    def __init__(self, path: str, patience_s: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            # The kernel's limit: one of Python's costs a call more at each task.
            patience = struct.pack("@ll", int(patience_s), 0)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
            self._socket.connect(path)
        except BaseException:
            self.close()
            raise
        self._send = self._socket.send

    def send(self, message: bytes) -> None:
        """Send a message, whole or not at all.

        Raises:
            BlockingIOError: the relay has read nothing for the time of its patience.
            OSError: it has closed the connection.
        """
        self._send(message, _NO_SIGNAL)

    def close(self) -> None:
        """Close the connection; what was sent still arrives."""
        self._socket.close()
