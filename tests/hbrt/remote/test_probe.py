"""Who listens at a relay's address, as a client finds out before it connects."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from pathlib import Path

import pytest

from hbrt.board.paths import RemoteBoard
from hbrt.errors import RequestRefusedError
from hbrt.remote import probe

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(52, b"\0")
PAUSE_SECONDS = 0.02  # after each byte: six times the limit in all


def test_a_listener_has_one_limit_for_all_that_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = len(GREETING) * PAUSE_SECONDS / 6
    monkeypatch.setattr(probe, "CONNECT_SECONDS", limit)

    def greet_slowly(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # who asked has had enough
            connection, _ = listener.accept()
            with connection:
                for byte in GREETING:
                    connection.sendall(bytes([byte]))
                    time.sleep(PAUSE_SECONDS)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        speaking = threading.Thread(target=greet_slowly, args=[listener])
        speaking.start()
        board = RemoteBoard(Path(f"tcp:/127.0.0.1:{listener.getsockname()[1]}"))
        try:
            with pytest.raises(RequestRefusedError, match=rf"No relay answers at .* within {limit:g} s"):
                probe.mechanism(board)
        finally:
            speaking.join()
