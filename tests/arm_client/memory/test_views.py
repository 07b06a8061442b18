"""What looks at board memory keeps it, and keeps its last bytes when the memory is gone; no other program is met."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import arm_client as hb
from arm_client import Board, BoardArray, nn
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.ddr.private_pages import PrivatePages
from hbrt.errors import RequestRefusedError
from tests.each import each

if TYPE_CHECKING:
    from tests.arm_client.conftest import Chip, Peer

pytestmark = [pytest.mark.dsp_board(image="../images/ops.py"), pytest.mark.usefixtures("no_rest")]
COUNT = 24
NBYTES = COUNT * 4
MANY = 300


class Record(ctypes.Structure):
    _fields_ = (("value", ctypes.c_float),)


def of_torch(array: Any) -> Any:
    torch = pytest.importorskip("torch", reason="a large library that hbrt does not use")
    return torch.from_numpy(np.asarray(array))


def of_pandas(array: Any) -> Any:
    pandas = pytest.importorskip("pandas", reason="a library that hbrt does not use")
    return pandas.Series(array, copy=False)


TAKES: dict[str, Callable[[Any], Any]] = {
    "itself": lambda array: array,
    "a slice": lambda array: array[2:],
    "asarray": np.asarray,
    "asarray of its type": lambda array: np.asarray(array, np.float32),
    "asanyarray of asarray": lambda array: np.asanyarray(np.asarray(array)),
    "view of ndarray": lambda array: array.view(np.ndarray),
    "slice of a view": lambda array: array.view(np.ndarray)[3:].reshape(-1, 1),
    "other type": lambda array: np.asarray(array).view(np.uint8),
    "fields": lambda array: np.asarray(array).view([("a", "f4")])["a"],
    "ascontiguousarray": np.ascontiguousarray,
    "require": lambda array: np.require(array, requirements=["C", "W"]),
    "transpose": lambda array: np.asarray(array).reshape(4, -1).T,
    "frombuffer": lambda array: np.frombuffer(array, np.float32),
    "frombuffer of data": lambda array: np.frombuffer(array.data, np.float32),
    "broadcast_to": lambda array: np.broadcast_to(array, (2, COUNT)),
    "sliding_window_view": lambda array: np.lib.stride_tricks.sliding_window_view(array, 3),
    "as_strided": lambda array: np.lib.stride_tricks.as_strided(array, (3,), (8,)),
    "asarray of a memoryview": lambda array: np.asarray(memoryview(array)),
    "masked": lambda array: np.ma.masked_array(np.asarray(array)),
    "nditer": lambda array: np.nditer(np.asarray(array)),
    "flat": lambda array: np.asarray(array).flat,
    "dlpack": np.from_dlpack,
    "dlpack of a view": lambda array: np.from_dlpack(np.asarray(array)),
    "memoryview": memoryview,
    "slice of a memoryview": lambda array: memoryview(array)[3:5],
    "cast of a memoryview": lambda array: memoryview(array).cast("B"),
    "ctypes": (ctypes.c_float * COUNT).from_buffer,
    "a structure": Record.from_buffer,
    "ctypes of a view": lambda array: np.ctypeslib.as_ctypes(np.asarray(array)),
    "pickle buffer": pickle.PickleBuffer,
}


@pytest.fixture
def _no_collector() -> Iterator[None]:
    """What goes, goes with its last reference."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def values() -> np.ndarray[Any, Any]:
    return np.arange(1, COUNT + 1, dtype=np.float32)


@pytest.mark.usefixtures("_no_collector")
@each("take", TAKES.values())
def test_a_view_of_any_kind_keeps_its_block(dsp_board: Board, take: Callable[[Any], Any]) -> None:
    keeps_its_block(dsp_board, take)


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("take", [of_torch, of_pandas])
def test_a_view_of_another_library_keeps_its_block(dsp_board: Board, take: Callable[[Any], Any]) -> None:
    keeps_its_block(dsp_board, take)


def keeps_its_block(dsp_board: Board, take: Callable[[Any], Any]) -> None:
    view = take(dsp_board.from_array(values()))
    others = [dsp_board.from_array(np.zeros(COUNT, np.float32)) for _ in range(3)]
    assert dsp_board.live_bytes() == 4 * NBYTES
    kept = np.asarray(view) if isinstance(view, (memoryview, np.ndarray)) else None
    if kept is not None and kept.dtype == np.float32:
        assert set(kept.ravel()) <= set(values())
        assert kept.any()
    del others, kept, view
    assert dsp_board.live_bytes() == 0


@pytest.mark.usefixtures("_no_collector")
def test_a_view_of_a_buffer_keeps_it(dsp_board: Board) -> None:
    view = dsp_board.alloc(100).view()[10:]
    assert dsp_board.live_bytes() == 100
    array = np.frombuffer(view, np.uint8)
    del view
    assert dsp_board.live_bytes() == 100
    del array
    assert dsp_board.live_bytes() == 0


