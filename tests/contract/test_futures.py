"""Tasks as futures: what concurrent.futures and asyncio promise, and what happens to those that nobody asks about."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import struct
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import arm_client as hb
from arm_client import (
    Board,
    BoardLostError,
    CallerError,
    HbrtError,
    OpFailedError,
    OutOfMemoryError,
    Task,
    UnknownCommandError,
    private_board,
)
from tests.each import each
from tests.limits import PATIENCE_S
from tests.waiting import until

if TYPE_CHECKING:
    from tests.arm_client.conftest import Chip

IMAGE = Path(__file__).parents[1] / "arm_client" / "images" / "ops.py"
pytestmark = pytest.mark.dsp_board(image="../arm_client/images/ops.py")


class Gate:
    """A HOLD task by Python habits."""

    def __init__(self, chip: Chip, core: int = 0) -> None:
        buffer = chip.board.alloc(8)
        # The flushes are of use on another machine's board only.
        self._look, self._show = buffer.invalidate, buffer.clean
        self.flags = buffer.array(np.uint8, 8)
        self.output = chip.board.empty(8, np.uint8)
        self.task = chip.board.submit(chip.HOLD, self.flags, self.output, core=core)

    def await_running(self) -> Gate:
        until(self._is_running, "the gate's start")
        return self

    def _is_running(self) -> bool:
        self._look()
        return bool(self.flags[0])

    def open(self) -> None:
        self.flags[1] = 1
        self._show()


@pytest.fixture
def gate(chip: Chip) -> Gate:
    return Gate(chip).await_running()


@pytest.fixture
def gates(chip: Chip) -> list[Gate]:
    """Both cores are busy until each is opened."""
    return [Gate(chip, core).await_running() for core in (1, 2)]


class TestResult:
    def test_is_the_output(self, chip: Chip) -> None:
        output = chip.board.empty(4, np.uint8)
        task = chip.board.submit(chip.ADD_ONE, b"\1\2\3\4", output)
        assert isinstance(task, concurrent.futures.Future)
        assert task.result() is output
        assert output.tolist() == [2, 3, 4, 5]
        assert task.result() is output
        assert task.exception() is None
        assert task.done()
        assert not task.running()
        assert not task.cancelled()
        assert not task.cancel()
        assert chip.board.live_tasks() == 0

    def test_times_core_and_cycles(self, gate: Gate) -> None:
        assert (gate.task.latency_ns, gate.task.duration_ns) == (0, 0)
        assert gate.task.times.ended_ns == 0
        assert gate.task.running()
        assert not gate.task.done()
        gate.open()
        gate.task.result()
        assert gate.task.core in {0, 1}
        assert gate.task.latency_ns >= gate.task.duration_ns > 0
        times = gate.task.times
        assert list(times) == sorted(times)
        assert times.ended_ns - times.submitted_ns == gate.task.latency_ns
        assert times.ended_ns - times.started_ns == gate.task.duration_ns
        assert gate.task.cycles >= 0

    def test_nothing_is_known_of_a_task_from_an_earlier_one_in_its_slot(self, chip: Chip) -> None:
        for before in [chip.board.submit(hb.HB_DSP_RPC_CMD_PING) for _ in range(20)]:
            before.result()
        held = chip.hold_all()
        queued = [chip.board.submit(hb.HB_DSP_RPC_CMD_PING) for _ in range(16)]
        assert {(task.core, task.latency_ns, task.duration_ns, task.cycles) for task in queued} == {(-1, 0, 0, 0)}
        for one in held:
            assert one.finish() == 0
        for task in queued:
            task.result()

    def test_timeout_and_then_the_result(self, chip: Chip, gate: Gate) -> None:
        for timeout in (0, -1, 0.005):
            with pytest.raises(TimeoutError, match="; the task keeps running"):
                gate.task.result(timeout)
            with pytest.raises(TimeoutError, match="; the task keeps running"):
                gate.task.exception(timeout)
        with pytest.raises(
            concurrent.futures.TimeoutError, match=f"Command {chip.HOLD:#x} did not finish within 0.001 s"
        ):
            gate.task.result(0.001)
        gate.open()
        assert gate.task.result(1e12) is gate.output

    @each("timeout", [float("inf"), 1e300, 3e6, 86400 * 365])
    def test_very_long_timeouts(self, chip: Chip, timeout: float) -> None:
        gate = Gate(chip)
        opener = threading.Timer(0.01, gate.open)
        opener.start()
        assert gate.task.result(timeout) is gate.output
        opener.join()  # it has the gate, and so its memory

    def test_in_many_threads_at_once(self, chip: Chip, gate: Gate) -> None:
        got: list[Any] = []
        threads = [threading.Thread(target=lambda: got.append(gate.task.result(PATIENCE_S))) for _ in range(8)]
        done: list[Any] = []
        gate.task.add_done_callback(done.append)
        for thread in threads:
            thread.start()
        gate.open()
        for thread in threads:
            thread.join()
        assert got == [gate.output] * 8 or all(output is gate.output for output in got)
        assert chip.board.live_tasks() == 0

    def test_asked_for_and_called_back_at_the_same_moment(self, chip: Chip) -> None:
        called: list[Any] = []
        for _ in range(300):
            task = chip.board.submit(hb.HB_DSP_RPC_CMD_PING)
            task.add_done_callback(called.append)
            assert task.result() is None
        Board.call(chip.board, hb.HB_DSP_RPC_CMD_PING)
        chip.until(lambda: len(called) >= 300, "300 callbacks")
        assert len(called) == len(set(called)) == 300


class TestErrors:
    def test_an_op_that_raises(self, chip: Chip) -> None:
        task = chip.board.submit(chip.FAIL)
        with pytest.raises(OpFailedError, match=f"^Command {chip.FAIL:#x}: Traceback") as caught:
            task.result()
        error = caught.value
        assert (error.status, error.status_name, error.cmd) == (
            hb.HB_DSP_RUN_TASK_FAILED,
            "HB_DSP_RUN_TASK_FAILED",
            chip.FAIL,
        )
        assert error.text.endswith("ZeroDivisionError: the tile has no columns")
        assert str(error).endswith("[HB_DSP_RUN_TASK_FAILED]")
        assert task.exception() is error
        assert isinstance(error, HbrtError)
        assert isinstance(error, RuntimeError)

    def test_an_op_s_own_value(self, chip: Chip) -> None:
        with pytest.raises(OpFailedError, match=r"give_back .* returned 5. \[5\]") as caught:
            chip.board.call(chip.GIVE_BACK, struct.pack("<i", 5))
        assert caught.value.status == 5

    def test_an_op_that_returns_a_code_of_the_runtime_is_still_the_op(self, chip: Chip) -> None:
        for status in (hb.HB_DSP_INVALID_ARGUMENT, hb.HB_SYS_INVALID_ARGUMENT, hb.HB_ERR_MMAP_FAILED):
            with pytest.raises(OpFailedError) as caught:
                chip.board.call(chip.GIVE_BACK, struct.pack("<i", status))
            assert caught.value.status == status

    def test_unknown_command_and_tcm(self, chip: Chip) -> None:
        with pytest.raises(UnknownCommandError, match="No op is registered for command 0x1fff"):
            chip.board.call(chip.MISSING)
        with pytest.raises(OutOfMemoryError, match="TCM bank 0"):
            chip.board.call(chip.TAKE_TCM, struct.pack("<i", 1 << 20))

    def test_a_failed_call_leaves_nothing(self, chip: Chip) -> None:
        for _ in range(100):
            with pytest.raises(OpFailedError):
                chip.board.call(chip.FAIL, b"params", chip.board.empty(4))
        gc.collect()
        assert chip.board.live_tasks() == 0
        assert chip.board.live_bytes() == 0

    def test_a_failed_call_shows_the_callers_line_and_its_own(self, chip: Chip) -> None:
        with pytest.raises(OpFailedError) as failed:
            chip.board.call(chip.FAIL)
        assert [frame.name for frame in failed.traceback][1:] == ["call"]
        with pytest.raises(OpFailedError) as failed:
            chip.board.submit(chip.FAIL).result()
        assert [frame.name for frame in failed.traceback][1:] == ["result"]

    def test_a_call_that_timed_out_lets_its_task_go(self, chip: Chip, gates: list[Gate]) -> None:
        output = chip.board.empty(4, np.uint8)
        with pytest.raises(TimeoutError):
            chip.board.call(chip.ECHO, b"late", output, timeout=0.005)
        for gate in gates:
            gate.open()
            gate.task.result()
        chip.board.ping()
        assert not output.any()
        gc.collect()
        assert chip.board.live_tasks() == 0


class Kept:
    """Something that a call keeps."""


class TestKeep:
    @each("timeout", [None, 30.0])
    def test_goes_with_the_call(self, chip: Chip, timeout: float | None) -> None:
        kept = Kept()
        there = weakref.ref(kept)
        chip.board.call(chip.ECHO, b"soon", chip.board.empty(4, np.uint8), timeout=timeout, keep=kept)
        del kept
        assert there() is None

    @each("timeout", [None, 30.0])
    def test_goes_with_a_call_that_failed(self, chip: Chip, timeout: float | None) -> None:
        kept, failures = Kept(), 0
        there = weakref.ref(kept)
        gc.disable()  # what hangs in a cycle stays
        try:
            try:
                chip.board.call(chip.FAIL, b"params", timeout=timeout, keep=kept)
            except OpFailedError:
                failures += 1
            del kept
            assert (failures, there()) == (1, None)
            assert len(chip.board.spare_buffers()) == 1
        finally:
            gc.enable()

    @pytest.mark.differs(
        "remote", "bytes that an op or another program writes are seen after INVALIDATE, or a task's end"
    )
    def test_outlives_a_call_that_gave_up_while_a_core_ran_it(self, chip: Chip) -> None:
        inbox, outbox, timeout = chip.board.alloc(64), chip.board.empty(4, np.uint8), 0.05
        there: weakref.ref[Kept] | None = None
        while not inbox.view()[0]:  # it was cancelled before a core took it
            kept = Kept()
            there = weakref.ref(kept)
            with pytest.raises(TimeoutError):
                chip.board.call(chip.HOLD, inbox, outbox, timeout=timeout, keep=kept)
            del kept
            timeout *= 2
        gc.collect()
        assert chip.board.live_tasks() == 1
        assert there is not None
        assert there() is not None
        inbox.view()[1] = 1
        chip.until(lambda: not chip.board.live_tasks(), "the end of the task")
        gc.collect()
        assert there() is None


class TestCancel:
    def test_a_queued_task(self, chip: Chip, gates: list[Gate]) -> None:
        output = chip.board.empty(4, np.uint8)
        queued = chip.board.submit(chip.ECHO, b"1234", output)
        assert not queued.running()
        assert queued.cancel()
        assert queued.cancel()
        assert queued.cancelled()
        assert queued.done()
        with pytest.raises(concurrent.futures.CancelledError):
            queued.result()
        with pytest.raises(concurrent.futures.CancelledError):
            queued.exception()
        for gate in gates:
            assert not gate.task.cancel()
            gate.open()
            gate.task.result()
        assert not output.any()

    def test_who_waits_hears_of_it(self, chip: Chip, gates: list[Gate]) -> None:
        queued, heard = chip.board.submit(chip.ECHO), threading.Event()
        called: list[bool] = []
        queued.add_done_callback(lambda task: called.append(task.cancelled()))

        def wait() -> None:
            with pytest.raises(concurrent.futures.CancelledError):
                queued.result()
            heard.set()

        thread = threading.Thread(target=wait)
        thread.start()
        assert queued.cancel()
        thread.join()
        assert heard.is_set()
        assert called == [True]
        for gate in gates:
            gate.open()
            gate.task.result()


class TestCallbacks:
    def test_before_and_after_the_end(self, gate: Gate) -> None:
        order: list[str] = []
        gate.task.add_done_callback(lambda _: order.append("first"))
        gate.task.add_done_callback(lambda _: order.append("second"))
        gate.open()
        gate.task.result()
        concurrent.futures.wait([gate.task])
        gate.task.add_done_callback(lambda _: order.append("late"))
        until(lambda: len(order) == 3)
        assert order == ["first", "second", "late"]

    def test_without_anybody_waiting(self, chip: Chip) -> None:
        done = threading.Event()
        task = chip.board.submit(hb.HB_DSP_RPC_CMD_PING)
        task.add_done_callback(lambda _: done.set())
        assert done.wait(PATIENCE_S)

    def test_hears_of_failures(self, chip: Chip) -> None:
        errors: list[BaseException | None] = []
        done = threading.Event()
        task = chip.board.submit(chip.FAIL)

        def note(task: concurrent.futures.Future[Any]) -> None:
            errors.append(task.exception())
            done.set()

        task.add_done_callback(note)
        assert done.wait(PATIENCE_S)
        assert isinstance(errors[0], OpFailedError)

    def test_results_are_not_kept_by_the_runtime(self, chip: Chip) -> None:
        def call_back() -> None:
            task = chip.board.submit(chip.ECHO, b"", chip.board.empty(1000))
            task.add_done_callback(lambda _: None)
            task.result()

        for _ in range(20):
            call_back()
        gc.collect()
        assert chip.board.live_bytes() == 0


class TestTogether:
    def test_as_completed(self, gates: list[Gate]) -> None:
        order = []
        tasks = [gate.task for gate in gates]
        done = concurrent.futures.as_completed(tasks, timeout=PATIENCE_S)
        gates[1].open()
        order.append(next(done))
        gates[0].open()
        order.append(next(done))
        assert order == [tasks[1], tasks[0]]
        with pytest.raises(StopIteration):
            next(done)

    def test_as_completed_of_many(self, chip: Chip) -> None:
        tasks = [chip.board.submit(chip.GIVE_BACK, struct.pack("<i", number)) for number in range(200)]
        seen = set(concurrent.futures.as_completed(tasks, timeout=PATIENCE_S))
        assert seen == set(tasks)
        assert tasks[0].result() is None
        assert [getattr(task.exception(), "status", 0) for task in tasks] == list(range(200))

    def test_as_completed_times_out(self, gate: Gate) -> None:
        with pytest.raises(TimeoutError):
            list(concurrent.futures.as_completed([gate.task], timeout=0.01))
        gate.open()
        assert gate.task.result() is gate.output

    def test_wait_for_the_first_and_for_all(self, gates: list[Gate]) -> None:
        tasks = [gate.task for gate in gates]
        assert concurrent.futures.wait(tasks, timeout=0.005).done == set()
        gates[0].open()
        first = concurrent.futures.wait(tasks, PATIENCE_S, concurrent.futures.FIRST_COMPLETED)
        assert first.done == {tasks[0]}
        gates[1].open()
        assert concurrent.futures.wait(tasks, PATIENCE_S).not_done == set()

    def test_wait_for_the_first_failure(self, chip: Chip, gates: list[Gate]) -> None:
        tasks: list[Task] = [gate.task for gate in gates] + [chip.board.submit(chip.FAIL)]
        gates[0].open()
        done = concurrent.futures.wait(tasks, PATIENCE_S, concurrent.futures.FIRST_EXCEPTION).done
        assert tasks[2] in done
        gates[1].open()
        concurrent.futures.wait(tasks, PATIENCE_S)

    def test_asyncio(self, chip: Chip) -> None:
        async def main() -> list[Any]:
            outputs = [chip.board.empty(1, np.uint8) for _ in range(50)]
            tasks = [chip.board.submit(chip.ADD_ONE, bytes([n]), output) for n, output in enumerate(outputs)]
            results = await asyncio.gather(*map(asyncio.wrap_future, tasks))
            failed = await asyncio.gather(
                asyncio.wrap_future(chip.board.submit(chip.FAIL)), asyncio.sleep(0), return_exceptions=True
            )
            assert isinstance(failed[0], OpFailedError)
            return [int(result[0]) for result in results]

        assert asyncio.run(main()) == list(range(1, 51))

    def test_asyncio_timeout_cancels_a_queued_task(self, chip: Chip, gates: list[Gate]) -> None:
        async def main() -> Task:
            task = chip.board.submit(chip.ECHO)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(task), 0.01)
            return task

        assert asyncio.run(main()).cancelled()
        for gate in gates:
            gate.open()
            gate.task.result()


class TestDropped:
    def test_tasks_that_nobody_asks_about_leak_no_slots(self, chip: Chip) -> None:
        for _ in range(3000):
            chip.board.submit(hb.HB_DSP_RPC_CMD_PING)
        gc.collect()
        chip.board.ping()
        until(lambda: chip.board.live_tasks() == 0)
        assert chip.board.status()["slots"]["leased"] <= 16 + 1024

    @pytest.mark.differs(
        "remote", "bytes that an op or another program writes are seen after INVALIDATE, or a task's end"
    )
    def test_their_blocks_live_until_they_end(self, chip: Chip, gate: Gate) -> None:
        flags, output = np.asarray(gate.flags), np.asarray(gate.output)
        place = gate.flags.phy_addr
        gate.task, gate.flags, gate.output = None, None, None  # type: ignore[assignment]
        gc.collect()
        other = chip.board.empty(8, np.uint8)
        assert other.phy_addr != place
        assert chip.board.live_tasks() == 1
        flags[1] = 1
        until(lambda: chip.board.live_tasks() == 0)
        assert output[0] == 0xA5

    def test_their_memory_comes_back_when_it_is_needed(
        self, dsp_board_factory: Callable[..., Any], request: pytest.FixtureRequest
    ) -> None:
        with dsp_board_factory(image=IMAGE, ddr_bytes=1 << 20) as board:
            for _ in range(12):
                board.submit(hb.HB_DSP_RPC_CMD_PING, None, board.alloc(300_000))
                board.ping()
                board.ping(core=1)
                board.ping(core=2)


class TestAfterTheEnd:
    @pytest.mark.differs(
        "remote", "bytes that an op or another program writes are seen after INVALIDATE, or a task's end"
    )
    def test_a_closed_connection(self, request: pytest.FixtureRequest) -> None:
        with private_board(IMAGE) as board:
            asked, unasked = board.submit(hb.HB_DSP_RPC_CMD_PING), board.submit(hb.HB_DSP_RPC_CMD_PING)
            assert asked.result() is None
            flags = board.empty(8, np.uint8)
            held = board.submit(0x1001, flags)
            heard: list[BaseException | None] = []
            outcome: list[BaseException] = []
            held.add_done_callback(lambda task: heard.append(task.exception()))

            def wait() -> None:
                try:
                    board.submit(0x1001, flags, core=2).result()
                except BoardLostError as error:
                    outcome.append(error)

            threads = [threading.Thread(target=wait) for _ in range(3)]
            for thread in threads:
                thread.start()
            until(lambda: bool(flags[0]))

            def let_go(_: object) -> None:  # a core that stops lets its op end
                until(lambda: len(outcome) == len(threads))  # not before: a wait may find its task ended instead
                flags[1] = 1

            held.add_done_callback(let_go)
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not any(thread.is_alive() for thread in threads)
        assert len(outcome) == 3
        assert asked.result() is None
        for task in (held, unasked):
            with pytest.raises(BoardLostError, match="has detached from board") as caught:
                task.result()
            assert caught.value.status == hb.HB_DSP_NOT_RUNNING
            assert task.done()
            assert not task.running()
            assert not task.cancel()
        assert [type(error) for error in heard] == [BoardLostError]
        with pytest.raises(BoardLostError, match="This connection was closed"):
            board.submit(hb.HB_DSP_RPC_CMD_PING)
        with pytest.raises(BoardLostError):
            board.alloc(4)
        board.close()

    def test_ping_ops_and_status(self, chip: Chip) -> None:
        assert chip.board.ping() > 0
        assert chip.board.ping(core=2) > 0
        with pytest.raises(CallerError):
            chip.board.ping(core=9)
        ops = chip.board.ops()
        assert ops[chip.ECHO] == "echo"
        assert ops[hb.HB_DSP_RPC_CMD_NN_SOFTMAX] == "softmax"
        assert chip.board.status()["state"] == "running"
        assert chip.board.core_count == 2


def test_who_posted_waits_once(chip: Chip) -> None:
    posted = chip.board.post(hb.HB_DSP_RPC_CMD_PING)
    posted.finish()
    with pytest.raises(CallerError, match="was already waited for") as refused:
        posted.finish()
    assert refused.value.status == hb.HB_DSP_TASK_RELEASED
    posted.cancel()  # of no task
