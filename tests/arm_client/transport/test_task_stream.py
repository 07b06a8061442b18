"""The stream of tasks to a relay, against a ZeroMQ socket and against one that reads nothing, or goes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from arm_client.transport.task_stream import TaskStream
from hbrt.protocol import zmtp
from tests.limits import PATIENCE_S


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[tuple[str, list[socket.socket]]]:
    """A peer that greets as a PULL socket does, and reads nothing more."""
    accepted: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "tasks"))
        listener.listen()

        def greet() -> None:
            peer, _ = listener.accept()
            peer.sendall(zmtp.GREETING + b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PULL")
            accepted.append(peer)

        greeter = threading.Thread(target=greet)
        greeter.start()
        yield str(tmp_path / "tasks"), accepted
        greeter.join(PATIENCE_S)
        for peer in accepted:
            peer.close()


def send_many(stream: TaskStream, count: int) -> None:
    for _ in range(count):
        stream.send(bytes(90))


def test_messages_arrive_at_a_socket_of_zeromq_in_their_order_also_after_the_end(tmp_path: Path) -> None:
    with zmq.Context() as context, context.socket(zmq.PULL) as pull:
        pull.rcvtimeo = int(PATIENCE_S * 1000)
        pull.bind(f"ipc://{tmp_path / 'tasks'}")
        stream = TaskStream(str(tmp_path / "tasks"), PATIENCE_S)
        sent = [bytes([number % 256]) * size for number, size in enumerate([1, 90, 255, 256, 5000] * 50)]
        for message in sent:
            stream.send(message)
        stream.close()
        assert [pull.recv() for _ in sent] == sent


def test_peer_that_reads_nothing_is_waited_for_a_while(silent: tuple[str, list[socket.socket]]) -> None:
    path, _ = silent
    stream = TaskStream(path, 1)
    with pytest.raises(BlockingIOError):
        send_many(stream, 100_000)
    stream.close()


def test_peer_that_has_gone_is_noticed(silent: tuple[str, list[socket.socket]]) -> None:
    path, accepted = silent
    stream = TaskStream(path, PATIENCE_S)
    accepted.pop().close()
    with pytest.raises(ConnectionError):
        send_many(stream, 2)
    stream.close()
    with pytest.raises(FileNotFoundError):
        TaskStream(f"{path}.none", PATIENCE_S)
