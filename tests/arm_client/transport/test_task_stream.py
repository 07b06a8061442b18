"""The connection for tasks, to a relay that reads, to one that reads nothing, and to one that goes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from arm_client.transport.relay_channel import TaskStream
from tests.limits import PATIENCE_S


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(tmp_path / "tasks"))
        listener.listen()
        listener.settimeout(PATIENCE_S)
        yield listener


def send_many(stream: TaskStream, count: int) -> None:
    for _ in range(count):
        stream.send(bytes(90))


def test_messages_arrive_whole_and_in_their_order_also_after_the_end(listener: socket.socket) -> None:
    stream = TaskStream(listener.getsockname(), PATIENCE_S)
    sent = [bytes([number % 256]) * size for number, size in enumerate([1, 90, 255] * 20)]
    for message in sent:
        stream.send(message)
    stream.close()
    reader, _ = listener.accept()
    with reader:
        assert [reader.recv(1000) for _ in sent] == sent
        assert reader.recv(1000) == b""


def test_peer_that_reads_nothing_is_waited_for_a_while(listener: socket.socket) -> None:
    stream = TaskStream(listener.getsockname(), 1)
    with pytest.raises(BlockingIOError):
        send_many(stream, 100_000)
    stream.close()


def test_peer_that_has_gone_is_noticed(listener: socket.socket) -> None:
    path = listener.getsockname()
    stream = TaskStream(path, PATIENCE_S)
    listener.accept()[0].close()
    with pytest.raises(ConnectionError):
        send_many(stream, 2)
    stream.close()
    with pytest.raises(FileNotFoundError):
        TaskStream(f"{path}.none", PATIENCE_S)
