"""The daemon's loop: readable, writable, due, a number that is used again; and the signals that end a server."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from dsp_server.process.event_loop import Loop

if TYPE_CHECKING:
    from dsp_server.process.event_loop import Timer

SERVER = """
import sys
from dsp_server.process.event_loop import Loop, ended_by_signals
loop, asked = Loop(), []
with ended_by_signals(loop, lambda: asked.append(1)):
    print("serves", flush=True)
    while not asked:
        loop.step()
loop.close()
print("ends", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


def test_readable_descriptor_calls_its_handler_until_it_is_read(loop: Loop) -> None:
    bell = os.eventfd(0)
    calls: list[int] = []
    loop.watch(bell, lambda: calls.append(1))
    os.eventfd_write(bell, 1)
    loop.step()
    loop.step()
    assert calls == [1, 1]
    loop.unwatch(bell)
    loop.unwatch(bell)  # again is no harm
    assert not loop.is_watched(bell)
    loop.later(0.0, lambda: calls.append(2))
    loop.step()
    assert calls == [1, 1, 2]
    os.close(bell)


def test_closed_peer_calls_the_handler(loop: Loop) -> None:
    ours, theirs = socket.socketpair()
    calls: list[bytes] = []
    loop.watch(ours.fileno(), lambda: calls.append(ours.recv(1)))
    theirs.close()
    loop.step()
    assert calls == [b""]
    loop.unwatch(ours.fileno())
    ours.close()


def test_timers_are_called_in_order_once_and_cancelled_ones_never(loop: Loop) -> None:
    calls: list[str] = []
    timers: list[Timer] = [
        loop.later(delay, lambda name=name: calls.append(name))  # type: ignore[misc]
        for delay, name in ((0.02, "third"), (0.0, "first"), (0.01, "second"), (0.005, "never"))
    ]
    timers[3].cancel()
    while len(calls) < 3:
        loop.step()
    assert calls == ["first", "second", "third"]
    assert not any(timer.is_waiting for timer in timers)
    timers[0].fire()
    assert len(calls) == 3


def test_timer_that_sets_a_timer_leaves_the_others_their_turn(loop: Loop) -> None:
    bell = os.eventfd(1)
    calls: list[str] = []

    def again() -> None:
        calls.append("timer")
        loop.later(0.0, again)

    loop.watch(bell, lambda: calls.append("bell"))
    again()
    for _ in range(3):
        loop.step()
    assert calls.count("bell") == 3
    loop.unwatch(bell)
    os.close(bell)


def test_event_of_a_closed_descriptor_never_reaches_who_uses_its_number_next(loop: Loop) -> None:
    first, second = os.eventfd(1), os.eventfd(1)
    calls: list[str] = []

    def replace(mine: int, other: int) -> Callable[[], None]:
        def handler() -> None:
            calls.append("old")
            loop.unwatch(mine)
            loop.unwatch(other)
            os.close(other)
            reused = os.eventfd(0)
            assert reused == other
            loop.watch(reused, lambda: calls.append("new"))  # nobody has rung this one

        return handler

    loop.watch(first, replace(first, second))
    loop.watch(second, replace(second, first))
    loop.step()
    assert calls == ["old"]
    for fd in (first, second):
        loop.unwatch(fd)
        os.close(fd)


def _until_it_would_wait(call: Callable[[], object]) -> None:
    with contextlib.suppress(BlockingIOError):
        while True:
            call()


def test_writable_handler_is_called_once_when_there_is_room(loop: Loop) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    calls: list[str] = []
    loop.watch(ours.fileno(), lambda: calls.append("readable"))
    _until_it_would_wait(lambda: ours.send(bytes(10_000)))
    loop.when_writable(ours.fileno(), lambda: calls.append("writable"))
    loop.later(0.0, lambda: calls.append("nothing yet"))
    loop.step()
    assert calls == ["nothing yet"]
    theirs.setblocking(False)
    _until_it_would_wait(lambda: theirs.recv(10_000))
    loop.step()
    assert calls == ["nothing yet", "writable"]
    loop.later(0.0, lambda: calls.append("no more"))
    loop.step()
    assert calls[2:] == ["no more"]
    loop.unwatch(ours.fileno())
    loop.when_writable(ours.fileno(), lambda: calls.append("not watched"))
    ours.close()
    theirs.close()


def test_a_second_signal_does_not_change_the_exit_code() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", SERVER], stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "serves\n"
        server.send_signal(signal.SIGTERM)
        assert server.stdout.readline() == "ends\n"
        for second in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            server.send_signal(second)
        server.communicate("\n")
    assert server.returncode == 0
