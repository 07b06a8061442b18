"""The timeline of a recording: what is on which track, nested as it was, measured and modeled apart."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hbrt.errors import WrongUseError
from hbrt.mailbox.history import EndedTask
from hbrt.mailbox.table import Answer, Request, State
from hbrt.trace.kinds import EventKind
from hbrt.trace.merge import merged, on_clock
from hbrt.trace.ring import Event
from hbrt.trace.save import save_recording
from hbrt.trace.timeline import MODELED, Recording, Source
from tests.hbrt.trace.reader import Trace, read

UNIX_NS = 1_000_000


def task(submitted: int, start: int, done: int, cycles: int = 0, **given: Any) -> EndedTask:
    request = Request(submitted, 0, 0x400, given.pop("priority", 3), 0, 5, 5, 0x8000, 64, 0, 0)
    claim = given.pop("claim", start - 1)
    answer = Answer(given.pop("core", 0), given.pop("result", 0), 0, 0, claim, start, done, cycles)
    return EndedTask(given.pop("state", State.DONE), given.pop("pid", 77), request, answer)


def event(
    kind: EventKind, start: int, end: int, a: int = 0, b: int = 0, c: int = 0, unit: int = 0, text: str = ""
) -> Event:
    return Event(start, end, a, b, c, 900, kind, unit, text, 0x400)


def source(role: str, *events: Event, pid: int = 77) -> Source:
    first = min((one.start_ns for one in events), default=0)
    return Source(role, "p.py", pid, {900: "MainThread"}, lambda: iter(events), first)


def shown(tmp_path: Path, tasks: list[EndedTask], *sources: Source, lost: int = 0) -> Trace:
    recording = Recording("b", [lambda: iter(tasks)], sources, {0x400: "softmax"}, {77: "p.py"}, lost=lost)
    file = tmp_path / "t.pftrace"
    save_recording(recording, UNIX_NS, file)
    return read(file)


def test_a_task_leads_from_its_submission_over_claim_and_op_to_its_end(tmp_path: Path) -> None:
    program = source(
        "program",
        event(EventKind.SUBMIT, 990, 1010, a=1000, b=0x400, unit=5),
        event(EventKind.WAIT, 1500, 9000, a=1000, b=2000, c=8000, unit=5),
        event(EventKind.WAIT, 9100, 9200, a=1000, b=2000, c=8000, unit=5),  # asked again
    )
    trace = shown(tmp_path, [task(1000, 3000, 8000, claim=2000)], program)
    [submit] = trace.of("p.py / MainThread", "submit softmax")
    [claim] = trace.of("board b / core 0", "claim")
    [op] = trace.of("board b / core 0", "softmax")
    [end] = [one for one in trace.instants if one.name == "end of softmax"]
    assert submit.flows == claim.flows == op.flows == end.flows != ()
    assert [(one.start_ns, one.end_ns) for one in (submit, claim, op, end)] == [
        (990, 1010),
        (2000, 3000),
        (3000, 8000),
        (9000, 9000),
    ]
    [wait] = trace.of("MainThread", "wait for softmax")
    why = [one for one in trace.of("MainThread") if one.depth == wait.depth + 1]
    assert [(one.name, one.start_ns, one.end_ns) for one in why] == [
        ("queued", 1500, 2000),
        ("runs", 2000, 8000),
        ("wake-up", 8000, 9000),
    ]
    assert op.facts["waited_us (measured)"] == 1.0
    assert trace.unix_offset_ns == UNIX_NS


def test_a_core_for_models_has_its_kind_in_its_name_and_no_modeled_time(tmp_path: Path) -> None:
    ended = task(1000, 3000, 8000, core=2)
    recording = Recording("b", [lambda: iter([ended])], (), {0x400: "model"}, {}, kinds={2: "BPU"})
    save_recording(recording, UNIX_NS, tmp_path / "t.pftrace")
    trace = read(tmp_path / "t.pftrace")
    assert [one.track for one in trace.of("core 2", "model")] == ["board b / BPU core 2"]
    assert not trace.of("ops")


def test_a_program_that_notes_nothing_has_its_submissions_by_its_tasks(tmp_path: Path) -> None:
    trace = shown(tmp_path, [task(1000, 3000, 8000), task(9000, 9500, 9900, pid=0)])
    [submit] = trace.of("submissions")
    assert submit.flows == trace.of("core 0", "softmax")[0].flows
    assert len(trace.of("core 0", "softmax")) == 2


def test_tasks_that_wait_are_counted_by_priority(tmp_path: Path) -> None:
    tasks = [task(1000, 3001, 4000), task(1100, 4001, 5000), task(1200, 5001, 5500, priority=250)]
    values = shown(tmp_path, tasks).values
    assert values["board b / waiting tasks, priority 3"] == [(1000, 1), (1100, 2), (3000, 1), (4000, 0)]
    assert values["board b / waiting tasks, priority 250"] == [(1200, 1), (5000, 0)]


def test_failures_findings_and_lost_events_are_marks(tmp_path: Path) -> None:
    tasks = [
        task(1000, 3000, 4000, state=State.FAILED, result=-7),
        task(5000, 0, 6000, claim=0, core=-1, state=State.LOST, result=-9),
    ]
    daemon = source(
        "daemon", event(EventKind.FOUND, 4100, 4100, text="leak: x"), event(EventKind.SAID, 4200, 4200, text="hello")
    )
    marks = {(one.track, one.name) for one in shown(tmp_path, tasks, daemon, lost=3).instants}
    assert {
        ("board b / core 0", "softmax failed: -7"),
        ("board b / findings", "softmax lost: -9"),
        ("board b / findings", "leak: x"),
        ("board b / log", "hello"),
        ("board b / log", "3 older events or tasks were dropped: the rings were full"),
    } <= marks


def ping_pong() -> Source:
    """An op of 3000 cycles from 10 000 on: a copy that it waits for, and one under what it computes."""
    return source(
        "core 0",
        event(EventKind.TCM, 3005, 3005, 1024, 2048, 10_000),
        event(EventKind.DMA_WAIT, 3020, 3100, 10_032, 11_000),
        event(EventKind.COPY, 3010, 3100, 10_016, 11_000, 4096, 0),
        event(EventKind.STALL, 3200, 3200, 11_500, 11_540, 64),
        event(EventKind.DMA_WAIT, 3300, 3310, 12_500, 12_500),
        event(EventKind.COPY, 3015, 3310, 11_000, 12_000, 4096, 1),
        event(EventKind.TCM, 3400, 3400, 0, 0, 13_000),
        event(EventKind.RUN, 2990, 3500, 3, 10_000, 13_000),
    )


def test_modeled_tracks_are_apart_and_split_an_op(tmp_path: Path) -> None:
    tasks = [task(1, 1500, 1600, 648), task(2, 1700, 1800, 0), task(3, 3000, 3490, 3000)]
    trace = shown(tmp_path, tasks, ping_pong())
    group = f"board b, {MODELED}: cycles at 648 MHz, from 0"
    first, second = trace.of(f"{group} / core 0 ops", "softmax")
    assert (first.end_ns - first.start_ns, second.start_ns) == (1000, first.end_ns)
    assert (second.facts["cycles"], second.end_ns - second.start_ns) == (3000, 3000 * 125 // 81)
    inside = [one for one in trace.of("core 0 ops") if one.depth == 1]
    assert [one.name for one in inside] == ["compute", "DMA wait", "compute", "DDR stall", "compute"]
    assert all(second.has(one) for one in inside)
    assert all(one.end_ns == other.start_ns for one, other in pairwise(inside))
    copies = trace.of(f"{group} / core 0 DMA", "copy")
    assert [any(copy.meets(one) for one in inside if one.name == "compute") for copy in copies] == [True, True]
    assert not copies[1].meets(inside[1])
    assert [one.name for one in trace.instants if one.track.startswith(group)] == [
        "softmax charged no cycles ('hbrt tasks' has an estimate)"
    ]
    assert [value for _, value in trace.values[f"{group} / core 0 TCM bank 1, bytes, modeled"]] == [2048, 0]
    measured = [one for one in trace.slices if MODELED not in one.track]
    assert {one.name for one in measured} == {"claim", "softmax", "submit softmax", "DMA wait", "copy"}
    waits = trace.of("board b / core 0", "DMA wait")
    op = trace.of("board b / core 0", "softmax")[-1]
    assert [op.has(wait) for wait in waits] == [True, True]
    assert len({one.track for one in measured if one.name == "copy"}) == 2  # they overlap, so each has a track


def test_an_interrupting_op_lies_inside_the_other(tmp_path: Path) -> None:
    core = source(
        "core 0",
        event(EventKind.DMA_WAIT, 3050, 3060, 10, 20),
        event(EventKind.DMA_WAIT, 4050, 4060, 0, 50),
        event(EventKind.RUN, 3990, 5010, 2, 0, 81),
        event(EventKind.RUN, 2990, 8010, 1, 0, 162),
    )
    trace = shown(tmp_path, [task(2, 4000, 5000, 81, priority=255), task(1, 3000, 8000, 162)], core)
    outer, inner = trace.of("board b / core 0", "softmax")
    assert (outer.depth, inner.depth, outer.has(inner)) == (0, 1, True)
    ops = trace.of(f"{MODELED}: cycles at 648 MHz, from 0 / core 0 ops")
    assert [one.facts["cycles"] for one in ops if one.name == "softmax"] == [81, 162]
    assert [one.facts["cycles"] for one in ops if one.name == "DMA wait"] == [50, 10]


def test_what_a_killed_core_had_begun_is_in_no_other_op(tmp_path: Path) -> None:
    killed = source("core 0", event(EventKind.DMA_WAIT, 3050, 3060, 10, 20))
    again = source("core 0", event(EventKind.DMA_WAIT, 9050, 9060, 10, 20), event(EventKind.RUN, 8990, 9100, 2, 0, 81))
    tasks = [task(1, 3000, 4000, state=State.LOST, result=-9), task(2, 9000, 9090, 81)]
    trace = shown(tmp_path, tasks, killed, again)
    assert len(trace.of(f"{MODELED}: cycles at 648 MHz, from 0 / core 0 ops", "DMA wait")) == 1


def test_threads_that_submit_at_once_submit_each_task_once(tmp_path: Path) -> None:
    """They note it in any order, which is not the tasks'."""
    submits = [event(EventKind.SUBMIT, at - 5, at + 50, a=at, b=0x400, unit=5) for at in (1030, 1000, 1010)]
    trace = shown(tmp_path, [task(at, at + 100, at + 200) for at in (1000, 1010, 1030)], source("program", *submits))
    assert len([one for one in trace.slices if one.name == "submit softmax"]) == 3


