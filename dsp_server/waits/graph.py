"""A board's wait graph: which node waits for which, and whether the wait will end. Rules only.

A node is a kind and a number: a program, a task (its slot), a core, the relay, the claim lock, a flag (its physical
address), or a lock inside a program (numbered across all programs). Edges lead from a node to the nodes that it waits
for. A task's edges are alternatives: it waits for whichever of its cores is free first. So it hangs if all of them
lead to nodes that hang, or back to itself. A program waits for all of its tasks. A flag waits for the tasks whose
output contains it, but others may write it too, so it does not make others hang. A lock waits for the task that its
holder waits for, or for the next lock in a cycle of threads, which hangs.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from dsp_server.waits.records import Core, Program, Records, Task
from hbrt.protocol.stacks import NO_SLOT, Wait

LONG_SILENT_SECONDS = 5.0  # a shorter silence may be a single long call into C


class NodeKind(StrEnum):
    """The kinds of nodes."""

    PROGRAM = "program"
    TASK = "task"
    CORE = "core"
    RELAY = "relay"
    LOCK = "claim lock"
    FLAG = "flag"
    MUTEX = "lock"


class Node(NamedTuple):
    """A node in the graph: a kind, and the number of a program, task, core, flag or lock; 0 for other kinds."""

    kind: NodeKind
    number: int = 0


Graph: TypeAlias = Mapping[Node, tuple[Node, ...]]


class Index(NamedTuple):
    """The records of one moment by number; for each core its running tasks, innermost last."""

    records: Records
    programs: dict[int, Program]
    tasks: dict[int, Task]
    cores: dict[int, Core]
    running: dict[int, list[Task]]


def index_of(records: Records) -> Index:
    """Index the records by number."""
    return Index(
        records,
        {one.id: one for one in records.programs},
        {one.task: one for one in records.tasks},
        {one.core: one for one in records.cores},
        {
            # A task that has run for less time has interrupted those that have run longer.
            core.core: sorted((one for one in records.tasks if one.core == core.core), key=lambda one: -one.ran_s)
            for core in records.cores
        },
    )


def graph_of(index: Index) -> Graph:
    """Return the nodes that each node waits for."""
    records = index.records
    graph: dict[Node, tuple[Node, ...]] = {Node(NodeKind.RELAY): (), Node(NodeKind.LOCK): _of_lock(index)}
    graph |= {Node(NodeKind.PROGRAM, one.id): _tasks(awaited(index, one)) for one in records.programs}
    graph |= {Node(NodeKind.TASK, one.task): _of_task(index, one) for one in records.tasks}
    graph |= {Node(NodeKind.CORE, one.core): _of_core(index, one) for one in records.cores}
    graph |= {
        Node(NodeKind.FLAG, one.flag.phy_addr): _of_flag(index, one) for one in records.cores if one.flag is not None
    }
    locked = locked_out(index)
    return graph | {
        Node(NodeKind.MUTEX, at): _tasks([index.tasks[wait.slot]])
        if wait.slot in index.tasks
        else tuple(Node(NodeKind.MUTEX, other) for other in _next_in_circle(locked, at))
        for at, (_, wait) in enumerate(locked)
    }


def awaited(index: Index, program: Program) -> list[Task]:
    """Tasks that a program waits for: those that its threads wait for, or else all its unfinished ones, by age."""
    own = [task for task in index.records.tasks if task.owner == program.id]
    own.sort(key=lambda task: task.sequence)
    waits = board_waits(program)
    named = {wait.slot for wait in waits}
    if -1 not in named and (found := [task for task in own if task.task in named]):
        return found
    return own if program.is_asleep or program.hop or waits else []


def board_waits(program: Program) -> list[Wait]:
    """Waits of a program's threads for the board, excluding those for locks of its own."""
    return [wait for wait in program.waits or () if not wait.lock]


def locked_out(index: Index) -> list[tuple[Program, Wait]]:
    """Threads that wait for a lock in their own program."""
    return [(one, wait) for one in index.records.programs for wait in one.waits or () if wait.lock]


def eligible(index: Index, task: Task) -> list[Core]:
    """Cores that may run a task and that are serving or will restart automatically."""
    return [
        core
        for core in index.records.cores
        if (not task.core_mask or task.core_mask >> core.core & 1) and (core.state == "running" or core.comes_back)
    ]


def ahead_of(index: Index, task: Task) -> list[Task]:
    """Queued tasks that run before this one on any of the same cores."""
    cores = {core.core for core in eligible(index, task)}
    ready = (one for one in index.records.tasks if one.state == "ready" and one.order < task.order)
    return [one for one in ready if cores & {core.core for core in eligible(index, one)}]


