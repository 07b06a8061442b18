"""Requests over a lease's connection, whose other end the test has."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from hbrt.attach.question import Question
from hbrt.attach.requests import Requests
from hbrt.errors import RequestRefusedError
from hbrt.protocol import control
from hbrt.protocol.control import ControlReply, ControlRequest
from hbrt.status import Status
from tests.limits import PATIENCE_S

PHY = 0x8000_1000


class Link:
    """The attachment of a program, and the end of its daemon."""

    def __init__(self) -> None:
        self.lease, self.daemon = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.daemon.settimeout(PATIENCE_S)
        self.fault = 0
        self.is_detaching = False
        self.request_ms = int(PATIENCE_S * 1000)
        self.requests = Requests(self)

    def lose(self) -> None:
        self.fault = Status.HB_DSP_BOARD_LOST

    def why_faulty(self) -> str:
        return "The daemon has gone."

    def note_request(self, start_ns: int, verb: str) -> None:
        """Not traced."""

    def ask(self, verb: str, question: Question | None = None, **args: Any) -> ControlReply:
        return self.requests.ask(question or Question(), verb, args)

    def hear(self) -> tuple[int, ControlRequest]:
        """The next request, with the number of its head."""
        packet = self.daemon.recv(control.PACKET_BYTES)
        size, number = control.HEAD.unpack_from(packet)
        assert size == len(packet) - control.HEAD.size
        return number, control.decode_request(packet[control.HEAD.size :])

    def say(self, number: int, data: Any) -> None:
        """Answer a request, in packets."""
        raw = control.encode_reply(ControlReply(number, 0, "", data))
        message = control.HEAD.pack(len(raw), number) + raw
        for at in range(0, len(message), control.PACKET_BYTES):
            self.daemon.send(message[at : at + control.PACKET_BYTES])


@pytest.fixture
def link() -> Iterator[Link]:
    link = Link()
    yield link
    link.requests.close()
    link.lease.close()
    link.daemon.close()


def test_what_a_late_answer_grants_is_given_back_with_the_next_request(link: Link) -> None:
    link.request_ms, slots = 1, [1]
    for verb, question in (("alloc", None), ("slots", Question(undo=lambda data: lambda: slots.extend(data)))):
        with pytest.raises(RequestRefusedError, match=f"did not answer '{verb}'") as caught:
            link.ask(verb, question, **({"count": 2} if question else {"size": 1, "cached": 0}))
        assert caught.value.status == Status.HB_DSP_TIMEOUT
    (late, _), (later, _) = link.hear(), link.hear()
    link.say(late, PHY)
    link.say(later, [2, 3])
    for _ in range(2):  # the first one takes them in
        with pytest.raises(RequestRefusedError):
            link.ask("status")
        assert link.hear()[1].verb == "status"
        if slots == [1]:
            continue
        assert slots == [1, 2, 3]
        break
    number, undo = link.hear()
    assert (number, undo.verb, undo.args) == (0, "free", {"phy": PHY})


def test_threads_that_ask_at_once_get_each_its_own_answer_in_any_order_and_size(link: Link) -> None:
    sizes, found = (0, 10, 1 << 17, 900_000), {}
    threads = [
        threading.Thread(target=lambda last: found.update({last: link.ask("tasks", last=last).data}), args=(size + 1,))
        for size in sizes
    ]
    for thread in threads:
        thread.start()
    for _ in sizes:
        number, request = link.hear()
        link.say(number, bytes(request.args["last"] - 1))
    for thread in threads:
        thread.join(PATIENCE_S)
    assert found == {size + 1: bytes(size) for size in sizes}


def test_a_daemon_that_goes_is_noticed_by_who_waits(link: Link) -> None:
    gone = threading.Timer(0.01, link.daemon.close)
    gone.start()
    with pytest.raises(RequestRefusedError, match="has gone") as caught:
        link.ask("status")
    assert caught.value.status == Status.HB_DSP_BOARD_LOST
    gone.join()


def test_an_answer_may_be_taken_while_another_thread_closes(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    class ClosedInBetween:
        """The library, with a close before an answer is read, as when the program's main thread ends."""

        def __getattr__(self, name: str) -> Any:
            if name == "hbrt_answer_end":
                monkeypatch.undo()
                link.requests.close()
            return getattr(lib, name)

    lib = link.requests._lib
    monkeypatch.setattr(link.requests, "_lib", ClosedInBetween())
    answers = threading.Thread(target=lambda: link.say(link.hear()[0], PHY))
    answers.start()
    assert link.ask("alloc", size=1, cached=0).data == PHY
    answers.join(PATIENCE_S)
    link.requests.tell("free", {"phy": PHY})
    assert link.fault == Status.HB_DSP_BOARD_LOST
