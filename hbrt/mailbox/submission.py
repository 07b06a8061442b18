"""The conditions of a submission, the same for a program, a relay and a gateway. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from hbrt.mailbox.table import PRIORITY_PREEMPT, RPC_ALIGNMENT
from hbrt.status import Status

if TYPE_CHECKING:
    from hbrt.ddr.file import Ddr
    from hbrt.mailbox.table import Request

MAX_PRIORITY: Final = PRIORITY_PREEMPT
MAX_CMD: Final = 0xFFFF

Refusal: TypeAlias = tuple[int, str]
"""A status, and a message with the reason."""

_UNSERVED: Final[Refusal] = (
    Status.HB_DSP_NOT_RUNNING,
    "None of the cores that may run the task is running; see 'hbrt status', then 'hbrt restart'.",
)
_NO_CORE: Final[Refusal] = (
    Status.HB_DSP_INVALID_CORE,
    (
        "This board has no DSP core: its profile only has cores for models, see 'hbrt status'. Start a board with a "
        "profile that has DSP cores, such as 'hbrt start --profile j5'."
    ),
)


def unserved(core_count: int) -> Refusal:
    """Return the refusal of a task that none of the board's cores can run now."""
    return _UNSERVED if core_count else _NO_CORE


def refusal(core_count: int, request: Request, of_block: Callable[[str, int, int], Refusal | None]) -> Refusal | None:
    """Return why a task is refused, None if it is valid.

    Args:
        core_count: Number of cores of the board.
        request: The task.
        of_block: ``block_refusal`` of the board's memory and the client that submits the task.
    """
    return (
        number_refusal(core_count, request)
        or of_block("input", request.input_phy, request.input_bytes)
        or of_block("output", request.output_phy, request.output_bytes)
    )


def number_refusal(core_count: int, request: Request) -> Refusal | None:
    """Return why a task is refused for its core mask, priority, command or customId; None if they are valid."""
    if not core_count:
        return _NO_CORE
    if not 0 <= request.core_mask < 1 << core_count:
        return (
            Status.HB_DSP_INVALID_CORE,
            (
                f"dspCoreId is {request.core_mask}; this board has {core_count} core{'s' * (core_count > 1)}: use 0 "
                f"for any, or the sum of "
                f"{', '.join(f'{1 << core} (core {core})' for core in range(core_count))}."
            ),
        )
    if not 0 <= request.priority <= MAX_PRIORITY:
        return (
            Status.HB_DSP_INVALID_PRIORITY,
            f"The priority is {request.priority}, but must be 0 to {MAX_PRIORITY}.",
        )
    if not 0 <= request.cmd <= MAX_CMD:
        return (
            Status.HB_DSP_INVALID_ARGUMENT,
            f"rpcCmd is {request.cmd:#x}, but must be 0x0 to {MAX_CMD:#x}.",
        )
    if not -(1 << 63) <= request.custom_id < 1 << 63:
        return (
            Status.HB_DSP_INVALID_ARGUMENT,
            f"The custom_id is {request.custom_id}, but must be a signed 64-bit integer.",
        )
    return None


def block_refusal(ddr: Ddr, client: int, what: str, phy_addr: int, size_bytes: int) -> Refusal | None:
    """Return why a task is refused for one of its blocks, None if the block is valid.

    Args:
        ddr: The board's memory.
        client: Id of the client that submits the task.
        what: "input" or "output".
        phy_addr: Address of the block; 0 with 0 bytes means no block, which is valid.
        size_bytes: Its size.
    """
    if not phy_addr and not size_bytes:
        return None
    found = ddr.refusal(phy_addr, size_bytes, client, RPC_ALIGNMENT)
    return None if found is None else (found[0], f"The {what} block: {found[1]}")
