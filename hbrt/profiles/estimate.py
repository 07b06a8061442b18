"""Estimates of calls on the board under a profile: each call, the total, and the effect of assumed constants. Pure.

A call is described by its op's charges under the profile that it ran with; under another one, each part scales with the
constants used to charge it. Instruction slots, queue depth and TCM sizes change what an op does: only a new run shows
their effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hbrt.profiles.profile import Profile
from hbrt.profiles.timeline import Job, makespan
from hbrt.profiles.work import Cost, Work, task_cost

OF_ANOTHER_RUN: Final = ("tcm.", "idma.queue_depth", "vector.bits", "vector.slots", "_slots")
"""Key parts of constants whose effect only a new run of an op shows."""
ONE: Final = (1.0, 1.0)
MODELS: Final = "models"
"""In a spread, next to the constants: the possible error of model times."""


FIT: Final = "errors of the fit"
"""In a spread, instead of the constants: the possible error of a profile fitted to a board's times."""


class Call(NamedTuple):
    """A task of the history: its op and its charges, its blocks, and its submission and end times here.

    ``model_us`` is the modeled time of a model run, on a core for models; 0 for an op.
    """

    cmd: int
    name: str
    charged: int
    work: Work
    block_bytes: int
    buffers: int
    submitted_ns: int = 0
    ended_ns: int = 0
    is_done: bool = True
    model_us: float = 0.0

    @property
    def size_bytes(self) -> int:
        """Total bytes of its blocks and mappings."""
        return self.block_bytes + self.work.mapped_bytes


class Parts(NamedTuple):
    """Modeled microseconds of a call on the board."""

    rpc: float
    vector: float
    scalar: float
    ddr: float
    wait: float
    model: float = 0.0

    @property
    def total(self) -> float:
        """Total time."""
        return sum(self)

    @property
    def op(self) -> float:
        """Time on the core."""
        return self.total - self.rpc


class Spread(NamedTuple):
    """How far one assumed constant shifts a time, in microseconds: at its lowest and highest value."""

    key: str
    at_low: float
    at_high: float

    @property
    def width(self) -> float:
        """The difference between the two."""
        return abs(self.at_high - self.at_low)


class Range(NamedTuple):
    """A time in microseconds: as modeled, and with all assumed constants at their best and worst."""

    low: float
    value: float
    high: float
    spread: tuple[Spread, ...]

    def share(self, one: Spread) -> float:
        """A constant's share of the total spread."""
        whole = sum(each.width for each in self.spread)
        return one.width / whole if whole else 0.0


def calls_of(rows: Iterable[Mapping[str, Any]]) -> list[Call]:
    """Return the successful calls of ops and models from the answer to the daemon's verb ``tasks``."""
    return [
        _call_of(row)
        for row in rows
        if row["state"] == "done" and row["name" if row["kind"] == "dsp" else "modeled_ns"]
    ]


def _call_of(row: Mapping[str, Any]) -> Call:
    if row["kind"] != "dsp":
        work, model_us = Work(**row["work"]), row["modeled_ns"] / 1000
        name = row["name"] or "model"
        return Call(row["cmd"], name, 0, work, 0, 0, row["submitted_ns"], row["ended_ns"], model_us=model_us)
    block_bytes = row["input_bytes"] + row["output_bytes"]
    buffers = bool(row["input_bytes"]) + bool(row["output_bytes"]) + bool(row["work"]["mapped_bytes"])
    charged = 0 if row["modeled_is_estimated"] else row["modeled_cycles"]
    return Call(
        row["cmd"],
        row["name"],
        charged,
        Work(**row["work"]),
        block_bytes,
        buffers,
        row["submitted_ns"],
        row["ended_ns"],
    )


def op_cost(call: Call, base: Profile, other: Profile) -> Cost:
    """Return the cycles of an op under a profile other than the one it ran with."""
    known = task_cost(call.charged, call.work, call.block_bytes, base, is_done=call.is_done)
    if base is other:
        return known
    work = call.work
    fresh = task_cost(0, work, call.block_bytes, other, is_done=known.is_estimated)
    vector = float(fresh.vector)
    if not known.is_estimated:
        vector = known.vector * _ratio(_vector_cycles(work, other), _vector_cycles(work, base))
    compute = round(vector) + fresh.scalar + fresh.ddr
    dma = round(known.dma * _ratio(_dma_cycles(work, other), _dma_cycles(work, base)))
    wait = _wait(known, compute, dma)
    overlap = max(0, dma - wait)
    return Cost(compute + wait, round(vector), fresh.scalar, fresh.ddr, wait, dma, overlap, known.is_estimated)


def parts_of(call: Call, base: Profile, other: Profile, *, is_relayed: bool) -> Parts:
    """Return the modeled times of a call under a profile, for an op run with ``base``; for a model, only the run."""
    if call.model_us:
        return Parts(0.0, 0.0, 0.0, 0.0, 0.0, call.model_us)
    cost, us, number = op_cost(call, base, other), other.us, other.number
    moved = call.size_bytes
    rpc = number("rpc.call_us") + call.buffers * number("rpc.buffer_us") + moved / number("rpc.flush_bytes_per_us")
    if is_relayed:
        rpc += number("rpc.relay_us")
    return Parts(rpc, us(cost.vector), us(cost.scalar), us(cost.ddr), us(cost.wait))


