"""A board's sample as lines and tables: for ``hbrt top``, its screen, and the page of ``hbrt web``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dsp_server.commands.status import clients_of
from dsp_server.commands.top.sample import SORTS, Sample
from hbrt.cli.tables import (
    Column,
    Table,
    Time,
    command_of,
    core_name,
    modeled_time,
    number,
    numbers,
    overlapped,
    shares,
    short_time,
    state,
    task_name,
)
from hbrt.settings import format_size

FAR_BEYOND: Final = 100
"""A running op that has taken this many times its command's median stands out."""
MAX_UNKNOWN_S: Final = 10
"""An op of a command without a known median stands out after this many seconds."""
BAR_CELLS: Final = 10
_LAST = (
    *numbers("CORE"),
    Column("LAST OP", lambda one: one["name"] or task_name(one)),
    number("MODELED", modeled_time),
    number("DMA", overlapped),
    Column("OF IT", shares),
)
_COMMANDS = (
    number("COMMAND", command_of),
    Column("OP", lambda one: one["name"] or None),
    number("CALLS/S", lambda one: f"{one['calls_per_s']:,.0f}"),
    number("WAITED P50", lambda one: Time(one["waited_p50_ns"])),
    number("P99", lambda one: Time(one["waited_p99_ns"])),
    number("RAN P50", lambda one: Time(one["ran_p50_ns"])),
    number("P99", lambda one: Time(one["ran_p99_ns"])),
    *numbers("FAILED"),
)


def parts_of(sample: Sample, sort: str = "c", far: Mapping[int, str] | None = None) -> Iterator[str | Table]:
    """Yield the board, then its cores, commands and programs.

    Args:
        sample: The sample.
        sort: The key in SORTS by which the commands are sorted.
        far: For each core whose op is taking far longer than usual, the limit that it has passed.
    """
    memory = sample.memory
    waiting = ", ".join(f"{one['tasks']} of priority {one['priority']}" for one in sample.waiting) or "none"
    yield f"Board {sample.board}: {sample.calls_per_s:,.0f} tasks/s; {sample.running} running, {sample.ready} ready."
    yield f"Memory: {format_size(memory['used_bytes'])} of {format_size(memory['size_bytes'])}. Waiting: {waiting}."
    yield f"Waiting longest: {_oldest(sample)}."
    yield ""
    yield Table(
        (
            number("CORE", core_name),
            state("STATE"),
            state("HEALTH"),
            Column("BUSY", lambda core: bar(core["busy"])),
            number("TASKS/S", lambda core: f"{core['tasks_per_s']:,.0f}"),
            Column("RUNS", lambda core: _runs(core, (far or {}).get(core["core"]))),
        ),
        sample.cores,
    )
    yield ""
    for core in sample.cores:  # each character stands for 2 KiB
        yield from (f"TCM {core['core']}, bank {bank}: {used}" for bank, used in enumerate(core["tcm"]))
    yield ""
    yield Table(_LAST, [{**core["last"], "core": core["core"]} for core in sample.cores if core["last"]])
    yield ""
    yield commands_of(sample, sort)
    yield ""
    yield clients_of(sample.programs)
    yield ""
    yield "Times are measured here, except MODELED and DMA."


def commands_of(sample: Sample, sort: str = "c") -> Table:
    """List the commands whose tasks ended; for ``sort`` see ``parts_of``."""
    rows = sorted(sample.commands, key=lambda one: one[SORTS[sort]], reverse=True)
    return Table(_COMMANDS, rows, "No tasks ended in this interval.")


def waiting_of(sample: Sample) -> Table:
    """List how many tasks are waiting, by priority."""
    return Table(numbers("PRIORITY", "TASKS"), sample.waiting, "No tasks are waiting.")


def bar(share: float) -> str:
    """Draw a share, 0 to 1, as a bar and a number."""
    filled = round(share * BAR_CELLS)
    return f"{'█' * filled}{'░' * (BAR_CELLS - filled)} {share:4.0%}"


def _runs(core: dict[str, Any], limit: str | None) -> str:
    runs = core["runs"]
    if not runs:
        return "-"
    text = f"{runs['name'] or task_name(runs)} for {short_time(runs['age_s'] * 1e9)}"
    return f"{text} << over {limit}" if limit else text


def _oldest(sample: Sample) -> str:
    oldest = sample.oldest_waiting
    if oldest is None:
        return "nothing"
    age = short_time(oldest["age_s"] * 1e9)
    return f"{task_name(oldest)}, priority {oldest['priority']}, of client {oldest['client']}, for {age}"
