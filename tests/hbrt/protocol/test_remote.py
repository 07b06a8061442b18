"""Frames between a program and the relay of another machine: nothing but a refusal comes out of nonsense."""

from __future__ import annotations

import itertools

import msgpack
import pytest

from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.remote import (
    CHUNK_BYTES,
    MAX_FRAME_BYTES,
    PROGRAM_SAYS,
    RELAY_SAYS,
    TASK_REQUEST,
    VERSION,
    WINDOW_BYTES,
    WINDOW_FRAMES,
    RemoteFrame,
    decode,
    encode,
)
from hbrt.remote.send_window import SendWindow
from tests.each import each


def test_what_was_encoded_is_decoded() -> None:
    frame = encode(RemoteFrame.PUSH, 1, 0x8000_0000, 4096, bytes(512), b"x")
    assert decode(frame, PROGRAM_SAYS) == (RemoteFrame.PUSH, [1, 0x8000_0000, 4096, bytes(512), b"x"])


def test_the_largest_change_fits_a_frame() -> None:
    frame = encode(
        RemoteFrame.DATA,
        (1 << 64) - 1,
        (1 << 64) - 1,
        (1 << 64) - 1,
        CHUNK_BYTES,
        bytes(CHUNK_BYTES // 8),
        bytes(CHUNK_BYTES),
    )
    assert len(frame) <= MAX_FRAME_BYTES
    assert decode(frame, RELAY_SAYS).kind == RemoteFrame.DATA


@each(
    "frame, why",
    [
        (bytes(MAX_FRAME_BYTES + 1), "the limit is"),
        (msgpack.packb([VERSION + 1, 12]), f"remote protocol version {VERSION + 1}"),
        (msgpack.packb([VERSION, "BYE"]), "the kind 'BYE'"),
        (encode(RemoteFrame.WELCOME, 1, b"0", 1, 1, 1, ""), "the kind 32"),
        (encode(RemoteFrame.HELLO, "x" * 65, 1), "'program' of HELLO has 65 characters"),
        (encode(RemoteFrame.HELLO, "x", 0), "'pid' of HELLO is 0"),
        (encode(RemoteFrame.SUBMIT, bytes(TASK_REQUEST.size - 1)), "'task' of SUBMIT has"),
        (encode(RemoteFrame.PUSH, 1, 0, CHUNK_BYTES + 1, b"", b""), "'size' of PUSH"),
        (encode(RemoteFrame.PUSH, 1, -1, 4096, b"", b""), "'phy' of PUSH is -1"),
        (encode(RemoteFrame.PUSH, 1, 0, 4096, "text", b""), "'mask' of PUSH must be bytes"),
        (encode(RemoteFrame.PULL, 1, 1.5, 4096), "'phy' of PULL must be an integer"),
        (encode(RemoteFrame.CHECK, 1, "in\0", 0, 0), "'what' of CHECK"),
        (encode(RemoteFrame.ASK, 1, 0), "'task' of ASK is 0"),
    ],
)
def test_nonsense_is_refused_with_what_is_wrong(frame: bytes, why: str) -> None:
    with pytest.raises(MalformedMessageError) as caught:
        decode(frame, PROGRAM_SAYS)
    assert why in str(caught.value)


class TestSendWindow:
    def test_many_small_frames_wait_as_well(self) -> None:
        window = SendWindow()
        window.add(iter([(number, b"x") for number in range(1, WINDOW_FRAMES + 3)]))
        assert len(list(window.frames())) == WINDOW_FRAMES
        window.on_taken(WINDOW_FRAMES - 1)
        assert list(window.frames()) == [b"x", b"x"]

    def test_frames_leave_in_order_while_there_is_room(self) -> None:
        window, big = SendWindow(), bytes(WINDOW_BYTES)
        window.add(iter([(1, big), (2, b"second")]))
        window.add_frames(b"last")
        assert [len(frame) for frame in window.frames()] == [WINDOW_BYTES]
        assert list(window.frames()) == []
        assert not window.has_frames
        window.on_taken(1)
        assert list(window.frames()) == [b"second", b"last"]
        assert not window.has_frames

    def test_numbers_grow_and_cannot_be_guessed(self) -> None:
        window = SendWindow()
        numbers = [window.next_number() for _ in range(1000)]
        assert numbers == sorted(set(numbers))
        steps = {after - before for before, after in itertools.pairwise(numbers)}
        assert len(steps) > 990
        assert numbers[-1] + (1 << 62) < 1 << 63  # nor do they come to an end

    def test_only_what_is_on_its_way_is_taken(self) -> None:
        window = SendWindow()
        window.add(iter([(5, b"a"), (9, b"b")]))
        assert list(window.frames()) == [b"a", b"b"]
        assert [window.on_taken(number) for number in (4, 5, 5, 9, 10)] == [False, True, False, True, False]

    def test_bytes_that_wait_are_counted_until_they_leave(self) -> None:
        window, big = SendWindow(), bytes(WINDOW_BYTES)
        window.add(iter([(1, big)]))
        window.add_frames(b"123", b"45")
        window.add_numbered(lambda number: b"%d" % (number > 0), 100)
        assert (len(list(window.frames())), window.waiting_bytes) == (1, 105)
        window.on_taken(1)
        assert list(window.frames()) == [b"123", b"45", b"1"]
        assert window.waiting_bytes == 0
