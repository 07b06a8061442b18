"""The connections for tasks at the relay: each ends alone, and a lack of descriptors passes."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from arm_client.transport.relay_channel import TaskStream
from dsp_server.process.event_loop import Loop
from dsp_server.relay.task_intake import TaskIntake
from tests.limits import PATIENCE_S


class Served:
    """An intake, and what came by it."""

    def __init__(self, path: Path) -> None:
        self.path, self.loop = path, Loop()
        self.tasks: list[bytes] = []
        self.said: list[str] = []
        self.while_it_waits: Callable[[], object] = list
        path.write_bytes(b"")  # a relay that was killed leaves its socket
        self.intake = TaskIntake(self.loop, path, self._on_task, lambda: True, self.said.append)

    def _on_task(self, raw: bytes) -> bool:
        self.tasks.append(raw)
        if raw == b"waits":
            self.while_it_waits()
        return raw != b"nonsense"

    def program(self) -> TaskStream:
        return TaskStream(str(self.path), PATIENCE_S)

    def take(self, count: int) -> list[bytes]:
        while len(self.tasks) < count:
            self.loop.step()
            self.intake.work_off()
        taken, self.tasks = self.tasks, []
        return taken


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path / "tasks")
    yield served
    served.loop.close()
    served.intake.close()


def test_a_connection_ends_alone(served: Served) -> None:
    one, other = served.program(), served.program()
    for message in (b"1", b"nonsense", b"never read"):
        one.send(message)
    for message in (b"2", b"3"):
        other.send(message)
    other.close()
    assert sorted(served.take(4)) == [b"1", b"2", b"3", b"nonsense"]
    with pytest.raises(ConnectionError):
        one.send(b"late")
    one.close()
    third = served.program()
    third.send(b"4")
    assert served.take(1) == [b"4"]
    third.close()


def test_programs_send_on_while_a_task_waits(served: Served) -> None:
    one, other = served.program(), served.program()
    messages = [b"%d" % number for number in range(2000)]  # many more than the kernel keeps

    def send_on() -> None:
        for at, message in enumerate(messages):
            one.send(message)
            if at % 50 == 0:
                served.intake.read_ahead()

    served.while_it_waits = send_on
    one.send(b"waits")
    assert served.take(1 + len(messages)) == [b"waits", *messages]
    other.send(b"last")
    assert served.take(1) == [b"last"]
    one.close()
    other.close()


def test_a_lack_of_descriptors_passes(served: Served) -> None:
    program = served.program()
    program.send(b"1")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = os.dup(0)
    os.close(spare)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare, limits[1]))
        served.loop.step()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert served.take(1) == [b"1"]
    assert served.said == ["The relay cannot accept a program: Too many open files. It will retry."]
    program.close()
