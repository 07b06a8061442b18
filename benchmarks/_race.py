"""The peers of one placement running side by side, taking turns in every round."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks import _report
from benchmarks._measure import Child, PeerFailed, cpu_seconds, percentile
from benchmarks._peers import Peer
from benchmarks._peers.board import core_pids

LEAD_NS = 20_000_000
"""From telling the clients when to begin until they begin."""


@dataclass(frozen=True)
class Plan:
    """How long and how often."""

    rounds: int
    seconds: float
    """Of one measurement: one peer, one round."""
    clients: tuple[int, ...]

    @classmethod
    def choose(cls, *, quick: bool) -> Plan:
        """Return the full plan, about six minutes for all regimes, or one of about thirty seconds."""
        return cls(3, 0.06, (4,)) if quick else cls(5, 0.3, (4, 16))


class Entrant:
    """A peer with its servers and clients running."""

    def __init__(self, peer: Peer, directory: Path, stack: ExitStack) -> None:
        self.peer = peer
        self.result = _report.Result()
        self.clients: list[Child] = []
        self.is_pipelined = False
        self._directory = directory / peer.name
        self._directory.mkdir()
        self._stack = stack

    def _start(self, role: str, index: int = 0) -> Child:
        arguments = ("benchmarks._peers", self.peer.name, role, str(self._directory), str(index))
        environment = self.peer.environment(self._directory)
        child = Child(f"{self.peer.name} {role} {index}", arguments, environment, self._directory)
        self._stack.callback(child.stop)
        return child

    def serve(self) -> None:
        """Start the servers, one after the other."""
        for role in self.peer.roles:
            self._start(role).receive()

    def grow(self, count: int) -> None:
        """Start clients until there are ``count``."""
        new = [self._start("client", index) for index in range(len(self.clients), count)]
        self.clients += new
        for client in new:
            self.is_pipelined = "pipelined" in client.receive()

    def measure(self, what: str, count: int, seconds: float) -> list[tuple[float, Any]]:
        """Let ``count`` clients do the same at once; each answers with its seconds and what it found."""
        for client in self.clients[:count]:
            client.send(("warm", 0, 0))
        for client in self.clients[:count]:
            client.receive()
        begin_ns = time.monotonic_ns() + LEAD_NS
        for client in self.clients[:count]:
            client.send((what, begin_ns, begin_ns + int(seconds * 1e9)))
        found = [client.receive() for client in self.clients[:count]]
        return [((ended_ns - begin_ns) / 1e9, answer) for ended_ns, answer in found]

    def measure_latency(self, seconds: float) -> None:
        """One client, one call after the other."""
        ((elapsed_s, times),) = self.measure("sync", 1, seconds)
        ordered = sorted(array("q", times))
        for name, fraction in _report.QUANTILES.items():
            self.result.latency_us.setdefault(name, []).append(percentile(ordered, fraction) / 1e3)
        self.result.clients_per_s.setdefault(1, []).append(len(ordered) / elapsed_s)
        self.result.clients_p50_us.setdefault(1, []).append(percentile(ordered, 0.5) / 1e3)

    def measure_in_flight(self, seconds: float) -> None:
        """One client with many calls under way."""
        if self.is_pipelined:
            ((elapsed_s, replies),) = self.measure("in_flight", 1, seconds)
            self.result.in_flight_per_s.append(replies / elapsed_s)

    def measure_clients(self, count: int, seconds: float) -> None:
        """Several clients at once, each with one call after the other."""
        found = self.measure("sync", count, seconds)
        longest_s = max(elapsed_s for elapsed_s, _ in found)
        by_client = [sorted(array("q", times)) for _, times in found]
        calls = sorted(len(times) for times in by_client)
        # Not the p50 of all calls together, which a client that starves the others would make look good.
        p50_ns = sorted(percentile(times, 0.5) for times in by_client)
        self.result.clients_per_s.setdefault(count, []).append(sum(calls) / longest_s)
        self.result.clients_p50_us.setdefault(count, []).append(percentile(p50_ns, 0.5) / 1e3)
        self.result.clients_evenness.setdefault(count, []).append(calls[0] / calls[-1])

    def idle_share(self, seconds: float) -> float:
        """Return the CPU time that the board's cores use meanwhile, as a fraction of one CPU."""
        pids = core_pids(self.peer.environment(self._directory))
        before = sum(map(cpu_seconds, pids))
        time.sleep(seconds)
        return (sum(map(cpu_seconds, pids)) - before) / seconds


class Regime:
    """All peers in one placement, taking turns; one that fails is left out, and the table says why."""

    def __init__(self, name: str, entrants: Sequence[Entrant]) -> None:
        self._name = name
        self._alive = list(entrants)

    def each(self, doing: str, action: Callable[[Entrant], None]) -> None:
        """Do the same with each peer that is still there."""
        click.echo(f"{_report.REGIMES[self._name]}: {doing}", err=True)
        for entrant in list(self._alive):
            try:
                action(entrant)
            except PeerFailed as failure:
                entrant.result.problem = f"failed: {failure}"
                self._alive.remove(entrant)

    def measure(self, plan: Plan) -> None:
        """Start the servers, and take all the rounds."""

        def call(entrant: Entrant) -> None:
            entrant.measure_latency(plan.seconds)
            entrant.measure_in_flight(plan.seconds)

        def serve(entrant: Entrant) -> None:
            entrant.serve()
            entrant.grow(1)

        self.each("starting", serve)
        for number in range(plan.rounds):
            self.each(f"one client, round {number + 1} of {plan.rounds}", call)
        most = max(plan.clients)
        self.each(f"starting {most} clients of each", partial(Entrant.grow, count=most))
        for number in range(plan.rounds):
            for count in plan.clients:
                doing = f"{count} clients, round {number + 1} of {plan.rounds}"
                self.each(doing, partial(Entrant.measure_clients, count=count, seconds=plan.seconds))

    def idle_goals(self, seconds: float) -> list[_report.Goal]:
        """Watch the board with two cores while nobody calls."""
        found = []
        where = _report.REGIMES[self._name]
        for entrant in self._alive:
            if entrant.peer.name == "hbrt-2":
                click.echo(f"{where}: idle for {seconds:g} s", err=True)
                percent = 100 * entrant.idle_share(seconds)
                text = f"idle cores, CPU time over {seconds:g} s < 1% of one CPU [{where}, 2 cores]"
                found.append(_report.Goal(text, percent, 1.0, percent < 1.0))
        return found
