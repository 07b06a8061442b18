"""From the rounds of ``benchmarks/rpc.py`` to tables, ratios and goals. Pure: no process, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks._measure import Rounds, table
from benchmarks._peers import DEPTH, PEERS

UNIT = "zmq-reqrep"
"""The peer that ratios are given to."""
MIN_IN_FLIGHT = 1.5  # times a worker behind ZeroMQ
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
REGIMES = {"one": "one CPU", "free": "free", "busy": "free, a process spins"}
"""By name: what the processes may use, and what else runs."""
_WHERE = {
    "one": "All processes on one CPU",
    "free": "Free to run on every CPU",
    "busy": "Free to run on every CPU, while one more process spins",
}


@dataclass
class Result:
    """What was measured of one peer in one regime; each list has one value a round."""

    problem: str = ""
    """Why there is no more: not installed, or what failed."""
    latency_us: dict[str, list[float]] = field(default_factory=dict)
    """By quantile: one client, one call after the other."""
    in_flight_per_s: list[float] = field(default_factory=list)
    clients_per_s: dict[int, list[float]] = field(default_factory=dict)
    """By number of client processes: calls per second of all together."""
    clients_p50_us: dict[int, list[float]] = field(default_factory=dict)
    """Of the median client."""
    clients_evenness: dict[int, list[float]] = field(default_factory=dict)
    """Calls of the slowest client, as a fraction of the fastest one's."""

    def p50(self) -> Rounds | None:
        """Return the median time of a call in each round, in microseconds."""
        values = self.latency_us.get("p50")
        return Rounds(tuple(values)) if values else None


Results = Mapping[str, Result]
"""By name of peer, in one regime."""


@dataclass(frozen=True)
class Goal:
    """One line of the verdict."""

    text: str
    value: float
    limit: float
    is_met: bool

    def __str__(self) -> str:
        return f"goal: {self.text}: {self.value:.2f} ... {'met' if self.is_met else 'missed'}"


def title(name: str) -> str:
    """Return a peer's name for people."""
    return next(peer.title for peer in PEERS if peer.name == name)


def _times(value: float) -> str:
    return f"{value:.2f}x"


def _median(values: list[float], form: str) -> str:
    return form.format(Rounds(tuple(values)).median) if values else "-"


def _per_s(values: list[float]) -> str:
    return _median(values, "{:,.0f}")


def latency_table(results: Results, *, markdown: bool) -> str:
    """Microseconds of a call, its ratio to pyzmq REQ/REP, and how far the rounds lie apart."""
    unit = results[UNIT].p50() if UNIT in results else None
    rows = []
    for name, result in results.items():
        p50 = result.p50()
        if p50 is None:
            rows.append([title(name), result.problem.partition(":")[0], *[""] * 5])
            continue
        times = [f"{Rounds(tuple(values)).median:.1f}" for values in result.latency_us.values()]
        ratio = _times(p50.ratio_to(unit).median) if unit else "-"
        rows.append([title(name), *times, ratio, f"{p50.spread:.0%}"])
    head = ["one call at a time, µs", *QUANTILES, "p50 / REQ/REP", "spread"]
    return table(head, rows, markdown=markdown)


def throughput_table(results: Results, *, markdown: bool) -> str:
    """Calls a second with 32 in flight, and with several client processes that make one call at a time."""
    counts = sorted({count for result in results.values() for count in result.clients_per_s})
    worker = results.get("zmq-worker", Result()).in_flight_per_s
    rows = []
    for name, result in results.items():
        if result.p50() is None:
            continue
        flight = result.in_flight_per_s
        ratio = Rounds(tuple(flight)).ratio_to(Rounds(tuple(worker))).median if flight and worker else None
        cells = [_per_s(flight), _times(ratio) if ratio else "-"]
        for count in counts:
            cells.append(_per_s(result.clients_per_s.get(count, [])))
            cells.append(_median(result.clients_p50_us.get(count, []), "{:.1f}"))
        cells.append(_median(result.clients_evenness.get(counts[-1], []), "{:.0%}"))
        rows.append([title(name), *cells])
    head = ["calls/s", f"{DEPTH} in flight", "/ worker"]
    for count in counts:
        head += [f"{count} client{'s' * (count > 1)}", "p50 µs"]
    head.append("slowest/fastest")
    return table(head, rows, markdown=markdown)


