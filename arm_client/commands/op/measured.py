"""What calls of an op take on boards side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arm_client.client import Board
    from arm_client.future import Task


class MeasuredOp:
    """An op on a board, with its blocks.

    Args:
        board: Where it is registered.
        cmd: Its command.
        block: Its input block.
        output: Its output block.
        keep: What the input block refers to.

    Attributes:
        host_ns: Host time in the op of each call, in nanoseconds.
        task: Of the last call.
    """

    task: Task

    def __init__(self, board: Board, cmd: int, block: Any, output: Any, keep: object = None) -> None:
        self.board, self.cmd, self.block, self.output, self._keep = board, cmd, block, output, keep
        self.host_ns: list[int] = []

    def call(self, timeout_s: float) -> None:
        """Call it, and wait for its end."""
        self.task = task = self.board.submit(self.cmd, self.block, self.output)
        task.result(timeout_s)
        self.host_ns.append(task.duration_ns)


def measure(ops: Sequence[MeasuredOp], repeats: int, timeout_s: float) -> None:
    """Call each op a number of times, after one call that warms it up and is not in ``host_ns``.

    They take turns, call by call, so that a machine that becomes slower or faster meanwhile does so for all: the calls
    of one number are neighbors. The first turn is taken in turns as well.

    Args:
        ops: On boards of their own.
        repeats: Calls of each that are measured.
        timeout_s: Of a call.

    Raises:
        HbrtError: an op failed.
    """
    for run in range(repeats + 1):
        for op in ops if run % 2 else reversed(ops):
            op.call(timeout_s)
    for op in ops:
        del op.host_ns[0]
