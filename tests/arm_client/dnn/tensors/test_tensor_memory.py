"""Whose memory tensors lie in: freed under a task, and another process's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import arm_client as hb
from arm_client.client import Board
from arm_client.session.session import attached
from tests.arm_client.dnn.nets import Gate, Net, ctrl, double, good

Load = Callable[[bytes], Net]
LONG = (1, 4096)
BYTES = 4 * 4096
OTHERS = 8


@contextmanager
def memory_taken() -> Iterator[Callable[[], bool]]:
    """Blocks of the tensors' size, full of a pattern; the call says whether they still are."""
    mems = [hb.hbSysMem() for _ in range(OTHERS)]
    for mem in mems:
        good(hb.hbSysAllocMem(mem, BYTES))
        mem.array(np.uint8)[:] = 0x11
    yield lambda: all((mem.array(np.uint8) == 0x11).all() for mem in mems)
    for mem in mems:
        good(hb.hbSysFreeMem(mem))


def is_there(phy_addr: int) -> bool:
    return attached().link.ddr.block_at(phy_addr) is not None


def free_tensors(net: Net) -> list[int]:
    """Free them; where they were."""
    mems = [net.inputs[0].sysMem[0], net.outputs[0].sysMem[0]]
    addresses = [mem.phyAddr for mem in mems]
    for mem in mems:
        good(hb.hbSysFreeMem(mem))
        assert hb.hbSysFreeMem(mem) == hb.HB_SYS_NOT_ALLOCATED
        mem.virAddr = None  # so that the net frees it no second time
    return addresses


@pytest.mark.parametrize("has_begun", [True, False])
def test_memory_that_is_freed_under_a_task_goes_when_that_has_ended(load: Load, *, has_begun: bool) -> None:
    net, other = load(double(LONG)), load(double())
    gate = Gate(net)
    if not has_begun:
        gate.open()
        gate = Gate(other)
    held = [] if has_begun else [other.infer(how=ctrl(core=1))]
    gate.await_begun(len(held))
    task = net.infer(how=ctrl(core=1))
    gate.await_begun(int(has_begun))
    addresses = free_tensors(net)
    with memory_taken() as is_intact:
        assert all(is_there(phy_addr) for phy_addr in addresses)
        gate.open()
        good(hb.hbDNNWaitTaskDone(task, 0))
        assert is_intact()
        assert not any(is_there(phy_addr) for phy_addr in addresses)
    for one in (task, *held):
        good(hb.hbDNNReleaseTask(one))


def test_of_two_tasks_on_the_same_memory_the_last_lets_it_go(load: Load) -> None:
    net = load(double(LONG))
    gate = Gate(net)
    tasks = [net.infer(how=ctrl(core=1)) for _ in range(2)]
    gate.await_begun()
    addresses = free_tensors(net)
    gate.open()
    good(hb.hbDNNWaitTaskDone(tasks[0], 0))
    gate.await_begun()
    assert all(is_there(phy_addr) for phy_addr in addresses)
    gate.open()
    good(hb.hbDNNWaitTaskDone(tasks[1], 0))
    assert not any(is_there(phy_addr) for phy_addr in addresses)
    for task in tasks:
        good(hb.hbDNNReleaseTask(task))


def test_a_chain_that_never_runs_lets_memory_go_at_its_release(load: Load) -> None:
    net = load(double(LONG))
    task = net.infer(how=ctrl(more=1))
    addresses = free_tensors(net)
    assert all(is_there(phy_addr) for phy_addr in addresses)
    good(hb.hbDNNReleaseTask(task))
    assert not any(is_there(phy_addr) for phy_addr in addresses)


def test_memory_of_another_process_is_to_be_registered_first(dsp_board: Board, load: Load) -> None:
    net = load(double(LONG))
    program = (
        "import arm_client as hb, sys\n"
        f"mem = hb.hbSysMem(); assert hb.hbSysAllocMem(mem, {BYTES}) == 0\n"
        "print(mem.phyAddr, flush=True); sys.stdin.readline()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "HBRT_BOARD": str(dsp_board.path)},
    ) as peer:  # fmt: skip
        assert peer.stdout is not None
        assert peer.stdin is not None
        own = net.outputs[0].sysMem[0].phyAddr
        net.outputs[0].sysMem[0].phyAddr = phy_addr = int(peer.stdout.readline())
        task = hb.hbDNNTaskHandle_t()
        infer = (task, net.outputs, net.inputs, net.handle, ctrl())
        try:
            assert hb.hbDNNInfer(*infer) == hb.HB_DNN_INVALID_ARGUMENT
            assert "belongs to another process" in hb.last_error()
            assert hb.last_error().endswith("register it first (hbSysRegisterMem).")
            shared = hb.hbSysMem(phyAddr=phy_addr, memSize=BYTES)
            good(hb.hbSysRegisterMem(shared))
            net.fill(np.ones(LONG, np.float32))
            good(hb.hbDNNInfer(*infer))
            good(hb.hbDNNWaitTaskDone(task, 0))
            good(hb.hbDNNReleaseTask(task))
            good(hb.hbSysFlushMem(shared, hb.HB_SYS_MEM_CACHE_INVALIDATE))
            assert (shared.array(np.float32) == 2).all()
            good(hb.hbSysUnregisterMem(shared))
        finally:
            net.outputs[0].sysMem[0].phyAddr = own
        peer.stdin.write("\n")
        peer.stdin.close()
        assert peer.wait(20) == 0
