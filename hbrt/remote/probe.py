"""Detects what listens at a relay's address before ZeroMQ connects, which would silently retry forever.

A ZeroMQ peer greets with 64 bytes (ZMTP 3): signature, version, then the name of its security mechanism. This
distinguishes at once a wrong address, some other server, and a relay that requires keys.
"""

from __future__ import annotations

import socket
import time

from hbrt.board.paths import RemoteBoard
from hbrt.errors import RefusedError
from hbrt.status import Status

CONNECT_SECONDS = 5.0
GREETING_BYTES = 64
_MIN_SECONDS = 0.001  # 0 would mean not to wait at all
_SIGNATURE = b"\xff" + bytes(8) + b"\x7f"
_VERSION = b"\x03\x01"


def mechanism(board: RemoteBoard) -> str:
    """Return ``NULL`` for a relay without keys, ``CURVE`` for one with keys.

    Raises:
        RefusedError: nothing listens there, or it is not a relay.
    """
    is_connected, greeting = False, b""
    kind, verb = ("farm", "hbrt farm serve") if board.is_leased else ("relay", "hbrt relay --listen")
    deadline = time.monotonic() + CONNECT_SECONDS
    try:
        with socket.create_connection((board.host, board.port), CONNECT_SECONDS) as connection:
            is_connected = True
            connection.sendall(_SIGNATURE + _VERSION)  # no more: a peer closes when it sees another mechanism
            while len(greeting) < GREETING_BYTES and (more := connection.recv(GREETING_BYTES - len(greeting))):
                greeting += more
                connection.settimeout(max(deadline - time.monotonic(), _MIN_SECONDS))  # however slowly it sends
    except TimeoutError:
        hangs = f"what listens there does not greet like a {kind}: it is something else, or it hangs"
        raise RefusedError(
            Status.HB_DSP_NOT_RUNNING,
            f"No {kind} answers at {board.name} within {CONNECT_SECONDS:g} s{f'; {hangs}' if is_connected else ''}.",
        ) from None
    except OSError as error:
        why = error.strerror or str(error)
        raise RefusedError(
            Status.HB_DSP_NOT_RUNNING,
            f"Cannot reach a {kind} at {board.name}: {why}. Start one on the board's machine with '{verb}'.",
        ) from None
    name = greeting[12:32].rstrip(b"\0")
    if len(greeting) < GREETING_BYTES or greeting[:1] != b"\xff" or name not in {b"NULL", b"CURVE"}:
        raise RefusedError(
            Status.HB_DSP_NOT_RUNNING,
            f"What listens at {board.name} is not an hbrt {kind}: check the port.",
        )
    return name.decode()