def is_culprit(index: Index, node: Node) -> bool:
    """Whether a node is itself the reason that the nodes behind it wait forever."""
    if node.kind is NodeKind.CORE:
        core = index.cores[node.number]
        if core.health == "stalled" and not core.is_stopped:
            return core.silent_s > LONG_SILENT_SECONDS
        return bool(core.problem) and not (core.comes_back and core.state != "running")
    if node.kind is NodeKind.LOCK:
        lock = index.records.lock
        return lock is not None and lock.is_kept
    if node.kind is NodeKind.RELAY:
        return index.records.relay_is_stopped or not index.records.relay_pid
    return (
        node.kind is NodeKind.TASK
        and index.tasks[node.number].state == "ready"
        and not eligible(index, index.tasks[node.number])
    )


def hanging(index: Index, graph: Graph) -> frozenset[Node]:
    """Nodes that cannot continue on their own: culprits, cycles, and nodes that wait only for such nodes."""
    # All others continue: they have no edges, or one of their alternatives continues.
    going: set[Node] = set()
    while more := {
        node
        for node, edges in graph.items()
        if node not in going and not is_culprit(index, node) and _goes_on(node, edges, going)
    }:
        going |= more
    return frozenset(graph) - going


def _goes_on(node: Node, edges: tuple[Node, ...], going: set[Node]) -> bool:
    every = all if node.kind is NodeKind.PROGRAM else any
    return not edges or node.kind is NodeKind.FLAG or every(edge in going for edge in edges)


def cycles(graph: Graph) -> list[list[Node]]:
    """Cycles of a graph, each once, in waiting order, beginning with the smallest node."""
    found: list[list[Node]] = []
    for start in sorted(graph):
        stack = [(start, iter(graph[start]))]
        path = [start]
        seen = {start}
        while stack:
            for edge in stack[-1][1]:
                if edge == start:
                    if min(path) == start and sorted(path) not in map(sorted, found):
                        found.append(path.copy())
                elif edge not in seen and edge in graph:
                    seen.add(edge)
                    path.append(edge)
                    stack.append((edge, iter(graph[edge])))
                    break
            else:
                stack.pop()
                path.pop()
    return found


def path_from(node: Node, graph: Graph, hangs: frozenset[Node]) -> list[Node]:
    """Path from a node along its waits, to the last node or to a node that is already on the path.

    Among alternatives it follows one that continues, since that is where the wait ends; otherwise the first.
    """
    path = [node]
    while edges := graph.get(path[-1], ()):
        after = next((edge for edge in edges if edge not in hangs), edges[0])
        path.append(after)
        if after in path[:-1]:
            break
    return path


def _of_task(index: Index, task: Task) -> tuple[Node, ...]:
    if task.state in {"inline", "elsewhere"}:
        return ()
    if task.state == "sent":
        return (Node(NodeKind.RELAY),)
    if task.state == "running":
        return (Node(NodeKind.CORE, task.core),)
    if index.records.lock is not None and index.records.lock.is_kept:
        return (Node(NodeKind.LOCK),)
    # A task waits for a busy core via the task that the core is running.
    running = ((core.core, index.running[core.core]) for core in eligible(index, task))
    return tuple(Node(NodeKind.TASK, tasks[-1].task) if tasks else Node(NodeKind.CORE, core) for core, tasks in running)


def _of_core(index: Index, core: Core) -> tuple[Node, ...]:
    """An op waits for the tasks that its process, or a child of it, waits for; otherwise for the flag it polls."""
    tasks = [task for one in index.records.programs if core.core in one.cores for task in awaited(index, one)]
    return _tasks(tasks[:1]) or (() if core.flag is None else (Node(NodeKind.FLAG, core.flag.phy_addr),))


def _of_flag(index: Index, core: Core) -> tuple[Node, ...]:
    """Tasks that have not started and whose output contains a flag."""
    at = core.flag.phy_addr if core.flag is not None else 0
    found = [one for one in index.records.tasks if 0 <= at - one.output[0] < one.output[1] and one.state == "ready"]
    return _tasks(found)


def _next_in_circle(locked: list[tuple[Program, Wait]], at: int) -> list[int]:
    """Wait of the thread that holds the lock that this one waits for, if both are in a cycle of threads."""
    program, wait = locked[at]
    if wait.slot > NO_SLOT - 1:
        return []
    circle = [other for other, (of, one) in enumerate(locked) if (of.id, one.slot) == (program.id, wait.slot)]
    return [circle[(circle.index(at) + 1) % len(circle)]]


def _of_lock(index: Index) -> tuple[Node, ...]:
    lock = index.records.lock
    holders = [one for one in index.records.programs if lock is not None and one.pid == lock.pid]
    return _tasks([task for one in holders for task in awaited(index, one)][:1])


def _tasks(tasks: list[Task]) -> tuple[Node, ...]:
    return tuple(Node(NodeKind.TASK, task.task) for task in tasks)