def test_programs_models_and_hops_have_their_tracks(tmp_path: Path) -> None:
    program = source(
        "program",
        event(EventKind.ASK, 101, 199, text="alloc"),
        event(EventKind.ALLOC, 100, 200, 0x8000, 4096),
        event(EventKind.FLUSH, 300, 310, 0x8000, 64, text="clean"),
        event(EventKind.FREE, 400, 410, 0x8000),
        event(EventKind.SEGMENT, 510, 590, text="segment_0 (BPU)", unit=1),
        event(EventKind.MODEL, 500, 600, text="digits", unit=1),
        event(EventKind.SUBMIT, 700, 710, 0, 0x999, (1 << 64) - 5),
    )
    relay = source("relay", event(EventKind.HOP, 1010, 1020, 1000, text="relay", unit=5), pid=88)
    trace = shown(tmp_path, [task(1000, 3000, 4000)], program, relay)
    asked, alloc = trace.of("MainThread", "ask the daemon: alloc") + trace.of("MainThread", "alloc")
    assert alloc.has(asked)
    assert alloc.facts == {"phyAddr": "0x8000", "bytes": 4096}
    assert trace.of("MainThread", "flush (clean)")[0].facts["bytes"] == 64
    segment, model = trace.of("BPU core 1", "segment_0 (BPU)") + trace.of("BPU core 1", "digits")
    assert model.has(segment)
    assert trace.of("MainThread", "refused 0x999")[0].facts["status"] == -5
    [hop] = trace.of("relay p.py / MainThread", "relay")
    assert hop.flows == trace.of("core 0", "softmax")[0].flows


