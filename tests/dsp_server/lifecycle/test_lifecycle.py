"""Lives of cores on a real board: crash, recovery, stop, start, restart, an image that breaks."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from arm_client.errors import CoreLostError, HbrtError
from hbrt.errors import RefusedError
from hbrt.status import Status

if TYPE_CHECKING:
    from arm_client.client import Board
    from tests.dsp_server.conftest import Running

    Start = Callable[..., Running]
    WriteImage = Callable[..., Path]


SHORT_PAUSES = {
    "dsp_server.lifecycle.restart_policy.FIRST_PAUSE_SECONDS": 0.02,
    "dsp_server.lifecycle.restart_policy.MAX_PAUSE_SECONDS": 0.1,
}


def _status_of(task: Any) -> int | None:
    error = task.exception()
    assert error is None or isinstance(error, HbrtError)
    return error.status if error else None


def _await_state(running: Running, index: int, state: str, **fields: object) -> dict[str, Any]:
    def now() -> dict[str, Any] | None:
        core = running.core(index)
        return core if core["state"] == state and all(core[name] == value for name, value in fields.items()) else None

    core: dict[str, Any] = running.until(now, f"core {index} {state} with {fields}")
    return core


def test_idle_core_that_is_killed_starts_again(start: Start) -> None:
    running = start()
    board = running.attach()
    before = running.which(board, core=1)
    os.kill(before.pid, signal.SIGKILL)
    running.await_end(before.pid)
    after = running.which(board, core=1)  # waits in the queue for the next process
    assert after.core == before.core == 0
    assert after.pid != before.pid
    core = _await_state(running, 0, "running", epoch=2)
    assert (core["crashes"], core["pid"]) == (1, after.pid)
    assert core["last_crash"] == f"Process {before.pid} was ended by signal 9 (SIGKILL)."
    assert running.core(1)["crashes"] == 0
    log = running.log()
    assert "Core 0 was ended by signal 9 (SIGKILL); it restarts." in log
    assert f"Core 0 runs again (process {after.pid})." in log


@pytest.mark.parametrize("way", ["EXIT", "KILL", "SEGFAULT"])
def test_op_that_ends_its_core_costs_its_own_task(start: Start, way: str) -> None:
    how = {"EXIT": "exited with code 7", "KILL": "signal 9 (SIGKILL)", "SEGFAULT": "signal 11 (SIGSEGV)"}[way]
    running = start()
    board = running.attach()
    held = running.hold(board, core=1)  # keeps core 0 busy until all is queued
    fatal = board.submit(running.DIE, bytes([getattr(running, way)]), core=1)
    blocks = [board.alloc(12) for _ in range(3)]
    queued = [board.submit(running.WHICH, None, block, core=1) for block in blocks]
    held.let_go()
    error = fatal.exception()
    assert isinstance(error, CoreLostError)
    assert error.status == Status.HB_DSP_CORE_LOST
    assert how in error.text
    assert "while running die (command 0x1002)." in error.text
    assert fatal.core == 0
    assert [task.exception() for task in queued] == [None] * 3
    assert held.task.exception() is None
    assert _await_state(running, 0, "running")["last_crash"] == error.text.splitlines()[0]


def test_other_core_serves_while_one_is_down(start: Start) -> None:
    running = start()
    board = running.attach()
    fatal = [board.submit(running.DIE, bytes([running.EXIT]), core=1) for _ in range(3)]
    anywhere = [board.submit(running.WHICH, None, board.alloc(12)) for _ in range(20)]
    assert [task.exception() for task in anywhere] == [None] * 20
    assert [_status_of(task) for task in fatal] == [Status.HB_DSP_CORE_LOST] * 3
    assert running.core(1)["crashes"] == 0


def test_board_that_lost_a_core_loses_no_call_that_was_rung_to_it(start: Start) -> None:
    """Core 0 is stopped, so that it is dead to the world while everybody believes that it sleeps."""
    running = start()
    board = running.attach()
    victim = running.which(board, core=1).pid
    running.until(lambda: running.core(0)["tasks"] == 1, "the count of an idle core")
    os.kill(victim, signal.SIGSTOP)
    task = board.submit(running.WHICH, None, board.alloc(12))
    os.kill(victim, signal.SIGKILL)
    assert task.exception() is None


def test_core_that_dies_again_and_again_with_no_task_stays_crashed(start: Start, write_image: WriteImage) -> None:
    running = start(write_image(before="if hb_dsp_core_id() == 1: go_off_when_armed()"), limits=SHORT_PAUSES)
    board = running.attach()
    Path(f"{running.config.image}.armed").touch()
    core = running.until(lambda: _is_out_for_good(running), "the end of a crash loop")
    assert 1 <= core["crashes"] <= 5  # on a slow machine some go off before the core serves
    assert "exited with code 5" in core["last_crash"]
    assert "it died 5 times in a row right after starting, with no task to blame" in running.log()
    assert "Run 'hbrt restart --core 1' once the cause is fixed." in running.log()
    with pytest.raises(HbrtError, match="None of the cores that may run the task is running") as caught:
        board.submit(running.WHICH, None, core=2)
    assert caught.value.status == Status.HB_DSP_NOT_RUNNING
    assert running.which(board).core == 0
    assert running.ask("status")["state"] == "running"
    write_image(2)  # without the bomb
    running.ask("restart", core=1)
    assert running.which(board, core=2).value == 2
    assert running.which(board, core=1).value == 1
    assert running.core(1)["state"] == "running"


def _is_out_for_good(running: Running) -> dict[str, Any] | None:
    core = running.core(1)
    return core if core["state"] == "crashed" and "stays crashed" in running.log() else None


def test_core_whose_tasks_kill_it_never_stays_crashed(start: Start) -> None:
    running = start(cores=1, limits=SHORT_PAUSES)
    board = running.attach()
    tasks = [board.submit(running.DIE, bytes([running.EXIT])) for _ in range(6)]
    assert [_status_of(task) for task in tasks] == [Status.HB_DSP_CORE_LOST] * 6
    assert running.which(board).value == 1
    assert running.core(0)["crashes"] == 6


def test_core_that_is_stopped_ends_its_task_and_is_offline(start: Start) -> None:
    running = start()
    board = running.attach()
    held = running.hold(board, core=1)
    queued = board.submit(running.WHICH, None, core=1)
    answers: list[object] = []
    stopper = threading.Thread(target=lambda: answers.append(running.ask("stop_core", core=0)))
    stopper.start()
    running.until(lambda: _is_refused(board, running), "the refusal of work for a core that ends")
    running.ask("status")  # the daemon has signaled the core by now
    assert not answers
    held.let_go()
    stopper.join()
    assert answers == [None]
    assert held.task.exception() is None
    assert _status_of(queued) == Status.HB_DSP_NOT_RUNNING
    core = running.core(0)
    assert (core["state"], core["pid"], core["crashes"]) == ("offline", None, 0)
    assert running.which(board).core == 1
    running.ask("start_core", core=0)
    assert running.which(board, core=1).core == 0
    assert running.core(0)["epoch"] == 2


def _is_refused(board: Board, running: Running) -> bool:
    try:
        board.submit(running.WHICH, None, core=1)
    except HbrtError as error:
        return error.status == Status.HB_DSP_NOT_RUNNING
    return False


def test_task_that_outlives_the_grace_of_a_stop_is_lost(start: Start) -> None:
    running = start(limits={"dsp_server.lifecycle.child.STOP_GRACE_SECONDS": 1.0})
    held = running.hold(running.attach(), core=1)
    running.ask("stop_core", core=0)
    error = held.task.exception()
    assert isinstance(error, CoreLostError)
    assert (
        "was stopped, and was killed because its task had not finished after 1 s, while running hold (command 0x1001)."
        in error.text
    )
    core = running.core(0)
    assert (core["state"], core["crashes"]) == ("offline", 0)


def test_restart_replaces_every_process_and_keeps_the_queue(start: Start, write_image: WriteImage) -> None:
    image = write_image(1)
    running = start(image)
    board = running.attach()
    before = [running.which(board, core=mask) for mask in (1, 2)]
    held = running.hold(board, core=1)
    queued = board.submit(running.WHICH, None, answer := board.alloc(12), core=1)
    write_image(2)
    restart = threading.Thread(target=running.ask, args=("restart",))
    restart.start()
    running.until(lambda: running.core(1)["epoch"] == 2, "core 1's new process")  # core 0 ends its task first
    held.let_go()
    restart.join()
    assert held.task.exception() is None
    assert queued.exception() is None
    assert int.from_bytes(answer.view()[8:12], "little") == 2
    after = [running.which(board, core=mask) for mask in (1, 2)]
    assert [one.value for one in after] == [2, 2]
    assert not {one.pid for one in before} & {one.pid for one in after}
    assert [core["crashes"] for core in running.ask("status")["cores"]] == [0, 0]
    assert sorted(path.name for path in running.paths.path.glob("image-*.py")) == [
        "image-2.py",  # that of the cores for models
        "image-3.py",
    ]


def test_counters_go_on_over_a_restart(start: Start) -> None:
    running = start(cores=1)
    board = running.attach()
    for _ in range(5):
        running.which(board)
    running.ask("restart")
    for _ in range(5):
        running.which(board)
    running.until(lambda: running.core(0)["tasks"] == 10, "the count of both processes")


def test_a_restart_that_waits_for_a_task_says_so_and_status_names_the_task(start: Start) -> None:
    running = start(cores=2, limits={"dsp_server.lifecycle.child.STOP_GRACE_SECONDS": 60.0})
    board = running.attach()
    assert running.ask("status")["longest_running"] is None
    held = running.hold(board, 2)
    longest = running.ask("status")["longest_running"]
    client = board.session.link.client_id
    assert (longest["cmd"], longest["core"], longest["client"]) == (running.HOLD, 1, client)
    assert longest["name"] == "hold"
    assert longest["age_s"] > 0
    restarter = threading.Thread(target=running.ask, args=("restart",))
    restarter.start()
    running.until(lambda: running.core(0)["epoch"] == 2, "the restart of the core that runs nothing")
    with pytest.raises(RefusedError, match="A restart of core 1 is in progress and is waiting for running tasks"):
        running.ask("restart")
    held.let_go()
    restarter.join()
    assert held.task.result(20) is None
    assert running.ask("status")["longest_running"] is None


def test_core_that_crashes_while_a_broken_image_loads_gets_its_last_good_one(
    start: Start, write_image: WriteImage
) -> None:
    running = start(write_image(1), cores=1)
    board = running.attach()
    loading = Path(f"{running.config.image}.loading")
    write_image(2, before="print(os.getpid(), file=open(__file__ + '.loading', 'w'), flush=True); time.sleep(1000)")
    refusal: list[str] = []

    def restart() -> None:
        with pytest.raises(RefusedError) as caught:
            running.ask("restart")
        refusal.append(str(caught.value))

    restarter = threading.Thread(target=restart)
    restarter.start()
    loader = int(running.until(lambda: loading.exists() and loading.read_text(), "the load of the broken image"))
    with pytest.raises(RefusedError, match="A restart of core 0 is in progress; wait until it is done"):
        running.ask("restart")
    assert _status_of(board.submit(running.DIE, bytes([running.EXIT]))) == Status.HB_DSP_CORE_LOST
    assert running.core(0)["state"] == "crashed"
    queued = board.submit(running.WHICH, None, board.alloc(12))
    os.kill(loader, signal.SIGKILL)
    assert queued.exception() is None  # the last good image serves again
    restarter.join()
    assert "Core 0 was ended by signal 9 (SIGKILL) while loading the image." in refusal[0]
    assert running.which(board).value == 1
    assert running.core(0)["state"] == "running"


def test_one_core_may_run_another_image(start: Start, write_image: WriteImage) -> None:
    running = start(write_image(1))
    board = running.attach()
    other = write_image(7, name="other.py")
    running.ask("restart", core=1, image=str(other))
    assert [running.which(board, core=mask).value for mask in (1, 2)] == [1, 7]
    assert [core["image"] for core in running.ask("status")["cores"]] == [running.config.image, str(other)]
    for mask in (1, 2):  # each comes back with its own
        assert _status_of(board.submit(running.DIE, bytes([running.EXIT]), core=mask)) == Status.HB_DSP_CORE_LOST
    assert [running.which(board, core=mask).value for mask in (1, 2)] == [1, 7]


def test_candidate_that_is_killed_before_it_takes_over_is_followed_by_the_old_image(
    start: Start, write_image: WriteImage
) -> None:
    """The new process is ready and waits for the old one's task, and then it dies."""
    running = start(write_image(1), cores=1)
    board = running.attach()
    held = running.hold(board)
    write_image(2)
    refusal: list[str] = []

    def restart() -> None:
        with pytest.raises(RefusedError) as caught:
            running.ask("restart")
        refusal.append(str(caught.value))

    restarter = threading.Thread(target=restart)
    restarter.start()
    candidate = running.until(lambda: _ready_process(running), "a ready process")
    os.kill(candidate, signal.SIGKILL)
    running.await_end(candidate)
    held.let_go()
    restarter.join()
    assert held.task.exception() is None
    assert "Core 0 was ended by signal 9 (SIGKILL)" in refusal[0]
    assert running.which(board).value == 1
    core = _await_state(running, 0, "running")
    assert (core["next"], core["epoch"]) == (None, 2)


def _ready_process(running: Running) -> int | None:
    coming = running.core(0)["next"]
    return coming["pid"] if coming and coming["phase"] == "ready" else None
