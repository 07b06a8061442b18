"""Damaged images, damaged rings of queues, and messages of any content: a code each, and the board continues.

tests/native/test_fuzz.py has rings and messages for what an image in C reads, under the sanitizers.
"""

from __future__ import annotations

import ctypes
import random
from pathlib import Path
from typing import cast

import pytest

import fastrpc
from arm_client.arrays import Buffer
from arm_client.client import Board, private_board
from fastrpc import AeeError, DspQueue, Interface, remote_arg, remote_handle64
from fastrpc.runtime import runtime
from fastrpc.wire import message
from fastrpc.wire.scalars import make
from hbrt.errors import BoardError
from tests.fastrpc import test_hexagon
from tests.fastrpc.images import plain
from tests.fastrpc.test_c_programs import build
from tests.fastrpc.test_watched import SOURCE, URI
from tests.limits import PATIENCE_S

IMAGES, QUEUES, MESSAGES = 40, 60, 120
ODD = [0, 1, 7, 8, 16, 63, 64, 65, 255, 4096, 0xFFFF, 0x10000, 1 << 31, 0xFFFFFFF8, 0xFFFFFFFF]


class Calc(Interface):
    """A stub by hand."""

    INTERFACE = "calc"


# -- images


@pytest.fixture(scope="module", params=["native", pytest.param("hexagon", marks=test_hexagon.pytestmark)])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    target = cast("str", request.param)
    return build(tmp_path_factory.mktemp("whole") / "image.so", SOURCE, "--dsp", "--target", target).read_bytes()


def damaged(whole: bytes, seed: int) -> bytes:
    """Cut, of another processor, with other names, or with other bytes in what is loaded, which comes first."""
    chosen, raw = random.Random(seed), bytearray(whole)
    loaded = len(raw) // 2 if len(raw) < 1 << 16 else 1 << 17
    at = chosen.randrange(loaded)
    match chosen.choice(("cut", "processor", "names", "head", "bytes", "bytes", "zeros")):
        case "cut":
            del raw[at:]
        case "processor":
            raw[18:20] = chosen.choice((3, 8, 40, 62, 164, 183, 243)).to_bytes(2, "little")
        case "names":
            raw = raw.replace(b"hbrt_fastrpc_register", b"hbrt_fastrpc_Register")
        case "head":
            for _ in range(chosen.randint(1, 8)):
                raw[chosen.randrange(4, 200)] = chosen.randrange(256)
        case "zeros":
            raw[at : at + 512] = bytes(512)
        case _:
            for _ in range(chosen.randint(1, 200)):
                raw[chosen.randrange(loaded)] = chosen.randrange(256)
    return bytes(raw)


def codes_of(image: Path) -> list[int]:
    """The codes of an open, an invocation and a close on a board of an image; of an open that fails, its own alone."""
    with private_board(image, cores=1):
        handle, arguments = remote_handle64(), (remote_arg * 2)()
        if code := fastrpc.remote_handle64_open(URI, handle):
            return [code]
        kept = [ctypes.create_string_buffer(100) for _ in arguments]
        for one, room in zip(arguments, kept, strict=True):
            one.buf.pv, one.buf.nLen = ctypes.addressof(room), 100
        return [
            fastrpc.remote_handle64_invoke(handle.value, make(4, 1, 1), arguments),
            fastrpc.remote_handle64_close(handle),
        ]


@pytest.mark.long
def test_a_damaged_image_serves_or_is_refused(
    whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HBRT_WATCHDOG_MS", "3000")  # of code that runs in circles by now
    image, refused = tmp_path / "image.so", list[str]()
    for seed in range(IMAGES):
        image.write_bytes(damaged(whole, seed))
        try:
            assert all(type(code) is int for code in codes_of(image)), f"seed {seed}"
        except BoardError as error:
            refused.append(str(error))
    assert len(refused) > IMAGES // 4
    assert all(str(image) in text for text in refused), refused
    image.write_bytes(whole)
    assert codes_of(image) == [0, 0]
    capfd.readouterr()


# -- rings and messages


def scribble(view: memoryview, chosen: random.Random) -> None:
    """Write words where the positions and sizes are, or anywhere."""
    for _ in range(chosen.randint(1, 12)):
        at = chosen.choice((0, 4, 16, 64, 68, 128, chosen.randrange(256) * 4, chosen.randrange(len(view) // 4) * 4))
        value = chosen.choice((*ODD, chosen.randrange(1 << 32), chosen.randrange(512) * 8))
        view[at : at + 4] = value.to_bytes(4, "little")


def step(queue: DspQueue, chosen: random.Random) -> None:
    """Call the queue, or write over it."""
    match chosen.randrange(6):
        case 0:
            queue.write(bytes(chosen.randrange(80)), timeout=0.002)
        case 1:
            queue.read(0.002)
        case 2:
            queue.peek()
        case 3:
            queue.depths()
        case 4:
            queue.write_early_wakeup()
        case _:
            scribble(queue._block.view(), chosen)


@pytest.mark.dsp_board("images/plain.py")
def test_rings_of_any_content(dsp_board: Board) -> None:
    refused = []
    with Calc() as calc:
        for seed in range(QUEUES):
            chosen = random.Random(seed)
            with DspQueue(request_bytes=512, response_bytes=256) as queue:
                calc.call(plain.QUEUE, queue.id)
                for _ in range(20):
                    try:
                        step(queue, chosen)
                    except AeeError as error:
                        refused.append(error.sentence)
            assert calc.call(plain.FAR, seed) == 2 * seed, f"seed {seed}"
    assert refused
    assert all(refused)


@pytest.mark.dsp_board("images/plain.py")
def test_messages_of_any_content(dsp_board: Board) -> None:
    here, chosen = runtime(), random.Random(1)
    with Calc() as calc:
        remote = here.opened(calc.handle).remote
        buffer = Buffer(here.session, 1 << 16, is_cached=False)
        statuses = set()
        for number in range(MESSAGES):
            kind = chosen.choice((0, message.OPEN, message.INVOKE, message.INVOKE, message.WAKE, 6, 1 << 31))
            count = chosen.choice((0, 1, 3, 4, 510, 511, chosen.choice(ODD)))
            word = chosen.choice((make(2, 3, 1), make(9, 1, 0), chosen.randrange(1 << 32)))
            handle = chosen.choice((remote, buffer.phy_addr, 0, chosen.randrange(1 << 64)))
            raw = message.HEAD.pack(kind, word, handle, count, chosen.choice((*ODD, buffer.phy_addr >> 12)))
            places = [buffer.phy_addr, buffer.phy_addr + 128, 0, *ODD, chosen.randrange(1 << 64)]
            for _ in range(chosen.randint(0, 8)):
                raw += message.ARGUMENT.pack(chosen.choice(places), chosen.choice((0, 4, 64, 1 << 15, *ODD)))
            buffer.view()[: len(raw)] = raw
            size = chosen.choice((len(raw), len(raw), chosen.randrange(1, 1 << 16)))
            task = here.session.tasks.submit(message.FASTRPC_CMD, 0, 0, 0, buffer.phy_addr, size, buffer.phy_addr, 8)
            assert task > 0
            statuses.add(here.session.tasks.wait(task, PATIENCE_S * 1000))
            here.session.tasks.release(task)
            assert calc.call(plain.FAR, number) == 2 * number
        buffer.free()
    assert len(statuses) > 3
