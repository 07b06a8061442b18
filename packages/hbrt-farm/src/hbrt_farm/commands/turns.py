"""Compare an op of two images over a set of files, on boards side by side: results per item and overall."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from arm_client.commands.op.bench import ratio_of
from arm_client.commands.op.sweep import MeasuredOp, measure
from hbrt_farm.commands.work import input_of
from hbrt_farm.result import MAX_SHOWN

if TYPE_CHECKING:
    from arm_client.client import Board


class Turns(NamedTuple):
    """An item on both boards.

    Attributes:
        new_ns: Median host time of the op in the new image, in nanoseconds.
        old_ns: The same for the old image.
        new_cycles: Modeled cycles of a call with the new image.
        old_cycles: The same with the old image.
        is_same: Whether their outputs are the same bytes.
    """

    new_ns: int
    old_ns: int
    new_cycles: int
    old_cycles: int
    is_same: bool


class TurnsWork:
    """Call an op with a file on the farm's board and, in turns, on a second board with another image.

    Args:
        cmd: Its command number.
        against: The other image.
        output_bytes: Size of the output block; None for the input's size.
        seconds: Time limit of a call.
        repeats: Calls on each board to measure, after one warm-up call.
    """

    def __init__(self, cmd: int, against: Path, output_bytes: int | None, seconds: float, repeats: int) -> None:
        self._cmd, self._against = cmd, str(against.absolute())
        self._output_bytes, self._seconds, self._repeats = output_bytes, seconds, repeats
        self._stack: ExitStack | None = None
        self._beside: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_stack": None, "_beside": None}

    def __call__(self, board: Board, item: str) -> Turns:
        """Call it for a file."""
        data = input_of(item)
        size_bytes = data.nbytes if self._output_bytes is None else self._output_bytes
        ops = [
            MeasuredOp(one, self._cmd, one.from_array(data), one.empty(size_bytes, np.uint8))
            for one in (board, self._other())
        ]
        measure(ops, self._repeats, self._seconds)
        new, old = ops
        return Turns(
            int(np.median(new.host_ns)),
            int(np.median(old.host_ns)),
            new.task.cycles,
            old.task.cycles,
            bool(np.array_equal(new.output, old.output)),
        )

    def _other(self) -> Board:
        """The second board; a new one if it has died."""
        from arm_client.client import private_board

        if self._stack is not None and self._beside.session.link.is_lost():
            self.close()
        if self._stack is None:
            self._stack = ExitStack()
            self._beside = self._stack.enter_context(private_board(self._against))
            self._beside.session.is_silent = True
        board: Board = self._beside
        return board

    def close(self) -> None:
        """End the second board."""
        if self._stack is not None:
            self._stack.close()
            self._stack = self._beside = None


def compared_set(turns: Sequence[tuple[str, Turns]]) -> dict[str, Any]:
    """The result over all items of a set: one pair of medians per item, so that each item counts once.

    Args:
        turns: Names of items, one or more, and their results.
    """
    found = [one for _, one in turns]
    ratio = ratio_of([one.new_ns for one in found], [one.old_ns for one in found])
    old_cycles = sum(one.old_cycles for one in found)
    other = [name for name, one in turns if not one.is_same]
    return {
        "host_ratio": {**ratio._asdict(), "verdict": ratio.verdict},
        "modeled_ratio": sum(one.new_cycles for one in found) / old_cycles if old_cycles else None,
        "other_outputs": len(other),
        "first_of_them": other[:MAX_SHOWN],
    }
