"""Ten planted races are found; a failure repeats and is shrunk; what is right, hangs or dies is told apart."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from arm_client.commands.explore.command import runs_memory
from arm_client.commands.explore.search import Runner, runs_of
from hbrt.exploration.seeds import SCHEDULE
from tests.hbrt.trace.reader import read
from tests.limits import PATIENCE_S
from tests.shared import Shell
from tools.docs_tables import REPOSITORY

RACES = REPOSITORY / "samples/races"
NAMES = sorted(file.stem for file in RACES.glob("*.py") if file.stem != "image")
QUICK = {"buffer_of_the_other_frame", "order_by_priority"}
GOOD = """
import numpy as np
from arm_client import connect

with connect() as board:
    number, address = board.empty(1, np.int32), board.empty(1, np.uint64)
    address[0] = number.phy_addr
    for _ in range(2):
        task = board.submit(0x1000, address)
        print("waits")
        task.result()
    assert number[0] == 2, number
    {more}
"""


@pytest.fixture(scope="module")
def memory() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HBRT_QUARANTINE", "0")
        with runs_memory() as directory:
            yield directory


@pytest.fixture
def tried(memory: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Runner]:
    monkeypatch.setenv("HBRT_IMAGE", str(RACES / "image.py"))
    monkeypatch.setenv("HBRT_CHECK", "fail")

    return lambda program, seconds=PATIENCE_S: Runner(str(program), (), seconds, memory)


def test_there_are_ten_races() -> None:
    assert len(NAMES) == 10


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in NAMES]
)
def test_a_planted_race_is_found_and_its_settings_repeat_it(tried: Callable[..., Runner], name: str) -> None:
    with tried(RACES / f"{name}.py") as runner:
        runs = runs_of(runner.run_all, 0, 60, {})
        assert next(runs)[1].code == 0  # in the order that comes by itself
        failed = next(run for _, run in runs if run.code)
        again = runner.run(failed.settings)
        assert (again.kind, again.digest, again.choices) == (failed.kind, failed.digest, failed.choices)


def test_a_right_program_passes_in_every_order(tried: Callable[..., Runner], tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(GOOD.format(more=""))
    with tried(tmp_path / "good.py") as runner:
        found = [run for _, run in runs_of(runner.run_all, 0, 6, {})]
    assert {run.code for run in found} == {0}, [run.output for run in found if run.code]
    assert len({run.digest for run in found}) > 3


def test_a_run_that_hangs_or_dies_is_told(tried: Callable[..., Runner], tmp_path: Path) -> None:
    for more, code, seconds in (
        ("while True: pass", 124, 1.0),
        ("import os; os.kill(os.getpid(), 9)", -9, PATIENCE_S),
        ("raise SystemExit(5)", 5, PATIENCE_S),
    ):
        (tmp_path / "bad.py").write_text(GOOD.format(more=more))
        with tried(tmp_path / "bad.py", seconds) as runner:
            assert runner.run({SCHEDULE: "default"}).code == code


def test_time_limits_pass_by_lines_and_an_op_that_hangs_is_left(tried: Callable[..., Runner], tmp_path: Path) -> None:
    more = """
    flag, where = board.from_array(np.ones(2, np.int32)), board.empty(1, np.uint64)
    where[0] = flag.phy_addr
    try:
        board.submit(0x1001, where).result(timeout=0.05)
    except TimeoutError as error:
        print("given up:", error)
    """
    (tmp_path / "limit.py").write_text(GOOD.format(more=more.strip()))
    with tried(tmp_path / "limit.py") as runner:
        run = runner.run({SCHEDULE: "default"})
    assert (run.code, "given up: Command 0x1001 did not finish within 0.05 s" in run.output) == (0, True), run.output


THREADS = """
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from arm_client import connect

lock, ended = threading.{lock}, queue.Queue()
with connect() as board:
    number, address = board.empty(1, np.int32), board.empty(1, np.uint64)
    address[0] = number.phy_addr

    def work(name):
        for _ in range(2):
            with lock:
                board.call(0x1000, address)
            ended.put(name)
            time.sleep(0.001)

    threads = [threading.Thread(target=work, args=[name]) for name in "ab"]
    for thread in threads:
        thread.start()
    order = [ended.get() for _ in range(4)]
    for thread in threads:
        thread.join()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, "cd"))
    print(order)
    assert number[0] == 8, number
