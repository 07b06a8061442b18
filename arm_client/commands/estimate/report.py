"""Estimates as tables and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from arm_client.commands.estimate.calls import Known
from arm_client.commands.estimate.what_if import WHAT_IF
from hbrt.accelerators.chips import assumed, chip_named, range_of_chip
from hbrt.cli.tables import Column, Table, Time, number, numbers, short_time, time_of_us
from hbrt.findings.text import counted
from hbrt.profiles.estimate import (
    ONE,
    Call,
    Parts,
    Range,
    op_cost,
    parts_of,
    range_of,
    range_of_all,
    range_of_fit,
    total_us,
)
from hbrt.profiles.profile import Profile
from hbrt.settings import rounded

MAX_SHARES: Final = 6
OF_INT8: Final = "The range of models is that of int8; that of 16 bits is wider: hbrt estimate MODEL.onnx."
UNSHARED: Final = 1e9
"""Of a DDR that no core waits for, in MB/s."""


def document_of(what: str, known: Known, base: Profile, profile: Profile, *, is_relayed: bool) -> dict[str, Any]:
    """Estimate the time of calls on the board, as plain data.

    Args:
        what: Whose they are.
        known: The calls.
        base: The profile that they ran with.
        profile: The profile to estimate with.
        is_relayed: Whether they go through a relay.
    """
    calls = known.calls
    kinds: dict[tuple[int, bool], list[Call]] = {}
    for one in calls:
        kinds.setdefault((one.cmd, bool(one.model_us)), []).append(one)
    each = [_each(kinds[kind], base, profile, is_relayed) for kind in sorted(kinds)]
    has_ops = any(not one.model_us for one in calls)
    has_models = any(one.model_us for one in calls)
    models = _models(profile) if has_models else ONE

    def time_us(other: Profile, scale: float = 1.0) -> float:
        return total_us(calls, base, other, is_relayed=is_relayed, scale=scale)

    if profile.measured and calls:
        total = range_of_all([(one, row["calls"]) for row, one in each], time_us(profile))
    else:
        total = range_of(time_us, profile, models)
    alone = profile.with_values({"ddr.mb_per_s": UNSHARED})
    return {
        "what": what,
        "profile": {"name": profile.name, "origin": profile.origin, "clock_hz": profile.clock_hz if has_ops else 0},
        "assumed": assumed()[profile.chip].why if has_models and profile.chip in assumed() else "",
        "cores": profile.whole("cores.dsp.count"),
        "relayed": is_relayed,
        "calls": [row for row, _ in each],
        "unknown_runs": known.unknown_runs,
        "extrapolated": _extrapolated(calls, profile),
        "forgotten": known.forgotten,
        "total": range_as_dict(total),
        "ddr_wait_us": max(0.0, total.value - time_us(alone)),
        "ddr_mb_per_s": profile.number("ddr.mb_per_s"),
    }


def parts_shown(document: dict[str, Any]) -> Iterator[object]:
    """The table and lines for a document from ``document_of``."""
    each, total, profile = document["calls"], document["total"], document["profile"]
    if each:
        yield Table(_COLUMNS, each)
        clock_mhz = profile["clock_hz"] / 1e6
        dsp = (
            f"{counted(document['cores'], 'DSP core')} at {clock_mhz:g} MHz" if clock_mhz else "the cores of the board"
        )
        yield (
            f"\n{counted(sum(one['calls'] for one in each), 'call')} in total: {us(total['modeled_us'])}, from "
            f"{us(total['low_us'])} to {us(total['high_us'])}, modeled for {dsp} (profile {profile['name']}). The "
            "program's own work on the CPU is not included."
        )
        parts = {name: sum(one["parts_us"][name] * one["calls"] for one in each) for name in Parts._fields}
        yield f"Most of it is {_WORDS[max(parts, key=lambda name: parts[name])]}."
    yield from notes_of(document)
    if any(one["parts_us"]["model"] for one in each):
        yield OF_INT8
    if any(one["is_estimated"] for one in each):
        yield "~: the op charges nothing; estimated from its reads and writes; see hb_dsp_charge."
    yield from shares_of(total)


def notes_of(document: dict[str, Any]) -> Iterator[str]:
    """What a document from ``document_of`` assumes, and what it leaves out."""
    if document["ddr_wait_us"] > 0.001 * document["total"]["modeled_us"]:
        yield (
            f"{us(document['ddr_wait_us'])} of it the cores wait for the DDR that they share: "
            f"{rounded(document['ddr_mb_per_s'])} MB/s, assumed."
        )
    yield from document["extrapolated"]
    if document["assumed"]:
        yield f"The times of models are assumed, not fitted: {document['assumed']}."
    if document["unknown_runs"]:
        yield (
            f"{counted(document['unknown_runs'], 'run')} of models not included, since the model's sizes, or the chip, "
            "are unknown. `hbrt estimate MODEL.onnx` says which."
        )
    if document["forgotten"]:
        yield f"{counted(document['forgotten'], 'earlier task')} not included: a board keeps the newest of each core."


def _extrapolated(calls: Sequence[Call], profile: Profile) -> list[str]:
    """A note on extrapolation for a profile fitted to a board's times; empty for other profiles."""
    if not profile.measured:
        return []
    of_ops: dict[str, list[Call]] = {}
    for call in calls:
        if not call.model_us:
            of_ops.setdefault(call.name, []).append(call)
    errors = [one.error for one in profile.measured.values() if one.error is not None]
    off = f" Fits that had not seen an op were off by up to {max(errors):.0%}." if errors else ""
    found = []
    if unknown := [name for name in of_ops if name not in profile.measured]:
        found.append(f"Extrapolated: no measurement of {', '.join(unknown)} is in profile {profile.name}.{off}")
    for name, some in of_ops.items():
        if name in profile.measured and not _is_measured(some, profile):
            one, sizes = profile.measured[name], [call.size_bytes for call in some]
            found.append(
                f"Extrapolated: {name} has calls of {min(sizes)} to {max(sizes)} bytes; it was measured with "
                f"{one.least_bytes} to {one.most_bytes}."
            )
    return found


