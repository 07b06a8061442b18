"""The wait graph as chains of sentences, with a verdict on each from two looks. Rules only."""

from __future__ import annotations

import os
import sysconfig
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from dsp_server.waits.graph import (
    Graph,
    Index,
    Node,
    NodeKind,
    ahead_of,
    awaited,
    board_waits,
    cycles,
    graph_of,
    hanging,
    index_of,
    is_culprit,
    locked_out,
    path_from,
)
from dsp_server.waits.records import Core, Flag, Program, Records, Task
from dsp_server.waits.span import span
from hbrt.borders import guests
from hbrt.findings.text import counted
from hbrt.protocol.stacks import NO_SLOT, Frame

LONG_STILL_SECONDS = 1.0  # an op that has made no progress for less is not reported
_OURS = Path(__file__).resolve().parents[1]
_UNSURE = (
    "Too early to say whether it hangs.",
    "This hangs, unless somebody else writes that memory: the task that has to write it waits for its reader.",
)
_BEFORE_TASK = {
    NodeKind.CORE: "its op waits for {}",
    NodeKind.FLAG: "{} has to write there",
    NodeKind.LOCK: "that client waits for {}",
}
_LIBRARIES = (
    *guests.folders("dsp_server"),
    *(
        str(place) + os.sep
        for place in (
            *(_OURS / name for name in ("core", "detectors", "hardware", "lifecycle", "process")),
            _OURS / "runtime.py",
            *(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        )
    ),
)


class Verdict(StrEnum):
    """What happens to a chain if the user does nothing."""

    WAITS = "waits"  # it will end
    MOVES = "moves"  # the first look saw a different one
    HANGS = "hangs"  # it will not end


class Step(NamedTuple):
    """A node of a chain, and the clause about it."""

    node: Node
    text: str


class Chain(NamedTuple):
    """A path through the wait graph: from a program (None if nobody waits), through one of its tasks, onward."""

    program: int | None
    task: int
    verdict: Verdict
    steps: tuple[Step, ...]
    why: str  # explains the verdict; empty if it needs no explanation

    @property
    def text(self) -> str:
        """The chain as sentences."""
        text = "; ".join(step.text for step in self.steps)
        return f"{text[:1].upper()}{text[1:]}. {self.why}".rstrip()


class Look(NamedTuple):
    """One look at a board: its records, their graph, and the nodes that hang."""

    board: Index
    graph: Graph
    hangs: frozenset[Node]


def look_of(records: Records) -> Look:
    """Return the look for the records of one moment."""
    index = index_of(records)
    graph = graph_of(index)
    return Look(index, graph, hanging(index, graph))


def chains(before: Look, now: Look, task: int | None = None) -> list[Chain]:
    """Return the chains of the second look, hanging ones first; with ``task``, only that task's."""
    found: list[Chain] = []
    seen: set[Node] = set()
    for program, root, more in _roots(now.board, task):
        path = path_from(Node(NodeKind.TASK, root.task), now.graph, now.hangs)
        if program is not None or path[0] not in seen:  # a task that nobody waits for may be part of other chains
            found.append(_chain(before, now, program, root, more, path))
            seen |= {*path}
    return sorted(found, key=lambda chain: chain.verdict is not Verdict.HANGS)


def last_words(records: Records, slot: int) -> str:
    """Return the chain of the task in a slot, which the watchdog is about to end; without a verdict."""
    tasks = tuple(one._replace(limit_s=0.0) for one in records.tasks)
    now = look_of(records._replace(tasks=tasks))
    found = [chain for chain in chains(now, now, slot) if chain.steps]
    return found[0]._replace(why="").text if found else ""


def cycle_sentences(now: Look) -> list[str]:
    """Return one sentence per cycle, in waiting order."""
    return [
        f"A cycle: {', '.join(_in_cycle(now, *pair) for pair in zip(path, path[1:] + path[:1], strict=True))}."
        for path in cycles(now.graph)
    ]


def _in_cycle(now: Look, node: Node, after: Node) -> str:
    if node.kind is NodeKind.MUTEX:
        program, wait = locked_out(now.board)[node.number]
        return f"the thread of client {program.id} at {wait.stack[0].site} waits for {wait.lock}"
    if node.kind is NodeKind.FLAG:
        return f"{name_of(after)} has to write {name_of(node)}"
    return f"{name_of(node)} waits for {name_of(after)}"


def name_of(node: Node) -> str:
    """Name a node, such as ``task 19`` or ``the claim lock``."""
    if node.kind is NodeKind.FLAG:
        return f"the flag at {node.number:#x}"
    if node.kind is NodeKind.PROGRAM:
        return f"client {node.number}"
    return f"the {node.kind}" if node.kind in {NodeKind.RELAY, NodeKind.LOCK} else f"{node.kind} {node.number}"


def place_of(stack: tuple[Frame, ...], dma_handle: int = 0, dma_outstanding: int = 0) -> str:
    """Say where an op is: innermost line outside libraries, the call there, iDMA handle; empty without a stack."""
    if not stack:
        return ""
    own = own_of(stack)
    called = stack[-len(own) - 1] if len(own) < len(stack) else None
    inner = f", in {called.function} ({Path(called.file).name}:{called.line})" if called else ""
    dma = ""
    if dma_handle:
        state = f" ({dma_outstanding} descriptors are outstanding)" if dma_outstanding else ", which is done"
        dma = f", for iDMA handle {dma_handle}{state}"
    return f"at {own[0].site} in {own[0].function}{inner}{dma}"


def own_of(stack: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Return a stack without its innermost library calls; a stack with only libraries stays unchanged."""
    at = next((at for at, frame in enumerate(stack) if not is_library(frame.file)), 0)
    return stack[at:]


def is_library(file: str) -> bool:
    """Whether a file is Python's, an installed package's or the runtime's, so its lines do not help the op's author."""
    return file.startswith(_LIBRARIES)


def _roots(index: Index, only: int | None) -> list[tuple[Program | None, Task, int]]:
    """Starts of chains: a program and a task that it waits for, or only a task; and the number of similar ones."""
    roots: list[tuple[Program | None, Task, int]] = []
    seen: set[int] = set()
    for program in index.records.programs:
        tasks = awaited(index, program)
        named = {wait.slot for wait in board_waits(program)}
        seen |= {task.task for task in tasks}
        if only is None and not all(task.task in named for task in tasks):
            roots += [(program, task, len(tasks) - 1) for task in tasks[:1]]
        else:
            roots += [(program, task, 0) for task in tasks if only in {None, task.task}]
    rest = [task for task in index.records.tasks if task.task not in seen and only in {None, task.task}]
    running = [task for task in rest if task.state == "running"]
    queued: dict[int, list[Task]] = {}
    for task in rest:
        if task.state != "running":
            queued.setdefault(task.owner, []).append(task)
    roots += [(None, task, 0) for task in running]
    return roots + [(None, tasks[0], len(tasks) - 1) for tasks in queued.values()]


def _elsewhere(task: Task, node: Node) -> list[Step]:
    if task.state != "elsewhere":
        return []
    where = f"another board runs it, as set by its program's HBRT_ROUTE, for {span(task.age_s)}"
    return [Step(node, f"{where}: run 'hbrt why' on that board for more")]


def _chain(before: Look, now: Look, program: Program | None, task: Task, more: int, path: list[Node]) -> Chain:
    index = now.board
    others = f" and {more} more" if more else ""
    owner = index.programs.get(task.owner)
    if task.state == "inline" and owner is not None:
        text = (
            f"{_who(owner, task)} runs {_task(task)} itself, in the thread that called, for {span(task.age_s)}{others}"
        )
        steps = [Step(Node(NodeKind.PROGRAM, owner.id), f"{text}: a debugger shows its line")]
    elif program is not None:
        steps = [Step(Node(NodeKind.PROGRAM, program.id), f"{_who(program, task)} waits for {_task(task)}{others}")]
    else:
        who = f"client {owner.id} (process {owner.pid}, {owner.name}) does not wait" if owner else "no client waits"
        steps = [Step(path[0], f"{who} for {_task(task)}{others}")]
    steps += _elsewhere(task, path[0])
    steps += [
        Step(Node(NodeKind.MUTEX, number), f"its thread at {wait.stack[0].site} waits for {wait.lock}")
        for number, (one, wait) in enumerate(locked_out(index))
        if program == one and wait.stack and wait.slot in {task.task, NO_SLOT}
    ]
    for at, node in enumerate(path):
        if node in path[:at]:
            break
        if at and node.kind is NodeKind.TASK and path[at - 1].kind is not NodeKind.TASK:
            steps.append(Step(node, _BEFORE_TASK[path[at - 1].kind].format(_task(index.tasks[node.number]))))
        if text := _on_node(before, now, node, path[at + 1] if at + 1 < len(path) else None):
            steps.append(Step(node, text))
    was = path_from(path[0], before.graph, before.hangs)
    if _key(index, path) != _key(before.board, was):
        verdict, why = Verdict.MOVES, ""
        if path[0] in now.hangs:
            why = "This is still moving: the chain was different a moment ago. Look again."
    elif path[0] in now.hangs and path[0] in before.hangs:
        verdict, why = Verdict.HANGS, _why_hangs(now, path)
    else:
        cores = [index.cores[node.number] for node in path if node.kind is NodeKind.CORE]
        stands = any(max(core.still_s, core.silent_s) > LONG_STILL_SECONDS for core in cores)
        verdict, why = Verdict.WAITS, _UNSURE[path[-1] in path[:-1]] if stands else ""
    return Chain(program.id if program else None, task.task, verdict, tuple(steps), why)


def _key(index: Index, path: list[Node]) -> list[tuple[Node, int]]:
    """Key of a chain: its nodes, and the tasks in their slots."""
    return [
        (node, index.tasks[node.number].sequence if node.kind is NodeKind.TASK and node.number in index.tasks else 0)
        for node in path
    ]


def _task(task: Task) -> str:
    return f"task {task.task} ({task.op})"


def _who(program: Program, task: Task) -> str:
    name = f"client {program.id} (process {program.pid}, {program.name}"
    if program.hop:
        return f"client {program.id} ({program.name}), which comes by {program.hop} and cannot tell its line,"
    if program.is_stopped:
        return f"{name}), which is stopped, by a signal (SIGSTOP) or a debugger,"
    wait = next((one for one in board_waits(program) if one.slot in {task.task, -1} and one.stack), None)
    return f"{name}; it cannot tell its line)" if wait is None else f"{name}, at {wait.stack[0].site})"


def _on_node(before: Look, now: Look, node: Node, after: Node | None) -> str:
    """The clause about a node of a chain and the node that it waits for; empty if there is none."""
    index = now.board
    if node.kind is NodeKind.TASK:
        task = index.tasks[node.number]
        return _in_queue(now, task, after) if task.state == "ready" else ""
    if node.kind is NodeKind.CORE:
        return _on_core(index, before.board, index.cores[node.number])
    if node.kind is NodeKind.FLAG:
        flag = next(one.flag for one in index.records.cores if one.flag and one.flag.phy_addr == node.number)
        return _on_flag(index, flag)
    if node.kind is NodeKind.RELAY:
        if not index.records.relay_pid:
            return "no relay is running to queue it"
        stopped = ", which is stopped, by a signal (SIGSTOP) or a debugger" if index.records.relay_is_stopped else ""
        return f"it is on its way to the relay (process {index.records.relay_pid}){stopped}"
    lock = index.records.lock
    if lock is None:
        return ""
    program = next((f"client {one.id}, {one.name}: " for one in index.records.programs if one.pid == lock.pid), "")
    return f"no core can claim it, because the claim lock is held by {program}{lock.holder}"


def _in_queue(now: Look, task: Task, after: Node | None) -> str:
    index = now.board
    if after is None:
        return "there is no core that may run it"
    if after.kind is not NodeKind.TASK:
        return ""
    # First the task that the chain continues with, then those of the other cores.
    edges = sorted(now.graph[Node(NodeKind.TASK, task.task)], key=lambda edge: edge != after)
    blocking = [index.tasks[edge.number] for edge in edges if edge.kind is NodeKind.TASK]
    behind = ", or ".join(f"{_task(one)} on core {one.core}" for one in blocking)
    ahead = len(ahead_of(index, task))
    queue = f", with {ahead} more ahead of it" if ahead else ""
    return f"it is queued behind {behind}{queue}"


def _on_core(index: Index, before: Index, core: Core) -> str:
    running = index.running[core.core]
    if not running:
        return core.problem.rstrip(".") if core.problem else f"core {core.core} is about to take it"
    task = running[-1]
    then = before.cores.get(core.core)
    has_moved = then is not None and then.stack and core.stack and own_of(then.stack) != own_of(core.stack)
    parts = [
        f"core {core.core} (process {core.pid}) has run task {task.task} for {span(task.ran_s)} "
        + (place_of(core.stack, core.dma_handle, core.dma_outstanding) or "and cannot tell its line")
    ]
    if len(running) > 1:
        parts[0] += f", which has interrupted task {running[-2].task}"
    if has_moved and then is not None:
        parts.append(f"it is moving: a moment ago it was {place_of(then.stack)}")
    elif core.still_s > LONG_STILL_SECONDS and core.health != "stuck":  # a stuck core's problem already says so
        parts.append(f"no progress there for {span(core.still_s)}")
    if core.health == "stalled" and not core.is_stopped:
        parts.append(
            f"it has had no heartbeat for {span(core.silent_s)}, since it is in C code that holds the interpreter lock"
        )
    if task.limit_s and task.ran_s > LONG_STILL_SECONDS:
        parts.append(f"the watchdog ends it after {span(task.limit_s)}")
    return "; ".join(filter(None, parts))


def _on_flag(index: Index, flag: Flag) -> str:
    """The clause about the memory that an op polls, and about the programs that could write it."""
    value = f", which holds {_value(flag)}" if flag.value else ""
    users = [index.programs[one] for one in flag.users if one in index.programs]
    whose = " and ".join(f"client {one.id} (process {one.pid}, {one.name})" for one in users) or "no client anymore"
    block = f"; its block {flag.block:#x}+{flag.block_bytes:#x} belongs to {whose}"
    return (
        f"its loop keeps reading {counted(flag.size_bytes, 'byte')} at {flag.phy_addr:#x}{value}: it may be waiting "
        f"for somebody to write there{block}"
    )


def _value(flag: Flag) -> str:
    return f"{int.from_bytes(bytes.fromhex(flag.value), 'little'):#x}"


def _why_hangs(now: Look, path: list[Node]) -> str:
    index = now.board
    culprit = next((node for node in path if is_culprit(index, node)), None)
    if culprit is None:
        return "This hangs: it waits for itself."
    if culprit.kind is NodeKind.LOCK and index.records.lock is not None:
        return f"This hangs: {index.records.lock.advice}"
    if culprit.kind is NodeKind.CORE:
        problem = index.cores[culprit.number].problem
        return f"This hangs: {problem[:1].lower()}{problem[1:]}"
    if culprit.kind is NodeKind.RELAY and index.records.relay_pid:
        return f"This hangs: 'kill -CONT {index.records.relay_pid}' resumes the relay."
    return "This hangs."
