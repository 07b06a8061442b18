"""A board with the ops of images/ops.py, in the C names' habits, and a second process to attach to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import arm_client as hb
from arm_client.client import Board
from tests.nursery import Client
from tests.waiting import until

# A process that executes what it is told, one JSON line each way.
PEER = """
import json, sys
import arm_client as hb
scope = {"hb": hb}
for line in sys.stdin:
    source, value = json.loads(line), None
    try:
        try:
            value = eval(source, scope)
        except SyntaxError:
            exec(source, scope)
    except Exception as error:
        value = repr(error)
    print(json.dumps(value if isinstance(value, (int, str, list, type(None))) else repr(value)), flush=True)
"""


class Chip:
    """A connected board with the ops of images/ops.py, and short ways to say what tests say often."""

    ECHO, HOLD, FAIL, GIVE_BACK, GIVE_NONE, GIVE_NUMPY, FETCH, TAKE_TCM, NOTE, WHICH, ADD_ONE, REST = range(
        0x1000, 0x100C
    )
    MISSING = 0x1FFF

    def __init__(self, board: Board) -> None:
        self.board = board
        self._blocks: list[hb.hbSysMem] = []

    def mem(self, size_bytes: int = 64, content: bytes = b"", *, cached: bool = False) -> hb.hbSysMem:
        """A block that the fixture frees when the test has not."""
        mem = hb.hbSysMem()
        alloc = hb.hbSysAllocCachedMem if cached else hb.hbSysAllocMem
        assert alloc(mem, size_bytes) == 0, hb.last_error()
        mem.view()[: len(content)] = content
        self._blocks.append(mem)
        return mem

    def ctrl(self, cmd: int, core: int = 0, priority: int = 0, custom_id: int = 0) -> hb.hbDSPRpcCtrlParam:
        ctrl = hb.hbDSPRpcCtrlParam()
        hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
        ctrl.rpcCmd, ctrl.dspCoreId, ctrl.priority, ctrl.customId = cmd, core, priority, custom_id
        return ctrl

    def rpc(
        self, cmd: int, input: hb.hbSysMem | None = None, output: hb.hbSysMem | None = None, core: int = 0
    ) -> hb.hbDSPTask_t:
        """A submitted task."""
        task = hb.hbDSPTask_t()
        assert hb.hbDSPRpc(task, input, output, self.ctrl(cmd, core)) == 0, hb.last_error()
        return task

    def outcome(self, cmd: int, input: hb.hbSysMem | None = None, output: hb.hbSysMem | None = None) -> tuple[int, str]:
        """Status and text of a task that was submitted, waited for and released."""
        task = self.rpc(cmd, input, output)
        status = hb.hbDSPWaitTaskDone(task, 0)
        text = hb.last_error() if status else ""
        assert hb.hbDSPReleaseTask(task) == 0
        return status, text

    def hold(self, core: int = 0) -> Hold:
        """A task that runs on a core (a mask) until it is let go."""
        return Hold(self, core).await_running()

    def hold_all(self) -> list[Hold]:
        return [self.hold(1 << core) for core in range(self.board.core_count)]

    until = staticmethod(until)

    def programs(self) -> list[dict[str, Any]]:
        """The clients of the board, but for a relay that carries their tasks."""
        clients: list[dict[str, Any]] = self.board.status()["clients"]
        return [client for client in clients if client["name"] != "dsp_relay_server"]

    def free_all(self) -> None:
        for mem in self._blocks:
            if mem.virAddr and hb.hbSysFreeMem(mem) == 0:
                mem.virAddr = None


class Hold:
    """A HOLD task and its block."""

    def __init__(self, chip: Chip, core: int = 0) -> None:
        self.mem, self.output = chip.mem(), chip.mem()
        self.flags = self.mem.view()
        self.task = chip.rpc(chip.HOLD, self.mem, self.output, core)

    def await_running(self) -> Hold:
        Chip.until(self._is_running, "a held task's start")
        return self

    def _is_running(self) -> bool:
        hb.hbSysFlushMem(self.mem, hb.HB_SYS_MEM_CACHE_INVALIDATE)  # of use on another machine's board only
        return bool(self.flags[0])

    def let_go(self) -> None:
        self.flags[1] = 1
        hb.hbSysFlushMem(self.mem, hb.HB_SYS_MEM_CACHE_CLEAN)

    def finish(self) -> int:
        """Let it go, wait for it, release it; returns its status."""
        self.let_go()
        status = hb.hbDSPWaitTaskDone(self.task, 0)
        assert hb.hbDSPReleaseTask(self.task) == 0
        return status


class Peer:
    """Another process with ``hb`` imported, attached to a board when it first uses it."""

    def __init__(self, board: Board) -> None:
        environment = {**os.environ, "HBRT_BOARD": str(board.path), "HBRT_AUTOSTART": "0"}
        self.process = Client(
            [sys.executable, "-c", PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def __call__(self, source: str) -> Any:
        """Value of an expression there; None for statements; an exception's repr."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(source) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def alloc(self, size_bytes: int, name: str = "mem") -> int:
        """Allocate there, in a variable; returns the physical address."""
        self(f"{name} = hb.hbSysMem()")
        assert self(f"hb.hbSysAllocMem({name}, {size_bytes})") == 0, self("hb.last_error()")
        phy_addr: int = self(f"{name}.phyAddr")
        return phy_addr

    def close(self) -> None:
        """End it; it releases everything."""
        with self.process:
            assert self.process.stdin is not None
            self.process.stdin.close()

    def kill(self) -> None:
        self.process.kill()
        self.close()


@pytest.fixture
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freed memory comes back at once, to this program or another one; before the fixture that starts the board."""
    monkeypatch.setenv("HBRT_QUARANTINE", "0")


@pytest.fixture
def chip(dsp_board: Board) -> Iterator[Chip]:
    """The test's board; blocks of ``chip.mem`` are freed at the end. Ask for it with the marker of images/ops.py."""
    chip = Chip(dsp_board)
    yield chip
    chip.free_all()


@pytest.fixture
def peer(dsp_board: Board) -> Iterator[Peer]:
    """Another process on the same board."""
    peer = Peer(dsp_board)
    yield peer
    if peer.process.returncode is None:
        peer.close()


@pytest.fixture
def registered() -> Iterator[Callable[[int, int], hb.hbSysMem]]:
    """``registered(phy_addr, size)``: that range, registered in this process until the test ends."""
    mems: list[hb.hbSysMem] = []

    def register(phy_addr: int, size_bytes: int) -> hb.hbSysMem:
        mem = hb.hbSysMem(phyAddr=phy_addr, memSize=size_bytes)
        assert hb.hbSysRegisterMem(mem) == 0, hb.last_error()
        mems.append(mem)
        return mem

    yield register
    for mem in mems:
        if mem.virAddr:
            hb.hbSysUnregisterMem(mem)
