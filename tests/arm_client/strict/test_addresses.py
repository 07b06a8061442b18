"""The check memory on the side of the program: addresses that are stale, virtual or out of a block; memory freed twice.

Each mistake is next to a correct program that does the same.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeAlias

import pytest

import arm_client as hb
from hbrt.findings.record import Finding
from hbrt.mailbox.handle import SLOT_MASK
from hbrt.mailbox.table import FIRST_END
from tests.arm_client.conftest import Chip
from tests.arm_client.dnn.nets import Net, ctrl, double, f32

Findings: TypeAlias = Callable[[], list[Finding]]


def sites(found: Finding) -> dict[str, str | None]:
    return {place.what: place.site for place in found.places}


def test_task_with_a_freed_block(watched: Chip, findings: Findings) -> None:
    out, gone = watched.mem(), hb.hbSysMem()
    assert hb.hbSysAllocMem(gone, 64) == 0
    gone.view()[:] = bytes(64)
    assert watched.outcome(watched.ECHO, gone, out)[0] == 0
    assert findings() == []
    assert hb.hbSysFreeMem(gone) == 0
    assert hb.hbDSPRpc(hb.hbDSPTask_t(), gone, out, watched.ctrl(watched.ECHO)) == hb.HB_DSP_INVALID_ADDRESS
    (found,) = findings()
    assert found.kind == "use-after-free"
    assert f"{gone.phyAddr:#x}+0x40" in found.text
    assert "command 0x1000" in found.text
    assert all(str(site).startswith(f"{__file__}:") for site in sites(found).values())
    assert set(sites(found)) == {"submitted", "allocated", "freed"}
    assert len(set(sites(found).values())) == 3


def test_task_whose_block_is_too_short(watched: Chip, findings: Findings) -> None:
    mem, out = watched.mem(64, bytes(64)), watched.mem(64)
    assert watched.outcome(watched.ECHO, mem, out)[0] == 0
    assert findings() == []
    mem.memSize = 65
    assert hb.hbDSPRpc(hb.hbDSPTask_t(), mem, out, watched.ctrl(watched.ECHO)) == hb.HB_DSP_INVALID_ADDRESS
    (found,) = findings()
    assert found.kind == "out-of-block"
    assert "runs 1 byte past the end of its block" in found.text
    mem.memSize = 64


def test_task_with_the_virtual_address_in_place_of_the_physical(watched: Chip, findings: Findings) -> None:
    mem, out = watched.mem(64), watched.mem(64)
    wrong = hb.hbSysMem(phyAddr=(mem.virAddr or 0) + 8, memSize=8)
    assert hb.hbDSPRpc(hb.hbDSPTask_t(), wrong, out, watched.ctrl(watched.ECHO)) == hb.HB_DSP_INVALID_ADDRESS
    (found,) = findings()
    assert found.kind == "virtual-address"
    assert f"write {mem.phyAddr + 8:#x}, its phyAddr" in found.text


def test_structure_with_a_virtual_address(watched: Chip, findings: Findings) -> None:
    data, out = watched.mem(64), watched.mem(64)
    right = watched.mem(24, struct.pack("<QQQ", data.phyAddr, 5, 64))
    both = watched.mem(24, bytes(data))
    for good in (right, both):
        assert watched.outcome(watched.ECHO, good, out)[0] == 0
    assert findings() == []
    assert data.virAddr is not None
    wrong = watched.mem(24, struct.pack("<QQQ", 5, data.virAddr, 64))
    assert watched.outcome(watched.ECHO, wrong, out)[0] == 0
    (found,) = findings()
    assert found.kind == "virtual-address"
    assert f"has, at offset 8 the virtual address {data.virAddr:#x}" in found.text
    assert f"Write {data.phyAddr:#x}, the physical one" in found.text


@pytest.mark.parametrize("check", ["memory,fail-fast"])
def test_call_fails_at_the_first_mistake(watched: Chip, findings: Findings) -> None:
    data, out = watched.mem(64), watched.mem(64)
    assert data.virAddr is not None
    wrong = watched.mem(8, struct.pack("<Q", data.virAddr))
    task = hb.hbDSPTask_t()
    assert hb.hbDSPRpc(task, wrong, out, watched.ctrl(watched.ECHO)) == hb.HB_DSP_INVALID_ARGUMENT
    assert "the virtual address" in hb.last_error()
    assert not task.value
    (found,) = findings()
    assert found.kind == "virtual-address"


def test_memory_freed_twice(watched: Chip, findings: Findings) -> None:
    mem = hb.hbSysMem()
    assert hb.hbSysAllocMem(mem, 64) == 0
    assert hb.hbSysFreeMem(mem) == 0
    assert findings() == []
    assert hb.hbSysFreeMem(mem) == hb.HB_SYS_NOT_ALLOCATED
    (found,) = findings()
    assert found.kind == "double-free"
    assert set(sites(found)) == {"freed again", "freed", "allocated"}
    assert len(set(sites(found).values())) == 3


@pytest.mark.parametrize("alloc", [hb.hbSysAllocMem, hb.hbSysAllocCachedMem])
def test_memory_flushed_after_it_was_freed(
    watched: Chip, findings: Findings, alloc: Callable[[hb.hbSysMem, int], int]
) -> None:
    mem = hb.hbSysMem()
    assert alloc(mem, 64) == 0
    assert hb.hbSysFlushMem(mem, hb.HB_SYS_MEM_CACHE_CLEAN) == 0
    assert hb.hbSysFreeMem(mem) == 0
    assert findings() == []
    assert hb.hbSysFlushMem(mem, hb.HB_SYS_MEM_CACHE_CLEAN) == hb.HB_SYS_INVALID_ARGUMENT
    assert "Flush a block before freeing it." in hb.last_error()
    (found,) = findings()
    assert (found.kind, set(sites(found))) == ("use-after-free", {"flushed", "freed", "allocated"})
    assert len(set(sites(found).values())) == 3


@pytest.mark.parametrize("part", ["input", "output", "named"])
@pytest.mark.parametrize("waits", [True, False])
def test_memory_freed_before_the_end_of_its_task_is_seen(
    watched: Chip, findings: Findings, part: str, *, waits: bool
) -> None:
    named, others = hb.hbSysMem(), (hb.hbSysMem(), hb.hbSysMem())
    for mem in (named, *others):
        assert hb.hbSysAllocMem(mem, 64) == 0
        mem.view()[:] = bytes(64)
    into, out = others
    into.view()[:8] = struct.pack("Q", named.phyAddr)
    task = watched.rpc(watched.ECHO, into, out)
    if waits:
        assert hb.hbDSPWaitTaskDone(task, 0) == 0
    freed = {"input": into, "output": out, "named": named}[part]
    assert hb.hbSysFreeMem(freed) == 0
    seen = findings()
    hb.hbDSPWaitTaskDone(task, 0)
    for mem in {id(one): one for one in (named, into, out)}.values():
        if mem is not freed:
            assert hb.hbSysFreeMem(mem) == 0
    assert [one.kind for one in seen] == ([] if waits else ["use-after-free"])
    for found in seen:
        assert "is freed while a task of command 0x1000, submitted at " in found.text
        assert set(sites(found)) == {"freed", "submitted", "allocated"}
        assert len(set(sites(found).values())) == 3


@pytest.mark.parametrize("waits", [True, False])
def test_a_python_buffer_freed_before_the_end_of_its_task_is_seen(
    watched: Chip, findings: Findings, *, waits: bool
) -> None:
    board = watched.board
    into, out = board.alloc(8), board.alloc(64)
    task = board.submit(watched.ECHO, into, out)
    if waits:
        task.result()
    out.free()
    seen = findings()
    task.exception()
    assert [one.kind for one in seen] == ([] if waits else ["use-after-free"])
    for found in seen:
        assert "is freed while a task of command 0x1000, submitted at " in found.text
        assert set(sites(found)) == {"freed", "submitted", "allocated"}
        assert len(set(sites(found).values())) == 3


def test_a_tensor_freed_before_the_end_of_its_run(watched: Chip, findings: Findings) -> None:
    net = Net(double())
    net.fill(f32([[1, 2, 3, 4]]))
    task = net.infer(how=ctrl(more=1))
    other = watched.mem(64, bytes(64))
    assert hb.hbSysFreeMem(other) == 0
    assert findings() == []
    assert hb.hbSysFreeMem(net.inputs[0].sysMem[0]) == 0
    (found,) = findings()
    assert hb.hbDNNReleaseTask(task) == hb.hbSysFreeMem(net.outputs[0].sysMem[0]) == hb.hbDNNRelease(net.packed) == 0
    assert (found.kind, "is freed while a run of model 'double', submitted at " in found.text) == (
        "use-after-free",
        True,
    )
    assert set(sites(found)) == {"freed", "submitted", "allocated"}
    assert all(sites(found).values())


@pytest.mark.parametrize("check", ["race"])
def test_race_is_found_in_coherent_mode(watched: Chip, findings: Findings) -> None:
    held = watched.hold(1)
    out = watched.mem()
    for number in (b"1", b"2"):
        watched.rpc(watched.ECHO, watched.mem(8, number), out, 1 + (number == b"2"))
    held.let_go()
    (found,) = findings()
    assert found.kind == "shared-block"
    earlier = found.places[-1].site
    assert earlier is not None
    assert found.text.endswith(f" The earlier task was submitted at {earlier}.")
    assert not watched.board.session.blocks.is_strict


@pytest.mark.parametrize("check", ["coherence"])
def test_coherence_is_strict_mode(watched: Chip, findings: Findings) -> None:
    mem, out = watched.mem(64, cached=True), watched.mem(64)
    assert watched.board.session.blocks.is_strict
    mem.view()[:] = b"a" * 64
    assert watched.outcome(watched.ECHO, mem, out)[0] == 0
    (found,) = findings()
    assert found.kind == "unclean-use"


@pytest.mark.parametrize("check", ["race"])
@pytest.mark.parametrize("waits", [True, False])
def test_a_task_is_under_way_until_its_end_is_seen(watched: Chip, findings: Findings, *, waits: bool) -> None:
    out, tasks = watched.mem(), watched.board.session.tasks
    first = watched.rpc(watched.ECHO, watched.mem(8, b"1"), out)
    state = tasks.states + ((first.value or 0) & SLOT_MASK)
    watched.until(lambda: tasks.map[state] >= FIRST_END, "the end of the first")  # which the program does not see
    if waits:
        assert hb.hbDSPWaitTaskDone(first, 0) == 0
    watched.rpc(watched.ECHO, watched.mem(8, b"2"), out)
    assert [one.kind for one in findings()] == ([] if waits else ["shared-block"])