@pytest.mark.parametrize("ending", [".pftrace", ".json"])
def test_no_nonsense_in_a_record_keeps_a_trace_from_being_written(tmp_path: Path, ending: str) -> None:
    values = (0, 1, 1 << 40, 1 << 62, 1 << 63, (1 << 64) - 1)
    ended = [task(a, b, c, a, claim=b, priority=0xFFFF) for a in values for b in values for c in values]
    noted = [
        Event(a, b, b, a, a, 900, kind, 3, "text", 7)
        for kind in (*EventKind, 0, 0xFFFF)
        for a in values
        for b in values
    ]
    sources = [source(role, *noted) for role in ("program", "core 0", "daemon", "gateway")]
    file = tmp_path / f"t{ending}"
    written = save_recording(Recording("b", [lambda: iter(ended)], sources, {}, {}), 0, file)
    assert (written.tasks, file.stat().st_size > 0) == (len(ended), True)


def test_chromes_json_has_the_same(tmp_path: Path) -> None:
    program = source(
        "program",
        event(EventKind.SUBMIT, 990, 1010, a=1000, b=0x400, unit=5),
        event(EventKind.WAIT, 1500, 9000, a=1000, b=2000, c=8000, unit=5),
    )
    file = tmp_path / "t.json"
    recording = Recording("b", [lambda: iter([task(1000, 3000, 8000, 81)])], [program], {0x400: "softmax"}, {})
    save_recording(recording, 0, file)
    events = json.loads(file.read_text())["traceEvents"]
    kinds = Counter(one["ph"] for one in events)
    assert (kinds["s"], kinds["t"], kinds["f"], kinds["C"]) == (1, 2, 1, 2)
    op = next(one for one in events if one["name"] == "softmax" and one["ph"] == "X")
    assert (op["ts"], op["dur"], op["args"]["modeled_us"]) == (3.0, 5.0, 0.125)
    assert op["args"]["modeled"] == "the op charged no arithmetic"
    places = {(one["pid"], one["tid"]) for one in events if one["ph"] == "X"}
    named = {(one["pid"], one["tid"]) for one in events if one["ph"] == "M" and one["name"] == "thread_name"}
    assert places <= named