def test_a_plain_array_of_a_result_is_not_overwritten_by_the_next_call(dsp_board: Board) -> None:
    scores = values()
    first = np.asarray(nn.softmax(dsp_board, scores))
    expected = first.copy()
    for _ in range(3):
        nn.softmax(dsp_board, scores[::-1].copy())
    np.testing.assert_array_equal(first, expected)


class TestFreed:
    def test_keeps_its_last_bytes_while_another_program_has_the_memory(self, dsp_board: Board, peer: Peer) -> None:
        buffer = dsp_board.alloc(NBYTES)
        array = buffer.array(np.float32, COUNT)
        array[:] = values()
        buffer.free()
        assert peer.alloc(NBYTES) == buffer.phy_addr
        assert peer("int(any(mem.view()))") == 0
        peer("mem.view()[:] = b'7' * 96")
        np.testing.assert_array_equal(array, values())
        array[:] = 5
        assert peer("int(bytes(mem.view()) == b'7' * 96)") == 1

    @pytest.mark.parametrize("generations", [1, 4])
    def test_memory_that_comes_back_to_this_process_is_fresh_and_works(self, chip: Chip, generations: int) -> None:
        board = chip.board
        olds, addresses = [], []
        for number in range(generations):
            with board.alloc(2 * PAGE_BYTES) as buffer:
                array = np.asarray(buffer.array(np.uint8, 2 * PAGE_BYTES))
                assert not array.any()
                array[:] = number + 1
                olds.append(array)
                addresses.append(buffer.phy_addr)
            del array
        assert len(set(addresses)) == 1
        fresh = board.alloc(2 * PAGE_BYTES)
        assert fresh.phy_addr == addresses[0]
        given, output = fresh.array(np.uint8, 64), board.empty(64, np.uint8)
        assert not given.any()
        given[:] = range(64)
        assert board.call(chip.ECHO, given, output).tolist() == list(range(64))
        board.call(chip.ECHO, bytes(output + 1), given)
        assert given.tolist() == list(range(1, 65))
        for number, old in enumerate(olds):
            assert (old == number + 1).all()

    def test_shows_the_board_again_when_the_last_view_has_gone(self, dsp_board: Board) -> None:
        ddr = dsp_board.session.link.ddr
        before = len(Path("/proc/self/maps").read_text().splitlines())
        buffers = [dsp_board.alloc(PAGE_BYTES) for _ in range(MANY)]
        arrays = [np.asarray(buffer.array(np.uint8, 4)) for buffer in buffers]
        for number, (buffer, array) in enumerate(zip(buffers, arrays, strict=True)):
            array[:] = number % 251
            buffer.free()
        assert [array[3] for array in arrays] == [number % 251 for number in range(MANY)]
        del array, arrays, buffer, buffers
        again = dsp_board.alloc(PAGE_BYTES)
        assert again.address == ddr.address + ddr.offset_of(again.phy_addr)
        again.view()[0] = 1
        assert ddr.view(again.phy_addr, 1)[0] == 1
        assert len(Path("/proc/self/maps").read_text().splitlines()) < before + MANY // 2

    def test_nothing_is_copied_when_nobody_looks(self, dsp_board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(PrivatePages, "exchange")
        dsp_board.alloc(100).free()
        with dsp_board.alloc(100) as buffer:
            buffer.view()[:] = bytes(100)
            buffer.array(np.uint8, 100)[:] = 1
        mem = hb.hbSysMem()
        assert hb.hbSysAllocMem(mem, 100) == 0
        mem.array(np.uint8)[:] = 1
        assert hb.hbSysFreeMem(mem) == 0

    @pytest.mark.parametrize("look", ["array", "a part", "copied structure"])
    def test_by_the_c_names(self, dsp_board: Board, look: str) -> None:
        mem = hb.hbSysMem()
        assert hb.hbSysAllocMem(mem, 64) == 0
        mem.view()[:] = bytes(range(64))
        if look == "array":
            view = mem.array(np.uint8)[8:12]
        elif look == "a part":
            view = hb.hbSysMem(mem.phyAddr + 8, (mem.virAddr or 0) + 8, 4).array(np.uint8)
        else:
            view = (hb.hbSysMem * 2)(mem)[0].array(np.uint8)[8:12]
        phy_addr = mem.phyAddr
        assert hb.hbSysFreeMem(mem) == 0
        with dsp_board.alloc(64) as other:
            assert other.phy_addr == phy_addr
            other.view()[:] = b"\xff" * 64
            assert view.tolist() == [8, 9, 10, 11]

    def test_registered_memory_that_was_let_go(self, dsp_board: Board, peer: Peer) -> None:
        del dsp_board
        phy_addr = peer.alloc(64)
        peer("mem.view()[:] = bytes(range(64))")
        mem = hb.hbSysMem(phyAddr=phy_addr, memSize=64)
        assert hb.hbSysRegisterMem(mem) == 0
        view = mem.array(np.uint8)
        view[0] = 77
        assert hb.hbSysUnregisterMem(mem) == 0
        view[1] = 99
        peer("mem.view()[2] = 55")
        assert peer("list(mem.view()[:4])") == [77, 1, 55, 3]
        assert view[:4].tolist() == [77, 99, 2, 3]

    def test_refused_free_leaves_the_memory_shared(self, chip: Chip, monkeypatch: pytest.MonkeyPatch) -> None:
        link = chip.board.session.link
        buffer, output = chip.board.alloc(64), chip.board.empty(64, np.uint8)
        array = buffer.array(np.uint8, 64)

        def refuse(*_: object, **__: object) -> None:
            raise RequestRefusedError(hb.HB_DSP_TIMEOUT, "no answer")

        with monkeypatch.context() as patch:
            patch.setattr(link, "request", refuse)
            with pytest.raises(RequestRefusedError):
                chip.board.session.blocks.free(buffer.phy_addr)
        array[:] = 3
        assert chip.board.call(chip.ECHO, array, output).tolist() == [3] * 64

    def test_no_memory_for_the_last_bytes_is_a_status(self, dsp_board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
        mem = hb.hbSysMem()
        assert hb.hbSysAllocMem(mem, 64) == 0
        view = mem.array(np.uint8)

        def refuse(*_: object, **__: object) -> None:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

        with monkeypatch.context() as patch:
            patch.setattr(PrivatePages, "exchange", refuse)
            assert hb.hbSysFreeMem(mem) == hb.HB_SYS_OUT_OF_MEMORY
            assert "cannot be freed while arrays refer to it" in hb.last_error()
        view[:] = 4
        assert dsp_board.session.link.ddr.view(mem.phyAddr, 1)[0] == 4
        assert hb.hbSysFreeMem(mem) == 0


Factory = Callable[..., AbstractContextManager[Board]]


class TestEnded:
    def test_results_of_a_board_that_ended_can_be_read_and_written(self, dsp_board_factory: Factory) -> None:
        with dsp_board_factory() as board:
            kept = [nn.softmax(board, values() + number) for number in range(3)]
            plain = [np.asarray(one) for one in kept]
            copies = [one.copy() for one in kept]
            gone = board.alloc(NBYTES)
            freed = gone.array(np.float32, COUNT)
            freed[:] = values()
            gone.free()
        for one, array, copy in zip(kept, plain, copies, strict=True):
            np.testing.assert_array_equal(one, np.asarray(copy))
            np.add(array, 1, out=array)
            np.testing.assert_array_equal(one, np.asarray(copy) + 1)
        assert isinstance(kept[0], BoardArray)
        np.testing.assert_array_equal(freed, values())

    def test_a_connection_that_ended_meets_no_other_program(self, dsp_board: Board, peer: Peer) -> None:
        reader = f"""
import arm_client, numpy as np
with arm_client.connect({str(dsp_board.path)!r}) as board:
    a = board.from_array(np.arange(1, 25, dtype=np.float32))
    at = a.phy_addr
"""
        peer(reader)
        mem = hb.hbSysMem()
        assert hb.hbSysAllocMem(mem, NBYTES) == 0
        try:
            assert mem.phyAddr == peer("at")
            assert not any(mem.view())
            mem.view()[:] = b"\xff" * NBYTES
            assert peer("a.tolist()") == values().tolist()
            peer("a[:] = 0")
            assert bytes(mem.view()) == b"\xff" * NBYTES
        finally:
            assert hb.hbSysFreeMem(mem) == 0

    @pytest.mark.parametrize("cached", [False, True])
    def test_in_strict_mode(self, dsp_board_factory: Factory, monkeypatch: pytest.MonkeyPatch, *, cached: bool) -> None:
        monkeypatch.setenv("HBRT_CACHE", "strict")
        with dsp_board_factory(fresh=True) as board:
            buffers = [board.alloc(64, cached=cached) for _ in range(2)]
            arrays = [buffer.array(np.uint8, 64) for buffer in buffers]
            for array in arrays:
                array[:] = range(64)
            buffers[0].free()
            assert arrays[0].tolist() == list(range(64))
        for array in arrays:
            assert array.tolist() == list(range(64))


def test_what_a_forked_child_writes_reaches_nobody(dsp_board: Board) -> None:
    array = dsp_board.from_array(values())
    pid = os.fork()
    if not pid:
        array[:] = 0
        os._exit(int(array.any()))
    assert os.waitpid(pid, 0)[1] == 0
    np.testing.assert_array_equal(array, values())
