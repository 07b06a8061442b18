"""Memory of another library in the board's address space, by a file descriptor: no copy, on neither side."""

from __future__ import annotations

import fcntl
import gc
import mmap
import os
import re
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arm_client as hb
from arm_client.arrays import BoardArray
from arm_client.client import Board, private_board
from arm_client.errors import CoreLostError, OpFailedError
from hbrt.ddr.layout import PAGE_BYTES
from tests.limits import PATIENCE_S
from tests.nursery import run_program
from tests.shared import build_c

PLUS_ONE = """
from dsp_server import *

def plus_one(input, output, tm):
    output[:] = bytes((byte + 1) % 256 for byte in input)
    return 0

def plus_one_at(input, output, tm):
    mapped = hb_dsp_mem_map(int.from_bytes(input[:8], "little"), int.from_bytes(input[8:16], "little"))
    mapped[:] = bytes((byte + 1) % 256 for byte in mapped)
    hb_dsp_mem_unmap(mapped)
    return 0

def main():
    hb_dsp_env_init()
    hb_dsp_init_global_tm()
    hb_dsp_register_fn(0x1000, plus_one, 0)
    hb_dsp_register_fn(0x1001, plus_one_at, 0)
    hb_dsp_start()
"""
ONE, AT = 0x1000, 0x1001
SIZE = 2 * PAGE_BYTES + 100


class Camera:
    """A library with its own buffer."""

    def __init__(self, size_bytes: int = SIZE) -> None:
        self.fd = os.memfd_create("camera")
        os.ftruncate(self.fd, size_bytes)
        self.frame = mmap.mmap(self.fd, size_bytes)

    def close(self) -> None:
        self.frame.close()
        os.close(self.fd)


@pytest.fixture
def camera() -> Iterator[Camera]:
    made = Camera()
    yield made
    made.close()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("imports") / "image.py"
    path.write_text(PLUS_ONE)
    return path


