"""One client of the soak: ``python -m benchmarks._soak_client c|python|model COUNTERS_FD SEED``; ends on SIGTERM.

It counts in shared memory, before it submits and after it knows the end, so that the counts hold however it dies.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import random
import signal
import sys
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import _soak_image as ops
from hbrt.status import Status

if TYPE_CHECKING:
    from arm_client import hbDSPTask_t
    from arm_client.future import Task

HUNG_SECONDS = 60.0
MAX_AT_ONCE = 24
FATAL_EVERY = 40_000  # calls, about, between two that end a core
VICTIM_CORE = 1  # the mask of the core that fatal calls go to: the other one lives as long as the soak


class Count(IntEnum):
    """Where a client counts what."""

    CALLS = 0
    DONE = 1
    FAILED = 2
    CANCELLED = 3
    TIMED_OUT = 4
    CORE_LOST = 5
    RELAY_LOST = 6
    BOARD_LOST = 7
    RELEASED = 8  # let go by its owner before its end
    WRONG = 9  # any other status, or wrong bytes
    REFUSED = 10  # not submitted
    HUNG = 11


ENDS = tuple(kind for kind in Count if Count.DONE <= kind <= Count.WRONG)
COUNTERS_BYTES = 8 * len(Count)
_BY_STATUS = {
    0: Count.DONE,
    Status.HB_DSP_RUN_TASK_FAILED: Count.FAILED,
    Status.HB_DSP_TASK_CANCELLED: Count.CANCELLED,
    Status.HB_DSP_WATCHDOG: Count.TIMED_OUT,
    Status.HB_DSP_CORE_LOST: Count.CORE_LOST,
    Status.HB_DSP_RELAY_LOST: Count.RELAY_LOST,
    Status.HB_DSP_BOARD_LOST: Count.BOARD_LOST,
}


class Client:
    """What both APIs share: counters, chance, when to end, and whether the memory went with the way to the board."""

    is_cut_off = False

    def __init__(self, counters: mmap.mmap, seed: int) -> None:
        self.counters = (ctypes.c_uint64 * len(Count)).from_buffer(counters)
        self.chance = random.Random(seed)
        self.is_ending = False
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "is_ending", True))

    def has_to_stop(self) -> bool:
        """Whether to call no more, for good or with this memory."""
        return self.is_ending or self.is_cut_off

    def count(self, kind: Count, times: int = 1) -> None:
        self.counters[kind] += times

    def end(self, status: int) -> None:
        """Count an end by its status."""
        self.count(_BY_STATUS.get(status, Count.WRONG))

    def pick(self) -> tuple[int, int]:
        """A command and a core mask."""
        draw = self.chance.random()
        if draw < 1 / FATAL_EVERY:
            return self.chance.choice([ops.DIE, ops.DIE, ops.HANG]), VICTIM_CORE
        if draw < 0.01:
            return ops.FAIL, 0
        if draw < 0.02:
            return ops.SLOW, 0
        return ops.ECHO, self.chance.choice([0, 0, 0, 1, 2])

    def run(self) -> None:
        """Call until told to end."""
        raise NotImplementedError


class PythonClient(Client):
    """Futures and arrays of ``arm_client.client``."""

    def run(self) -> None:
        """Call until told to end."""
        from arm_client.client import connect
        from arm_client.errors import BoardError, HbrtError

        while not self.is_ending:
            with contextlib.suppress(BoardError, HbrtError), connect() as board:
                self.board, self.is_cut_off = board, False
                self.output = board.empty(64, "u1")
                while not self.has_to_stop():
                    self.chance.choices([self.single, self.batch, self.abandon, self.memory], [80, 15, 3, 2])[0]()

    def submit(self, cmd: int, core: int, priority: int = 0, payload: bytes = bytes(64)) -> Task | None:
        """A counted task, or None when it was refused."""
        from arm_client.errors import HbrtError

        self.count(Count.CALLS)
        try:
            return self.board.submit(cmd, payload, self.output, core=core, priority=priority)
        except HbrtError as error:
            self.count(Count.CALLS, -1)
            self.count(Count.REFUSED)
            self.is_cut_off = error.status == Status.HB_DSP_RELAY_LOST
            return None

    def settle(self, task: Task, expected: bytes | None = None) -> None:
        """Wait for a task's end and count it, by what it wrote where that is known."""
        from concurrent.futures import CancelledError

        from arm_client.errors import HbrtError

        try:
            task.result(HUNG_SECONDS)
            self.count(Count.DONE if expected is None or self.output.tobytes() == expected else Count.WRONG)
        except CancelledError:
            self.count(Count.CANCELLED)
        except TimeoutError:
            self.count(Count.HUNG)
        except HbrtError as error:
            self.end(error.status)

    def single(self) -> None:
        """One call, its end, and what it wrote."""
        (cmd, core), payload = self.pick(), self.chance.randbytes(64)
        task = self.submit(cmd, core, payload=payload)
        if task is not None:
            self.settle(task, payload if cmd == ops.ECHO else None)

    def batch(self) -> None:
        """Many at once, of all priorities; some are cancelled."""
        tasks = [self.submit(*self.pick(), self.chance.choice([0, 1, 200, 255])) for _ in range(MAX_AT_ONCE)]
        for task in tasks:
            if task is not None:
                if self.chance.random() < 0.1:
                    task.cancel()
                self.settle(task)

    def abandon(self) -> None:
        """Submit and look no more."""
        if self.submit(ops.SLOW, 0) is not None:
            self.count(Count.RELEASED)

    def memory(self) -> None:
        """Take a block and give it back."""
        array = self.board.empty(self.chance.randrange(1, 100_000), "u1", cached=self.chance.random() < 0.5)
        array[-1] = 1
        del array


