"""What a trace costs a call: a board that was never traced, and one on which a trace is turned on and off, take turns.

    python -m benchmarks.trace [--rounds N] [--calls N] [--pause-us N]

The numbers are CPU time of the calling thread and of the core's, in microseconds a call: hbDSPRpc, hbDSPWaitTaskDone
and hbDSPReleaseTask of an op that does nothing, in Python, the mailbox in C. With a pause between two calls, each finds
the caches of the CPU cold; that is the dearest case.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path

import click

import arm_client as hb
from arm_client.client import Board
from arm_client.session.session import Session, set_default
from benchmarks._measure import Rounds, private_directory, raise_on_sigterm, table
from hbrt.board.launch import DaemonConfig, launch
from hbrt.board.paths import BoardPaths
from hbrt.control.ask import ask

IMAGE = Path(__file__).with_name("_peers") / "board_image.py"
NEVER, OFF, ON = "never traced", "trace off again", "trace on"
MAX_US = 3.0


def start(name: str, directory: Path, stack: ExitStack) -> Board:
    """A board with one core, and a client of it."""
    launched = launch(DaemonConfig(str(directory / name), str(IMAGE), 1, 256 << 20, is_private=True))
    session = Session(BoardPaths(directory / name))
    session.users = 1
    board = Board(session)

    def end() -> None:
        board.close()
        os.close(launched.lifeline)
        os.waitpid(launched.pid, 0)

    stack.callback(end)
    return board


def turn(board: Board, do: str) -> None:
    """Turn the trace of a board on or off, and wait until its core and this program follow."""
    ask(board.session.link.paths, "trace", do=do, events=1 << 16)
    assert board.session.link.on_asked is not None  # noqa: S101 - of a session that is open
    board.session.link.on_asked()
    time.sleep(0.05)


def cpu_ns(pid: int) -> int:
    """CPU time of a process's main thread."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0])


def calls_us(board: Board, cmd: int, count: int, pause_us: int) -> tuple[float, float]:
    """CPU time of a call, of this thread and of the core's. What a pause itself takes is in each of them."""
    set_default(board.session)
    core = board.status()["cores"][0]["pid"]
    task, ctrl = hb.hbDSPTask_t(), hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = cmd
    block = hb.hbSysMem()
    hb.hbSysAllocMem(block, 64)
    own, of_core = time.thread_time_ns(), cpu_ns(core)
    for _ in range(count):
        hb.hbDSPRpc(task, block, block, ctrl)
        hb.hbDSPWaitTaskDone(task, 0)
        hb.hbDSPReleaseTask(task)
        if pause_us:
            time.sleep(pause_us / 1e6)
    spent = time.thread_time_ns() - own, cpu_ns(core) - of_core
    hb.hbSysFreeMem(block)
    return spent[0] / count / 1000, spent[1] / count / 1000


def measure(rounds: int, count: int, pause_us: int) -> dict[str, tuple[Rounds, Rounds]]:
    """CPU time of a call in each round, in microseconds, by the state of the trace."""
    values: dict[str, list[tuple[float, float]]] = {NEVER: [], OFF: [], ON: []}
    with private_directory() as directory, ExitStack() as stack:
        boards = {name: start(name.replace(" ", "-"), directory, stack) for name in (NEVER, ON)}
        cmd = min(boards[NEVER].ops())
        for number in range(rounds + 1):
            for state, spent in values.items():
                board = boards[NEVER if state == NEVER else ON]
                if board is boards[ON]:
                    turn(board, "on" if state == ON else "off")
                taken = calls_us(board, cmd, count, pause_us)
                if number:  # the first round warms up
                    spent.append(taken)
    return {
        state: (Rounds(tuple(own for own, _ in spent)), Rounds(tuple(core for _, core in spent)))
        for state, spent in values.items()
    }


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=9, show_default=True)
@click.option("--calls", type=click.IntRange(min=1), default=3000, show_default=True, help="In a round.")
@click.option("--pause-us", type=click.IntRange(min=0), default=0, show_default=True, help="Between two calls.")
def main(rounds: int, calls: int, pause_us: int) -> None:
    """Measure what a trace costs a call."""
    raise_on_sigterm()
    os.environ["HBRT_SPIN_US"] = "0"  # a poll is CPU time, too, and each board's programs have their own habit
    found = measure(rounds, calls, pause_us)
    base = found[NEVER]
    rows = [
        (
            state,
            *(f"{side.median:.2f}" for side in sides),
            *(f"{a.ratio_to(b).median:.2f}" for a, b in zip(sides, base, strict=True)),
        )
        for state, sides in found.items()
    ]
    click.echo(table(("a call", "program, µs", "core, µs", "program / never", "core / never"), rows))
    more = [on.less(off).median for on, off in zip(found[ON], found[OFF], strict=True)]
    verdict = "good" if sum(more) <= MAX_US else "missed"
    click.echo(
        f"goal: a trace costs a call at most {MAX_US:g} µs: {sum(more):.2f}, of the program {more[0]:.2f}, of "
        f"the core {more[1]:.2f} ... {verdict}"
    )


if __name__ == "__main__":
    main()