@pytest.fixture(params=["direct", "relay", "inline", "isolated", "checked"])
def board(request: pytest.FixtureRequest, image: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    if request.param == "relay":
        monkeypatch.setenv("HB_DSP_RPC_MODE", "relay")
    check = {"isolated": "dma", "checked": "all"}.get(request.param)
    with private_board(image, cores=2, check=check, inline=request.param == "inline", ddr_bytes=64 << 20) as board:
        yield board
        assert board.status()["findings"] == []


@pytest.fixture
def plain(image: Path, dsp_board_factory: Callable[..., Any]) -> Iterator[Board]:
    """One board for most tests, which are to leave it in order."""
    with dsp_board_factory(image=str(image), cores=2, ddr_bytes=64 << 20) as board:
        yield board


def plus_one(board: Board, array: BoardArray) -> np.ndarray:
    output = board.empty(array.size, np.uint8)
    board.call(ONE, array, output)
    return np.array(output)


def clean(array: BoardArray) -> None:
    assert array.board_buffer is not None
    array.board_buffer.clean()


def where(array: BoardArray) -> bytes:
    return int(array.phy_addr).to_bytes(8, "little") + array.nbytes.to_bytes(8, "little")


def test_cores_program_and_library_see_the_same_bytes(board: Board, camera: Camera) -> None:
    camera.frame[:] = bytes(range(256)) * (SIZE // 256) + bytes(SIZE % 256)
    frame = board.from_fd(camera.fd, SIZE)
    assert bytes(frame) == camera.frame[:]
    np.testing.assert_array_equal(plus_one(board, frame), frame + 1)  # as an input
    source = board.from_array(np.full(SIZE, 41, np.uint8))
    for core in (1 << one for one in range(board.core_count)):
        frame[:] = 0
        clean(frame)
        board.call(ONE, source, frame, core=core)  # as an output, by each core
        assert camera.frame[:] == bytes([42]) * SIZE
        board.call(AT, where(frame), core=core)  # by its address
        assert camera.frame[:] == bytes([43]) * SIZE
    camera.frame[7] = 99  # the library writes the next picture
    assert plus_one(board, frame)[7] == 100
    del frame
    gc.collect()
    assert board.live_bytes() == source.nbytes


def test_part_of_shared_memory_by_its_name(plain: Board) -> None:
    path = Path(f"/dev/shm/hbrt-test-{os.getpid()}")  # noqa: S108 - where shm_open() makes it
    path.write_bytes(bytes(3 * PAGE_BYTES))
    try:
        fd = os.open(path, os.O_RDWR)
        part = plain.from_fd(fd, (PAGE_BYTES // 4,), np.float32, offset=PAGE_BYTES)
        os.close(fd)  # the board holds it
        part[:] = 0.5
        memory = np.frombuffer(path.read_bytes(), np.float32)
        np.testing.assert_array_equal(memory[1024:2048], 0.5)
        assert not memory[:1024].any()
        assert not memory[2048:].any()
    finally:
        path.unlink()


def test_registrations_of_the_same_memory_count_and_have_one_address(plain: Board, camera: Camera) -> None:
    first, second, smaller = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    other = os.dup(camera.fd)
    assert hb.hbrt_register_fd(first, camera.fd, 0, SIZE) == 0
    assert hb.hbrt_register_fd(second, other, 0, SIZE) == 0
    assert hb.hbrt_register_fd(smaller, camera.fd, 0, 10) == 0
    os.close(other)
    assert first.phyAddr == second.phyAddr == smaller.phyAddr
    known = hb.hbSysMem(phyAddr=first.phyAddr + 100, memSize=50)  # as a program that was told the address
    assert hb.hbSysRegisterMem(known) == 0
    known.view()[0] = 7
    assert camera.frame[100] == 7
    for mem in (first, second, smaller):
        assert hb.hbSysFreeMem(mem) == hb.HB_SYS_NOT_ALLOCATED
        assert hb.hbSysUnregisterMem(mem) == 0
        camera.frame[100] += 1
        assert known.view()[0] == camera.frame[100]
    assert hb.hbSysUnregisterMem(known) == 0
    assert hb.hbSysUnregisterMem(first) == hb.HB_SYS_INVALID_ARGUMENT
    assert plain.status()["memory"]["blocks"] == 0
    assert hb.hbrt_register_fd(first, camera.fd, 0, SIZE) == 0
    assert camera.frame[100] == first.view()[100]
    assert hb.hbSysUnregisterMem(first) == 0


def test_views_of_what_was_unregistered_keep_their_bytes_and_write_nowhere(plain: Board, camera: Camera) -> None:
    camera.frame[:] = bytes([5]) * SIZE
    frame = plain.from_fd(camera.fd, SIZE)
    view, place = np.asarray(frame), where(frame)
    assert frame.board_buffer is not None
    frame.board_buffer.free()
    camera.frame[:] = bytes([6]) * SIZE
    assert set(view) == {5}
    view[:] = 8
    assert camera.frame[:] == bytes([6]) * SIZE
    with pytest.raises(OpFailedError, match="is in freed memory"):
        plain.call(AT, place)
    again = plain.from_fd(camera.fd, SIZE)
    again[:] = 9
    assert camera.frame[:] == bytes([9]) * SIZE


def test_an_address_that_was_a_cameras_is_memory_of_the_board_next(image: Path, camera: Camera) -> None:
    with private_board(image, cores=1, ddr_bytes=5 * PAGE_BYTES) as board:
        for turn in range(24):  # each address comes again and again
            frame = board.from_fd(camera.fd, SIZE)
            frame[:] = turn % 256
            board.call(AT, where(frame))
            assert camera.frame[:] == bytes([(turn + 1) % 256]) * SIZE
            del frame
            plain = board.from_array(np.full(SIZE, 3, np.uint8))
            board.call(AT, where(plain))
            assert set(np.array(plain)) == {4}
            assert camera.frame[:] == bytes([(turn + 1) % 256]) * SIZE
            del plain


@pytest.mark.parametrize(
    ("fd", "offset", "size", "why"),
    [
        ("closed", 0, 1, "is not open"),
        (-1, 0, 1, "is not open"),
        (1 << 31, 0, 1, "is not open"),
        ("read-only", 0, 1, "is not open for writing"),
        ("pipe", 0, 1, "is not open for writing"),
        ("eventfd", 0, 1, "is neither memory nor a file"),
        ("folder", 0, 1, "is not open for writing"),
        ("socket", 0, 1, "is neither memory nor a file"),
        ("sealed", 0, 1, "for reading and writing"),
        ("camera", 0, SIZE + 1, f"which has {SIZE}"),
        ("camera", 3 * PAGE_BYTES, 1, f"which has {SIZE}"),
        ("camera", (1 << 44), 1, "offset|does not fit"),
        ("camera", (1 << 63), 1, "offset|does not fit"),
        ("camera", 100, 1, "must be a multiple of 4096"),
        ("camera", -PAGE_BYTES, 1, "must be a multiple of 4096"),
        ("camera", 0, 0, "1 to 4294967295 bytes"),
        ("camera", 0, 1 << 32, "1 to 4294967295 bytes"),
        ("camera", 0, -1, "1 to 4294967295 bytes"),
    ],
)
def test_what_is_no_memory_is_refused(
    plain: Board, camera: Camera, fd: str | int, offset: int, size: int, why: str
) -> None:
    ours, theirs = socket.socketpair()
    reader, writer = os.pipe()
    sealed = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
    os.ftruncate(sealed, SIZE)
    fcntl.fcntl(sealed, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    given = {
        "closed": 4000,
        "read-only": os.open(f"/proc/self/fd/{camera.fd}", os.O_RDONLY),
        "pipe": reader,
        "eventfd": os.eventfd(0),
        "folder": os.open("/", os.O_RDONLY),
        "socket": ours.fileno(),
        "sealed": sealed,
        "camera": camera.fd,
    }
    mem = hb.hbSysMem()
    status = hb.hbrt_register_fd(mem, given[fd] if isinstance(fd, str) else fd, offset, size)
    assert status in {hb.HB_SYS_INVALID_ARGUMENT, hb.HB_SYS_REGISTER_MEM_FAILED}
    assert re.search(why, hb.last_error()), hb.last_error()
    assert (mem.phyAddr, mem.virAddr, mem.memSize) == (0, None, 0)
    assert plain.status()["memory"]["blocks"] == 0
    for name in ("read-only", "eventfd", "folder"):
        os.close(given[name])
    for one in (reader, writer, sealed):
        os.close(one)
    ours.close()
    theirs.close()


def test_nonsense_in_place_of_a_structure_or_a_number_is_refused(plain: Board, camera: Camera) -> None:
    for given in ((None, camera.fd, 0, 1), (hb.hbSysMem(), "x", 0, 1), (hb.hbSysMem(), camera.fd, None, 1)):
        assert hb.hbrt_register_fd(*given) == hb.HB_SYS_INVALID_ARGUMENT
    assert plain.status()["memory"]["blocks"] == 0


IN_C = """
#include "hb_dsp.h"
static int plus_one(void *input, void *output, void *tm) {
  for (int i = 0; i < 1000; i++) ((uint8_t *)output)[i] = ((uint8_t *)input)[i] + 1;
  return 0;
}
static int at(void *input, void *output, void *tm) {
  uint8_t *there = hb_dsp_mem_map(*(uint64_t *)input, 1000);
  if (there == MAP_FAILED) return HB_ERR_MMAP_FAILED;
  plus_one(there, output, tm);
  return hb_dsp_mem_unmap((uintptr_t)there);
}
int main() {
  hb_dsp_env_init();
  hb_dsp_init_global_tm(NULL, 0, NULL, 0);
  hb_dsp_register_fn(0x1000, plus_one, 0);
  hb_dsp_register_fn(0x1001, at, 0);
  hb_dsp_start();
  return -1;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is here")
def test_ops_in_c_see_it_too_and_what_lies_there_next(tmp_path: Path) -> None:
    source, made = tmp_path / "image.c", tmp_path / "image.so"
    source.write_text(IN_C)
    build_c("--dsp", source, "-o", made)
    with private_board(made, cores=1, ddr_bytes=5 * PAGE_BYTES) as board:
        output, address = board.empty(1000, np.uint8), board.empty(1, np.uint64)

        def at(block: Any) -> set[int]:
            address[0], found = block.phy_addr, set()
            for _ in range(3):  # the first time Python maps it, then C
                output[:] = 0
                board.call(AT, address, output)
                found |= set(map(int, np.array(output)))
            return found

        for turn in range(20):  # each address comes again and again
            camera = Camera(PAGE_BYTES)
            frame = board.from_fd(camera.fd, 1000)
            camera.frame[:] = bytes([turn]) * PAGE_BYTES
            board.call(ONE, frame, output)
            assert set(np.array(output)) == {turn + 1}
            board.call(ONE, output, frame)
            assert camera.frame[:1000] == bytes([turn + 2]) * 1000
            assert at(frame) == {turn + 3}
            del frame
            plain = board.from_array(np.full(1000, 7, np.uint8))
            board.call(ONE, plain, output)
            assert set(np.array(output)) == {8}
            assert at(plain) == {8}
            assert camera.frame[:1000] == bytes([turn + 2]) * 1000
            del plain
            camera.close()


def test_a_file_that_is_cut_off_costs_its_task_alone(plain: Board, camera: Camera) -> None:
    lost, good = Camera(), plain.from_fd(camera.fd, SIZE)
    frame = plain.from_fd(lost.fd, SIZE)
    plus_one(plain, frame)
    os.ftruncate(lost.fd, 0)
    with pytest.raises(CoreLostError, match="SIGBUS"):
        plus_one(plain, frame)
    good[:] = 1
    assert set(plus_one(plain, good)) == {2}  # the core that started again has it, too
    assert set(plus_one(plain, good)) == {2}
    assert frame.board_buffer is not None
    frame.board_buffer.free()  # arrays look at it: what is gone reads as zeros
    assert set(np.asarray(frame)) == {0}
    lost.close()


def test_a_core_that_started_again_maps_it_anew(plain: Board, camera: Camera) -> None:
    frame = plain.from_fd(camera.fd, SIZE)
    frame[:] = 1
    for core in (1, 2):
        os.kill(plain.status()["cores"][core - 1]["pid"], signal.SIGKILL)
        output = plain.empty(SIZE, np.uint8)
        try:
            plain.call(ONE, frame, output, core=core, timeout=PATIENCE_S)
        except CoreLostError:
            plain.call(ONE, frame, output, core=core, timeout=PATIENCE_S)
        assert set(np.array(output)) == {2}


OTHER = """
import os, sys, arm_client as hb
mem = hb.hbSysMem(phyAddr=int(sys.argv[1]), memSize=100)
assert hb.hbSysRegisterMem(mem) == 0, hb.last_error()
mem.view()[0] += 1
hb.hbSysFlushMem(mem, hb.HB_SYS_MEM_CACHE_CLEAN)
mine = hb.hbSysMem()
fd = os.memfd_create("left")
os.ftruncate(fd, 4096)
assert hb.hbrt_register_fd(mine, fd, 0, 4096) == 0, hb.last_error()
"""


def test_another_program_registers_it_by_its_address_and_what_it_leaves_is_a_leak(plain: Board, camera: Camera) -> None:
    frame = plain.from_fd(camera.fd, SIZE)
    frame[0] = 1
    environment = {**os.environ, "HBRT_BOARD": plain.path.name, "HBRT_HOME": str(plain.path.parent)}
    done = run_program(["-c", OTHER, str(frame.phy_addr)], PATIENCE_S, env=environment)
    assert done.returncode == 0, done.stderr
    assert camera.frame[0] == 2
    (found,) = plain.status()["findings"]
    assert found["kind"] == "leak"
    assert "1 block (4096 bytes) not freed, or not unregistered. Allocated at <string>:10" in found["text"]


def test_in_strict_mode_the_cpu_sees_an_image_of_it(
    image: Path, camera: Camera, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HBRT_CACHE", "strict")
    camera.frame[:] = bytes([1]) * SIZE
    with private_board(image, cores=1, ddr_bytes=64 << 20) as board:
        frame = board.from_fd(camera.fd, SIZE)
        assert set(np.asarray(frame)) == {1}
        camera.frame[:] = bytes([2]) * SIZE
        assert set(np.asarray(frame)) == {1}  # not invalidated
        assert frame.board_buffer is not None
        frame.board_buffer.invalidate()
        assert set(np.asarray(frame)) == {2}
        frame[:] = 3
        assert camera.frame[0] == 2  # not cleaned
        frame.board_buffer.clean()
        assert camera.frame[:] == bytes([3]) * SIZE


LATE = """
import ctypes, os, arm_client as hb
mem, fd = hb.hbSysMem(), os.memfd_create("camera")
os.ftruncate(fd, 4096)
assert hb.hbrt_register_fd(mem, fd, 0, 4096) == 0
assert hb.hbSysUnregisterMem(mem) == 0
ctypes.string_at(mem.virAddr, 1)
"""


def test_a_late_use_is_named() -> None:
    done = run_program(["-c", LATE], PATIENCE_S)
    assert done.returncode == -signal.SIGSEGV
    assert "use-after-free: <string>:7: byte 0 of the block" in done.stderr
    assert "allocated at <string>:5, was freed at <string>:6" in done.stderr
