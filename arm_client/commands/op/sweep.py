"""An op over a range of sizes: what each call takes here, measured, and what it charges, for the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hbrt.profiles.estimate import Call

if TYPE_CHECKING:
    from arm_client.client import Board

Params = Callable[[Any, Any], Any]


class Sample(NamedTuple):
    """An op at one size: host nanoseconds in the op of each run, and the call as the model has it."""

    elements: int
    host_ns: list[int]
    call: Call


def sweep(
    board: Board,
    cmd: int,
    params: Params,
    sizes: Sequence[int],
    dtypes: tuple[np.dtype[Any], np.dtype[Any]],
    repeats: int,
    timeout_s: float,
) -> list[Sample]:
    """Call an op with arrays of each size, a number of times after one that warms up.

    Args:
        board: Where it is registered.
        cmd: Its command.
        params: Makes the input block of the input and the output array.
        sizes: Elements of the arrays.
        dtypes: Of the input and of the output.
        repeats: Calls of a size that are measured.
        timeout_s: Of a call.

    Raises:
        HbrtError: the op failed.
    """
    name = board.ops().get(cmd, "")
    random, samples = np.random.default_rng(0), []
    for elements in sizes:
        data = board.from_array((random.random(elements) * 100).astype(dtypes[0]))
        output = board.empty(elements, dtypes[1])
        block = params(data, output)
        host_ns, call = [], None
        for _ in range(repeats + 1):
            task = board.submit(cmd, block, output)
            task.result(timeout_s)
            host_ns.append(task.duration_ns)
            blocks = (_size_of(block), output.nbytes)
            buffers = 2 + bool(task.work.mapped_bytes)
            call = Call(cmd, name, task.cycles, task.work, sum(blocks), buffers)
        assert call is not None  # noqa: S101 - there is at least the call that warms up
        samples.append(Sample(elements, host_ns[1:], call))
    return samples


def _size_of(block: Any) -> int:
    return int(block.nbytes) if hasattr(block, "nbytes") else len(memoryview(block).cast("B"))


def to_sizes(text: str) -> list[int]:
    """Sizes of ``1K,10K,1M`` or, each twice the one before, of ``1K-1M``; in elements.

    Raises:
        ValueError: it is no such list; says what one is.
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
        raise ValueError(f"{text!r} is no list of sizes; write elements as in 1K,64K,1M, or 1K-1M.") from None
    return sorted(set(found))
