"""An op over a range of sizes: each call's measured time here, and its charges for the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hbrt.profiles.estimate import Call

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from arm_client.client import Board
    from arm_client.future import Task


class MeasuredOp:
    """An op on a board, with its blocks.

    Args:
        board: Where it is registered.
        cmd: Its command.
        block: Its input block.
        output: Its output block.
        keep: Objects that the input block refers to.

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

    They take turns, call by call, so that a change in the machine's speed affects all of them: calls with the same
    index are neighbors. The first turn is taken in turns as well.

    Args:
        ops: On boards of their own.
        repeats: Number of measured calls of each.
        timeout_s: Of a call.

    Raises:
        HbrtError: an op failed.
    """
    for run in range(repeats + 1):
        for op in ops if run % 2 else reversed(ops):
            op.call(timeout_s)
    for op in ops:
        del op.host_ns[0]


Params = Callable[[Any, Any], Any]


class Sample(NamedTuple):
    """An op at one size: host nanoseconds in the op of each run, and the modeled time of the call."""

    elements: int
    host_ns: list[int]
    call: Call


def sweep(
    boards: Sequence[Board],
    cmd: int,
    params: Params,
    sizes: Sequence[int],
    dtypes: tuple[np.dtype[Any], np.dtype[Any]],
    repeats: int,
    timeout_s: float,
) -> list[list[Sample]]:
    """Call an op with arrays of each size, a number of times after one that warms up; several boards take turns.

    Args:
        boards: Where it is registered.
        cmd: Its command.
        params: Makes the input block of the input and the output array.
        sizes: Elements of the arrays.
        dtypes: Of the input and of the output.
        repeats: Number of measured calls per size.
        timeout_s: Of a call.

    Returns:
        For each board its samples.

    Raises:
        HbrtError: the op failed.
    """
    samples: list[list[Sample]] = [[] for _ in boards]
    for elements in sizes:
        data = (np.random.default_rng(elements).random(elements) * 100).astype(dtypes[0])
        ops = [_op(board, cmd, params, data, dtypes[1]) for board in boards]
        measure(ops, repeats, timeout_s)
        for of_board, op in zip(samples, ops, strict=True):
            of_board.append(_sample(op, elements))
    return samples


def _op(board: Board, cmd: int, params: Params, data: NDArray[Any], output_dtype: np.dtype[Any]) -> MeasuredOp:
    given, output = board.from_array(data), board.empty(data.size, output_dtype)
    return MeasuredOp(board, cmd, params(given, output), output, keep=given)


def _sample(op: MeasuredOp, elements: int) -> Sample:
    work, size_bytes = op.task.work, _size_of(op.block) + op.output.nbytes
    name = op.board.ops().get(op.cmd, "")
    call = Call(op.cmd, name, op.task.cycles, work, size_bytes, 2 + bool(work.mapped_bytes))
    return Sample(elements, op.host_ns, call)


def _size_of(block: Any) -> int:
    return int(block.nbytes) if hasattr(block, "nbytes") else len(memoryview(block).cast("B"))


def to_sizes(text: str) -> list[int]:
    """Sizes in elements from ``1K,10K,1M`` or, doubling each time, from ``1K-1M``.

    Raises:
        ValueError: it is not such a list; describes the syntax.
    """
    from hbrt.settings import BadSettingError, parse_size

    try:
        if "-" in text:
            low, high = (parse_size(part, "size") for part in text.split("-"))
            found = [low]
            while found[-1] * 2 <= high:
                found.append(found[-1] * 2)
        else:
            found = [parse_size(part, "size") for part in text.split(",")]
    except (BadSettingError, ValueError):
        raise ValueError(f"Invalid sizes {text!r}: expected elements, as in 1K,64K,1M or 1K-1M.") from None
    return sorted(set(found))
