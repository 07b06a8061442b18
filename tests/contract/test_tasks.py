"""hbDSPRpc, hbDSPWaitTaskDone, hbDSPReleaseTask: a task's life, and a status for each thing that fails."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import arm_client as hb
from arm_client import OpFailedError, private_board
from arm_client.cabi import say
from hbrt.ddr.layout import DDR_BASE
from tests.each import each

if TYPE_CHECKING:
    from tests.arm_client.conftest import Chip, Peer

pytestmark = pytest.mark.dsp_board(image="../arm_client/images/ops.py")


class TestLife:
    def test_submit_wait_release(self, chip: Chip) -> None:
        source, result = chip.mem(8, b"abcdefgh"), chip.mem(8)
        task = chip.rpc(chip.ADD_ONE, source, result)
        assert hb.hbDSPWaitTaskDone(task, 0) == 0
        assert bytes(result.view()) == b"bcdefghi"
        assert hb.hbDSPWaitTaskDone(task, 0) == 0  # again, as long as it is not released
        assert hb.hbDSPWaitTaskDone(task, 10) == 0
        assert hb.hbDSPReleaseTask(task) == 0
        assert chip.board.live_tasks() == 0

    def test_without_blocks(self, chip: Chip) -> None:
        assert chip.outcome(hb.HB_DSP_RPC_CMD_PING) == (0, "")

    def test_arguments_by_reference(self, chip: Chip) -> None:
        source, result, ctrl = chip.mem(8, b"abcdefgh"), chip.mem(8), chip.ctrl(chip.ECHO)
        refs: list[Any] = [lambda x: x, ctypes.byref, ctypes.pointer]
        for by in refs:
            task = hb.hbDSPTask_t()
            result.view()[:] = bytes(8)
            assert hb.hbDSPRpc(by(task), by(source), by(result), by(ctrl)) == 0, hb.last_error()
            assert hb.hbDSPWaitTaskDone(by(task), 0) == 0, hb.last_error()
            assert hb.hbDSPReleaseTask(by(task)) == 0
            assert bytes(result.view()) == b"abcdefgh"

    def test_the_address_of_an_array_is_that_of_an_element(self, chip: Chip) -> None:
        tasks, mems = (hb.hbDSPTask_t * 2)(), (hb.hbSysMem * 2)()
        first: Any = ctypes.byref(mems)
        assert hb.hbSysAllocMem(first, 8) == 0
        ways: list[Any] = [(ctypes.byref(tasks), 0), (ctypes.pointer(tasks), 0), (ctypes.byref(tasks, 8), 1)]
        for by, at in ways:
            assert hb.hbDSPRpc(by, first, first, chip.ctrl(chip.ADD_ONE)) == 0, hb.last_error()
            assert hb.hbDSPWaitTaskDone(tasks[at], 0) == 0
            assert hb.hbDSPReleaseTask(tasks[at]) == 0
        for offset in (4, 16, -8):
            beside: Any = ctypes.byref(tasks, offset)
            assert hb.hbDSPRpc(beside, first, first, chip.ctrl(chip.ADD_ONE)) == hb.HB_DSP_INVALID_ARGUMENT
        assert hb.hbSysFreeMem(first) == 0

    def test_a_handle_is_64_bits_and_may_be_carried_as_a_number(self, chip: Chip) -> None:
        task = chip.rpc(hb.HB_DSP_RPC_CMD_PING)
        assert ctypes.sizeof(task) == 8
        copy: Any = task.value
        assert copy > 0
        assert hb.hbDSPWaitTaskDone(copy, 0) == 0
        assert hb.hbDSPReleaseTask(hb.hbDSPTask_t(copy)) == 0
        assert hb.hbDSPWaitTaskDone(task, 0) == hb.HB_DSP_TASK_RELEASED

    def test_a_plain_void_pointer_is_a_handle_as_in_c(self, chip: Chip) -> None:
        task: Any = ctypes.c_void_p()
        by_reference: Any = ctypes.byref(task)
        assert hb.hbDSPRpc(by_reference, None, None, chip.ctrl(hb.HB_DSP_RPC_CMD_PING)) == 0, hb.last_error()
        assert hb.hbDSPWaitTaskDone(task, 0) == 0
        assert hb.hbDSPReleaseTask(task) == 0
        assert hb.hbSysFreeMem(task) == hb.HB_SYS_INVALID_ARGUMENT  # no hbSysMem

    def test_many_at_once_more_than_the_first_slots(self, chip: Chip) -> None:
        output = chip.mem(8)
        inputs = [chip.mem(8, struct.pack("<i", number)) for number in range(100)]
        tasks = [chip.rpc(chip.GIVE_BACK, mem, output) for mem in inputs]
        assert len({task.value for task in tasks}) == 100
        assert [hb.hbDSPWaitTaskDone(task, 0) for task in tasks] == list(range(100))
        assert [hb.hbDSPReleaseTask(task) for task in tasks] == [0] * 100

    @each("timeout", [0, -1, -(1 << 31), 1 << 31, 1 << 40, 0.5e9, ctypes.c_int(-1)])
    def test_timeouts_that_wait_for_ever(self, chip: Chip, timeout: Any) -> None:
        held = chip.hold()
        timer = threading.Timer(0.01, held.let_go)
        timer.start()
        assert hb.hbDSPWaitTaskDone(held.task, timeout) == 0
        timer.join()
        assert hb.hbDSPReleaseTask(held.task) == 0

    @each("timeout", ["soon", None, float("nan"), [], object()])
    def test_timeouts_that_are_no_number(self, chip: Chip, timeout: Any) -> None:
        held = chip.hold()
        assert hb.hbDSPWaitTaskDone(held.task, timeout) == hb.HB_DSP_INVALID_ARGUMENT
        assert hb.last_error().endswith("use milliseconds.")
        assert held.finish() == 0

    def test_a_wait_that_timed_out_can_be_repeated(self, chip: Chip) -> None:
        held = chip.hold()
        begin = time.monotonic()
        assert hb.hbDSPWaitTaskDone(held.task, 20) == hb.HB_DSP_TIMEOUT
        assert time.monotonic() - begin >= 0.02
        assert hb.last_error() == "The task did not finish within 20 ms; it keeps running."
        assert hb.hbDSPWaitTaskDone(held.task, 1) == hb.HB_DSP_TIMEOUT
        held.let_go()
        assert hb.hbDSPWaitTaskDone(held.task, 0) == 0
        assert hb.hbDSPReleaseTask(held.task) == 0

    def test_a_wait_for_a_queued_task_while_both_cores_are_busy(self, chip: Chip) -> None:
        holds = chip.hold_all()
        result = chip.mem(8)
        queued = chip.rpc(chip.ECHO, chip.mem(8, b"at last!"), result)
        assert hb.hbDSPWaitTaskDone(queued, 5) == hb.HB_DSP_TIMEOUT
        assert bytes(result.view()) == bytes(8)
        holds[1].let_go()
        assert hb.hbDSPWaitTaskDone(queued, 0) == 0
        assert bytes(result.view()) == b"at last!"
        assert hb.hbDSPReleaseTask(queued) == 0
        assert [held.finish() for held in holds] == [0, 0]

    def test_a_signal_does_not_end_a_wait(self, chip: Chip) -> None:
        held, caught = chip.hold(), []

        def on_alarm(*_: object) -> None:
            caught.append(1)
            if len(caught) == 3:
                held.let_go()
                signal.setitimer(signal.ITIMER_REAL, 0)

        before = signal.signal(signal.SIGALRM, on_alarm)
        try:
            for timeout in (0, 10_000):
                caught.clear()
                signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
                assert hb.hbDSPWaitTaskDone(held.task, timeout) == 0
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert held.finish() == 0


@pytest.fixture(params=["0", "1000"])
def spin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before ``chip``: the setting is read when a process attaches."""
    monkeypatch.setenv("HBRT_SPIN_US", request.param)


