"""What the gateway holds for a program that asks and does not read: a bounded number of bytes, then it disconnects."""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import psutil
import pytest

from arm_client.client import Board, connect, private_board
from hbrt.protocol.control import ControlRequest, decode_reply, encode_request
from hbrt.protocol.remote import MAX_LOG_BYTES, WINDOW_BYTES, RemoteFrame, encode
from hbrt.status import Status
from tests.limits import PATIENCE_S
from tests.raw_zmtp import RawPeer
from tests.remote_relay import RemoteRelay
from tests.waiting import until

BLOCKS = 3000
MANY = 1000  # answers of about 200 KiB


def ask(verb: str, number: int = 1, **args: int) -> bytes:
    return encode(RemoteFrame.REQUEST, encode_request(ControlRequest(number, verb, args)))


ALL_BLOCKS = ask("mem", most=BLOCKS)


class Crowded(NamedTuple):
    """A board with many blocks, a relay of it, and one that ends connections sooner, where nothing is on its way."""

    board: Board
    relay: RemoteRelay
    brisk: RemoteRelay

    def relay_bytes(self) -> int:
        return int(psutil.Process(self.relay.process.pid).memory_info().rss)

    def names(self) -> list[str]:
        return [client["name"] for client in self.board.status()["clients"]]

    def await_gone(self, name: str) -> None:
        until(lambda: not any(name in one for one in self.names()), "the end of its lease")


@pytest.fixture(scope="module")
def crowded() -> Iterator[Crowded]:
    with private_board() as board, RemoteRelay(board.path, limits={}) as relay, RemoteRelay(board.path) as brisk:
        for _ in range(BLOCKS):
            board.session.link.request("alloc", size=64, cached=0)
        yield Crowded(board, relay, brisk)
        assert "Traceback" not in relay.log() + brisk.log()


@pytest.fixture
def silent(crowded: Crowded) -> Iterator[RawPeer]:
    """A program that was let in and reads nothing more unless told to."""
    with RawPeer(crowded.relay.address, window_bytes=4096) as peer:
        peer.say(encode(RemoteFrame.HELLO, "silent", os.getpid()))
        assert peer.hear().kind == RemoteFrame.WELCOME
        yield peer
    with connect(crowded.relay.address) as board:
        board.ping()


def last_word(peer: RawPeer) -> tuple[int, str, int]:
    """Status and sentence of GONE or REFUSED, and how many bytes of answers came before."""
    answered = 0
    while (message := peer.hear()).kind == RemoteFrame.REPLY:
        answered += len(message.fields[1])
    assert message.kind in {RemoteFrame.GONE, RemoteFrame.REFUSED}
    return message.fields[0], message.fields[1], answered


@pytest.mark.long
def test_answers_that_nobody_reads_are_bounded_in_bytes(crowded: Crowded, silent: RawPeer) -> None:
    before = crowded.relay_bytes()
    silent.say(*[ALL_BLOCKS] * MANY)
    with connect(crowded.relay.address) as other:  # meanwhile others are served
        for _ in range(20):
            other.ping()
            silent.pong()
    assert crowded.relay_bytes() - before < 8 * WINDOW_BYTES
    silent.say(*[ALL_BLOCKS] * 4 * MANY)
    status, why, answered = last_word(silent)
    assert status == Status.HB_DSP_INVALID_ARGUMENT
    assert "ACK is missing for" in why or "more than it may without waiting" in why
    assert answered < 2 * WINDOW_BYTES
    assert silent.is_ended()
    crowded.await_gone("silent")


def test_an_ack_must_name_a_frame_that_was_read(crowded: Crowded) -> None:
    with RawPeer(crowded.brisk.address) as peer:
        peer.say(encode(RemoteFrame.HELLO, "early", os.getpid()), ALL_BLOCKS, encode(RemoteFrame.ACK, 1))
        assert peer.hear().kind == RemoteFrame.WELCOME
        status, why, _ = last_word(peer)
        assert (status, why) == (
            Status.HB_DSP_INVALID_ARGUMENT,
            "The relay received a malformed message: ACK 0x1 does not name a frame in transit.",
        )
        assert peer.is_ended()
        crowded.await_gone("early")


def test_who_reads_and_says_so_gets_all_answers(silent: RawPeer) -> None:
    silent.say(*[ALL_BLOCKS] * 60)
    for _ in range(60):
        kind, (number, raw) = silent.hear()
        assert (kind, decode_reply(raw).status) == (RemoteFrame.REPLY, 0)
        silent.say(encode(RemoteFrame.ACK, number))


