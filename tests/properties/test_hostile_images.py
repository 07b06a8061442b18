"""Files that are damaged images are loadable or refused with a message, whatever their bytes are."""

from __future__ import annotations

import random
import struct

import pytest

from dsp_server.c_images.elf import NotLoadableError, check, is_hexagon, needed
from hbrt.native.files import library

DAMAGED = 100


def of_hexagon() -> bytes:
    """A program of one segment."""
    ident = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")
    header = struct.pack("<16sHHIIIIIHHHHHH", ident, 2, 164, 1, 0x1000, 52, 0, 0x67, 52, 32, 1, 40, 0, 0)
    return header + struct.pack("<8I", 1, 84, 0x1000, 0x1000, 16, 16, 5, 4) + bytes(16)


@pytest.fixture(scope="module", params=["hexagon", "native"])
def whole(request: pytest.FixtureRequest) -> bytes:
    return of_hexagon() if request.param == "hexagon" else library("libhbrt_dsp.so").read_bytes()


def test_a_whole_image_is_loadable_and_a_cut_one_is_not(whole: bytes) -> None:
    check(whole, "image.so")
    for size in (4, 20, 60, len(whole) // 8):
        with pytest.raises(NotLoadableError, match="is truncated"):
            check(whole[:size], "image.so")


def test_damaged_bytes_are_refused_with_a_sentence_or_loadable(whole: bytes) -> None:
    refused = []
    for seed in range(DAMAGED):
        chosen = random.Random(seed)
        raw = bytearray(whole)
        for _ in range(chosen.randint(1, 8)):
            raw[chosen.randrange(4, chosen.choice((64, 84)))] = chosen.choice((0, 0x7F, 0xFF, chosen.randrange(256)))
        if chosen.randrange(2):
            del raw[chosen.randrange(len(raw)) :]
        damaged = bytes(raw)
        is_hexagon(damaged)
        needed(damaged)
        try:
            check(damaged, "image.so")
        except NotLoadableError as error:
            refused.append(str(error))
    assert len(refused) > DAMAGED // 2
    assert all(text.endswith(".") for text in refused), refused
