"""Looking at a board over a relay that talks nonsense."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zmq

from hbrt.board.paths import RemoteBoard
from hbrt.errors import RefusedError
from hbrt.protocol.remote import RemoteFrame, encode
from hbrt.remote.observer import Observer
from hbrt.status import Status

LIMIT_MS = 10_000


@contextmanager
def relay_that_says(frame: bytes) -> Iterator[RemoteBoard]:
    """Something at a free port of loopback that answers the first frame with this one."""
    context: zmq.Context[Any] = zmq.Context()
    socket: zmq.Socket[bytes] = context.socket(zmq.ROUTER)
    port = socket.bind_to_random_port("tcp://127.0.0.1")

    def answer() -> None:
        if socket.poll(LIMIT_MS):
            identity, _ = socket.recv_multipart()
            socket.send_multipart([identity, frame])

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield RemoteBoard(Path(f"tcp:/127.0.0.1:{port}"))
    finally:
        thread.join()
        socket.close(0)
        context.term()


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (b"\xc1", "The frame is not msgpack"),
        (encode(RemoteFrame.REPLY, 1, b"\xc1"), "The frame is not msgpack"),
    ],
)
def test_nonsense_is_told_in_the_same_words_wherever_it_is_found(
    monkeypatch: pytest.MonkeyPatch, frame: bytes, why: str
) -> None:
    monkeypatch.delenv("HBRT_KEYS", raising=False)
    with relay_that_says(frame) as board, Observer(board) as observer, pytest.raises(RefusedError) as caught:
        observer.request("status")
    assert str(caught.value).startswith(f"Invalid message from the relay at {board.name}. {why}")
    assert caught.value.status == Status.HB_DSP_RELAY_LOST
