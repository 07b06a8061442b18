"""The timeline of a board from its processes' records. Measured and modeled times have separate tracks.

Measured: programs by thread, cores with their ops, copies, waits and TCM, waiting tasks by priority, BPU cores, the
daemon's findings and messages; a flow leads from a task's submission through its claim and op to its end. Modeled: a
core's activity by its cycle counter, from 0; these tracks share no time base with the others.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from types import MappingProxyType
from typing import NamedTuple

from hbrt.mailbox.history import EndedTask
from hbrt.mailbox.table import State
from hbrt.trace.kinds import EventKind
from hbrt.trace.ring import Event
from hbrt.trace.sink import Facts, Flow, Sink

SUBMIT_NS = 1000
"""Length shown for submissions of a program that recorded none: an arrow must start at a slice."""
MODELED = "modeled for the board"
_MAX_NS = 1 << 52  # between a task's submission and its end, and between two tasks
_MAX_CYCLES = 1 << 48
_CORE_ROLE = "core "
_SEEN = 4096
_CODE_BITS, _CLAIMED = 9, 256  # for a step: its task's priority, and whether the task was claimed


class Source(NamedTuple):
    """The events of one process, oldest first; they can be read more than once."""

    role: str
    program: str
    pid: int
    threads: Mapping[int, str]
    events: Callable[[], Iterator[Event]]
    first_ns: int = 0


class Recording(NamedTuple):
    """The contents of a trace.

    ``tasks`` has those of each core, and those failed by the daemon, ordered by end; they can be read more than once.
    """

    board: str
    tasks: Sequence[Callable[[], Iterator[EndedTask]]]
    sources: Sequence[Source]
    ops: Mapping[int, str]  # names by command
    programs: Mapping[int, str]  # names by process
    clock_hz: int = 648_000_000  # of the modeled cycles
    lost: int = 0  # events and tasks dropped from their rings
    kinds: Mapping[int, str] = MappingProxyType({})  # of cores that are not DSP cores: BPU, NPU


class Written(NamedTuple):
    """Contents of a file."""

    tasks: int
    events: int
    lost: int


def write(recording: Recording, sink: Sink) -> Written:
    """Write a timeline; memory does not grow with the number of events, except for under 100 bytes per task."""
    timeline = _Timeline(recording, sink)
    timeline.write()
    sink.close()
    return Written(timeline.task_count, timeline.event_count, recording.lost)


class _Timeline:
    def __init__(self, recording: Recording, sink: Sink) -> None:
        self._recording, self._sink = recording, sink
        self.task_count = self.event_count = 0
        self._board = sink.group(f"board {recording.board}")
        self._tracks: dict[tuple[str, int], int] = {}
        self._groups: dict[int, int] = {}  # of programs, by process
        self._submitted: dict[int, int] = {}  # by process: since when it records submissions
        self._origin_ns = self._first_end_ns = 0
        self._seen_ends: dict[int, None] = {}  # flows of the newest tasks whose end a wait has seen
        self._steps = array("q")  # changes in the number of waiting tasks: ns from the first end, then the code

    def write(self) -> None:
        recording = self._recording
        cores = [one for one in recording.sources if one.role.startswith(_CORE_ROLE)]
        self._origin_ns = min((one.first_ns for one in recording.sources if one.first_ns), default=0)
        for source in recording.sources:
            if source.role.startswith(_CORE_ROLE):
                self._core(source)
            elif source.role == "daemon":
                self._daemon(source)
            else:
                self._program(source)
        for tasks in recording.tasks:
            for task in map(_cleaned, tasks()):
                self._task(task)
        self._waiting()
        if recording.lost:
            name = f"{recording.lost} older events or tasks were dropped: the rings were full"
            self._sink.instant(self._track("log"), name, self._origin_ns)
        for tasks in recording.tasks:
            self._modeled(map(_cleaned, tasks()), cores)

    # -- tasks

    def _task(self, task: EndedTask) -> None:
        request, answer = task.request, task.answer
        self.task_count += 1
        name, flow = self._name(task), _flow(request.sequence, request.client)
        self._origin_ns = self._origin_ns or request.sequence
        self._first_end_ns = self._first_end_ns or answer.done_ns
        claimed_ns = answer.claim_ns or answer.done_ns
        for at_ns, code in (request.sequence, request.priority), (claimed_ns, _CLAIMED + request.priority):
            if abs(at_ns - self._first_end_ns) < _MAX_NS:
                self._steps.append((at_ns - self._first_end_ns << _CODE_BITS) | code)
        if request.sequence < self._submitted.get(task.pid, 1 << 64) and task.pid:
            group = self._group(task.pid)
            track = self._track("submissions", group, task.pid)
            self._sink.slice(
                track,
                f"submit {name}",
                request.sequence,
                request.sequence + SUBMIT_NS,
                None,
                flow._replace(is_first=True),
            )
        if answer.start_ns:
            track = self._track(self._core_name(answer.core))
            facts = self._facts(task)
            if answer.claim_ns:
                self._sink.slice(track, "claim", answer.claim_ns, answer.start_ns, None, flow)
            self._sink.slice(track, name, answer.start_ns, answer.done_ns, facts, flow)
        if task.state is not State.DONE:
            track = self._track(self._core_name(answer.core) if answer.claim_ns else "findings")
            self._sink.instant(
                track, f"{name} {task.state.name.lower()}: {answer.result}", answer.done_ns, self._facts(task)
            )

    def _waiting(self) -> None:
        """Write how many tasks of each priority are waiting."""
        import numpy as np

        counts: Counter[int] = Counter()
        np.frombuffer(self._steps, np.int64).sort()
        for step in self._steps:
            priority, is_claim = step & _CLAIMED - 1, step & _CLAIMED
            counts[priority] += -1 if is_claim else 1
            at_ns = (step >> _CODE_BITS) + self._first_end_ns
            self._sink.value(self._counter(f"waiting tasks, priority {priority}"), at_ns, counts[priority])

    # -- a program, a relay or a gateway

    def _program(self, source: Source) -> None:
        group = self._group(
            source.pid, source.program if source.role == "program" else f"{source.role} {source.program}".strip()
        )
        for event in source.events():
            self.event_count += 1
            thread = source.threads.get(event.thread) or ("main" if event.thread == source.pid else "thread")
            if event.kind in {EventKind.MODEL, EventKind.SEGMENT}:
                track = self._track(f"BPU core {event.unit}", group)
            else:
                track = self._track(thread, group, event.thread)
            if event.kind == EventKind.WAIT:
                self._wait(event, track)
            elif event.kind == EventKind.SUBMIT:
                # The smallest: threads that submit concurrently record it in any order.
                at_ns = event.a or event.start_ns
                self._submitted[source.pid] = min(at_ns, self._submitted.get(source.pid, at_ns))
                facts: Facts = {"command": f"{event.b:#x}"} | ({"status": _signed(event.c)} if event.c else {})
                flow = _flow(event.a, event.unit)._replace(is_first=True) if event.a else None
                verb = "submit" if event.a else "refused"
                self._sink.slice(track, f"{verb} {self._op(event.b)}", event.start_ns, event.end_ns, facts, flow)
            else:
                if event.kind == EventKind.HOP and event.a:
                    self._submitted.setdefault(source.pid, event.a)  # a gateway's own tasks belong to a remote program
                name, facts, flow = _of_program(event)
                if event.end_ns > event.start_ns:
                    self._sink.slice(track, name, event.start_ns, event.end_ns, facts, flow)
                else:
                    self._sink.instant(track, name, event.start_ns, facts, flow)

    def _wait(self, event: Event, track: int) -> None:
        """Write a wait, divided by reason: the task was queued, it ran, its end had to be noticed."""
        start, end = event.start_ns, event.end_ns
        flow = _flow(event.a, event.unit)._replace(is_last=True)
        if event.c and flow.number in self._seen_ends:
            return  # a second wait, such as on a future queried again
        name = self._op(event.d)
        self._sink.slice(track, f"wait for {name}", start, end)
        claim, done = event.b or event.c or end, event.c or end
        for why, begins, ends in (("queued", start, claim), ("runs", claim, done), ("wake-up", done, end)):
            if max(begins, start) < min(ends, end):
                self._sink.slice(track, why, max(begins, start), min(ends, end))
        if event.c:
            self._seen_ends[flow.number] = None
            if len(self._seen_ends) > _SEEN:
                del self._seen_ends[next(iter(self._seen_ends))]
            self._sink.instant(track, f"end of {name}", end, None, flow)

    # -- a core

    def _core(self, source: Source) -> None:
        for event in source.events():
            self.event_count += 1
            if event.kind == EventKind.COPY:
                track = self._track(f"{source.role} DMA, copy {event.unit}")
                self._sink.slice(track, "copy", event.start_ns, event.end_ns, _cycles_of(event) | {"bytes": event.c})
            elif event.kind == EventKind.DMA_WAIT:
                track = self._track(source.role)
                self._sink.slice(track, "DMA wait", event.start_ns, event.end_ns, _cycles_of(event))
            elif event.kind == EventKind.TCM:
                for bank, used in enumerate((event.a, event.b)):
                    self._sink.value(self._counter(f"{source.role} TCM bank {bank}, bytes"), event.start_ns, used)

    def _modeled(self, tasks: Iterable[EndedTask], cores: Sequence[Source]) -> None:
        """Write a core's ops one after another by cycles, and what the engines did in each."""
        before, runs = 0, None
        for task in tasks:
            answer = task.answer
            if not answer.start_ns or answer.core in self._recording.kinds:  # models do not charge cycles
                continue
            role = f"core {answer.core}"
            if runs is None:
                runs = _Runs(_one_by_one(source for source in cores if source.role == role))
            inner, offset = runs.of(task), before
            track = self._track(f"{role} ops", self._modeled_group())
            name, at = self._name(task), self._at
            if not answer.cycles:
                self._sink.instant(track, f"{name} charged no cycles ('hbrt tasks' has an estimate)", at(before))
                continue
            facts = {"cycles": answer.cycles, "microseconds": answer.cycles * 1e6 / self._recording.clock_hz}
            self._sink.slice(track, name, at(before), at(before + answer.cycles), facts)
            before += answer.cycles
            if inner:
                self._inside(track, role, inner, offset, before)

    def _inside(self, track: int, role: str, inner: list[Event], start: int, end: int) -> None:
        """Write what an op spent its cycles on; ``start`` and ``end`` are its own on this track."""
        at, run = self._at, inner.pop()
        offset = start - run.b
        spent = start
        for event in sorted(inner, key=lambda one: one.a if one.kind != EventKind.TCM else one.c):
            first, last = event.a + offset, event.b + offset
            if event.kind == EventKind.COPY:
                copies = self._track(f"{role} DMA", self._modeled_group())
                self._sink.slice(copies, "copy", at(first), at(last), {"bytes": event.c})
            elif event.kind == EventKind.TCM:
                for bank, used in enumerate((event.a, event.b)):
                    counter = self._counter(f"{role} TCM bank {bank}, bytes, modeled", self._modeled_group())
                    self._sink.value(counter, at(event.c + offset), used)
            elif event.kind in {EventKind.DMA_WAIT, EventKind.STALL} and first < last:
                if spent < first:
                    self._sink.slice(track, "compute", at(spent), at(first))
                name = "DMA wait" if event.kind == EventKind.DMA_WAIT else "DDR stall"
                self._sink.slice(track, name, at(first), at(last), {"cycles": last - first})
                spent = last
        if start < spent < end:
            self._sink.slice(track, "compute", at(spent), at(end))

    def _at(self, cycles: int) -> int:
        """Return the position of a cycle on the modeled tracks."""
        return self._origin_ns + cycles * 1_000_000_000 // self._recording.clock_hz

    # -- the daemon

    def _daemon(self, source: Source) -> None:
        for event in source.events():
            self.event_count += 1
            track = self._track("findings" if event.kind == EventKind.FOUND else "log")
            self._sink.instant(track, event.text, event.start_ns)

    def _facts(self, task: EndedTask) -> Facts:
        """Return what a viewer shows for a selected op."""
        request, answer = task.request, task.answer
        is_model = answer.core in self._recording.kinds  # such a core charges ns
        return {
            "command": f"{request.cmd:#x}",
            "priority": request.priority,
            "customId": request.custom_id,
            "result": answer.result,
            "process": task.pid,
            "waited_us (measured)": max(0, (answer.claim_ns or answer.done_ns) - request.sequence) / 1000,
            "modeled_cycles": answer.cycles,
            "modeled_us": answer.cycles / 1000 if is_model else answer.cycles * 1e6 / self._recording.clock_hz,
            "modeled_wait_cycles": task.work.wait_cycles,
            "modeled_dma_cycles": task.work.dma_cycles,
            **({} if is_model or task.work.has_arithmetic else {"modeled": "the op charged no arithmetic"}),
            "input": f"{request.input_phy:#x}+{request.input_bytes:#x}",
            "output": f"{request.output_phy:#x}+{request.output_bytes:#x}",
        }

    # -- tracks

    def _core_name(self, core: int) -> str:
        return f"{self._recording.kinds.get(core, '')} core {core}".lstrip()

    def _name(self, task: EndedTask) -> str:
        return "model" if task.answer.core in self._recording.kinds else self._op(task.request.cmd)

    def _op(self, cmd: int) -> str:
        return self._recording.ops.get(cmd) or f"{cmd:#x}"

    def _group(self, pid: int, name: str = "") -> int:
        if pid not in self._groups:
            self._groups[pid] = self._sink.group(name or self._recording.programs.get(pid) or "a program", pid)
        return self._groups[pid]

    def _modeled_group(self) -> int:
        if -1 not in self._groups:
            name = f"board {self._recording.board}, {MODELED}: cycles at {self._recording.clock_hz / 1e6:g} MHz, from 0"
            self._groups[-1] = self._sink.group(name)
        return self._groups[-1]

    def _track(self, name: str, group: int | None = None, tid: int = 0) -> int:
        group = self._board if group is None else group
        key = (f"{tid}" if tid else name, group)
        if key not in self._tracks:
            self._tracks[key] = self._sink.track(name, group, tid)
        return self._tracks[key]

    def _counter(self, name: str, group: int | None = None) -> int:
        group = self._board if group is None else group
        if (name, group) not in self._tracks:
            self._tracks[name, group] = self._sink.counter(name, group)
        return self._tracks[name, group]


