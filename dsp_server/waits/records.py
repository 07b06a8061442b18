"""A board's state at one moment, as plain records: the daemon's answer to ``why``."""

from __future__ import annotations

from typing import Any, NamedTuple

from hbrt.protocol.stacks import Frame, Wait


class Program(NamedTuple):
    """An attached client.

    Attributes:
        id: Client id.
        pid: Its process id.
        name: Its name on the board.
        hop: What carries its tasks, such as a relay; empty for programs on this machine. See ``with_hops``.
        is_stopped: Whether a signal or a debugger has stopped its process.
        is_asleep: Whether one of its threads sleeps on its doorbell.
        waits: Its threads that wait for the board; None if it did not answer.
        cores: Cores whose op is this process or its ancestor.
    """

    id: int
    pid: int
    name: str
    hop: str
    is_stopped: bool
    is_asleep: bool
    waits: tuple[Wait, ...] | None
    cores: tuple[int, ...]


class Task(NamedTuple):
    """A task that has not finished.

    Attributes:
        task: Its slot, which is the lower bits of its handle.
        sequence: Identifies the task in the slot.
        state: "sent", "ready", "running", "inline" (its program runs it itself), or "elsewhere" (on another board).
        op: Name of its op, such as "softmax, command 0x400".
        owner: Client id of its program.
        core_mask: Mask of cores that may run it; 0 for any.
        order: Its key in the schedule: priority (negative), custom id, sequence.
        age_s: Time since its submission.
        core: The core that runs it; -1 for none.
        ran_s: How long the core has been running it.
        limit_s: When the watchdog ends it; 0 for never.
        output: Physical address and size of its output block.
    """

    task: int
    sequence: int
    state: str
    op: str
    owner: int
    core_mask: int
    order: tuple[int, int, int]
    age_s: float
    core: int
    ran_s: float
    limit_s: float
    output: tuple[int, int]


class Flag(NamedTuple):
    """The memory in the DDR that an op's loop polls while the op makes no progress.

    Attributes:
        phy_addr: Address of its first byte.
        size_bytes: Number of bytes.
        value: These bytes as hexadecimal digits, in address order; empty if there are many.
        block: Physical address of the block that contains it.
        block_bytes: Size of that block.
        users: Client ids of the programs that have the block.
    """

    phy_addr: int
    size_bytes: int
    value: str
    block: int
    block_bytes: int
    users: tuple[int, ...]


class Core(NamedTuple):
    """A core.

    Attributes:
        core: Its index.
        pid: Its process id; 0 for none.
        state: offline, running or crashed.
        health: As in ``hbrt status``.
        problem: A sentence about it if it is not healthy.
        comes_back: Whether it restarts automatically.
        is_stopped: Whether a signal or a debugger has stopped its process.
        silent_s: Time since its last heartbeat; 0 if it is not running.
        still_s: How long its op has made no progress.
        stack: Its op's stack, innermost frame first; empty if it did not answer, or runs no op.
        dma_handle: iDMA handle that its op polls; 0 for none.
        dma_outstanding: Number of outstanding iDMA descriptors.
        flag: The memory that its op polls; None if unknown.
    """

    core: int
    pid: int
    state: str
    health: str
    problem: str
    comes_back: bool
    is_stopped: bool
    silent_s: float
    still_s: float
    stack: tuple[Frame, ...]
    dma_handle: int
    dma_outstanding: int
    flag: Flag | None


class Lock(NamedTuple):
    """The claim lock while it is held.

    Attributes:
        holder: A clause such as "process 7 (arm.py), which is stopped, by a signal (SIGSTOP) or a debugger".
        advice: What to do about it.
        pid: The holder's process id; 0 if it is gone.
        is_kept: Whether its holder cannot, or does not, release it.
    """

    holder: str
    advice: str
    pid: int
    is_kept: bool


class Records(NamedTuple):
    """A board at one moment; ``relay_pid`` is its relay's process id, 0 for none."""

    programs: tuple[Program, ...]
    tasks: tuple[Task, ...]
    cores: tuple[Core, ...]
    lock: Lock | None
    relay_pid: int
    relay_is_stopped: bool

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain data, for a message and for ``--json``."""
        return {
            "programs": [
                {
                    **one._asdict(),
                    "waits": None
                    if one.waits is None
                    else [
                        {"task": wait.slot, "stack": [frame._asdict() for frame in wait.stack], "lock": wait.lock}
                        for wait in one.waits
                    ],
                }
                for one in self.programs
            ],
            "tasks": [one._asdict() for one in self.tasks],
            "cores": [
                {
                    **one._asdict(),
                    "stack": [frame._asdict() for frame in one.stack],
                    "flag": None if one.flag is None else one.flag._asdict(),
                }
                for one in self.cores
            ],
            "claim_lock": None if self.lock is None else self.lock._asdict(),
            "relay_pid": self.relay_pid,
            "relay_is_stopped": self.relay_is_stopped,
        }


def with_hops(records: Records, relay: str) -> Records:
    """Return records that name the relay of each program on another machine: a client of the relay's own process.

    Args:
        records: A board's records.
        relay: Name of a relay's own client on a board.
    """
    carriers = {one.pid for one in records.programs if one.name == relay}
    programs = (
        one._replace(hop=f"the relay of process {one.pid}") if one.pid in carriers and one.name != relay else one
        for one in records.programs
    )
    return records._replace(programs=tuple(programs))


def records_of(data: dict[str, Any]) -> Records:
    """Make records from the plain data of ``Records.as_dict``."""
    return Records(
        tuple(
            Program(**{**one, "waits": _waits(one["waits"]), "cores": tuple(one["cores"])}) for one in data["programs"]
        ),
        tuple(Task(**{**one, "order": tuple(one["order"]), "output": tuple(one["output"])}) for one in data["tasks"]),
        tuple(Core(**{**one, "stack": _stack(one["stack"]), "flag": _flag(one["flag"])}) for one in data["cores"]),
        None if data["claim_lock"] is None else Lock(**data["claim_lock"]),
        data["relay_pid"],
        data["relay_is_stopped"],
    )


def _waits(data: list[dict[str, Any]] | None) -> tuple[Wait, ...] | None:
    return None if data is None else tuple(Wait(one["task"], _stack(one["stack"]), one["lock"]) for one in data)


def _flag(data: dict[str, Any] | None) -> Flag | None:
    return None if data is None else Flag(**{**data, "users": tuple(data["users"])})


def _stack(data: list[dict[str, Any]]) -> tuple[Frame, ...]:
    return tuple(Frame(**frame) for frame in data)