def _is_measured(calls: Sequence[Call], profile: Profile) -> bool:
    """Whether a profile was fitted to times of the op of calls, of sizes as theirs."""
    if (one := profile.measured.get(calls[0].name)) is None or calls[0].model_us:
        return False
    return all(one.least_bytes <= 2 * call.size_bytes and call.size_bytes <= 2 * one.most_bytes for call in calls)


def _is_changed(profile: Profile) -> bool:
    """Whether constants are others than those that were fitted: the errors of the fit are not theirs."""
    return any(one.source == WHAT_IF for one in profile.constants.values())


def _models(profile: Profile) -> tuple[float, float]:
    """What the time of a model on a board is multiplied by for the ends of its range."""
    return range_of_chip(profile.chip) if chip_named(profile.chip) else ONE


_WORDS: Final = {
    "rpc": "the calls themselves (rpc)",
    "vector": "vector instructions",
    "scalar": "scalar instructions",
    "ddr": "accesses straight to DDR",
    "wait": "waits for iDMA",
    "model": "runs of models",
}


def shares_of(total: dict[str, Any]) -> list[str]:
    """One line about the causes of a time's spread in ``range_as_dict``, largest first: constants and their shares."""
    shares = [f"{one['key']} {one['share']:.0%}" for one in total["spread"][:MAX_SHARES] if one["share"] >= 0.005]
    return [f"The range comes from {', '.join(shares)}."] if shares else []


def us(time_us: float) -> str:
    """A time in microseconds as text."""
    return short_time(round(time_us * 1000))


def range_as_dict(total: Range) -> dict[str, Any]:
    """A range for JSON, in modeled microseconds."""
    return {
        "low_us": total.low,
        "modeled_us": total.value,
        "high_us": total.high,
        "spread": [{**one._asdict(), "share": total.share(one)} for one in total.spread],
    }


def _each(
    calls: Sequence[Call],
    base: Profile,
    profile: Profile,
    is_relayed: bool,  # noqa: FBT001
) -> tuple[dict[str, Any], Range]:
    """The calls of a command: their mean, and its range."""
    alike = Counter(one._replace(submitted_ns=0, ended_ns=0) for one in calls)
    count = alike.total()

    def mean_us(other: Profile, scale: float = 1.0) -> float:
        scaled = ((one._replace(model_us=scale * one.model_us), n) for one, n in alike.items())
        return sum(parts_of(one, base, other, is_relayed=is_relayed).total * n for one, n in scaled) / count

    parts = [(parts_of(one, base, profile, is_relayed=is_relayed), n) for one, n in alike.items()]
    costs = [(op_cost(one, base, profile), n) for one, n in alike.items() if not one.model_us]
    error = profile.measured[calls[0].name].error if _is_measured(calls, profile) else None
    if error is not None and not _is_changed(profile):
        mean = range_of_fit(mean_us(profile), error)
    else:
        mean = range_of(mean_us, profile, _models(profile) if calls[0].model_us else ONE)
    row = {
        "cmd": calls[0].cmd,
        "name": calls[0].name if len({one.name for one in calls}) == 1 else "model",
        "calls": count,
        "is_estimated": any(cost.is_estimated for cost, _ in costs),
        **range_as_dict(mean),
        "parts_us": {name: sum(getattr(one, name) * n for one, n in parts) / count for name in Parts._fields},
        "dma_us": profile.us(sum(cost.dma * n for cost, n in costs) / count) if costs else 0.0,
        "overlap_us": profile.us(sum(cost.overlap * n for cost, n in costs) / count) if costs else 0.0,
        "cycles": round(sum(cost.cycles * n for cost, n in costs) / count),
    }
    return row, mean


def _time(of: str) -> Callable[[dict[str, Any]], Time]:
    return lambda one: time_of_us(one[of])


def _part(name: str) -> Callable[[dict[str, Any]], Time]:
    return lambda one: time_of_us(one["parts_us"][name])


_COLUMNS: Final = (
    number("COMMAND", lambda one: "model" if one["parts_us"]["model"] else f"{one['cmd']:#x}"),
    Column("OP", "name"),
    *numbers("CALLS"),
    number("LOW", _time("low_us")),
    number("MODELED", lambda one: time_of_us(one["modeled_us"], "~" * one["is_estimated"])),
    number("HIGH", _time("high_us")),
    *(number(name.upper(), _part(name)) for name in Parts._fields),
    number("DMA", _time("dma_us")),
)
