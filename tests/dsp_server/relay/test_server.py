"""A relay as its own process, seen through its socket: who may talk, what it refuses, when it ends."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import msgpack
import pytest
import zmq

from arm_client.transport.relay_channel import TaskStream
from dsp_server.relay import lease_check, server
from hbrt.attach.link import LocalLink
from hbrt.board.files import daemon_pid, lock_holder
from hbrt.board.launch import DaemonConfig
from hbrt.board.paths import home
from hbrt.mailbox.table import FIRST_END, REQUEST, Actor, State
from hbrt.protocol.frames import Message
from hbrt.protocol.relay import RELAY_SAYS, SUBMIT, SUBMIT_HEAD, VERSION, RelayFrame, decode, encode
from hbrt.status import Status
from hbrt.types import HB_DSP_RPC_CMD_PING
from tests.dsp_server.conftest import LIVES, Running
from tests.limits import PATIENCE_S, with_limits
from tests.nursery import Server, run_program


class Talker:
    """A connection to a relay, of a program that need not behave."""

    def __init__(self, running: Running) -> None:
        self._context: zmq.Context[Any] = zmq.Context()
        self.socket = self._context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect(running.paths.relay_endpoint)
        self._tasks_path = str(running.paths.relay_tasks)
        self.ticket = 1
        self._sequences = itertools.count(time.monotonic_ns())

    @cached_property
    def tasks(self) -> TaskStream:
        return TaskStream(self._tasks_path, PATIENCE_S)

    def connect_anew(self) -> None:
        self.tasks.close()
        del self.tasks

    def say(self, kind: RelayFrame, *fields: object) -> None:
        self.socket.send(encode(kind, *fields))

    def hear(self) -> Message:
        assert self.socket.poll(int(PATIENCE_S * 1000)), "the relay said nothing"
        return decode(self.socket.recv(), RELAY_SAYS)

    def hello(self, link: LocalLink, client: int | None = None) -> Message:
        nonce = secrets.token_hex(16)
        self.say(RelayFrame.HELLO, link.client_id if client is None else client, nonce, link.proof(nonce))
        message = self.hear()
        if message.kind == RelayFrame.WELCOME:
            self.ticket = message.fields[1]
        return message

    def write(
        self, link: LocalLink, index: int = 0, *, phy: int = 0, size: int = 0, cmd: int = HB_DSP_RPC_CMD_PING
    ) -> bytes:
        """Write a task into a slot that ``link`` leases, and mark it SENT; returns the message that submits it."""
        return _write(link, self.ticket, link.first_slots[index], next(self._sequences), cmd, phy, size)

    def submit(self, link: LocalLink, index: int = 0, **task: int) -> None:
        self.tasks.send(self.write(link, index, **task))

    def settle(self, link: LocalLink) -> None:
        """Wait until the relay has read all tasks that were sent to it; it must have had nothing to say to them."""
        self.submit(link, -1, cmd=70_000)
        handle = link.client_id << 52 | 7 << 12 | link.first_slots[-1]
        assert self.hear() == (RelayFrame.END, [handle])
        assert end_of(link, -1) == (State.FAILED, Status.HB_DSP_INVALID_ARGUMENT)

    def close(self) -> None:
        if "tasks" in vars(self):
            self.tasks.close()
        self.socket.close()
        self._context.term()


def _write(link: LocalLink, ticket: int, slot: int, sequence: int, cmd: int, phy: int = 0, size: int = 0) -> bytes:
    layout, mm, client = link.ddr.layout, link.ddr.map, link.client_id
    request = (sequence, 0, cmd, 0, 0, client, client, phy, size, 0, 0)
    REQUEST.pack_into(mm, layout.record(slot), *request)
    mm[layout.states + slot] = State.SENT
    return SUBMIT.pack(SUBMIT_HEAD, ticket, client << 52 | 7 << 12 | slot, *request)


def end_of(link: LocalLink, index: int = 0) -> tuple[State, int]:
    """End and result of the task in a slot, which is emptied."""
    slot, mailbox = link.first_slots[index], link.mailbox
    Running.until(lambda: mailbox.state(slot) >= FIRST_END, "the end of a task")
    found = mailbox.state(slot), mailbox.answer(slot).result
    mailbox.move(slot, State.EMPTY, Actor.OWNER)
    return found


class Relaying:
    """A board, its relay in the foreground, and what talks to it."""

    def __init__(self, running: Running, *arguments: str, verify_ms: int = lease_check.VERIFY_MS) -> None:
        self.running = running
        self._made: list[Talker | LocalLink] = []
        program = with_limits(
            {"dsp_server.relay.lease_check.VERIFY_MS": verify_ms}, "from dsp_server.relay import __main__"
        )
        command = [sys.executable, "-c", program, "--board", str(running.paths.path), *arguments]
        self.process = Server(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert "is running" in self.process.stdout.readline()

    def talker(self) -> Talker:
        talker = Talker(self.running)
        self._made.append(talker)
        return talker

    def link(self) -> LocalLink:
        link = LocalLink(self.running.paths)
        self._made.append(link)
        return link

    def peer(self) -> tuple[Talker, LocalLink]:
        talker, link = self.talker(), self.link()
        assert talker.hello(link) == (RelayFrame.WELCOME, [self.process.pid, talker.ticket])
        return talker, link

    def end_lease(self, link: LocalLink) -> None:
        self._made.remove(link)
        link.close()

    def end(self) -> tuple[int, str]:
        """Exit code and log of the relay, which must end."""
        _, log = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, log

    def let_go(self) -> None:
        """Have all programs go that were made here."""
        while self._made:
            self._made.pop().close()

    def close(self) -> None:
        self.let_go()
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=PATIENCE_S)


@pytest.fixture
def relay(start: Callable[..., Running]) -> Iterator[Callable[..., Relaying]]:
    """``relay(*arguments, **options)``: a board and its relay."""
    made: list[Relaying] = []

    def make(*arguments: str, **options: Any) -> Relaying:
        made.append(Relaying(start(), *arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def kept() -> Iterator[Relaying]:
    """A board and its relay for the tests that leave them as they were."""
    directory = str(home() / f"board-{secrets.token_hex(4)}")
    running = Running(DaemonConfig(directory, str(LIVES), ddr_bytes=64 << 20, is_private=True))
    relaying = Relaying(running)
    yield relaying
    relaying.close()
    running.close()


@pytest.fixture
def served(kept: Relaying) -> Iterator[Relaying]:
    """``kept``, whose programs go with the test."""
    yield kept
    kept.let_go()


def test_a_program_that_shows_its_lease_is_served(served: Relaying) -> None:
    talker, link = served.peer()
    talker.submit(link)
    assert end_of(link) == (State.DONE, 0)
    talker.say(RelayFrame.PING, 77)
    assert talker.hear() == (RelayFrame.PONG, [77])


def test_nobody_is_served_without_a_lease(relay: Callable[..., Relaying]) -> None:
    served = relay()
    talker, link, other = served.talker(), served.link(), served.link()
    talker.submit(link, 3)
    talker.connect_anew()  # the relay ends the connection of a stranger
    talker.say(RelayFrame.PING, 1)
    assert talker.hear().fields == [Status.HB_DSP_RELAY_LOST, "The relay does not know this process; connect again."]
    kind, (status, text) = talker.hello(link, other.client_id)
    assert (kind, status) == (RelayFrame.REFUSED, Status.HB_DSP_PERMISSION)
    assert f"Client {other.client_id} is not attached with the token that was presented" in text
    assert talker.hello(link, 1000).fields[0] == Status.HB_DSP_PERMISSION
    assert talker.hello(link).kind == RelayFrame.WELCOME
    talker.settle(link)
    assert link.mailbox.state(link.first_slots[3]) is State.SENT
    served.process.terminate()
    assert "a task from an unknown process" in served.end()[1]


def test_one_program_cannot_use_the_memory_of_another(served: Relaying) -> None:
    (mine, link), (theirs, other) = served.peer(), served.peer()
    phy = other.request("alloc", size=64, cached=0)
    mine.submit(link, phy=phy, size=64, cmd=Running.WHICH)
    assert end_of(link) == (State.FAILED, Status.HB_DSP_INVALID_ADDRESS)
    link.request("register", phy=phy, size=64)
    mine.submit(link, phy=phy, size=64)
    assert end_of(link) == (State.DONE, 0)
    theirs.submit(other, phy=phy, size=64)
    assert end_of(other) == (State.DONE, 0)


def test_nobody_submits_in_another_ones_name(served: Relaying) -> None:
    (mine, _), (theirs, other) = served.peer(), served.peer()
    raw = theirs.write(other)
    head, _, *task = SUBMIT.unpack(raw)
    mine.tasks.send(SUBMIT.pack(head, mine.ticket, *task))
    kind, (status, text) = mine.hear()
    assert (kind, status) == (RelayFrame.REFUSED, Status.HB_DSP_PERMISSION)
    assert "in another client's name" in text
    assert other.mailbox.state(other.first_slots[0]) is State.SENT
    theirs.tasks.send(raw)
    assert end_of(other) == (State.DONE, 0)


def test_a_submission_that_comes_late_finds_nothing_to_queue(served: Relaying) -> None:
    """The program took the task back, and used its slot again, before the relay read the message."""
    talker, link = served.peer()
    slot, mailbox = link.first_slots[0], link.mailbox
    late = talker.write(link)
    mailbox.map[mailbox.states + slot] = State.EMPTY
    talker.tasks.send(late)
    talker.settle(link)
    assert mailbox.state(slot) is State.EMPTY
    second = talker.write(link)
    talker.tasks.send(late)
    talker.settle(link)
    assert mailbox.state(slot) is State.SENT
    talker.tasks.send(second)
    assert end_of(link) == (State.DONE, 0)
    talker.tasks.send(second)  # once more: that task has had its end
    talker.settle(link)
    assert mailbox.state(slot) is State.EMPTY


def test_a_slot_that_has_another_lease_by_now_is_not_touched(relay: Callable[..., Relaying]) -> None:
    served = relay()
    talker, link = served.peer()
    slots, late = list(link.first_slots), talker.write(link)
    anothers = SUBMIT.pack(*SUBMIT.unpack(late)[:8], 0, *SUBMIT.unpack(late)[9:])  # in nobody's name
    board = served.running.attach()
    mailbox = board.session.link.mailbox
    served.end_lease(link)
    Running.until(lambda: mailbox.state(slots[0]) is State.EMPTY, "the end of the lease")
    others = [served.link() for _ in range(3)]
    heir = next(other for other in others if slots[0] in other.first_slots)
    talker.tasks.send(late)
    talker.tasks.send(anothers)
    assert talker.hear().fields[0] == Status.HB_DSP_PERMISSION  # it has read both
    assert mailbox.state(slots[0]) is State.EMPTY
    _write(heir, 0, slots[0], 1, HB_DSP_RPC_CMD_PING)
    record = mailbox.request(slots[0])
    talker.tasks.send(late)
    talker.tasks.send(anothers)
    assert talker.hear().fields[0] == Status.HB_DSP_PERMISSION  # it has read both
    assert mailbox.state(slots[0]) is State.SENT
    assert mailbox.request(slots[0]) == record


def test_nonsense_is_refused_and_the_connection_goes_on(served: Relaying) -> None:
    talker, link = served.peer()
    for frames in (
        [b""],
        [b"\xc1"],
        [b"a", b"b"],
        [b"a", b"b", b"c"],
        [msgpack.packb([VERSION, RelayFrame.END, 1])],
        [bytes(10_000)],
        [encode(RelayFrame.SUBMIT, bytes(3))],
        [encode(RelayFrame.PING, -1)],
    ):
        talker.socket.send_multipart(frames)
        kind, (status, _) = talker.hear()
        assert (kind, status) == (RelayFrame.REFUSED, Status.HB_DSP_INVALID_ARGUMENT), frames
    talker.submit(link)
    assert end_of(link) == (State.DONE, 0)


@pytest.mark.parametrize(
    ("field", "value", "status", "word"),
    [
        ("cmd", 70_000, Status.HB_DSP_INVALID_ARGUMENT, "rpcCmd is 0x11170"),
        ("priority", 256, Status.HB_DSP_INVALID_PRIORITY, "priority is 256"),
        ("core_mask", 1 << 9, Status.HB_DSP_INVALID_CORE, "dspCoreId is 512"),
    ],
)
def test_a_task_out_of_its_bounds_ends_in_its_slot(
    served: Relaying, field: str, value: int, status: Status, word: str
) -> None:
    talker, link = served.peer()
    slot, mailbox = link.first_slots[0], link.mailbox
    handle = SUBMIT.unpack(talker.write(link))[2]
    request = mailbox.request(slot)._replace(**{field: value})
    REQUEST.pack_into(mailbox.map, mailbox.layout.record(slot), *request)
    talker.tasks.send(SUBMIT.pack(SUBMIT_HEAD, talker.ticket, handle, *request))
    assert talker.hear() == (RelayFrame.END, [handle])
    assert word in mailbox.text(slot)
    assert end_of(link) == (State.FAILED, status)


def test_nonsense_where_tasks_come_ends_its_connection_alone(relay: Callable[..., Relaying]) -> None:
    served = relay()
    talker, link = served.peer()
    task = SUBMIT.unpack(talker.write(link))
    head, ticket, *rest = task
    unknown = SUBMIT.pack(head, ticket ^ 1, *rest)
    for raw in (bytes(SUBMIT.size), encode(RelayFrame.PING, 1), SUBMIT.pack(*task)[:-1], bytes(1 << 16), unknown):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stray:
            stray.settimeout(PATIENCE_S)
            stray.connect(str(served.running.paths.relay_tasks))
            stray.send(raw)
            assert stray.recv(1) == b""
    talker.settle(link)
    assert link.mailbox.state(link.first_slots[0]) is State.SENT
    talker.tasks.send(SUBMIT.pack(*task))
    assert end_of(link) == (State.DONE, 0)
    served.process.terminate()
    log = served.end()[1]
    assert log.count("refused a malformed task") == 1  # the first; the others are counted
    assert "received PING on the socket for tasks" in log
    assert log.count("a task from an unknown process") == 1


def test_a_submission_that_another_msgpack_wrote_is_one(served: Relaying) -> None:
    talker, link = served.peer()
    _, _, task = msgpack.unpackb(talker.write(link))
    talker.tasks.send(b"\x93" + msgpack.packb(VERSION) + b"\xcc\x02" + msgpack.packb(task))
    assert end_of(link) == (State.DONE, 0)


def test_a_frame_over_the_limit_costs_its_sender_the_connection_alone(served: Relaying) -> None:
    (big, _), (small, link) = served.peer(), served.peer()
    big.socket.send(bytes(1 << 20))
    small.submit(link)
    assert end_of(link) == (State.DONE, 0)


@pytest.mark.long
def test_who_never_reads_hurts_only_itself(relay: Callable[..., Relaying]) -> None:
    served = relay()
    (deaf, _), (other, link) = served.peer(), served.peer()
    deaf.socket.sndtimeo = int(PATIENCE_S * 1000)
    for number in range(1, 40_001):  # more than what the sockets and the relay hold of its answers
        deaf.say(RelayFrame.PING, number)
        if number % 4000 == 0:
            other.submit(link)
            assert end_of(link) == (State.DONE, 0)
    served.process.terminate()
    assert "has not read 4096 answers; the relay disconnects it" in served.end()[1]


def test_a_second_relay_is_refused_and_names_the_first(relay: Callable[..., Relaying]) -> None:
    served = relay()
    command = ["-m", "dsp_server.relay", "--board", served.running.paths.path]
    second = run_program(command, PATIENCE_S, Server)
    assert (second.returncode, second.stdout) == (2, "")
    assert f"already has a relay: process {served.process.pid}" in second.stderr
    joined = run_program([*command, "--detach"], PATIENCE_S, Server)
    assert (joined.returncode, joined.stderr) == (0, "")
    assert f"is process {served.process.pid}." in joined.stdout


def test_it_ends_with_its_board_and_leaves_nothing(relay: Callable[..., Relaying]) -> None:
    served = relay()
    talker, _ = served.peer()
    served.running.ask("stop")
    assert served.end() == (0, "")
    kind, (status, _) = talker.hear()
    assert (kind, status) == (RelayFrame.GONE, Status.HB_DSP_BOARD_LOST)
    assert not served.running.paths.relay.exists()
    assert not served.running.paths.relay_tasks.exists()
    assert not served.running.paths.relay_lock.exists()


def test_it_ends_when_nobody_came_for_long(relay: Callable[..., Relaying]) -> None:
    served = relay("--idle", "0.5")
    code, log = served.end()
    assert code == 0
    assert "it has had no clients for 0.5 s" in log
    assert lock_holder(served.running.paths.relay_lock) is None


def test_a_daemon_that_hangs_keeps_no_call_waiting_and_a_lease_that_ended_is_noticed(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "BEAT_SECONDS", 0.02)
    monkeypatch.setattr(server, "SILENT_SECONDS", 0.0)
    running = start()
    daemon = daemon_pid(running.paths)
    assert daemon is not None
    with contextlib.ExitStack() as stack:
        own, link = LocalLink(running.paths), LocalLink(running.paths)
        stack.callback(own.close)
        relay = server.Relay(own, 0, print)
        stack.callback(relay.close)
        thread = threading.Thread(target=relay.run)
        thread.start()
        stack.callback(thread.join)
        stack.callback(relay.stop)
        talker = Talker(running)
        stack.callback(talker.close)
        assert talker.hello(link).kind == RelayFrame.WELCOME
        os.kill(daemon, signal.SIGSTOP)
        try:
            time.sleep(0.1)  # some beats, each of which wonders about a program that says nothing
            talker.say(RelayFrame.PING, 1)
            assert talker.socket.poll(2000)
            assert talker.hear() == (RelayFrame.PONG, [1])
        finally:
            os.kill(daemon, signal.SIGCONT)
        assert len(relay._peers) == 1
        link.close()
        Running.until(lambda: not relay._peers, "the relay's notice of a lease that ended")


def test_a_daemon_that_hangs_while_programs_say_hello_keeps_no_other_waiting(relay: Callable[..., Relaying]) -> None:
    served = relay(verify_ms=1000)
    talker, link = served.peer()
    strangers = [(served.talker(), served.link()) for _ in range(3)]
    daemon = daemon_pid(served.running.paths)
    assert daemon is not None
    os.kill(daemon, signal.SIGSTOP)
    try:
        for stranger, lease in strangers:
            nonce = secrets.token_hex(16)
            stranger.say(RelayFrame.HELLO, lease.client_id, nonce, lease.proof(nonce))
        for number in range(1, 20):
            talker.say(RelayFrame.PING, number)
            assert talker.hear() == (RelayFrame.PONG, [number])
            talker.submit(link)
            assert end_of(link) == (State.DONE, 0)
        assert not any(stranger.socket.poll(0) for stranger, _ in strangers)  # all that continued while these waited
        for stranger, _ in strangers:
            kind, (status, why) = stranger.hear()
            assert (kind, status) == (RelayFrame.REFUSED, Status.HB_DSP_TIMEOUT)
            assert why == "The daemon did not answer 'verify_lease' within 1 s; see 'hbrt log'."
    finally:
        os.kill(daemon, signal.SIGCONT)
    for stranger, lease in strangers:
        assert stranger.hello(lease).kind == RelayFrame.WELCOME


def test_one_that_was_told_to_end_says_so(relay: Callable[..., Relaying]) -> None:
    served = relay()
    talker, _ = served.peer()
    served.process.send_signal(signal.SIGTERM)
    assert served.end() == (0, "")
    kind, (status, text) = talker.hear()
    assert (kind, status) == (RelayFrame.GONE, Status.HB_DSP_RELAY_LOST)
    assert "the next call starts a new one" in text


def test_no_board_no_relay(board_home: Any) -> None:
    answer = run_program(["-m", "dsp_server.relay", "--board", board_home / "nobody"], PATIENCE_S, Server)
    assert answer.returncode == 2
    assert "No board nobody" in answer.stderr


def test_a_stream_of_tasks_is_read_as_one_and_keeps_no_other_program_waiting(relay: Callable[..., Relaying]) -> None:
    served = relay()
    (busy, many), (calm, link) = served.peer(), served.peer()
    slots = range(len(many.first_slots))
    for _ in range(5):
        for index in slots:
            busy.submit(many, index)
        calm.submit(link)
        assert end_of(link) == (State.DONE, 0)
        assert {end_of(many, index) for index in slots} == {(State.DONE, 0)}
