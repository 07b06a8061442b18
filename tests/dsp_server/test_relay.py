"""A relay as a process of its own, seen through its socket: who may talk, what it refuses, when it ends."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import pytest
import zmq

from hbrt.board_files import lock_holder
from hbrt.link import Link
from hbrt.mailbox import ANSWER, State
from hbrt.relay_wire import RELAY_SAYS, TASK_END, Kind, Message, decode, encode, encode_submit
from hbrt.status import Status
from hbrt.types import HB_DSP_RPC_CMD_PING
from tests.dsp_server.conftest import PATIENCE_S, Running

RESULT_AT = 1  # of ANSWER


class Talker:
    """A connection to a relay, of a program that need not behave."""

    def __init__(self, running: Running) -> None:
        self._context: zmq.Context[Any] = zmq.Context()
        self.socket = self._context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect(running.paths.relay_endpoint)

    def say(self, kind: Kind, *fields: object) -> None:
        self.socket.send(encode(kind, *fields))

    def hear(self) -> Message:
        assert self.socket.poll(int(PATIENCE_S * 1000)), "the relay said nothing"
        return decode(self.socket.recv(), RELAY_SAYS)

    def hello(self, link: Link, client: int | None = None) -> Message:
        nonce = secrets.token_hex(16)
        self.say(Kind.HELLO, link.client_id if client is None else client, nonce, link.proof(nonce))
        return self.hear()

    def submit(self, number: int, phy: int = 0, size_bytes: int = 0, cmd: int = HB_DSP_RPC_CMD_PING) -> None:
        self.socket.send(encode_submit(number, 0, 0, cmd, 0, 0, 0, 0, phy, size_bytes, 0, 0))

    def end(self) -> tuple[int, int, int]:
        """Number, state and result of the next task that ends."""
        kind, fields = self.hear()
        assert kind == Kind.END, (kind, fields)
        number, state, answer = TASK_END.unpack(fields[0])
        return number, state, ANSWER.unpack(answer)[RESULT_AT]

    def close(self) -> None:
        self.socket.close()
        self._context.term()


class Relaying:
    """A board, its relay in the foreground, and what talks to it."""

    def __init__(self, running: Running, *arguments: str) -> None:
        self.running = running
        self._made: list[Talker | Link] = []
        command = [sys.executable, "-m", "dsp_server.relay", "--board", str(running.paths.path), *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert "serves" in self.process.stdout.readline()

    def talker(self) -> Talker:
        talker = Talker(self.running)
        self._made.append(talker)
        return talker

    def link(self) -> Link:
        link = Link(self.running.paths)
        self._made.append(link)
        return link

    def peer(self) -> tuple[Talker, Link]:
        talker, link = self.talker(), self.link()
        assert talker.hello(link) == (Kind.WELCOME, [self.process.pid])
        return talker, link

    def end(self) -> tuple[int, str]:
        """Exit code and log of the relay, which must end."""
        _, log = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, log

    def close(self) -> None:
        for made in self._made:
            made.close()
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=PATIENCE_S)


@pytest.fixture
def relay(start: Callable[..., Running]) -> Iterator[Callable[..., Relaying]]:
    """``relay(*arguments, **config)``: a board and its relay."""
    made: list[Relaying] = []

    def make(*arguments: str, **config: Any) -> Relaying:
        made.append(Relaying(start(**config), *arguments))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_program_that_shows_its_lease_is_served(relay: Callable[..., Relaying]) -> None:
    talker, _ = relay().peer()
    talker.submit(5)
    assert talker.end() == (5, State.DONE, 0)
    talker.say(Kind.PING, 77)
    assert talker.hear() == (Kind.PONG, [77])


def test_nobody_is_served_without_a_lease(relay: Callable[..., Relaying]) -> None:
    served = relay()
    talker, link, other = served.talker(), served.link(), served.link()
    talker.submit(1)
    assert talker.hear().fields == [Status.HB_DSP_RELAY_LOST, "The relay does not know this process; connect anew."]
    kind, (status, text) = talker.hello(link, other.client_id)
    assert (kind, status) == (Kind.REFUSED, Status.HB_DSP_PERMISSION)
    assert f"Client {other.client_id} is not attached with the token that was shown" in text
    assert talker.hello(link, 1000).fields[0] == Status.HB_DSP_PERMISSION
    assert talker.hello(link).kind == Kind.WELCOME


def test_one_program_cannot_use_the_memory_of_another(relay: Callable[..., Relaying]) -> None:
    served = relay()
    (mine, link), (theirs, other) = served.peer(), served.peer()
    phy = other.request("alloc", size=64, cached=0)
    mine.submit(1, phy, 64, Running.WHICH)
    assert mine.end() == (1, State.FAILED, Status.HB_DSP_INVALID_ADDRESS)
    link.request("register", phy=phy, size=64)
    mine.submit(2, phy, 64)
    assert mine.end() == (2, State.DONE, 0)
    theirs.submit(1, phy, 64)
    assert theirs.end() == (1, State.DONE, 0)


def test_nonsense_is_refused_and_the_connection_goes_on(relay: Callable[..., Relaying]) -> None:
    served = relay()
    talker, _ = served.peer()
    for frames in (
        [b""],
        [b"\xc1"],
        [b"a", b"b"],
        [b"a", b"b", b"c"],
        [msgpack.packb([1, 18, b"", b""])],
        [bytes(10_000)],
        [encode(Kind.SUBMIT, bytes(3))],
        [encode(Kind.CANCEL, 0, 0)],
    ):
        talker.socket.send_multipart(frames)
        kind, (status, _) = talker.hear()
        assert (kind, status) == (Kind.REFUSED, Status.HB_DSP_INVALID_ARGUMENT), frames
    talker.submit(1, cmd=70_000)
    assert talker.end() == (1, State.FAILED, Status.HB_DSP_INVALID_ARGUMENT)
    talker.say(Kind.CANCEL, 3, 12345)
    assert talker.hear() == (Kind.STATE, [3, 12345, State.EMPTY])
    talker.say(Kind.DROP, 4, 12345)
    assert talker.hear() == (Kind.STATE, [4, 12345, State.EMPTY])
    talker.submit(2)
    assert talker.end() == (2, State.DONE, 0)


def test_a_frame_over_the_limit_costs_its_sender_the_connection_alone(relay: Callable[..., Relaying]) -> None:
    served = relay()
    (big, _), (small, _) = served.peer(), served.peer()
    big.socket.send(bytes(1 << 20))
    small.submit(1)
    assert small.end() == (1, State.DONE, 0)


def test_who_never_reads_hurts_only_itself(relay: Callable[..., Relaying]) -> None:
    served = relay()
    (deaf, _), (other, _) = served.peer(), served.peer()
    deaf.socket.sndtimeo = int(PATIENCE_S * 1000)
    for number in range(1, 40_001):  # more than what the sockets and the relay hold of its answers
        deaf.submit(number, cmd=70_000)
        if number % 4000 == 0:
            other.submit(number)
            assert other.end() == (number, State.DONE, 0)
    served.process.terminate()
    assert "has not read 4096 answers; the relay lets it go" in served.end()[1]


def test_a_second_relay_is_refused_and_names_the_first(relay: Callable[..., Relaying]) -> None:
    served = relay()
    command = [sys.executable, "-m", "dsp_server.relay", "--board", str(served.running.paths.path)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (second.returncode, second.stdout) == (2, "")
    assert f"has a relay already: process {served.process.pid}" in second.stderr
    joined = subprocess.run([*command, "--detach"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (joined.returncode, joined.stderr) == (0, "")
    assert f"is process {served.process.pid}." in joined.stdout


def test_it_ends_with_its_board_and_leaves_nothing(relay: Callable[..., Relaying]) -> None:
    served = relay()
    talker, _ = served.peer()
    served.running.ask("stop")
    assert served.end() == (0, "")
    kind, (status, _) = talker.hear()
    assert (kind, status) == (Kind.GONE, Status.HB_DSP_BOARD_LOST)
    assert not served.running.paths.relay.exists()
    assert not served.running.paths.relay_lock.exists()


def test_it_ends_when_nobody_came_for_long(relay: Callable[..., Relaying]) -> None:
    served = relay("--idle", "0.5")
    code, log = served.end()
    assert code == 0
    assert "it has served nobody for 0.5 s" in log
    assert lock_holder(served.running.paths.relay_lock) is None


def test_one_that_was_told_to_end_says_so(relay: Callable[..., Relaying]) -> None:
    served = relay()
    talker, _ = served.peer()
    served.process.send_signal(signal.SIGTERM)
    assert served.end() == (0, "")
    kind, (status, text) = talker.hear()
    assert (kind, status) == (Kind.GONE, Status.HB_DSP_RELAY_LOST)
    assert "the next call starts a new one" in text


def test_no_board_no_relay(board_home: Any) -> None:
    command = [sys.executable, "-m", "dsp_server.relay", "--board", str(board_home / "nobody")]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert answer.returncode == 2
    assert "There is no board nobody" in answer.stderr


def test_tasks_beyond_the_slots_of_the_board_wait_in_the_relay(relay: Callable[..., Relaying]) -> None:
    served = relay(cores=1)
    board = served.running.attach()
    held = served.running.hold(board)
    talkers = [served.peer()[0] for _ in range(2)]
    for number in range(1, 1001):
        for talker in talkers:
            talker.submit(number)
    for talker in talkers:
        talker.say(Kind.PING, 0)
        assert talker.hear().kind == Kind.PONG  # nothing was refused
    held.let_go()
    for talker in talkers:
        assert {talker.end() for _ in range(1000)} == {(number, State.DONE, 0) for number in range(1, 1001)}
    held.task.result()


def test_a_program_has_so_many_tasks_and_no_more(relay: Callable[..., Relaying]) -> None:
    served = relay(cores=1)
    held = served.running.hold(served.running.attach())
    talker, _ = served.peer()
    for number in range(1, 1026):
        talker.submit(number)
    assert talker.end() == (1025, State.FAILED, Status.HB_DSP_TASK_NUM_EXCEED_LIMIT)
    held.let_go()
    held.task.result()
