"""A ring against a list."""

import ctypes
import mmap
import os
import subprocess
import sys
from collections import deque

import pytest
from hypothesis import given, strategies as st

from fastrpc.wire import types
from fastrpc.wire.aee import Aee, AeeError
from fastrpc.wire.ring import BUFFER, Buffer, Ring, ring_bytes

buffers = st.lists(st.builds(Buffer, *[st.integers(0, 9)] * 5), max_size=2).map(tuple)
steps = st.lists(st.one_of(st.none(), st.tuples(buffers, st.binary(max_size=60))), max_size=60)


def test_a_buffer_has_the_size_that_c_gives_it() -> None:
    assert ctypes.sizeof(types.dspqueue_buffer) == BUFFER.size


@given(st.integers(88, 300), steps)
def test_packets_come_as_they_went(size: int, todo: list[tuple[tuple[Buffer, ...], bytes] | None]) -> None:
    ring = Ring(memoryview(bytearray(ring_bytes(size))))
    model: deque[tuple[tuple[Buffer, ...], bytes]] = deque()
    for step in todo:
        if step is None:
            packet = ring.read()
            assert (None if packet is None else packet[1:]) == (model.popleft() if model else None)
            continue
        try:
            is_written = ring.write(*step)
        except AeeError as error:
            assert error.code == Aee.AEE_EBADPARM  # noqa: PT017 - a packet larger than the ring
            continue
        if not is_written and not model:  # once the reader has looked, an empty ring takes every packet of a valid size
            assert ring.read() is None
            is_written = ring.write(*step)
            assert is_written
        if is_written:
            model.append(step)
    peeked = ring.peek()
    assert (peeked is None) == (not model)
    while model:
        packet = ring.read()
        assert packet is not None
        assert packet[1:] == model.popleft()
    assert ring.read() is None


def test_an_empty_ring_takes_the_largest_packet_again() -> None:
    """The first try sends the reader to the start, and the reader must go there."""
    ring = Ring(memoryview(bytearray(ring_bytes(88))))
    packet = (Buffer(1, 2, 3, 4, 5), Buffer(6, 7, 8, 9, 10)), b""
    for _ in range(3):
        while not ring.write(*packet):
            assert ring.read() is None
        found = ring.read()
        assert found is not None
        assert found[1:] == packet


def test_limits() -> None:
    ring = Ring(memoryview(bytearray(ring_bytes(1 << 17))))
    for wrong in (((Buffer(1, 1, 0, 0, 0),) * 65, b""), ((), bytes(65_537))):
        with pytest.raises(AeeError):
            ring.write(*wrong)
    for size in (0, (16 << 20) + 1):
        with pytest.raises(AeeError):
            ring_bytes(size)


@given(st.data())
def test_whatever_the_other_side_writes_no_call_hangs_or_leaves_the_ring(data: st.DataObject) -> None:
    raw = bytearray(ring_bytes(128))
    word = st.one_of(st.integers(0, 20).map(lambda at: 8 * at), st.integers(0, 2**32 - 1), st.just(0xFFFF))
    for at in range(0, len(raw), 4):
        raw[at : at + 4] = data.draw(word).to_bytes(4, "little")
    before = bytes(raw)
    ring = Ring(memoryview(raw))
    for call in (ring.peek, ring.depth, ring.read, ring.read, lambda: ring.write((), b"x")):
        try:
            call()
        except AeeError as error:
            assert error.code == Aee.AEE_EBADSTATE  # noqa: PT017 - or it found packets
    assert raw[8:64] == before[8:64]


def test_a_ring_that_leads_to_its_start_from_there_has_ended() -> None:
    raw = bytearray(ring_bytes(128))
    raw[0:4], raw[64:66] = (16).to_bytes(4, "little"), b"\xff\xff"
    with pytest.raises(AeeError, match="position 0 of its 128 bytes"):
        Ring(memoryview(raw)).read()


WRITER = """
import mmap, sys
from fastrpc.wire.ring import Ring

fd, count = map(int, sys.argv[1:])
ring = Ring(memoryview(mmap.mmap(fd, 0)))
for number in range(count):
    while not ring.write((), b"%d" % number):
        pass
"""


def test_packets_of_another_process_are_whole_and_in_order() -> None:
    """Positions change under the reader's eyes: a load of one must never see halves of two."""
    count, fd, number = 30_000, os.memfd_create("ring"), 0
    os.ftruncate(fd, ring_bytes(4096))
    ring = Ring(memoryview(mmap.mmap(fd, 0)))
    with subprocess.Popen([sys.executable, "-c", WRITER, str(fd), str(count)], pass_fds=[fd]) as writer:
        try:
            while number < count and writer.poll() in {None, 0}:
                if (packet := ring.read()) is not None:
                    assert packet.message == b"%d" % number
                    number += 1
        finally:
            writer.kill()
            os.close(fd)
    assert number == count
