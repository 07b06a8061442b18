"""Copies by channels: what a wait covers, and which bytes move when the order is drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from dsp_server.hardware import descriptors
from dsp_server.hardware.channels import FRAMES, ChannelIdma
from dsp_server.hardware.cycles import CycleCounter
from dsp_server.hardware.descriptors import Idma
from dsp_server.hardware.frame import ping_pong
from dsp_server.hardware.idma import idma_buffer_status, idma_copy_desc, idma_desc_done
from dsp_server.hardware.tile_manager import XV_MEM_BANK_COLOR_0, XV_MEM_BANK_COLOR_1, TileManager
from dsp_server.hardware.transfers import UnknownHandle

SEEDS = range(20)
BYTES = 64


@pytest.fixture
def install() -> Iterator[Callable[[int | None], ChannelIdma]]:
    """Makes an engine with a seed the current one."""
    before: list[Idma] = []

    def make(seed: int | None) -> ChannelIdma:
        idma = ChannelIdma(CycleCounter(), TileManager(), seed=seed)
        before.append(descriptors.install(idma))
        return idma

    yield make
    if before:
        descriptors.install(before[0])


def tiles_of(idma: ChannelIdma, color: int = XV_MEM_BANK_COLOR_1) -> tuple[memoryview, memoryview]:
    assert idma.tile_manager is not None
    return idma.tile_manager.allocate(BYTES, XV_MEM_BANK_COLOR_0), idma.tile_manager.allocate(BYTES, color)


def wait(handle: int) -> None:
    while idma_desc_done(handle) != 1:
        pass


def plus_one(idma: ChannelIdma, src: bytes, *, refills_late: bool, waits_for_both: bool) -> bytes:
    """The vendor's loop: input and output share a tile, ping and pong take turns."""
    tiles, dst, count = tiles_of(idma), bytearray(len(src)), len(src) // BYTES
    arrived = [idma_copy_desc(tiles[turn], src[turn * BYTES :], BYTES) for turn in (0, 1)]
    left = [0, 0]
    for number in range(count):
        turn = number % 2
        wait(arrived[turn])
        if left[turn]:
            wait(left[turn])
        tiles[turn][:] = bytes(byte + 1 for byte in tiles[turn])
        left[turn] = idma_copy_desc(memoryview(dst)[number * BYTES :], tiles[turn], BYTES)
        if number + 2 < count:
            if refills_late:
                wait(left[turn])
            arrived[turn] = idma_copy_desc(tiles[turn], src[(number + 2) * BYTES :], BYTES)
    for handle in left if waits_for_both else left[1:]:
        wait(handle)
    idma.drain()
    return bytes(dst)


SRC = np.arange(8 * BYTES, dtype=np.uint8).astype(np.uint8).tobytes().replace(b"\xff", b"\xfe")
EXPECTED = bytes(byte + 1 for byte in SRC)


@pytest.mark.parametrize(("refills_late", "waits_for_both"), [(False, True), (True, False)])
def test_a_mistake_gives_wrong_bytes_in_a_drawn_order_alone(
    install: Callable[[int | None], ChannelIdma], *, refills_late: bool, waits_for_both: bool
) -> None:
    how = {"refills_late": refills_late, "waits_for_both": waits_for_both}
    assert plus_one(install(None), SRC, **how) == EXPECTED
    results = [plus_one(install(seed), SRC, **how) for seed in SEEDS]
    assert any(result != EXPECTED for result in results)
    assert [plus_one(install(seed), SRC, **how) for seed in SEEDS] == results


@pytest.mark.parametrize("seed", SEEDS)
def test_a_correct_op_gives_the_same_bytes_in_every_order(
    install: Callable[[int | None], ChannelIdma], seed: int
) -> None:
    idma = install(seed)
    assert plus_one(idma, SRC, refills_late=True, waits_for_both=True) == EXPECTED


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_frame_gives_the_same_bytes_in_every_order(
    install: Callable[[int | None], ChannelIdma], seed: int, *, in_place: bool
) -> None:
    idma, dst = install(seed), bytearray(len(SRC))
    assert idma.tile_manager is not None

    def add(tile_in: np.ndarray[tuple[int], np.dtype[np.uint8]], out: object, first: int) -> None:
        del first
        np.add(tile_in, 1, out=out)  # type: ignore[call-overload]

    ping_pong(idma.tile_manager, SRC, dst, add, in_dtype=np.uint8, tile_items=50, in_place=in_place)
    assert dst == EXPECTED


def test_a_wait_covers_the_copies_before_it_on_its_channel(install: Callable[[int | None], ChannelIdma]) -> None:
    idma = install(None)
    ping, pong = tiles_of(idma)
    first, second, other, frames = (
        idma_copy_desc(ping, b"a" * 8, 8),
        idma_copy_desc(ping[8:], b"b" * 8, 8),
        idma_copy_desc(pong, b"c" * 8, 8),
        idma.enqueue(pong[8:16], memoryview(b"d" * 8)),
    )
    assert [idma.channel_of(handle) for handle in (first, second, other, frames)] == [(0, None)] * 2 + [
        (1, None),
        FRAMES,
    ]
    idma.wait(other)
    assert (idma.outstanding, bytes(ping[:16]), bytes(pong[:8])) == (3, b"a" * 8 + b"b" * 8, b"c" * 8)
    wait(second)
    assert idma_desc_done(first) == 1
    assert (idma.outstanding, pong[8]) == (1, 0)
    while idma_buffer_status() > 0:
        pass
    assert bytes(pong[8:16]) == b"d" * 8
    with pytest.raises(UnknownHandle):
        idma.wait(frames + 1)


def test_wait_all_covers_every_channel(install: Callable[[int | None], ChannelIdma]) -> None:
    idma = install(7)
    ping, pong = tiles_of(idma)
    for tile in (ping, pong):
        idma_copy_desc(tile, b"abcd" * 16, BYTES)
    idma.wait_all()
    assert (idma.outstanding, bytes(ping), bytes(pong)) == (0, b"abcd" * 16, b"abcd" * 16)


def test_what_nobody_waited_for_moves_at_the_end_or_never(install: Callable[[int | None], ChannelIdma]) -> None:
    for seed, expected in ((None, {b"x"}), (..., {b"x", b"\0"})):
        seen = set()
        for drawn in SEEDS:
            idma, dst = install(drawn if seed is ... else None), bytearray(1)
            handle = idma_copy_desc(dst, b"x", 1)
            (left,) = idma.drain()
            assert (left.handle, left.dst.nbytes, idma.outstanding) == (handle, 0, 0)
            seen.add(bytes(dst))
        assert seen == expected
