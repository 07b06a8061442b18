"""``hbrt why``: who waits for whom on a board, and what hangs."""

from __future__ import annotations

import time
from typing import Any

import click

from dsp_server.clients import RELAY
from dsp_server.waits.graph import NodeKind, cycles
from dsp_server.waits.records import records_of, with_hops
from dsp_server.waits.sentences import Chain, Look, Verdict, chains, cycle_sentences, look_of, name_of
from hbrt.board.paths import BoardPaths
from hbrt.cli.exits import Exit
from hbrt.cli.options import board_option, json_option
from hbrt.cli.tables import show_json, show_text
from hbrt.control.daemon import Daemon
from hbrt.mailbox.handle import slot_of
from hbrt.protocol.stacks import Frame

BETWEEN_SECONDS = 0.3
"""From one look to the next: more than three heartbeats of a core."""


@click.command(
    short_help="Say who waits for whom on a board, and what hangs.",
    epilog="Example: hbrt why 19",
)
@board_option
@click.argument("task", required=False, metavar="[TASK]")
@json_option
def command(board: BoardPaths, task: str | None, *, as_json: bool) -> None:
    """Say who waits for whom: programs, tasks, queues, cores, iDMA handles, flags and locks, each wait in a sentence.

    A program that waits tells its line, an op its line and its stack. The board is checked twice: what differs is
    still moving, and does not hang.

    TASK is a number that this verb shows, or a task handle; without it, all waits are shown. The exit code is 0 even
    if something hangs ('hbrt status' has an exit code for scripts), and 1 for an unknown TASK.
    """
    wanted = None if task is None else _slot(task)
    found, now, data = look(board, wanted)
    if as_json:
        show_json(document(board, found, now, data))
    else:
        _show(found, now, task)
    if task is not None and not found:
        raise click.exceptions.Exit(Exit.FAILED)


def look(board: BoardPaths, wanted: int | None = None) -> tuple[list[Chain], Look, Any]:
    """Who waits for whom: the chains of all waits, or of one slot; the board as it is, and its records."""
    with Daemon(board) as daemon:
        before = _look(daemon)
        time.sleep(BETWEEN_SECONDS)
        data = daemon.request("why")
    now = look_of(with_hops(records_of(data), RELAY))
    return chains(before, now, wanted), now, data


def document(board: BoardPaths, found: list[Chain], now: Look, data: Any) -> dict[str, Any]:
    """What ``look`` has found, for ``--json``."""
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
        raise click.BadParameter(f"{task!r} is not a number; write one that 'hbrt why' shows, or a handle.") from None


def _look(daemon: Daemon) -> Look:
    return look_of(with_hops(records_of(daemon.request("why")), RELAY))


def _show(found: list[Chain], now: Look, task: str | None) -> None:
    if not found:
        show_text(
            "No task is queued or running."
            if task is None
            else f"Unknown task {task}: neither queued nor running. 'hbrt tasks' lists ended tasks."
        )
    shown: set[tuple[NodeKind, int]] = set()
    for chain in found:
        show_text(chain.text)
        for step in chain.steps:
            if step.node not in shown:
                shown.add(step.node)
                _show_stack(name_of(step.node), _stack_of(now, chain, *step.node))
        show_text()
    circles = cycle_sentences(now)
    for sentence in circles:
        show_text(sentence)
    lock = now.board.records.lock
    if lock is not None and lock.is_kept and not any(kind is NodeKind.LOCK for kind, _ in shown):
        show_text(f"The claim lock is held by {lock.holder}: no core claims a task. {lock.advice}")
    hang = sum(chain.verdict is Verdict.HANGS for chain in found)
    if hang or (found and not circles):
        show_text(f"{hang} of {len(found)} hang." if hang else "Nothing is known to hang.")


def _stack_of(now: Look, chain: Chain, kind: NodeKind, number: int) -> tuple[Frame, ...]:
    """The stack of an op, or of a program's thread that waits for the chain's task."""
    if kind is NodeKind.CORE:
        return now.board.cores[number].stack
    if kind is NodeKind.PROGRAM:
        waits = now.board.programs[number].waits or ()
        return next((wait.stack for wait in waits if wait.slot in {chain.task, -1}), ())
    return ()


def _show_stack(whose: str, stack: tuple[Frame, ...]) -> None:
    if stack:
        show_text(f"Stack of {whose}, the innermost call first:")
    for frame in stack:
        show_text(frame)


def _as_dict(chain: Chain) -> dict[str, Any]:
    return {
        "program": chain.program,
        "task": chain.task,
        "verdict": str(chain.verdict),
        "text": chain.text,
        "steps": [{"kind": str(step.node.kind), "number": step.node.number, "text": step.text} for step in chain.steps],
    }
