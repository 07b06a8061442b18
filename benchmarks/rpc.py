"""What a call costs, side by side with other ways of calling another process, in one go on one machine.

    python -m benchmarks.rpc [--quick] [--regime one|free|busy|all] [--peers a,b] [--json FILE] [--markdown]

Placement decides the number, so that everything is measured three times: with the whole process tree on one CPU
(as ``taskset -c 0`` would do it; this repeats best), free, where a wake-up may cross CPUs, and free on a busy machine,
where one more process spins all the time. The peers take
turns in every round. The measuring client is its own process, as every server is; this program only
starts them, tells them when to begin, and ends them.

The peer iceoryx2-c takes part when ``ICEORYX2_FLAGS`` has what a compiler needs to find and link iceoryx2's C library.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from benchmarks import _report
from benchmarks._measure import machine, pinned, private_directory, raise_on_sigterm, spinning, usable_cpus
from benchmarks._peers import PEERS, Peer
from benchmarks._race import Entrant, Plan, Regime


def run_regime(
    name: str, peers: Sequence[Peer], plan: Plan, idle_seconds: float
) -> tuple[dict[str, _report.Result], list[_report.Goal]]:
    """Measure all peers in one placement, and leave nothing behind."""
    cpus = {min(usable_cpus())} if name == "one" else usable_cpus()
    results = {}
    with pinned(cpus), private_directory() as directory, ExitStack() as stack:
        if name == "busy":
            stack.enter_context(spinning())
        entrants = []
        for peer in peers:
            entrant = Entrant(peer, directory, stack)
            results[peer.name] = entrant.result
            if missing := peer.missing():
                entrant.result.problem = f"not installed: {', '.join(missing)}"
            else:
                entrants.append(entrant)
        regime = Regime(name, entrants)
        regime.measure(plan)
        verdict = _report.goals(name, results) + _report.goals_in_c(name, results)
        if idle_seconds and name != "busy":
            verdict += regime.idle_goals(idle_seconds)
    return results, verdict


def versions() -> dict[str, str]:
    """Return the versions of what is compared."""
    found = {}
    for name in ("hbrt", "pyzmq", "iceoryx2", "rpyc", "grpcio"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def choose_peers(names: str | None) -> list[Peer]:
    """Return the peers that the option names, in the order of the table."""
    wanted = set(names.split(",")) if names else {peer.name for peer in PEERS}
    if unknown := wanted - {peer.name for peer in PEERS}:
        known = ", ".join(peer.name for peer in PEERS)
        raise click.BadParameter(
            f"unknown peer {', '.join(sorted(unknown))}; the peers are {known}.", param_hint="--peers"
        )
    return [peer for peer in PEERS if peer.name in wanted]


@click.command()
@click.option("--quick", is_flag=True, help="About 30 s instead of six minutes, with 4 clients at most.")
@click.option("--regime", type=click.Choice([*_report.REGIMES, "all"]), default="all", show_default=True)
@click.option("--peers", "names", help="Only these, by name, with commas between them.")
@click.option("--idle-seconds", default=10.0, show_default=True, help="How long to watch idle cores; 0 to skip it.")
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write every round here.")
def main(
    *,
    quick: bool,
    regime: str,
    names: str | None,
    idle_seconds: float,
    markdown: bool,
    json_file: Path | None,
) -> None:
    """Measure what a call costs, compared with other ways of calling another process."""
    raise_on_sigterm()
    peers = choose_peers(names)
    plan = Plan.choose(quick=quick)
    about: dict[str, Any] = {
        **machine(),
        "versions": versions(),
        "rounds": plan.rounds,
        "seconds": plan.seconds,
    }
    measured: dict[str, dict[str, _report.Result]] = {}
    verdict: list[_report.Goal] = []
    for name in _report.REGIMES if regime == "all" else (regime,):
        measured[name], found = run_regime(name, peers, plan, idle_seconds)
        verdict += found
    print(_report.as_text(measured, verdict, about, markdown=markdown))
    if json_file:
        json_file.write_text(json.dumps(_report.as_json(measured, verdict, about), indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
