"""``hbrt why``: who waits for whom on a board, and what hangs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click

from dsp_server.clients import RELAY
from dsp_server.waits.graph import NodeKind, cycles
from dsp_server.waits.records import records_of, with_hops
from dsp_server.waits.sentences import Chain, Look, Verdict, chains, cycle_sentences, look_of, name_of
from hbrt.board.paths import BoardPaths
from hbrt.cli.exits import Exit
from hbrt.cli.options import board_option
from hbrt.cli.report import Report, reports, watched
from hbrt.control.ask import Daemon
from hbrt.mailbox.handle import slot_of
from hbrt.protocol.stacks import Frame

BETWEEN_SECONDS = 0.3
"""Time between the two checks: more than three heartbeats of a core."""


@click.command(epilog="Example: hbrt why 19")
@board_option
@click.argument("task", required=False, metavar="[TASK]")
@watched
@reports
def command(board: BoardPaths, task: str | None) -> Report:
    """Say who waits for whom: programs, tasks, queues, cores, iDMA handles, flags and locks, one sentence per wait.

    A waiting program is shown with its line, an op with its line and stack. The board is checked twice: whatever
    changed in between is still moving, so it does not hang.

    TASK is a number that this verb shows, or a task handle; without it, all waits are shown. The exit code is 0 even
    if something hangs ('hbrt status' has an exit code for scripts), and 1 for an unknown TASK.
    """
    wanted = None if task is None else _slot(task)
    found, now, data = look(board, wanted)
    code = Exit.GOOD if found or task is None else Exit.FAILED
    return Report(document(board, found, now, data), *_lines(found, now, task), code=code)


def look(board: BoardPaths, wanted: int | None = None) -> tuple[list[Chain], Look, Any]:
    """Find who waits for whom: the chains of all waits, or of one slot; the board's state, and its records."""
    with Daemon(board) as daemon:
        before = _look(daemon)
        time.sleep(BETWEEN_SECONDS)
        data = daemon.request("why")
    now = look_of(with_hops(records_of(data), RELAY))
    return chains(before, now, wanted), now, data


def document(board: BoardPaths, found: list[Chain], now: Look, data: Any) -> dict[str, Any]:
    """Convert what ``look`` has found to a document for ``--json``."""
    circles = [[{"kind": str(kind), "number": number} for kind, number in path] for path in cycles(now.graph)]
    return {
        "board": board.name,
        "chains": [_as_dict(chain) for chain in found],
        "cycles": circles,
        "records": data,
    }


def _slot(task: str) -> int:
    try:
        return slot_of(int(task, 0))
    except ValueError:
        raise click.BadParameter(f"{task!r} is not a number; use one that 'hbrt why' shows, or a handle.") from None


def _look(daemon: Daemon) -> Look:
    return look_of(with_hops(records_of(daemon.request("why")), RELAY))


def _lines(found: list[Chain], now: Look, task: str | None) -> Iterator[object]:
    if not found and task is None:
        yield "No tasks are queued or running."
    elif not found:
        yield f"Unknown task {task}: neither queued nor running. 'hbrt tasks' lists ended tasks."
    shown: set[tuple[NodeKind, int]] = set()
    for chain in found:
        yield chain.text
        for step in chain.steps:
            if step.node not in shown:
                shown.add(step.node)
                if stack := _stack_of(now, chain, *step.node):
                    yield f"Stack of {name_of(step.node)}, innermost call first:"
                    yield from stack
        yield ""
    circles = cycle_sentences(now)
    yield from circles
    lock = now.board.records.lock
    if lock is not None and lock.is_kept and not any(kind is NodeKind.LOCK for kind, _ in shown):
        yield (f"The claim lock is held by {lock.holder}: no core can claim tasks. {lock.advice}")
    hang = sum(chain.verdict is Verdict.HANGS for chain in found)
    if hang or (found and not circles):
        yield f"{hang} of {len(found)} hang." if hang else "Nothing is known to hang."


def _stack_of(now: Look, chain: Chain, kind: NodeKind, number: int) -> tuple[Frame, ...]:
    """The stack of an op, or of the thread of a program that waits for the chain's task."""
    if kind is NodeKind.CORE:
        return now.board.cores[number].stack
    if kind is NodeKind.PROGRAM:
        waits = now.board.programs[number].waits or ()
        return next((wait.stack for wait in waits if wait.slot in {chain.task, -1}), ())
    return ()


def _as_dict(chain: Chain) -> dict[str, Any]:
    return {
        "program": chain.program,
        "task": chain.task,
        "verdict": str(chain.verdict),
        "text": chain.text,
        "steps": [{"kind": str(step.node.kind), "number": step.node.number, "text": step.text} for step in chain.steps],
    }