def goals(regime: str, results: Results) -> list[Goal]:
    """Judge the boards that wait as by default by what was measured with them."""
    found = []
    for name in ("hbrt", "hbrt-2"):
        ours = results.get(name, Result())
        where = f"[{REGIMES[regime]}, {title(name).partition(', ')[2]}]"
        for other, limit, wanted in (
            (UNIT, 0.45, "<= 0.45x"),
            ("eventfd", 2.0 if regime == "one" else 1.2, "<= 2x" if regime == "one" else "<= 1.2x"),
            (f"{name}-spin0", 1.1, "<= 1.1x"),
            ("iceoryx2", 1.0, "below"),
            ("pipe", 1.0, "below"),
        ):
            mine, theirs = ours.p50(), results.get(other, Result()).p50()
            if mine and theirs:
                value = mine.ratio_to(theirs).median
                is_met = value <= limit if wanted.startswith("<=") else value < limit
                found.append(Goal(f"sync p50 {wanted} {title(other)} {where}", value, limit, is_met))
        theirs_per_s = results.get("zmq-worker", Result()).in_flight_per_s
        if ours.in_flight_per_s and theirs_per_s:
            value = Rounds(tuple(ours.in_flight_per_s)).ratio_to(Rounds(tuple(theirs_per_s))).median
            wanted = f"{DEPTH} in flight >= {MIN_IN_FLIGHT:g}x {title('zmq-worker')} {where}"
            found.append(Goal(wanted, value, MIN_IN_FLIGHT, value >= MIN_IN_FLIGHT))
        level = results.get(UNIT, Result())
        for count in sorted(ours.clients_per_s.keys() & level.clients_per_s.keys() - {1}):
            per_s = (Rounds(tuple(result.clients_per_s[count])) for result in (ours, level))
            value = next(per_s).ratio_to(next(per_s)).median
            found.append(Goal(f"calls/s of {count} clients >= {title(UNIT)} {where}", value, 1.0, value >= 1.0))
    return found


def goals_in_c(regime: str, results: Results) -> list[Goal]:
    """Judge a program in C that calls an op in C, and a relay, on one CPU."""
    found = []
    for name, other, limit in (("c-c", "eventfd-c", 1.5), ("c-c", "iceoryx2-c", 1.0), ("hbrt-relay", UNIT, 1.0)):
        mine, theirs = results.get(name, Result()).p50(), results.get(other, Result()).p50()
        if regime == "one" and mine and theirs:
            value = mine.ratio_to(theirs).median
            text = f"sync p50 <= {limit:g}x {title(other)} [{REGIMES[regime]}, {title(name).removeprefix('hbrt, ')}]"
            found.append(Goal(text, value, limit, value <= limit))
    return found


def as_text(regimes: Mapping[str, Results], verdict: list[Goal], about: Mapping[str, Any], *, markdown: bool) -> str:
    """Return the whole report for people."""
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    parts = [
        f"{about['cpu']}, {about['cpus']} CPUs, Linux {about['kernel']}, Python {about['python']}.",
        f"Versions: {versions}.",
        f"Medians of {about['rounds']} rounds of {about['seconds']:g} s; requests and replies of 64 bytes.",
        f"Load of the machine before the run: {about['load_1min']} running processes.",
    ]
    for regime, results in regimes.items():
        where = _WHERE[regime]
        parts += [f"### {where}" if markdown else f"{where}:"]
        parts += [latency_table(results, markdown=markdown), throughput_table(results, markdown=markdown)]
        parts += [f"{title(name)}: {result.problem}" for name, result in results.items() if result.problem]
    lines = [f"- {goal}" if markdown else str(goal) for goal in verdict]
    return "\n\n".join([*parts, "\n".join(lines) or "No goal could be judged: the board was not measured."])


def as_json(regimes: Mapping[str, Results], verdict: list[Goal], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything, round by round."""
    measured = {regime: {name: asdict(result) for name, result in by.items()} for regime, by in regimes.items()}
    return {"machine": dict(about), "regimes": measured, "goals": [asdict(goal) for goal in verdict]}
