"""The emulator itself, through the C names that an ARM program uses."""

from __future__ import annotations

import os
import signal
from collections import deque

import arm_client as hb
from benchmarks._peers import DEPTH, Place
from benchmarks._peers.board import ECHO_CMD, running_board


def serve(place: Place) -> None:
    """Run a board with as many cores as the role says, until SIGTERM."""
    with running_board(os.environ["HBRT_BOARD"], int(place.role.rpartition("-")[2])):
        place.ready()
        while True:
            signal.pause()


class HbError(Exception):
    """A call of the C names answered with a status that is not 0."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{hb.hbDSPGetErrorDesc(status)} ({status})")


def allocate(size_bytes: int) -> hb.hbSysMem:
    """Allocate board memory."""
    mem = hb.hbSysMem()
    if status := hb.hbSysAllocMem(mem, size_bytes):
        raise HbError(status)
    return mem


def free(mem: hb.hbSysMem) -> None:
    """Free board memory."""
    if status := hb.hbSysFreeMem(mem):
        raise HbError(status)


def control(cmd: int) -> hb.hbDSPRpcCtrlParam:
    """Return the control parameters of a call to ``cmd``: any core, lowest priority."""
    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = cmd
    return ctrl


def call(request: hb.hbSysMem, reply: hb.hbSysMem, ctrl: hb.hbDSPRpcCtrlParam) -> None:
    """Make one whole call: submit, wait, release."""
    task = hb.hbDSPTask_t()
    status = hb.hbDSPRpc(task, request, reply, ctrl) or hb.hbDSPWaitTaskDone(task, 0) or hb.hbDSPReleaseTask(task)
    if status:
        raise HbError(status)


class EmulatorClient:
    """One ARM process; the op copies the 64 bytes of the request into the reply, as all servers do."""

    def __init__(self) -> None:
        self._ctrl = control(ECHO_CMD)
        blocks = [(allocate(64), allocate(64)) for _ in range(DEPTH)]
        self._free = deque((request, request.view(), reply, reply.view()) for request, reply in blocks)
        self._under_way: deque[tuple[hb.hbDSPTask_t, memoryview]] = deque()
        self._blocks = [block for pair in blocks for block in pair]
        self._request, self._request_view, self._reply, self._reply_view = self._free[0]

    def call(self, payload: bytes) -> bytes:
        """Send ``payload`` and return the reply."""
        self._request_view[:] = payload
        call(self._request, self._reply, self._ctrl)
        return bytes(self._reply_view)

    def send(self, payload: bytes) -> None:
        """Begin a call, on the blocks that were used the longest time ago."""
        request, request_view, reply, reply_view = self._free[0]
        self._free.rotate(-1)
        request_view[:] = payload
        task = hb.hbDSPTask_t()
        if status := hb.hbDSPRpc(task, request, reply, self._ctrl):
            raise HbError(status)
        self._under_way.append((task, reply_view))

    def receive(self) -> bytes:
        """Return the reply of the oldest call under way."""
        task, reply_view = self._under_way.popleft()
        if status := hb.hbDSPWaitTaskDone(task, 0) or hb.hbDSPReleaseTask(task):
            raise HbError(status)
        return bytes(reply_view)

    def close(self) -> None:
        """Free the memory."""
        self._free.clear()
        del self._request_view, self._reply_view
        for block in self._blocks:
            free(block)


def connect(_place: Place) -> EmulatorClient:
    """Return a client of the board that the environment names."""
    return EmulatorClient()