class CClient(Client):
    """The C names, with C's habits."""

    def run(self) -> None:
        """Call until told to end."""
        import arm_client as hb

        self.hb = hb
        while not self.is_ending:
            self.blocks = [hb.hbSysMem(), hb.hbSysMem()]
            self.is_cut_off = not all(hb.hbSysAllocMem(block, 64) == 0 for block in self.blocks)
            while not self.has_to_stop():
                self.chance.choices([self.single, self.batch, self.patience, self.memory], [80, 15, 3, 2])[0]()
            for block in self.blocks:
                hb.hbSysFreeMem(block)

    def submit(self, cmd: int, core: int, priority: int = 0) -> hbDSPTask_t | None:
        """A counted task's handle, or None when it was refused."""
        hb = self.hb
        ctrl = hb.hbDSPRpcCtrlParam()
        task: hbDSPTask_t = hb.hbDSPTask_t()
        hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
        ctrl.rpcCmd, ctrl.dspCoreId, ctrl.priority = cmd, core, priority
        self.count(Count.CALLS)
        if status := hb.hbDSPRpc(task, self.blocks[0], self.blocks[1], ctrl):
            self.count(Count.CALLS, -1)
            self.count(Count.REFUSED)
            self.is_cut_off = status in {Status.HB_DSP_RELAY_LOST, Status.HB_DSP_INVALID_ADDRESS}
            return None
        return task

    def settle(self, task: hbDSPTask_t, expected: bytes | None = None) -> None:
        """Wait for a task's end, count it, by what it wrote where that is known, and release it."""
        status = self.hb.hbDSPWaitTaskDone(task, int(HUNG_SECONDS * 1000))
        if status == Status.HB_DSP_TIMEOUT:
            self.count(Count.HUNG)
        elif status == 0 and expected is not None and bytes(self.blocks[1].view()[:64]) != expected:
            self.count(Count.WRONG)
        else:
            self.end(status)
        self.hb.hbDSPReleaseTask(task)

    def single(self) -> None:
        """One call, its end, and what it wrote."""
        (cmd, core), payload = self.pick(), self.chance.randbytes(64)
        self.blocks[0].view()[:64] = payload
        task = self.submit(cmd, core)
        if task is not None:
            self.settle(task, payload if cmd == ops.ECHO else None)

    def batch(self) -> None:
        """Many at once; some are released before their end."""
        tasks = [self.submit(*self.pick(), self.chance.choice([0, 1, 200, 255])) for _ in range(MAX_AT_ONCE)]
        for task in tasks:
            if task is not None:
                if self.chance.random() < 0.1:
                    self.hb.hbDSPReleaseTask(task)
                    self.count(Count.RELEASED)
                else:
                    self.settle(task)

    def patience(self) -> None:
        """A wait that is too short, then one that is not."""
        task = self.submit(ops.SLOW, 0)
        if task is not None:
            self.hb.hbDSPWaitTaskDone(task, 1)
            self.settle(task)

    def memory(self) -> None:
        """Take a block and give it back."""
        block = self.hb.hbSysMem()
        if self.hb.hbSysAllocCachedMem(block, self.chance.randrange(1, 100_000)) == 0:
            block.view()[0] = 1
            self.hb.hbSysFreeMem(block)


class ModelClient(Client):
    """Runs of a model on the cores for models, each of which must double its input."""

    def run(self) -> None:
        """Call until told to end."""
        import numpy as np
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        from arm_client import dnn
        from arm_client.errors import HbrtError

        tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 64]) for name in "xy"]
        two = numpy_helper.from_array(np.array([2], np.float32), "two")
        graph = helper.make_graph([helper.make_node("Mul", ["x", "two"], ["y"])], "g", tensors[:1], tensors[1:], [two])
        file = Path(os.environ["HBRT_HOME"]) / f"double-{os.getpid()}.onnx"
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), file)
        while True:
            with contextlib.suppress(HbrtError):  # the core that loads it was killed
                (model,) = dnn.load(str(file))
                break
        while not self.is_ending:
            x = np.full((1, 64), self.chance.random(), np.float32)
            self.count(Count.CALLS)
            try:
                (y,) = model.forward(x, core_id=self.chance.choice([0, 1, 2]))
                self.count(Count.DONE if np.array_equal(y.buffer, x * 2) else Count.WRONG)
            except HbrtError:
                self.count(Count.CORE_LOST)
        file.unlink()


def main() -> None:
    """Entry of the process."""
    api, fd, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    counters = mmap.mmap(fd, COUNTERS_BYTES)
    kinds: dict[str, type[Client]] = {"c": CClient, "python": PythonClient, "model": ModelClient}
    kinds[api](counters, seed).run()


if __name__ == "__main__":
    main()
