"""The cost of a call carried by a relay, compared with a direct call and raw pyzmq REQ/REP over ipc, in the same run.

    python -m benchmarks.relay [--quick] [--regime one|free|both] [--markdown]

A relayed call is one ZeroMQ message where a REQ/REP call is two, and a task of a core, which rings the caller itself.
What is printed last is the ratio of the two p50. The peers take turns in every round; see benchmarks/rpc.py.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from benchmarks import _report
from benchmarks._measure import machine, raise_on_sigterm
from benchmarks._peers import PEERS
from benchmarks._race import Plan
from benchmarks.rpc import run_regime, versions

NAMES = ("hbrt", "hbrt-relay", "zmq-reqrep")
MOST = 1.5


def relay_goals(regime: str, results: dict[str, _report.Result]) -> list[_report.Goal]:
    """Judge the relay by the REQ/REP of the same rounds."""
    relayed, raw = results["hbrt-relay"].p50(), results["zmq-reqrep"].p50()
    if relayed is None or raw is None:
        return []
    ratio = relayed.ratio_to(raw).median
    text = f"relayed call, p50 <= {MOST}x pyzmq REQ/REP [{_report.REGIMES[regime]}]"
    return [_report.Goal(text, ratio, MOST, ratio <= MOST)]


@click.command()
@click.option("--quick", is_flag=True, help="About 10 s instead of a minute, with 4 clients at most.")
@click.option("--regime", type=click.Choice(["one", "free", "both"]), default="both", show_default=True)
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
def main(*, quick: bool, regime: str, markdown: bool) -> None:
    """Measure what a relayed call costs, compared with a direct one and pyzmq REQ/REP."""
    raise_on_sigterm()
    peers = [peer for peer in PEERS if peer.name in NAMES]
    plan = Plan.choose(quick=quick)
    about: dict[str, Any] = {**machine(), "versions": versions(), "rounds": plan.rounds, "seconds": plan.seconds}
    measured: dict[str, dict[str, _report.Result]] = {}
    verdict: list[_report.Goal] = []
    for name in ("one", "free") if regime == "both" else (regime,):
        measured[name], _ = run_regime(name, peers, plan, idle_seconds=0)
        verdict += relay_goals(name, measured[name])
    print(_report.as_text(measured, verdict, about, markdown=markdown))


if __name__ == "__main__":
    sys.exit(main())