def _cleaned(task: EndedTask) -> EndedTask:
    """Clamp a task's numbers to what a timeline can hold: a program may write anything into its task's record."""
    request, answer = task.request, task.answer
    end = answer.done_ns if answer.done_ns < 1 << 63 else 0
    steps = (request.sequence, answer.claim_ns, answer.start_ns)
    submitted, claimed, started = (at if end - _MAX_NS < at <= end else 0 for at in steps)
    return task._replace(
        request=request._replace(sequence=submitted or claimed or started or end, priority=request.priority & 0xFF),
        answer=answer._replace(claim_ns=claimed, start_ns=started, done_ns=end, cycles=min(answer.cycles, _MAX_CYCLES)),
    )


class _Runs:
    """The events of a core's ops, one op at a time; both events and tasks are ordered by the ops' ends."""

    def __init__(self, events: Iterator[Event | None]) -> None:
        self._events = events
        self._pending: list[Event] = []  # from an op that has not finished, or was interrupted
        self._next: list[Event] | None = None

    def of(self, task: EndedTask) -> list[Event]:
        """Return the events inside a task's op, then its run; empty if nothing was recorded."""
        while True:
            if self._next is None:
                self._next = self._read()
            if not self._next or self._next[-1].start_ns > task.answer.done_ns:
                return []  # from a later op
            found, self._next = self._next, None
            run = found[-1]
            is_timed = not run.a and task.answer.start_ns <= run.start_ns  # C does not know the task
            if run.a == task.request.sequence or is_timed:
                return found

    def _read(self) -> list[Event]:
        for event in self._events:
            if event is None:  # the core's process has ended, perhaps before its last op
                self._pending.clear()
                continue
            if event.kind == EventKind.RUN:
                inner = [one for one in self._pending if one.start_ns >= event.start_ns]
                self._pending = [one for one in self._pending if one.start_ns < event.start_ns]
                return [*inner, event]
            self._pending.append(event)
        return []