def total_us(calls: Sequence[Call], base: Profile, other: Profile, *, is_relayed: bool, scale: float = 1.0) -> float:
    """Return the modeled time of all calls, from the first submission to the last end, on the board's cores.

    A call is submitted once the calls that had ended here before its submission have ended; the program's own computing
    in between is not counted. A core runs calls in order, and the cores share the DDR.

    Args:
        calls: A program's calls.
        base: The profile they ran with.
        other: The profile of the board.
        is_relayed: Whether they go through a relay.
        scale: Factor for the times of models.
    """
    known: dict[Call, tuple[Parts, float]] = {}
    jobs = []
    for call in calls:
        kind = call._replace(submitted_ns=0, ended_ns=0)
        if kind not in known:
            parts = parts_of(call._replace(model_us=scale * call.model_us), base, other, is_relayed=is_relayed)
            known[kind] = parts, ddr_bytes(call, other) / parts.op if parts.op else 0.0
        parts, bytes_per_us = known[kind]
        half = parts.rpc / 2
        jobs.append(Job(bool(call.model_us), half, parts.op, half, bytes_per_us, call.submitted_ns, call.ended_ns))
    accelerators = other.whole(f"cores.{other.accelerator}.count") if other.accelerator in other.cores else 0
    cores = max(1, other.whole("cores.dsp.count")), max(1, accelerators)
    return makespan(jobs, cores, other.number("ddr.mb_per_s"))


def ddr_bytes(call: Call, profile: Profile) -> int:
    """Return the bytes that a call moves between its core and the DDR."""
    work = call.work
    if call.model_us or work.has_arithmetic:
        return work.dma_bytes + (work.ddr_loads * profile.whole("ddr.load_bytes") if work.ddr_loads else 0)
    return max(call.size_bytes, work.dma_bytes)


def range_of(time_us: Callable[..., float], profile: Profile, models: tuple[float, float] = ONE) -> Range:
    """Return the range of a time over a profile's assumed constants.

    Args:
        time_us: Returns the time under a profile; with ``models``, also takes the factor for model times.
        profile: The profile whose constants are varied.
        models: The lowest and highest of these factors.
    """
    value, spread = time_us(profile), []
    ends: list[tuple[float, ...]] = [(), ()] if models == ONE else [(scale,) for scale in models]
    if models != ONE and (at_ends := [time_us(profile, scale) for scale in models]) != [value, value]:
        spread.append(Spread(MODELS, *at_ends))
    best: dict[str, float] = {}
    worst: dict[str, float] = {}
    for key, one in profile.assumed.items():
        at_low, at_high = (time_us(profile.with_values({key: bound})) for bound in (one.low, one.high))
        if at_low == at_high:
            continue
        spread.append(Spread(key, at_low, at_high))
        best[key], worst[key] = (one.low, one.high) if at_low < at_high else (one.high, one.low)
    ordered = tuple(sorted(spread, key=lambda each: -each.width))
    low, high = (time_us(profile.with_values(found), *end) for found, end in zip((best, worst), ends, strict=True))
    return Range(low, value, high, ordered)


def range_of_fit(value: float, error: float) -> Range:
    """Return the range of an op's time under a fitted profile: twice the error of a fit to the other ops."""
    low, high = value / (1 + 2 * error), value * (1 + 2 * error)
    return Range(low, value, high, (Spread(FIT, low, high),))


def range_of_all(parts: Sequence[tuple[Range, int]], value: float) -> Range:
    """Return the range of a time composed of others, given each range and its count.

    Args:
        parts: The calls' ranges, by kind.
        value: The time, shorter than their sum if they ran in parallel.
    """
    whole = sum(count * one.value for one, count in parts)
    scale = value / whole if whole else 1.0
    spread: dict[str, Spread] = {}
    for one, count in parts:
        for each in one.spread:
            _, at_low, at_high = spread.get(each.key, Spread(each.key, value, value))
            moved = scale * count * (each.at_low - one.value), scale * count * (each.at_high - one.value)
            spread[each.key] = Spread(each.key, at_low + moved[0], at_high + moved[1])
    low, high = (scale * sum(count * getattr(one, end) for one, count in parts) for end in ("low", "high"))
    return Range(low, value, high, tuple(sorted(spread.values(), key=lambda each: -each.width)))


def needs_a_run(key: str) -> bool:
    """Whether a constant changes what an op does, so that only a new run shows its effect."""
    return any(key.startswith(part) or key.endswith(part) for part in OF_ANOTHER_RUN)


def _vector_cycles(work: Work, profile: Profile) -> float:
    return (
        work.bundles * profile.number("vector.schedule")
        + work.gathers * profile.number("vector.gather_cycles")
        + work.divides * profile.number("vector.divide_cycles")
    )


def _dma_cycles(work: Work, profile: Profile) -> float:
    return (
        work.descriptors * profile.number("idma.setup_cycles")
        + work.rows * profile.number("idma.row_cycles")
        + work.dma_bytes / profile.number("idma.bytes_per_cycle")
    )


def _wait(known: Cost, compute: int, dma: int) -> int:
    """Return waits for the engine: its time beyond the core's, plus the first and last tile, which cannot be hidden."""
    before = max(0, known.dma - (known.cycles - known.wait))
    exposed = max(0, known.wait - before) * _ratio(dma, known.dma)
    return round(min(max(0, dma - compute) + exposed, dma) if known.dma else known.wait)


def _ratio(new: float, old: float) -> float:
    return new / old if old else 1.0
