"""hbSysRegisterMem and hbSysUnregisterMem: memory of another process, counted, and its life."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

import arm_client as hb
from hbrt.ddr.layout import DDR_BASE
from tests.each import each

if TYPE_CHECKING:
    from tests.arm_client.conftest import Chip, Peer

pytestmark = pytest.mark.dsp_board(image="../arm_client/images/ops.py")


@pytest.mark.differs("remote", "bytes that an op or another program writes are seen after INVALIDATE, or a task's end")
def test_both_processes_see_the_same_bytes(
    chip: Chip, peer: Peer, registered: Callable[[int, int], hb.hbSysMem]
) -> None:
    phy_addr = peer.alloc(100)
    peer("mem.view()[:5] = b'hello'")
    mem = registered(phy_addr, 100)
    assert mem.phyAddr == phy_addr
    assert bytes(mem.view()[:5]) == b"hello"
    mem.view()[5:10] = b"world"
    assert peer("bytes(mem.view()[:10]).decode()") == "helloworld"


@pytest.mark.differs("remote", "bytes that an op or another program writes are seen after INVALIDATE, or a task's end")
def test_a_part_of_a_block(chip: Chip, peer: Peer, registered: Callable[[int, int], hb.hbSysMem]) -> None:
    phy_addr = peer.alloc(100)
    peer("mem.view()[:] = bytes(range(100))")
    part = registered(phy_addr + 16, 8)
    assert bytes(part.view()) == bytes(range(16, 24))
    output = chip.mem(8)
    assert chip.outcome(chip.ECHO, part, output) == (0, "")
    assert bytes(output.view()) == bytes(range(16, 24))


@pytest.mark.differs("remote", "bytes that an op or another program writes are seen after INVALIDATE, or a task's end")
def test_a_foreign_block_serves_tasks_once_it_is_registered(chip: Chip, peer: Peer) -> None:
    phy_addr = peer.alloc(64)
    peer("mem.view()[:4] = b'mine'")
    output, task = chip.mem(), hb.hbDSPTask_t()
    foreign = hb.hbSysMem(phyAddr=phy_addr, memSize=64)
    assert hb.hbDSPRpc(task, foreign, output, chip.ctrl(chip.ECHO)) == hb.HB_DSP_INVALID_ADDRESS
    assert hb.last_error().startswith(f"The input block: The physical range {phy_addr:#x}+0x40 belongs to another ")
    assert hb.last_error().endswith("; register it first (hbSysRegisterMem).")
    assert hb.hbSysRegisterMem(foreign) == 0
    assert chip.outcome(chip.ECHO, foreign, output) == (0, "")
    assert bytes(output.view()[:4]) == b"mine"
    assert hb.hbSysUnregisterMem(foreign) == 0
    assert hb.hbDSPRpc(task, foreign, output, chip.ctrl(chip.ECHO)) == hb.HB_DSP_INVALID_ADDRESS


def test_registrations_are_counted(chip: Chip, peer: Peer) -> None:
    phy_addr = peer.alloc(64)
    mems = [hb.hbSysMem(phyAddr=phy_addr, memSize=64) for _ in range(3)]
    for mem in mems:
        assert hb.hbSysRegisterMem(mem) == 0
    for mem in mems[:2]:
        assert hb.hbSysUnregisterMem(mem) == 0
    assert chip.outcome(chip.ECHO, mems[2], chip.mem()) == (0, "")
    assert hb.hbSysUnregisterMem(mems[2]) == 0
    assert hb.hbSysUnregisterMem(mems[2]) == hb.HB_SYS_INVALID_ARGUMENT
    assert f"{phy_addr:#x}" in hb.last_error()


@pytest.mark.differs("remote", "bytes that an op or another program writes are seen after INVALIDATE, or a task's end")
def test_a_block_lives_until_the_last_lets_go(chip: Chip, peer: Peer) -> None:
    phy_addr = peer.alloc(64)
    peer("mem.view()[:4] = b'left'")
    mem = hb.hbSysMem(phyAddr=phy_addr, memSize=64)
    assert hb.hbSysRegisterMem(mem) == 0
    assert peer("hb.hbSysFreeMem(mem)") == 0
    assert bytes(mem.view()[:4]) == b"left"
    output = chip.mem()
    assert chip.outcome(chip.ECHO, mem, output) == (0, "")
    assert bytes(output.view()[:4]) == b"left"
    assert hb.hbSysFreeMem(mem) == hb.HB_SYS_NOT_ALLOCATED  # it never was this process's
    assert hb.hbSysUnregisterMem(mem) == 0
    late = hb.hbSysMem(phyAddr=phy_addr, memSize=64)
    assert hb.hbSysRegisterMem(late) == hb.HB_SYS_REGISTER_MEM_FAILED


@pytest.mark.differs("remote", "bytes that an op or another program writes are seen after INVALIDATE, or a task's end")
def test_a_block_outlives_the_process_that_allocated_it(chip: Chip, peer: Peer) -> None:
    phy_addr = peer.alloc(64)
    peer("mem.view()[:4] = b'will'")
    mem = hb.hbSysMem(phyAddr=phy_addr, memSize=64)
    assert hb.hbSysRegisterMem(mem) == 0
    peer.kill()
    chip.until(lambda: len(chip.programs()) == 1, "the end of the other client")
    assert bytes(mem.view()[:4]) == b"will"
    assert hb.hbSysUnregisterMem(mem) == 0
    assert hb.hbSysRegisterMem(mem) == hb.HB_SYS_REGISTER_MEM_FAILED


def test_ones_own_block(chip: Chip) -> None:
    mem = chip.mem(64, b"own")
    again = hb.hbSysMem(phyAddr=mem.phyAddr, memSize=64)
    assert hb.hbSysRegisterMem(again) == 0
    assert again.virAddr == mem.virAddr
    assert hb.hbSysFreeMem(mem) == 0
    assert bytes(again.view()[:3]) == b"own"
    assert chip.outcome(chip.ECHO, again, again) == (0, "")
    assert hb.hbSysUnregisterMem(again) == 0
    assert hb.hbSysUnregisterMem(again) == hb.HB_SYS_INVALID_ARGUMENT


def test_ranges_that_are_not_inside_one_live_block(chip: Chip) -> None:
    mem = chip.mem(100)
    freed = hb.hbSysMem(phyAddr=mem.phyAddr, memSize=100)
    for phy_addr, size in (
        (mem.phyAddr, 101),
        (mem.phyAddr + 100, 1),
        (mem.phyAddr + 50, 51),
        (mem.virAddr or 0, 100),
        (0, 0),
        (DDR_BASE, 1),
        ((1 << 64) - 1, 16),
    ):
        asked = hb.hbSysMem(phyAddr=phy_addr, memSize=size)
        assert hb.hbSysRegisterMem(asked) == hb.HB_SYS_REGISTER_MEM_FAILED, hex(phy_addr)
        assert f"{phy_addr:#x}" in hb.last_error()
        assert asked.virAddr is None
    assert hb.hbSysUnregisterMem(mem) == hb.HB_SYS_INVALID_ARGUMENT  # allocated is not registered
    assert hb.hbSysFreeMem(mem) == 0
    assert hb.hbSysRegisterMem(freed) == hb.HB_SYS_REGISTER_MEM_FAILED


@each("flag", [hb.HB_SYS_MEM_CACHE_CLEAN, hb.HB_SYS_MEM_CACHE_INVALIDATE, 1, 2])
@each("cached", [False, True])
def test_flush_in_coherent_mode_moves_nothing(chip: Chip, flag: int, cached: bool) -> None:  # noqa: FBT001
    mem = chip.mem(64, b"same", cached=cached)
    assert hb.hbSysFlushMem(mem, flag) == 0
    assert bytes(mem.view()[:4]) == b"same"


@each("flag", [0, 3, 4, -1, 1 << 40])
def test_unknown_flush_flags(chip: Chip, flag: int) -> None:
    assert hb.hbSysFlushMem(chip.mem(), flag) == hb.HB_SYS_INVALID_ARGUMENT
    assert hb.last_error() == (
        f"Unknown flush flag {flag}: use HB_SYS_MEM_CACHE_INVALIDATE (1) or HB_SYS_MEM_CACHE_CLEAN (2)."
    )


def test_flush_of_what_is_not_inside_ones_block(chip: Chip, peer: Peer) -> None:
    mem, theirs = chip.mem(64), peer.alloc(64)
    for phy_addr, size in ((mem.phyAddr, 65), (mem.phyAddr + 32, 33), (theirs, 64), (0, 0), (mem.virAddr or 0, 1)):
        assert hb.hbSysFlushMem(hb.hbSysMem(phyAddr=phy_addr, memSize=size), 2) == hb.HB_SYS_INVALID_ARGUMENT
        assert f"{phy_addr:#x}+{size:#x} is not inside one block of this process." in hb.last_error()
    part = hb.hbSysMem(phyAddr=mem.phyAddr + 32, memSize=32)
    assert hb.hbSysFlushMem(part, 2) == 0
