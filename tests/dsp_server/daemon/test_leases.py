"""Attaching: who comes in, who is told why not, and that nobody can keep the others waiting."""

from __future__ import annotations

import concurrent.futures
import contextlib
import errno
import os
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dsp_server.clients import Client, Clients
from dsp_server.daemon import leases as leases_module
from dsp_server.daemon.leases import HELLO_BYTES, Leases
from dsp_server.memory.owners import BoardMemory
from dsp_server.process.event_loop import Loop
from dsp_server.process.journal import Journal
from hbrt.board.files import make_directory, remove_files
from hbrt.board.paths import BoardPaths
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import CLIENT_ASLEEP, CLIENT_COUNT, CORE_ACTIVITY
from hbrt.errors import BoardError
from hbrt.mailbox.schedule import ASLEEP
from hbrt.mailbox.table import REQUEST, Mailbox, State
from hbrt.protocol import control
from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    from tests.dsp_server.conftest import Running

    Start = Callable[..., Running]

HELLO = control.pack(pid=os.getpid(), name="test")


class Door:
    """The attach socket of a board without cores, in this process: each test turns the loop itself."""

    def __init__(self, paths: BoardPaths) -> None:
        make_directory(paths)
        self.paths = paths
        self.loop = Loop()
        self.log = paths.path / "log"
        self.journal = Journal(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        self.ddr = Ddr.create(1 << 20, 1)
        self.mailbox = Mailbox(self.ddr)
        self.clients = Clients(self.mailbox)
        self.memory = BoardMemory(self.ddr, self.mailbox, self.clients, self.journal.find)
        self.bells = [os.eventfd(0) for _ in range(2)]
        self.told: list[tuple[str, int]] = []
        self.leases = Leases(
            paths,
            self.loop,
            self.journal,
            self.clients,
            self.memory,
            [self.ddr.fd, *self.bells],
            lambda client: self._tell("came", client),
            lambda client: self._tell("gone", client),
            lambda: None,
            is_private=False,
        )
        self.leases.open(self._answer)
        self.peers: list[socket.socket] = []
        self.received: list[int] = []  # descriptors that the peers were given

    def _answer(self, raw: bytes, reply: Callable[[bytes], None], *, client: Client) -> None:
        """To a number, so many bytes; to anything else, the client's id."""
        reply(bytes(int(raw)) if raw.isdigit() else bytes([client.id]))

    def _tell(self, what: str, client: Client) -> None:
        self.told.append((what, client.id))

    def connect(self, hello: bytes | None = HELLO) -> socket.socket:
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        peer.settimeout(10.0)
        peer.connect(self.paths.attach_address)
        self.peers.append(peer)
        if hello is not None:
            peer.send(hello)
        return peer

    def turn(self, until: Callable[[], Any]) -> None:
        """Turn the loop until something is so."""
        while not until():
            self.loop.step()

    def answer(self, peer: socket.socket) -> tuple[dict[str, Any], list[int]]:
        peer.setblocking(False)
        got: list[tuple[bytes, list[int]]] = []

        def has_come() -> bool:
            try:
                raw, fds, _, _ = socket.recv_fds(peer, 65536, 64)
            except BlockingIOError:
                return False
            got.append((raw, fds))
            self.received += fds
            return True

        self.turn(has_come)
        ((raw, fds),) = got
        return (control.unpack_map(raw, 65536) if raw else {}), fds

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def close(self) -> None:
        for peer in self.peers:
            peer.close()
        self.leases.shut()
        self.leases.close()
        self.loop.close()
        for client in list(self.clients.by_id.values()):
            self.clients.discard(client)
        for fd in (*self.bells, *self.received, self.journal.log_fd):
            os.close(fd)
        self.ddr.close()
        remove_files(self.paths, keep_log=False)


@pytest.fixture
def door(directory: Path) -> Iterator[Door]:
    door = Door(BoardPaths(directory))
    yield door
    door.close()


def test_hello_is_answered_with_a_lease_and_descriptors(door: Door) -> None:
    hello, fds = door.answer(door.connect())
    client = door.clients.by_id[1]
    assert hello == {
        "v": control.VERSION,
        "ok": 1,
        "client": 1,
        "token": client.token,
        "slots": client.slots,
        "cores": 1,
        "accelerators": 0,
        "board": door.paths.name,
        "daemon": os.getpid(),
    }
    ours = [door.ddr.fd, client.doorbell, *door.bells]
    assert [os.path.samestat(os.fstat(a), os.fstat(b)) for a, b in zip(fds, ours, strict=True)] == [True] * len(ours)
    assert client.pid == os.getpid()  # the kernel's word, not the hello's
    assert client.name == "test"
    assert door.told == [("came", 1)]


HELLOS = {
    "no msgpack": (b"\xc1", "The frame is not msgpack"),
    "no map": (b"\x01", "The frame contains a int, not a map."),
    "another version": (
        control.pack(name="x").replace(b"\xa1v\x02", b"\xa1v\x07"),
        "has protocol version 7; this side sp",
    ),
    "too long": (control.pack(name="x" * HELLO_BYTES), f"bytes; the limit is {HELLO_BYTES}."),
    "a name that is not text": (control.pack(name=5), "The name in the hello is 5 and the run '': both must be text."),
}


@pytest.mark.parametrize("case", HELLOS)
def test_hello_that_is_none_is_refused_with_a_sentence_and_the_next_comes_in(door: Door, case: str) -> None:
    raw, text = HELLOS[case]
    peer = door.connect(raw)
    hello, fds = door.answer(peer)
    assert (hello["ok"], fds) == (0, [])
    assert text in hello["text"]
    assert f"Refused to attach process {os.getpid()}: " in door.text()
    assert door.answer(peer) == ({}, [])  # and the connection is closed
    assert door.answer(door.connect())[0]["ok"] == 1


def test_another_user_is_refused(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases_module, "_peer", lambda _: (4711, os.getuid() + 1, 0))
    hello, fds = door.answer(door.connect())
    assert fds == []
    assert hello["text"] == f"This board belongs to user {os.getuid()}, but the process to user {os.getuid() + 1}."


def test_one_who_says_nothing_keeps_nobody_waiting_and_is_dropped(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases_module, "HELLO_SECONDS", 0.2)
    silent = [door.connect(None) for _ in range(20)]
    assert door.answer(door.connect())[0]["ok"] == 1
    for peer in silent:
        hello, _ = door.answer(peer)
        assert "The process sent nothing for 0 s after it connected." in hello["text"]
    assert door.text().count("sent nothing") == 20


def test_one_who_looks_and_goes_is_no_news(door: Door) -> None:
    door.connect(None).close()
    assert door.answer(door.connect())[0]["ok"] == 1
    assert door.text() == ""


def test_lease_ends_when_it_closes(door: Door) -> None:
    peer = door.connect()
    door.answer(peer)
    phy_addr = door.memory.alloc(100, 1, is_cached=False)
    peer.close()
    door.turn(lambda: not door.clients.by_id)
    assert door.told == [("came", 1), ("gone", 1)]
    assert door.ddr.block_at(phy_addr) is None
    assert "leak: Process" in door.text()


def test_lease_of_a_process_that_cannot_be_watched_ends_when_it_closes(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pidfd_open", lambda _: (_ for _ in ()).throw(OSError(errno.EMFILE, "none left")))
    peer = door.connect()
    assert door.answer(peer)[0]["ok"] == 1
    peer.close()
    door.turn(lambda: not door.clients.by_id)
    assert door.text() == ""


def test_a_spare_descriptor_that_cannot_be_had_again_is_closed_once(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(OSError(errno.ENFILE, "none left")))
        door.leases._turn_away(OSError(errno.EMFILE, "none left"))
    others = os.open(os.devnull, os.O_RDONLY)  # gets the lowest number, which the spare one had
    door.leases._turn_away(OSError(errno.EMFILE, "none left"))
    os.fstat(others)
    os.close(others)


def test_client_that_goes_is_kept_while_a_core_runs_for_it(door: Door) -> None:
    peer = door.connect()
    door.answer(peer)
    phy_addr = door.memory.alloc(100, 1, is_cached=False)
    client = door.clients.by_id[1]
    running, queued = client.slots[:2]
    states = door.ddr.layout.states
    for slot, state in ((running, State.RUNNING), (queued, State.READY)):
        REQUEST.pack_into(door.ddr.map, door.ddr.layout.record(slot), 5, 0, 0x1000, 0, 0, 1, 1, 0, 0, 0, 0)
        door.ddr.map[states + slot] = state
    peer.close()
    door.turn(lambda: client.has_gone)
    assert door.ddr.map[states + queued] == State.EMPTY
    for _ in range(3):
        door.loop.step()  # it looks again and again
    assert door.ddr.block_at(phy_addr) is not None
    assert door.told == [("came", 1)]
    door.ddr.map[states + running] = State.DONE
    door.turn(lambda: not door.clients.by_id)
    assert door.ddr.block_at(phy_addr) is None


def test_client_that_leaves_keeps_the_blocks_of_its_queued_tasks_until_its_lease_closes(door: Door) -> None:
    peer = door.connect()
    door.answer(peer)
    phy_addr = door.memory.alloc(100, 1, is_cached=False)
    client = door.clients.by_id[1]
    state = door.ddr.layout.states + client.slots[0]
    door.ddr.map[state] = State.READY
    (leak,) = door.leases.detach(client)
    assert leak.kind == "leak"
    assert door.ddr.block_at(phy_addr) is not None
    door.ddr.map[state] = State.EMPTY
    assert door.leases.detach(client) == [leak]
    assert door.ddr.block_at(phy_addr) is None
    peer.close()


@pytest.mark.usefixtures("new_interpreters")
def test_daemon_without_descriptors_turns_away_and_goes_on(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = _start_with_few_descriptors(start, monkeypatch, 200)
    board = running.attach()
    crowd = [_raw(socket.SOCK_SEQPACKET, running.paths.attach_address) for _ in range(300)]
    assert running.which(board).value == 1
    assert [b"run out of descriptors" in peer.recv(4096) for peer in crowd[-50:]] == [True] * 50
    for peer in crowd:
        peer.close()
    assert "The daemon has run out of descriptors for clients; end some of them." in running.log()

    def is_served() -> bool:
        try:
            return running.which(running.attach()).value == 1
        except BoardError:  # it has not seen yet that they are gone
            return False

    running.until(is_served, "room for a client")


@pytest.mark.usefixtures("new_interpreters")
def test_daemon_without_descriptors_closes_its_control_socket_for_a_while(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = _start_with_few_descriptors(start, monkeypatch, 1024)
    board = running.attach()
    assert running.which(board).value == 1
    crowd: list[socket.socket] = []
    address = running.paths.control_endpoint.removeprefix("ipc://")

    def crowd_more() -> bool:
        try:
            crowd.append(_raw(socket.SOCK_STREAM, address))
        except (FileNotFoundError, ConnectionRefusedError):
            return True
        return False

    running.until(crowd_more, "the end of what the daemon accepts")
    assert "no new control connections until some are closed" in running.log()
    assert running.which(board).value == 1  # it was attached, and calls need no control
    for peer in crowd:
        peer.close()
    running.until(lambda: "Control connections are accepted again." in running.log(), "an open control socket")
    assert running.ask("status")["state"] == "running"


def _start_with_few_descriptors(start: Start, monkeypatch: pytest.MonkeyPatch, count: int) -> Running:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2048  # for the crowd, in this process
    if hard < wanted:
        pytest.skip(f"needs {wanted} descriptors in this process; the limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    real = os.posix_spawn

    def spawn(path: str, argv: list[str], *args: Any, **options: Any) -> int:
        limit = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({count}, {count})); "
        return real(path, [limit + text if "import" in text else text for text in argv], *args, **options)

    monkeypatch.setattr(os, "posix_spawn", spawn)
    return start()


def _raw(kind: int, address: str) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX, kind)
    try:
        peer.connect(address)  # waits when the queue is full
        peer.settimeout(10.0)
    except OSError:
        peer.close()
        raise
    return peer


def test_answers_wait_for_a_client_that_does_not_read_and_its_requests_wait_for_them(door: Door) -> None:
    peer = door.connect()
    door.answer(peer)
    size, asked = 1 << 20, 5
    for number in range(1, 1 + asked):
        peer.send(control.HEAD.pack(len(str(size)), number) + str(size).encode())
    for _ in range(asked):
        door.loop.later(0.0, lambda: None)
        door.loop.step()
    assert sum(map(len, vars(door.leases)["_unsent"][1])) <= control.HEAD.size + size  # one answer, in parts
    other = door.connect()
    door.answer(other)
    other.send(control.HEAD.pack(1, 9) + b"x")
    assert _answer_to(door, other) == (9, b"\2")
    assert [_answer_to(door, peer) for _ in range(asked)] == [(number, bytes(size)) for number in range(1, 1 + asked)]
    assert vars(door.leases)["_unsent"] == {}


def _answer_to(door: Door, peer: socket.socket) -> tuple[int, bytes]:
    """Number and bytes of the next answer, which comes in packets."""
    come = b""

    def is_whole() -> bool:
        nonlocal come
        with contextlib.suppress(BlockingIOError):
            come += peer.recv(control.PACKET_BYTES)
        door.loop.later(0.0, lambda: None)
        return len(come) >= control.HEAD.size and len(come) == control.HEAD.size + control.HEAD.unpack_from(come)[0]

    door.turn(is_whole)
    return control.HEAD.unpack_from(come)[1], come[control.HEAD.size :]


def _come_and_go(running: Running) -> None:
    with _raw(socket.SOCK_SEQPACKET, running.paths.attach_address) as peer:
        peer.send(HELLO)
        raw, fds, _, _ = socket.recv_fds(peer, 65536, 64)
        assert control.unpack_map(raw, 65536)["ok"] == 1
        for fd in fds:
            os.close(fd)


def test_a_client_whose_doorbell_a_core_gets_after_its_task_is_woken(start: Start) -> None:
    """The core's socket was full when the client came, and the daemon has not sent the rest when the core answers.

    What the socket holds is of a client before that had the same id.
    """
    running = start()
    held = running.hold(running.attach(), core=2)
    for _ in range(CLIENT_COUNT + 20):
        _come_and_go(running)
    late = running.attach()
    link = late.session.link
    task = late.submit(running.WHICH, None, late.alloc(12), core=2)
    pool = concurrent.futures.ThreadPoolExecutor(1)
    waiting = pool.submit(task.exception)
    pool.shutdown(wait=False)
    mm, layout = link.ddr.map, link.ddr.layout
    running.until(lambda: mm[layout.client(link.client_id) + CLIENT_ASLEEP], "the client's sleep")
    os.kill(running.pid, signal.SIGSTOP)
    try:
        held.let_go()
        running.until(lambda: mm[layout.core(1) + CORE_ACTIVITY] == ASLEEP, "the core's sleep")
    finally:
        os.kill(running.pid, signal.SIGCONT)
    assert waiting.result(PATIENCE_S) is None


def test_clients_come_and_go_while_a_core_does_not_listen(start: Start) -> None:
    """More than fit into the socket to that core; it hears of them, in order, when its op has ended."""
    running = start()
    board = running.attach()
    held = running.hold(board, core=1)
    for _ in range(600):
        _come_and_go(running)
    late = running.attach()
    running.until(lambda: len(running.ask("status")["clients"]) == 2, "the end of those who went")
    held.let_go()
    assert held.task.exception() is None
    assert [running.which(late, core=mask).core for mask in (1, 2)] == [0, 1]
    assert running.core(0)["crashes"] == 0