@each("timeout", [0, 10_000])
def test_threads_wait_for_one_task(spin: None, chip: Chip, timeout: int) -> None:
    held, statuses = chip.hold(), []
    threads = [
        threading.Thread(target=lambda: statuses.append(hb.hbDSPWaitTaskDone(held.task, timeout))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    held.let_go()
    for thread in threads:
        thread.join()
    assert statuses == [0] * 4
    assert hb.hbDSPReleaseTask(held.task) == 0


@each("timeout", [0, 10_000])
def test_a_release_by_another_thread_ends_the_waits(chip: Chip, timeout: int) -> None:
    holds = chip.hold_all()
    queued = chip.rpc(chip.ECHO, chip.mem(), chip.mem())
    statuses: list[int] = []

    def wait(task: hb.hbDSPTask_t) -> None:
        statuses.append(hb.hbDSPWaitTaskDone(task, timeout))

    waits = [(queued, 2), (holds[0].task, 2)]
    threads = [threading.Thread(target=wait, args=(task,)) for task, count in waits for _ in range(count)]
    for thread in threads:
        thread.start()
    time.sleep(0.02)  # the usual case: they sleep by now; the other order is right as well
    assert hb.hbDSPReleaseTask(queued) == 0
    assert hb.hbDSPReleaseTask(holds[0].task) == 0
    for thread in threads:
        thread.join()
    assert statuses == [hb.HB_DSP_TASK_RELEASED] * 4
    holds[0].let_go()
    assert holds[1].finish() == 0


class TestRelease:
    def test_of_a_queued_task_cancels_it(self, chip: Chip) -> None:
        holds = chip.hold_all()
        result = chip.mem(8)
        queued = chip.rpc(chip.ECHO, chip.mem(8, b"do not !"), result)
        assert hb.hbDSPReleaseTask(queued) == 0
        assert [held.finish() for held in holds] == [0, 0]
        assert chip.outcome(hb.HB_DSP_RPC_CMD_PING) == (0, "")
        assert bytes(result.view()) == bytes(8)

    @pytest.mark.differs(
        "remote", "bytes that an op or another program writes are seen after INVALIDATE, or a task's end"
    )
    def test_of_a_running_task_drops_its_result_and_gives_the_slot_back(self, chip: Chip) -> None:
        assert chip.outcome(hb.HB_DSP_RPC_CMD_PING) == (0, "")  # in relay mode, there is a relay from now on
        slots = chip.board.status()["slots"]["leased"]
        for _ in range(24):  # more than a client's first slots
            held = chip.hold()
            assert hb.hbDSPReleaseTask(held.task) == 0
            assert hb.hbDSPWaitTaskDone(held.task, 0) == hb.HB_DSP_TASK_RELEASED
            held.let_go()
            chip.until(lambda held=held: held.output.view()[0] == 0xA5, "the end of the op")  # type: ignore[misc]
        assert chip.board.live_tasks() == 0
        assert chip.board.status()["slots"]["leased"] == slots

    @pytest.mark.differs("remote", "what is written into a block that was freed goes nowhere")
    def test_memory_of_a_running_task_lives_until_it_ends(self, chip: Chip) -> None:
        held = chip.hold()
        place, ddr = held.mem.phyAddr, chip.board.session.link.ddr
        assert hb.hbSysFreeMem(held.mem) == 0
        other = chip.mem(64)
        assert other.phyAddr != place
        os.pwrite(ddr.fd, b"\x01", ddr.offset_of(place) + 1)  # a view of freed memory is this process's own
        assert hb.hbDSPWaitTaskDone(held.task, 0) == 0
        assert hb.hbDSPReleaseTask(held.task) == 0
        assert bytes(other.view()) == bytes(64)

    def test_twice_and_wait_after(self, chip: Chip) -> None:
        task = chip.rpc(hb.HB_DSP_RPC_CMD_PING)
        assert hb.hbDSPReleaseTask(task) == 0
        for _ in range(2):
            assert hb.hbDSPReleaseTask(task) == hb.HB_DSP_TASK_RELEASED
            assert hb.last_error() == f"The task {task.value:#x} was already released."
            assert hb.hbDSPWaitTaskDone(task, 0) == hb.HB_DSP_TASK_RELEASED
            assert hb.hbDSPSetTaskDoneCb(task, print) == hb.HB_DSP_TASK_RELEASED
        other = chip.rpc(hb.HB_DSP_RPC_CMD_PING)  # takes the same slot
        assert hb.hbDSPWaitTaskDone(task, 0) == hb.HB_DSP_TASK_RELEASED
        assert hb.hbDSPReleaseTask(other) == 0

    def test_handles_that_are_none(self, chip: Chip) -> None:
        assert chip.outcome(hb.HB_DSP_RPC_CMD_PING) == (0, "")
        calls: list[Callable[[Any], int]] = [hb.hbDSPReleaseTask, lambda task: hb.hbDSPWaitTaskDone(task, 0)]
        nothing: list[Any] = [hb.hbDSPTask_t(), hb.hbDSPTask_t(0), None, 0, -5, "task", object(), hb.hbSysMem(), 1.5]
        for call in calls:
            for handle in nothing:
                assert call(handle) == hb.HB_DSP_INVALID_TASK_HANDLE, handle
        garbage = [1, 42, 1 << 40, 1 << 63, (1 << 64) - 1, ctypes.addressof(ctypes.c_int())]
        for call in calls:
            for handle in garbage:
                assert call(hb.hbDSPTask_t(handle)) == hb.HB_DSP_FOREIGN_TASK_HANDLE, handle
                assert f"{handle:#x}" in hb.last_error()

    def test_another_process_s_handle(self, chip: Chip, peer: Peer) -> None:
        held = chip.hold()
        peer(f"task = hb.hbDSPTask_t({held.task.value})")
        for _ in range(2):  # without an attachment, and with one
            for call in ("hb.hbDSPWaitTaskDone(task, 0)", "hb.hbDSPReleaseTask(task)"):
                assert peer(call) == hb.HB_DSP_FOREIGN_TASK_HANDLE
            assert peer("hb.hbDSPSetTaskDoneCb(task, print)") == hb.HB_DSP_FOREIGN_TASK_HANDLE
            peer.alloc(8)
        assert held.finish() == 0


class TestRefusals:
    def submit(self, chip: Chip, input: Any = None, output: Any = None, **ctrl: int) -> tuple[int, str]:
        task, how = hb.hbDSPTask_t(), chip.ctrl(chip.ECHO)
        for name, value in ctrl.items():
            setattr(how, name, value)
        status = hb.hbDSPRpc(task, input, output, how)
        assert task.value is None
        return status, hb.last_error()

    @each("core", [4, 5, -1, 1 << 30])
    def test_core(self, chip: Chip, core: int) -> None:
        assert self.submit(chip, dspCoreId=core) == (
            hb.HB_DSP_INVALID_CORE,
            f"dspCoreId is {core}; this board has 2 cores: use 0 for any, or the sum of 1 (core 0), 2 (core 1).",
        )

    @each("priority", [-1, 256, 1 << 30])
    def test_priority(self, chip: Chip, priority: int) -> None:
        status = hb.HB_DSP_INVALID_PRIORITY
        assert self.submit(chip, priority=priority) == (status, f"The priority is {priority}, but must be 0 to 255.")

    @each("cmd", [-1, 0x10000])
    def test_command_that_is_no_number_of_one(self, chip: Chip, cmd: int) -> None:
        status = hb.HB_DSP_INVALID_ARGUMENT
        assert self.submit(chip, rpcCmd=cmd) == (status, f"rpcCmd is {cmd:#x}, but must be 0x0 to 0xffff.")

    def test_null_structures(self, chip: Chip) -> None:
        mem, task, ctrl = chip.mem(), hb.hbDSPTask_t(), chip.ctrl(chip.ECHO)
        nulls: list[Any] = [None, ctypes.POINTER(hb.hbDSPTask_t)(), b"x" * 64, 5]
        for null in nulls:
            assert hb.hbDSPRpc(null, mem, mem, ctrl) == hb.HB_DSP_INVALID_ARGUMENT
            assert hb.last_error() == f"The task is {null!r}; pass an hbDSPTask_t."
            assert hb.hbDSPRpc(task, mem, mem, null) == hb.HB_DSP_INVALID_ARGUMENT
            assert hb.last_error() == f"The ctrl is {null!r}; pass an hbDSPRpcCtrlParam."
        for wrong in (b"x" * 64, 5, memoryview(bytes(24)), mem.array("u1")):
            assert hb.hbDSPRpc(task, wrong, mem, ctrl) == hb.HB_DSP_INVALID_ARGUMENT  # type: ignore[arg-type]
            assert "The input is" in hb.last_error()
            assert hb.hbDSPRpc(task, mem, wrong, ctrl) == hb.HB_DSP_INVALID_ARGUMENT  # type: ignore[arg-type]
            assert "The output is" in hb.last_error()
        assert task.value is None

    @each("side", ["input", "output"])
    def test_addresses(self, chip: Chip, side: str) -> None:
        mem = chip.mem(64)
        freed = hb.hbSysMem.from_buffer_copy(bytes(mem))
        cases = [
            (mem.virAddr, 64, hb.HB_DSP_INVALID_ADDRESS, "pass mem.phyAddr, not mem.virAddr"),
            (mem.phyAddr, 65, hb.HB_DSP_INVALID_ADDRESS, "runs 1 byte past the end of its block"),
            (mem.phyAddr + 60, 8, hb.HB_DSP_INVALID_ADDRESS, "runs 4 bytes past the end of its block"),
            (mem.phyAddr + 4, 8, hb.HB_DSP_UNALIGNED_ADDRESS, "must start at a multiple of 8 bytes"),
            (mem.phyAddr + 4096, 8, hb.HB_DSP_INVALID_ADDRESS, ""),  # free, or freed, whatever ran before
            (DDR_BASE - 8, 8, hb.HB_DSP_INVALID_ADDRESS, "is outside this board's DDR"),
            (0, 8, hb.HB_DSP_INVALID_ADDRESS, "is outside this board's DDR"),
            ((1 << 64) - 8, 8, hb.HB_DSP_INVALID_ADDRESS, "is outside this board's DDR"),
        ]
        for phy_addr, size, status, sentence in cases:
            got = self.submit(chip, **{side: hb.hbSysMem(phyAddr=phy_addr, memSize=size)})  # type: ignore[arg-type]
            assert got[0] == status, got
            assert sentence in got[1]
            assert f"The {side} block" in got[1]
            assert sentence or re.search("is not in a live block|is in freed memory", got[1])
            assert f"{phy_addr:#x}" in got[1]
        assert hb.hbSysFreeMem(mem) == 0
        gone = self.submit(chip, **{side: freed})  # type: ignore[arg-type]
        assert gone[0] == hb.HB_DSP_INVALID_ADDRESS
        assert f"is in freed memory: the block {freed.phyAddr:#x}+0x40 of client" in gone[1]

    def test_no_slots_left(self, chip: Chip) -> None:
        holds = chip.hold_all()
        ctrl, mem, tasks = chip.ctrl(chip.ECHO), chip.mem(), []
        while (status := hb.hbDSPRpc(task := hb.hbDSPTask_t(), mem, mem, ctrl)) == 0:
            tasks.append(task)
            assert len(tasks) < 5000
        assert status == hb.HB_DSP_TASK_NUM_EXCEED_LIMIT
        assert "release finished tasks with hbDSPReleaseTask" in hb.last_error()
        assert hb.hbDSPReleaseTask(tasks.pop()) == 0
        tasks.append(chip.rpc(chip.ECHO, mem, mem))
        for held in holds:
            held.let_go()
        assert {hb.hbDSPWaitTaskDone(task, 0) for task in tasks} == {0}
        assert {hb.hbDSPReleaseTask(task) for task in tasks} == {0}
        assert [held.finish() for held in holds] == [0, 0]


class TestFailures:
    def test_unknown_command(self, chip: Chip) -> None:
        status, text = chip.outcome(chip.MISSING)
        assert status == hb.HB_DSP_UNKNOWN_COMMAND
        assert re.match(
            r"No op is registered for command 0x1fff\. The image registered \d+ ops; the nearest are 0x[0-9a-f]+ \w+, "
            r"0x[0-9a-f]+ \w+, 0x[0-9a-f]+ \w+\. 'hbrt ops' \(board\.ops\(\) in Python\) lists all\.",
            text,
        )
        assert "0x400 softmax" not in text

    def test_op_that_raises(self, chip: Chip) -> None:
        status, text = chip.outcome(chip.FAIL, chip.mem(), chip.mem())
        assert status == hb.HB_DSP_RUN_TASK_FAILED
        assert text.startswith("Traceback (most recent call last):")
        assert "images/ops.py" in text or "image-1.py" in text
        assert 'raise ZeroDivisionError("the tile has no columns")' in text
        assert text.endswith("ZeroDivisionError: the tile has no columns")

    @each("value", [5, -1, 1 << 30, -(1 << 31), (1 << 31) - 1])
    def test_op_that_returns_a_value(self, chip: Chip, value: int) -> None:
        given = chip.mem(8, struct.pack("<i", value))
        text = f"(command {chip.GIVE_BACK:#x}) returned {value}."
        assert chip.outcome(chip.GIVE_BACK, given) == (value, f"give_back {text}")
        assert chip.outcome(chip.GIVE_NUMPY, given)[0] == value

    def test_op_that_returns_a_numpy_zero_is_good(self, chip: Chip) -> None:
        assert chip.outcome(chip.GIVE_NUMPY, chip.mem(8)) == (0, "")

    def test_op_that_has_a_breakpoint(self, tmp_path: Path) -> None:
        image = tmp_path / "image.py"
        image.write_text(
            "from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start\n"
            "def op(input, output, tm):\n    breakpoint()\n    return 0\n"
            "def main():\n    hb_dsp_env_init()\n    hb_dsp_register_fn(0x1000, op, 0)\n    hb_dsp_start()\n"
        )
        with private_board(image, cores=1) as board, pytest.raises(OpFailedError, match="a core has none") as failed:
            board.call(0x1000)
        assert "line 3, in op\n    breakpoint()\n" in failed.value.text

    def test_op_that_returns_none(self, chip: Chip) -> None:
        status, text = chip.outcome(chip.GIVE_NONE)
        assert status == hb.HB_DSP_RUN_TASK_FAILED
        assert text.endswith("returned None; an op must return an int, 0 for success. Did you forget 'return 0'?")

    def test_virtual_address_in_the_parameters(self, chip: Chip) -> None:
        data, output = chip.mem(16, b"where they lie.."), chip.mem(16)
        good = chip.mem(16, struct.pack("<QQ", data.phyAddr, 16))
        assert chip.outcome(chip.FETCH, good, output) == (0, "")
        assert bytes(output.view()) == b"where they lie.."
        bad = chip.mem(16, struct.pack("<QQ", data.virAddr, 16))
        status, text = chip.outcome(chip.FETCH, bad, output)
        assert status == hb.HB_ERR_MMAP_FAILED
        assert f"{data.virAddr:#x}+0x10" in text
        assert "That looks like a virtual address: pass mem.phyAddr, not mem.virAddr." in text
        long = chip.mem(16, struct.pack("<QQ", data.phyAddr, 17))
        status, text = chip.outcome(chip.FETCH, long, chip.mem(32))
        assert status == hb.HB_ERR_MMAP_FAILED
        assert "runs 1 byte past the end of its block" in text

    def test_a_foreign_address_in_the_parameters(self, chip: Chip, peer: Peer) -> None:
        theirs = chip.mem(16, struct.pack("<QQ", peer.alloc(16), 16))
        status, text = chip.outcome(chip.FETCH, theirs, chip.mem(16))
        assert status == hb.HB_ERR_MMAP_FAILED
        assert "register it first (hbSysRegisterMem)" in text

    def test_out_of_tcm(self, chip: Chip) -> None:
        assert chip.outcome(chip.TAKE_TCM, chip.mem(8, struct.pack("<i", 103 * 1024))) == (0, "")
        status, text = chip.outcome(chip.TAKE_TCM, chip.mem(8, struct.pack("<i", 103 * 1024 + 1)))
        assert status == hb.HB_DSP_OUT_OF_TCM
        assert "105473 bytes do not fit in TCM bank 0: 105472 are free, 105472 in one piece" in text

    def test_the_core_goes_on_after_each(self, chip: Chip) -> None:
        pids = [core["pid"] for core in chip.board.status()["cores"]]
        for cmd in (chip.FAIL, chip.GIVE_NONE, chip.MISSING):
            assert chip.outcome(cmd, chip.mem(), chip.mem())[0] != 0
        assert [core["pid"] for core in chip.board.status()["cores"]] == pids
        assert chip.outcome(chip.ECHO, chip.mem(), chip.mem()) == (0, "")


class TestFramework:
    def test_ping_answers_on_each_core(self, chip: Chip) -> None:
        for core in (0, 1, 2, 3):
            task = chip.rpc(hb.HB_DSP_RPC_CMD_PING, core=core)
            assert hb.hbDSPWaitTaskDone(task, 0) == 0
            assert hb.hbDSPReleaseTask(task) == 0

    def test_butt_lists_the_commands_as_a_c_program_reads_them(self, chip: Chip) -> None:
        class Row(ctypes.Structure):
            _fields_ = (("cmd", ctypes.c_uint32), ("latency_us", ctypes.c_uint32), ("name", ctypes.c_char * 56))

        output = chip.mem(4096)
        assert chip.outcome(hb.HB_DSP_RPC_CMD_BUTT, None, output) == (0, "")
        count, row_bytes = struct.unpack_from("<II", output.view())
        assert row_bytes == ctypes.sizeof(Row)
        rows = (Row * count).from_buffer(output.view()[8:])
        listed = {row.cmd: row.name.decode() for row in rows}
        assert listed == chip.board.ops()
        assert [row.cmd for row in rows] == sorted(listed)
        assert listed[chip.ECHO] == "echo"
        del rows

    def test_butt_into_less_room(self, chip: Chip) -> None:
        output = chip.mem(8 + 64)
        assert chip.outcome(hb.HB_DSP_RPC_CMD_BUTT, None, output) == (0, "")
        count, _ = struct.unpack_from("<II", output.view())
        assert count == len(chip.board.ops())
        assert struct.unpack_from("<I", output.view(), 8)[0] == min(chip.board.ops())
        status, text = chip.outcome(hb.HB_DSP_RPC_CMD_BUTT, None, chip.mem(4))
        assert status == hb.HB_DSP_INVALID_ARGUMENT
        assert "needs at least 8 bytes" in text
        assert chip.outcome(hb.HB_DSP_RPC_CMD_BUTT)[0] == hb.HB_DSP_INVALID_ARGUMENT

    @each("by_reference", [False, True])
    def test_who_forgets_the_command_is_told(
        self,
        chip: Chip,
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
        by_reference: bool,  # noqa: FBT001
    ) -> None:
        monkeypatch.setattr(say, "_said", set())  # once per line is enough
        task, ctrl, output = hb.hbDSPTask_t(), hb.hbDSPRpcCtrlParam(), chip.mem(4096)
        hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
        how: Any = ctypes.byref(ctrl) if by_reference else ctrl
        for given, is_told in ((None, False), (chip.mem(64), True)):
            caplog.clear()
            assert hb.hbDSPRpc(task, given, output, how) == 0
            assert hb.hbDSPWaitTaskDone(task, 0) == 0
            assert hb.hbDSPReleaseTask(task) == 0
            said = [one.getMessage() for one in caplog.records if "Set ctrl.rpcCmd" in one.getMessage()]
            assert len(said) == is_told
            assert all(__file__ in one for one in said)

    def test_the_initializer_has_the_manual_s_defaults(self) -> None:
        ctrl = hb.hbDSPRpcCtrlParam(7, 7, 7, 7, 7, 7)
        hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctypes.byref(ctrl))  # type: ignore[arg-type]
        fields = [getattr(ctrl, field[0]) for field in ctrl._fields_]
        assert fields == [hb.HB_DSP_CORE_ANY, hb.HB_DSP_RPC_CMD_BUTT, hb.HB_DSP_RPC_PRIORITY_LOWEST, 0, 0, 0]

    def test_version_and_error_texts(self) -> None:
        assert hb.hbDSPGetVersion().startswith("0.3.3 (hbrt ")
        assert "emulator" in hb.hbDSPGetVersion()
        sentences = {hb.hbDSPGetErrorDesc(status) for status in hb.Status}
        assert all(sentence.endswith((".", "?")) for sentence in sentences)
        assert hb.hbDSPGetErrorDesc(0) == "The call succeeded."
        assert hb.hbDSPGetErrorDesc(42) == "The op returned 42, which is not a runtime status code."
        assert hb.hbDSPGetErrorDesc([1]) == "[1] is not a status code."  # type: ignore[arg-type]

    def test_last_error_is_each_thread_s_own(self, chip: Chip) -> None:
        assert chip.outcome(hb.HB_DSP_RPC_CMD_PING) == (0, "")
        assert hb.hbDSPReleaseTask(hb.hbDSPTask_t(42)) != 0
        mine, theirs = hb.last_error(), []
        thread = threading.Thread(target=lambda: theirs.append(hb.last_error()))
        thread.start()
        thread.join()
        assert "0x2a" in mine
        assert theirs == [""]