def test_a_board_of_another_machine_is_shown_on_the_clock_of_its_program(tmp_path: Path) -> None:
    ahead, begun = 5_000_000, 10_000  # of its clock; what ended before is not of this run
    tasks = [task(at + ahead, at + 2000 + ahead, at + 7000 + ahead, 81, claim=at + 1000 + ahead) for at in (1, 20_000)]
    core = source(
        "core 0",
        event(EventKind.COPY, 22_500 + ahead, 23_000 + ahead, 10, 40, 4096),
        event(EventKind.RUN, 21_990 + ahead, 27_010 + ahead, 20_000 + ahead, 0, 81),
    )
    programs = {77: "gateway"}
    theirs = Recording("tcp://h:1", [lambda: iter(tasks)], [core], {0x400: "softmax"}, programs, lost=1)
    program = source("program", event(EventKind.SUBMIT, 19_000, 19_500, a=19_000, b=0x400, unit=1))
    mine = Recording("", [], [program], {}, {77: "p.py"})
    both = merged(mine, on_clock(theirs, ahead, begun))
    save_recording(both, UNIX_NS, tmp_path / "t.pftrace")
    trace = read(tmp_path / "t.pftrace")
    [op] = trace.of("board tcp://h:1 / core 0", "softmax")
    [copy] = trace.of("board tcp://h:1 / core 0 DMA, copy 0")
    [submit] = trace.of("p.py / MainThread", "submit softmax")
    assert [(one.start_ns, one.end_ns) for one in (submit, op, copy)] == [
        (19_000, 19_500),
        (22_000, 27_000),
        (22_500, 23_000),
    ]
    [modeled] = [one for one in trace.of("core 0 DMA", "copy") if MODELED in one.track]
    assert modeled.end_ns > modeled.start_ns
    assert [one.name for one in trace.slices if one.track.startswith("gateway")] == ["submit softmax"]


@pytest.mark.parametrize("name", ["t", "t.txt", "t.pftrace.gz"])
def test_an_ending_that_is_no_format_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WrongUseError, match=r"\.pftrace, \.perfetto-trace"):
        save_recording(Recording("b", (), (), {}, {}), 0, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".pftrace", pytest.param(".json", marks=pytest.mark.long)])
def test_memory_does_not_grow_with_the_tasks(tmp_path: Path, ending: str) -> None:
    def tasks(count: int) -> Callable[[], Iterator[EndedTask]]:
        return lambda: (task(at, at + 20, at + 90, 81) for at in range(1000, 1000 + count * 100, 100))

    def peak_bytes(count: int) -> int:
        tracemalloc.reset_peak()
        save_recording(Recording("b", [tasks(count)], (), {}, {}), 0, tmp_path / f"t{ending}")
        return tracemalloc.get_traced_memory()[1]

    tracemalloc.start()
    try:
        _, few, many = peak_bytes(50), peak_bytes(200), peak_bytes(2200)
    finally:
        tracemalloc.stop()
    assert (many - few) / 2000 < 400  # a task that is held takes more than 600


def test_memory_of_the_messages_does_not_grow_either(tmp_path: Path) -> None:
    """What C holds for messages is in no list of Python's: the process tells."""
    program = (
        "import resource, sys\nfrom hbrt.trace.perfetto import Perfetto\n"
        "with open(sys.argv[1], 'wb') as file:\n"
        "    sink = Perfetto(file, 0)\n    track = sink.track('t', sink.group('g'))\n"
        "    for number in range(int(sys.argv[2])): sink.slice(track, 'op', number, number + 1, {'fact': number})\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )

    def peak_kib(count: int) -> int:
        command = [sys.executable, "-c", program, str(tmp_path / "t.pftrace"), str(count)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert peak_kib(60_000) - peak_kib(2000) < 8192