def _one_by_one(sources: Iterable[Source]) -> Iterator[Event | None]:
    """Yield the events of successive processes, with None after each, which may have two files."""
    by_process: dict[int, list[Source]] = {}
    for source in sources:
        by_process.setdefault(source.pid, []).append(source)
    for several in by_process.values():
        yield from merge(*(source.events() for source in several), key=lambda event: event.end_ns)
        yield None


def _of_program(event: Event) -> tuple[str, Facts, Flow | None]:
    """Return name, facts and flow of an event that is neither a submission nor a wait."""
    if event.kind in {EventKind.ALLOC, EventKind.FREE, EventKind.FLUSH}:
        size: Facts = {"bytes": event.b} if event.kind != EventKind.FREE else {}
        name = f"flush ({event.text})" if event.kind == EventKind.FLUSH else EventKind(event.kind).name.lower()
        return name, {"phyAddr": f"{event.a:#x}", **size}, None
    if event.kind == EventKind.ASK:
        return f"ask the daemon: {event.text}", {}, None
    if event.kind == EventKind.MODEL:
        return event.text, {"priority": event.a}, None
    if event.kind == EventKind.HOP:
        flow = _flow(event.a, event.unit) if event.a else None
        return event.text, {"bytes": event.b} if event.b else {}, flow
    return event.text or f"event {event.kind}", {}, None


def _flow(sequence: int, client: int) -> Flow:
    """Return a task's flow: submission times are unique within a client."""
    return Flow((client << 53 ^ sequence) & (1 << 63) - 1)


def _cycles_of(event: Event) -> dict[str, int | float | str]:
    return {"modeled_cycles": event.b - event.a}


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
