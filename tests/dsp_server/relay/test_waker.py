"""The waker of the relay: which handlers it calls when descriptors are closed and their numbers are used again."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import zmq

from dsp_server.relay.waker import Waker


class Rung:
    """A waker and the socket that it wakes."""

    def __init__(self) -> None:
        self._context = zmq.Context[zmq.Socket[bytes]]()
        self._pull = self._context.socket(zmq.PULL)
        self._pull.bind("inproc://waker")
        self.waker = Waker(self._context, "inproc://waker", 10.0)
        self.called: list[str] = []
        self.fds: list[int] = []

    def watch(self, name: str, *, is_ready: bool) -> int:
        """Watch a new descriptor."""
        fd = os.eventfd(int(is_ready))
        self.fds.append(fd)
        self.waker.watch(fd, lambda: self.called.append(name))
        return fd

    def replace(self, fd: int, name: str) -> None:
        """Close a descriptor, and watch another of the same number that is not ready."""
        self.waker.unwatch(fd)
        fresh = os.eventfd(0)
        os.dup2(fresh, fd)
        os.close(fresh)
        self.waker.watch(fd, lambda: self.called.append(name))

    def await_ring(self) -> None:
        assert self._pull.poll(20_000)
        assert self._pull.recv() == self.waker.message

    def close(self) -> None:
        self.waker.close()
        self._pull.close(0)
        self._context.term()
        for fd in self.fds:
            os.close(fd)


@pytest.fixture
def rung() -> Iterator[Rung]:
    made = Rung()
    yield made
    made.close()


def test_who_is_ready_is_called_until_it_is_not(rung: Rung) -> None:
    fd = rung.watch("it", is_ready=True)
    for _ in range(2):
        rung.await_ring()
        rung.waker.dispatch()
    assert rung.called == ["it", "it"]
    os.eventfd_read(fd)


def test_a_number_that_comes_again_before_the_answer_is_not_taken_for_the_old_one(rung: Rung) -> None:
    fd = rung.watch("old", is_ready=True)
    rung.await_ring()
    rung.replace(fd, "new")
    rung.waker.dispatch()
    assert rung.called == []


def test_nor_one_that_an_earlier_handler_brings(rung: Rung) -> None:
    # Whichever of two is called first closes the other, as a goodbye does before the end of its process is seen.
    fds = [os.eventfd(0) for _ in range(2)]
    rung.fds += fds

    def handle(mine: int, others: int) -> None:
        rung.called.append("first")
        os.eventfd_read(mine)
        rung.replace(others, "new")

    rung.waker.watch(fds[0], lambda: handle(fds[0], fds[1]))
    rung.waker.watch(fds[1], lambda: handle(fds[1], fds[0]))
    for fd in fds:
        os.eventfd_write(fd, 1)
    rung.await_ring()
    rung.waker.dispatch()
    assert rung.called == ["first"]
