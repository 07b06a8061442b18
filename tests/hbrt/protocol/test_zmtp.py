"""The bytes of a ZeroMQ stream, against those that ZeroMQ's own library writes and reads."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import zmq

from hbrt.protocol import zmtp
from tests.limits import PATIENCE_S


@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000])
def test_a_message_goes_to_zeromq_and_back(size: int, tmp_path: Path) -> None:
    message, path = bytes(range(256)) * (size // 256) + bytes(size % 256), tmp_path / "router"
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router, socket.socket(socket.AF_UNIX) as dealer:
        router.bind(f"ipc://{path}")
        dealer.settimeout(PATIENCE_S)
        dealer.connect(str(path))
        dealer.sendall(zmtp.GREETING)
        greeting = b""
        while len(greeting) < len(zmtp.GREETING):
            greeting += dealer.recv(len(zmtp.GREETING) - len(greeting))
        dealer.sendall(zmtp.READY + zmtp.frame(message))
        assert router.poll(int(PATIENCE_S * 1000))
        identity, got = router.recv_multipart()
        assert got == message
        router.send_multipart([identity, message])
        stream = b""
        while [one for one, _ in zmtp.frames(stream)] != [None, message]:
            stream += dealer.recv(1 << 16)
        assert [end for _, end in zmtp.frames(stream)][-1] == len(stream)


def test_a_frame_is_whole_with_its_last_byte_and_no_sooner() -> None:
    for message in (b"", b"short", bytes(300)):
        stream = zmtp.frame(message)
        for end in range(len(stream)):
            assert list(zmtp.frames(stream[:end])) == []
            assert zmtp.needed_bytes(stream[:end]) in {0, len(stream)}
        assert list(zmtp.frames(stream * 2)) == [(message, len(stream)), (message, 2 * len(stream))]