"""


def test_threads_of_a_program_take_turns_too(tried: Callable[..., Runner], tmp_path: Path) -> None:
    (tmp_path / "locked.py").write_text(THREADS.format(lock="RLock()"))
    (tmp_path / "racy.py").write_text(THREADS.format(lock="Semaphore(9)"))
    with tried(tmp_path / "locked.py") as runner:
        found = [run for _, run in runs_of(runner.run_all, 0, 12, {})]
        assert {run.code for run in found} == {0}, [run.output for run in found if run.code]
        assert len({run.output for run in found}) > 1
        again = [run for _, run in runs_of(runner.run_all, 0, 2, {})]
        assert [run.digest for run in again] == [run.digest for run in found[:2]]
    with tried(tmp_path / "racy.py") as runner:
        assert any(run.code for _, run in runs_of(runner.run_all, 0, 60, {}))


def test_threads_that_wait_for_each_other_end_the_run(tried: Callable[..., Runner], tmp_path: Path) -> None:
    more = """
    import threading
    one, other = threading.Lock(), threading.Lock()

    def take(first, second):
        with first:
            address[0] = address[0]
            with second:
                pass

    threads = [threading.Thread(target=take, args=args) for args in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    """
    (tmp_path / "deadlock.py").write_text(GOOD.format(more=more.strip()))
    with tried(tmp_path / "deadlock.py") as runner:
        failed = next(run for _, run in runs_of(runner.run_all, 0, 60, {}) if run.code)
    assert failed.code == 1
    assert "thread1, thread2 wait for each other" in failed.output


def test_a_thread_from_before_is_refused_with_a_sentence(tried: Callable[..., Runner], tmp_path: Path) -> None:
    before = """
import threading
attached = threading.Event()
thread = threading.Thread(target=lambda: attached.wait() and board.call(0x1000, address))
thread.start()
"""
    more = "attached.set()\n    thread.join()"
    (tmp_path / "threads.py").write_text(before + GOOD.format(more=more))
    with tried(tmp_path / "threads.py") as runner:
        run = runner.run({SCHEDULE: "default"})
    assert "threads started from it by Python's threading" in run.output


IN_C = """
#include <string.h>
#include "dsp/hb_dsp.h"

int main(void) {
  hbSysMem number, address;
  hbDSPTask_t tasks[2];
  hbSysAllocMem(&number, 8);
  hbSysAllocMem(&address, 8);
  memcpy(address.virAddr, &number.phyAddr, 8);
  for (int i = 0; i < 2; i++) {
    hbDSPRpcCtrlParam ctrl;
    HB_DSP_INITIALIZE_RPC_CTRL_PARAM(&ctrl);
    ctrl.rpcCmd = 0x1000;
    if (hbDSPRpc(&tasks[i], &address, NULL, &ctrl)) return 9;
  }
  for (int i = 0; i < 2; i++) {
    hbDSPWaitTaskDone(tasks[i], 0);
    hbDSPReleaseTask(tasks[i]);
  }
  int found = *(int *)number.virAddr;
  hbSysFreeMem(&number);
  hbSysFreeMem(&address);
  return found != 2;
}
"""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is here")
def test_a_program_in_c_is_explored(tried: Callable[..., Runner], shell: Shell) -> None:
    (shell.cwd / "program.c").write_text(IN_C)
    shell.good("cc", "-o", "program", "program.c")
    with tried(shell.cwd / "program") as runner:
        runs = runs_of(runner.run_all, 0, 60, {})
        assert next(runs)[1].code == 0
        assert next(run for _, run in runs if run.code).code == 1


def test_the_verb_shows_the_shortest_order_and_a_seed_repeats_it(shell: Shell) -> None:
    shell.environment["HBRT_IMAGE"] = str(RACES / "image.py")
    program = RACES / "lost_update.py"
    answer = shell.hbrt("explore", "--runs", 40, "--json", program)
    assert answer.returncode == 1, answer
    failed = json.loads(answer.stdout)["failed"]
    (preemption,) = failed["preemptions"]
    assert preemption["site"].startswith(str(RACES / "image.py:"))
    assert set(failed["settings"]) == {"HBRT_SCHEDULE"}
    assert "AssertionError: [1]" in shell.hbrt("run", "--seed", failed["seed"], program).stderr
    shell.environment |= failed["settings"]
    assert "AssertionError: [1]" in shell.hbrt("run", "--trace", "run.pftrace", program).stderr
    ops = [one for one in read(shell.cwd / "run.pftrace").slices if one.name == "add_one" and "core" in one.track]
    assert {one.track[-1] for one in ops} == {"0", "1"}


@pytest.mark.long
def test_a_farm_finds_the_same_run_and_leaves_nothing(shell: Shell, tmp_path: Path) -> None:
    shell.environment["HBRT_IMAGE"] = str(RACES / "image.py")
    (files := tmp_path / "files").mkdir()
    shell.environment["TMPDIR"] = str(files)
    arguments, program = ["explore", "--runs", 40, "--json"], RACES / "lost_update.py"
    alone, farmed = shell.hbrt(*arguments, program), shell.hbrt(*arguments, "--farm", "--boards", 2, program)
    assert alone.returncode == farmed.returncode == 1, farmed
    assert json.loads(farmed.stdout) == json.loads(alone.stdout)
    assert list(files.iterdir()) == []
    code, said = shell.refused(*arguments, "--boards", 2, program)
    assert (code, "add --farm" in said) == (2, True), said


def test_a_wrong_schedule_is_a_sentence(shell: Shell) -> None:
    shell.environment["HBRT_SCHEDULE"] = "steps:x"
    answer = shell.python(RACES / "lost_update.py")
    assert answer.returncode == 1
    assert "HBRT_SCHEDULE: 'x' in 'steps:x' is not a preemption" in answer.stderr


def test_a_file_that_cannot_be_executed_is_refused(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "program.sh").write_text("#!/bin/sh\n")
    code, said = shell.refused("explore", tmp_path / "program.sh")
    assert (code, "neither an executable nor a .py file" in said) == (2, True), said
