"""Whoever speaks to the daemon as no program would gets a refusal with a reason, and the daemon speaks on."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgpack
import pytest
import zmq

from arm_client.session.session import Session
from dsp_server.process.event_loop import MAX_DEFECTS, Loop
from hbrt.attach.question import Question
from hbrt.protocol import control
from hbrt.protocol.control import ControlReply
from hbrt.status import Status
from tests.faults.world import World
from tests.limits import PATIENCE_S
from tests.waiting import until

U32, U64 = (1 << 32) - 1, (1 << 64) - 1
BAD, GONE, REFUSED = (
    Status.HB_SYS_INVALID_ARGUMENT,
    Status.HB_SYS_NOT_ALLOCATED,
    Status.HB_SYS_REGISTER_MEM_FAILED,
)


class Intruder:
    """A raw control connection, and the leases of two clients, over one of which it asks too."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.mine, self.other = world.attach(), world.attach()
        self.own = self.mine.blocks.alloc(4096).phy_addr
        self.foreign = self.other.blocks.alloc(4096).phy_addr
        self.freed = self.mine.blocks.alloc(4096).phy_addr
        self.mine.blocks.free(self.freed)
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.rcvtimeo = int(PATIENCE_S * 1000)
        self.socket.connect(world.paths.control_endpoint)

    def send(self, *frames: bytes) -> ControlReply:
        """What the daemon answers to these frames."""
        self.socket.send_multipart(frames)
        return control.decode_reply(self.socket.recv())

    def ask(self, verb: str, session: Session | None = None, **args: Any) -> ControlReply:
        """A request over a lease, with whatever arguments."""
        link: Any = (session or self.mine).link
        return self.over_lease(link.requests, frame(verb=verb, args=args))

    def over_lease(self, requests: Any, raw: bytes) -> ControlReply:
        """What the daemon answers to these bytes over a lease."""
        question = Question()
        question.sent, number = requests._ffi.new("int *"), next(requests._numbers)
        requests._exchange(number, question, raw, PATIENCE_S)
        answer: ControlReply = question.answer
        return answer

    def close(self) -> None:
        self.socket.close()
        self.context.term()
        self.mine.blocks.free(self.own)
        self.other.blocks.free(self.foreign)
        self.mine.close()
        self.other.close()


@pytest.fixture
def intruder(world: World) -> Iterator[Intruder]:
    """Such a connection; afterwards the board is whole and both leases still hold."""
    made = Intruder(world)
    yield made
    assert made.ask("status").status == 0  # the connection continues
    assert world.serves() == []
    made.close()
    world.settle()


def frame(**fields: Any) -> bytes:
    """A request's bytes with some fields replaced."""
    good = {"v": control.VERSION, "id": 1, "verb": "status", "args": {}}
    raw: bytes = msgpack.packb({**good, **fields})
    return raw


