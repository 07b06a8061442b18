"""A board's numbers in Prometheus' text format. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hbrt.cli.tables import command_of


def metrics_of(document: Mapping[str, Any]) -> str:
    """Format a board's metrics from the page's document; if the board is gone, only ``hbrt_up``.

    The format is specified at https://prometheus.io/docs/instrumenting/exposition_formats/.
    """
    board = {"board": document["board"]}
    lines: list[str] = []
    for name, about, samples in _families(document, board):
        lines += [f"# HELP {name} {about}", f"# TYPE {name} gauge"]
        lines += [f"{name}{{{_labels(labels)}}} {value:g}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _families(
    document: Mapping[str, Any], board: dict[str, Any]
) -> Iterator[tuple[str, str, list[tuple[dict[str, Any], float]]]]:
    is_up = not document.get("gone")
    yield "hbrt_up", "Whether the board is running.", [(board, is_up)]
    if not is_up:
        return
    memory = document["memory"]
    yield "hbrt_uptime_seconds", "Time since the board started.", [(board, document["uptime_s"])]
    yield "hbrt_tasks_per_second", "Tasks per second in the last interval.", [(board, document["calls_per_s"])]
    yield "hbrt_tasks_ready", "Tasks waiting for a core.", [(board, document["ready"])]
    yield "hbrt_tasks_running", "Running tasks.", [(board, document["running"])]
    yield "hbrt_memory_used_bytes", "Device memory in use.", [(board, memory["used_bytes"])]
    yield "hbrt_memory_size_bytes", "Size of the device memory.", [(board, memory["size_bytes"])]
    yield "hbrt_programs", "Attached programs.", [(board, len(document["programs"]))]
    yield "hbrt_findings", "Findings that the board keeps.", [(board, len(document["findings"]))]
    cores = [({**board, "core": core["core"], "kind": core["kind"]}, core) for core in document["cores"]]
    yield "hbrt_core_busy_ratio", "Share of the last interval in ops.", [(one, core["busy"]) for one, core in cores]
    healthy = [(one, float(core["health"] in {"ok", "busy"})) for one, core in cores]
    yield "hbrt_core_healthy", "Whether a core is ok or busy.", healthy
    commands = [
        ({**board, "kind": one["kind"], "cmd": command_of(one), "op": one["name"]}, one) for one in document["commands"]
    ]
    for key, name, about in (
        ("calls_per_s", "hbrt_command_calls_per_second", "Calls per second in the last interval."),
        ("failed", "hbrt_command_failed", "Calls that failed in the last interval."),
    ):
        yield name, about, [(labels, one[key]) for labels, one in commands]
    times = [
        ({**labels, "quantile": quantile}, one[f"ran_{part}_ns"] / 1e9)
        for labels, one in commands
        for part, quantile in (("p50", "0.5"), ("p99", "0.99"))
    ]
    yield "hbrt_command_run_seconds", "Run times measured in the last interval.", times


def _labels(labels: Mapping[str, Any]) -> str:
    return ",".join(f'{name}="{_escaped(str(value))}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return re.sub(r'[\\"]', r"\\\g<0>", value).replace("\n", "\\n")