def test_small_answers_that_nobody_reads_are_bounded(crowded: Crowded) -> None:
    questions = [ask("stop")] * 2000  # each is refused in a sentence, which needs no ACK
    deadline = time.monotonic() + PATIENCE_S
    with RawPeer(crowded.brisk.address, window_bytes=4096) as peer:
        peer.say(encode(RemoteFrame.HELLO, "small", os.getpid()))
        assert peer.hear().kind == RemoteFrame.WELCOME
        with contextlib.suppress(ConnectionError):
            while not crowded.brisk.disconnects("small"):
                assert time.monotonic() < deadline, "nothing bounds them"
                peer.say(*questions)
                peer.pong()
        crowded.await_gone("small")
    (why,) = crowded.brisk.disconnects("small")
    # The gateway refuses questions that come faster than a remote client answers.
    assert any(part in why for part in ("does not read its answers", "more than it may without waiting", "are unread"))
    with connect(crowded.brisk.address) as board:
        board.ping()


def test_who_looks_reads_an_answer_before_the_next_question(crowded: Crowded) -> None:
    look = encode_request(ControlRequest(1, "mem", {"most": BLOCKS}))
    with RawPeer(crowded.brisk.address) as peer:
        peer.say(encode(RemoteFrame.LOOK, 0, look))
        kind, (ticket, raw) = peer.hear()
        assert (kind, len(decode_reply(raw).data["blocks"])) == (RemoteFrame.REPLY, BLOCKS)
        peer.say(encode(RemoteFrame.LOOK, ticket, look), encode(RemoteFrame.LOOK, ticket, look))
        assert peer.hear().kind == RemoteFrame.REPLY
        kind, (status, why) = peer.hear()
        assert (kind, status) == (RemoteFrame.GONE, Status.HB_DSP_INVALID_ARGUMENT)
        assert "LOOK does not have the number of the last REPLY" in why
        assert peer.is_ended()


def test_a_log_comes_in_pieces_of_a_bounded_size(crowded: Crowded) -> None:
    log = crowded.board.path / "log"
    line = b"x" * 99 + b"\n"
    with log.open("ab") as file:
        file.write(line * (3 * MAX_LOG_BYTES // len(line)))
    with RawPeer(crowded.relay.address) as peer:
        ticket, since, came = 0, 0, 0
        while True:
            peer.say(encode(RemoteFrame.LOG, ticket, 0, since))
            _, (ticket, raw) = peer.hear()
            data = decode_reply(raw).data
            assert len(data["raw"]) <= MAX_LOG_BYTES
            if not data["raw"]:
                break
            since, came = data["next"], came + len(data["raw"])
        assert since == came == log.stat().st_size
        peer.say(encode(RemoteFrame.LOG, ticket, (1 << 31) - 1, -1))
        _, (_, raw) = peer.hear()
        data = decode_reply(raw).data
        assert (data["left_out"], data["raw"][:100]) == (True, line)
        assert MAX_LOG_BYTES - 2 * len(line) < len(data["raw"]) <= MAX_LOG_BYTES


@pytest.mark.parametrize("verb", ["stop", "restart", "alloc", "recovery"])
def test_who_looks_changes_nothing(crowded: Crowded, verb: str) -> None:
    args = {"alloc": {"size": 1, "cached": 0}}.get(verb, {})
    with RawPeer(crowded.relay.address) as peer:
        peer.say(encode(RemoteFrame.LOOK, 0, encode_request(ControlRequest(9, verb, args))))
        _, (_, raw) = peer.hear()
        reply = decode_reply(raw)
        assert (reply.id, reply.status) == (9, Status.HB_DSP_PERMISSION)
        assert reply.text == f"{verb} is not available to observers on another machine; use it on the board's own."


def test_who_fetches_a_trace_gets_its_files_alone(crowded: Crowded) -> None:
    with RawPeer(crowded.relay.address) as peer:
        peer.say(encode(RemoteFrame.TRACE, 0, "", 0))
        _, (ticket, raw) = peer.hear()
        files = decode_reply(raw).data["files"]
        assert files
        assert all(name.endswith((".ring", ".json")) for name in files)
        for name in ("../log", str(crowded.board.path / "log"), "nothing.ring"):
            peer.say(encode(RemoteFrame.TRACE, ticket, name, 0))
            _, (ticket, raw) = peer.hear()
            assert decode_reply(raw).status == Status.HB_DSP_NOT_RUNNING
        peer.say(encode(RemoteFrame.TRACE, ticket, min(files), 1 << 40))
        _, (_, raw) = peer.hear()
        assert zlib.decompress(decode_reply(raw).data["raw"]) == b""


@pytest.mark.parametrize(
    "frame", [encode(RemoteFrame.BYE), encode(RemoteFrame.HELLO, "x", 1), encode(RemoteFrame.LOOK, 1, b"\xc1")]
)
def test_after_a_look_comes_nothing_but_looks(crowded: Crowded, frame: bytes) -> None:
    with RawPeer(crowded.brisk.address) as peer:
        peer.say(encode(RemoteFrame.LOG, 0, 1, -1))
        assert peer.hear().kind == RemoteFrame.REPLY
        peer.say(frame)
        assert peer.is_ended()
    assert not [name for name in crowded.names() if name.endswith("look")]