FRAMES: dict[str, tuple[bytes, ...]] = {
    "empty": (b"",),
    "never used byte": (b"\xc1",),
    "a list of 2^32-1": (b"\xdd\xff\xff\xff\xff",),
    "nested 10000 deep": (b"\x91" * 10_000,),
    "over the limit": (frame(verb="x" * control.MAX_REQUEST_BYTES),),
    "two frames": (frame(), frame()),
    "a hundred frames": (frame(),) * 100,
    "version 1": (frame(v=1),),
    "no text as verb": (b"\x84\xa1v\x02\xa2id\x01\xa4verb\xa2\xff\xfe\xa4args\x80",),
    "a date": (frame(args=msgpack.Timestamp(0)),),
    "an extension": (frame(args=msgpack.ExtType(5, b"x")),),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frame_that_is_none(intruder: Intruder, name: str) -> None:
    link: Any = intruder.mine.link
    for reply in (intruder.send(*FRAMES[name]), intruder.over_lease(link.requests, b"".join(FRAMES[name]))):
        assert (reply.status, reply.id, reply.data) == (BAD, 0, None)
        assert reply.text.endswith((".", "sides."))


class Case(NamedTuple):
    """A verb, its arguments, and what comes back."""

    verb: str
    args: dict[str, Any] | Callable[[Intruder], dict[str, Any]]
    status: int
    text: str = ""


CASES: dict[str, Case] = {
    "alloc of 0": Case("alloc", {"size": 0, "cached": 0}, BAD, "is 0, outside 1..4294967295"),
    "alloc of all there is and more": Case("alloc", {"size": U32, "cached": 0}, Status.HB_SYS_OUT_OF_MEMORY, "free"),
    "alloc without a size": Case("alloc", {"cached": 0}, BAD, "alloc needs the argument 'size'"),
    "free of nothing": Case("free", {"phy": 0}, GONE),
    "free of 2^64-1": Case("free", {"phy": U64}, GONE),
    "free of the middle": Case("free", lambda i: {"phy": i.own + 64}, GONE),
    "free twice": Case("free", lambda i: {"phy": i.freed}, GONE),
    "free of another's": Case("free", lambda i: {"phy": i.foreign}, GONE, "belongs to client"),
    "free of a virtual address": Case("free", {"phy": 0x7F12_3456_7000}, GONE),
    "register past the end": Case(
        "register", lambda i: {"phy": i.foreign, "size": 4097}, REFUSED, "1 byte past the end"
    ),
    "register 2^32-1": Case("register", lambda i: {"phy": i.foreign, "size": U32}, REFUSED, "past the end"),
    "register that wraps": Case("register", {"phy": U64, "size": U32}, REFUSED),
    "register of the freed": Case("register", lambda i: {"phy": i.freed, "size": 8}, REFUSED),
    "register of the guard page": Case("register", lambda i: {"phy": i.own + 4096, "size": 8}, REFUSED),
    "import of a socket": Case(
        "import", lambda i: {"fd": i.mine.link.lease.fileno(), "offset": 0, "size": 1}, BAD, "neither memory nor a file"
    ),
    "import of nothing": Case("import", {"fd": (1 << 31) - 1, "offset": 0, "size": 1}, BAD, "is not open"),
    "import, odd offset": Case("import", {"fd": 0, "offset": 1, "size": 1}, BAD, "multiple of 4096"),
    "import, offset of 2^64-4096": Case("import", {"fd": 0, "offset": U64 - 4095, "size": 1}, BAD, "multiple of 4096"),
    "unregister what never was": Case("unregister", lambda i: {"phy": i.foreign}, BAD, "has not registered a block"),
    "unregister of 2^64-1": Case("unregister", {"phy": U64}, BAD, "has not registered a block"),
    "verify a lease of nobody": Case(
        "verify_lease", {"peer": 1000, "nonce": "", "proof": ""}, Status.HB_DSP_PERMISSION, "Client 1000"
    ),
    "verify a lease, not ASCII": Case(
        "verify_lease", {"peer": 1, "nonce": "\u2603", "proof": "\u2603"}, Status.HB_DSP_PERMISSION
    ),
    "core 63": Case("start_core", {"core": 63}, Status.HB_DSP_INVALID_ARGUMENT, "Core 63 is out of range"),
    "core that runs": Case("start_core", {"core": 0}, Status.HB_DSP_INVALID_ARGUMENT, "already running"),
    "image with a NUL": Case("restart", {"image": "/etc/\0passwd"}, BAD, "NUL"),
    "image that is a directory": Case("restart", {"image": "/"}, Status.HB_DSP_INVALID_ARGUMENT, "a regular file"),
    "image that is a device": Case("restart", {"image": "/dev/zero"}, Status.HB_DSP_INVALID_ARGUMENT, "a regular file"),
    "image that is not there": Case("restart", {"image": "/no/such.py"}, Status.HB_DSP_INVALID_ARGUMENT),
}


@pytest.mark.parametrize("name", CASES)
def test_request_that_cannot_be_granted(intruder: Intruder, name: str) -> None:
    case = CASES[name]
    reply = intruder.ask(case.verb, **(case.args if isinstance(case.args, dict) else case.args(intruder)))
    assert (reply.status, case.text in reply.text) == (case.status, True), reply
    assert reply.text


@pytest.mark.parametrize("verb", [verb for verb, spec in control.VERBS.items() if spec.leased])
def test_request_of_a_client_from_a_process_that_is_none(intruder: Intruder, verb: str) -> None:
    kinds = control.VERBS[verb].args
    args = {name: kind.low if isinstance(kind, control.Int) else "" for name, kind in kinds.items()}
    reply = intruder.send(frame(verb=verb, args=args))
    assert reply.status == Status.HB_DSP_PERMISSION
    assert f"{verb} is for attached clients" in reply.text


def test_no_client_takes_all_slots(intruder: Intruder) -> None:
    refusals = 0
    for _ in range(8):
        refusals += intruder.ask("slots", count=1024).status == Status.HB_DSP_TASK_NUM_EXCEED_LIMIT
    assert refusals == 7
    intruder.world.attach().close()


def test_hello_with_descriptors_leaves_none_behind(world: World) -> None:
    world.settle()
    before = world.open_files()
    for _ in range(20):
        with _connected(world) as peer:
            socket.send_fds(peer, [control.pack(name="generous")], [0, 1, 2] * 20)
            raw, fds, _, _ = socket.recv_fds(peer, 65536, 64)
            assert control.unpack_map(raw, 65536)["ok"] == 1
            for fd in fds:
                os.close(fd)
    world.settle()
    until(lambda: world.open_files() <= before, "as few descriptors as before")


def test_name_of_a_client_cannot_command_a_terminal(world: World) -> None:
    with _connected(world) as peer:
        peer.send(control.pack(name="\x1b[2Jgone\n\x07" + "x" * 100))
        for fd in socket.recv_fds(peer, 65536, 64)[1]:
            os.close(fd)
        names = {client["name"] for client in world.ask("status")["clients"]}
        (name,) = {name for name in names if "gone" in name}
        assert name.startswith(r"\x1b[2Jgone\n\x07xxx")
        assert name.isprintable()
    world.settle()


def _connected(world: World) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.settimeout(PATIENCE_S)
    peer.connect(world.paths.attach_address)
    return peer


def test_defect_in_a_handler_is_a_finding() -> None:
    """The daemon's loop outlives what nobody foresaw, and ends when it meets nothing else anymore."""
    loop = Loop()
    found: list[str] = []
    reader, writer = os.pipe()
    nothing: dict[str, str] = {}
    loop.watch(reader, lambda: nothing["no such key"])
    os.write(writer, b"x")
    with pytest.raises(KeyError):
        loop.step()
    loop.on_defect = found.append
    loop.step()
    loop.later(0.0, lambda: 1 // 0)
    loop.step()
    assert "KeyError: 'no such key'" in found[0]
    assert "ZeroDivisionError" in "".join(found)
    while len(found) < MAX_DEFECTS - 1:
        loop.step()
    with pytest.raises(KeyError):
        loop.step()
    loop.close()
    os.close(reader)
    os.close(writer)
