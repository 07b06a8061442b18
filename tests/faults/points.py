"""The points of a task's life at which somebody can die: what is about to happen, and in which line of whose code.

A point is the line *before* which its actor dies: "READY is about to be written". A line of Python is found by its
text, so that the table follows the code, one of C by its HBRT_KILL_POINT; test_points.py fails when a line is gone.
``everywhere`` makes a point of every line of the same Python functions, for the exhaustive campaign
(``pytest tests/faults --faults=all``).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple


class Point(NamedTuple):
    """Where an actor dies.

    ``outcome`` says what must become of the task that was in its hands: of a core's and a relay's victim "done" or
    "lost", of a client's "" (nobody asks anymore); of a daemon's, what makes it come by.
    """

    actor: str
    number: str
    what: str
    target: str
    anchor: str
    outcome: str = ""
    nth: int = 1
    has_lock: bool = False

    @property
    def key(self) -> str:
        """Name of its token."""
        return f"{self.actor}-{self.number}"

    @property
    def is_in_c(self) -> bool:
        """Whether it is a line of C, which has the macro with this key."""
        return self.target.endswith(".c")

    @property
    def is_numbered(self) -> bool:
        """Whether it is one of POINTS, whose outcome is known."""
        return self.is_in_c or bool(self.anchor)


SOURCES = Path(__file__).resolve().parents[2] / "native" / "mailbox"
_CORE, _CLIENT, _WAIT = "core.c", "client.c", "wait.c"
_RUN = "dsp_server.core.loop:Core.run"
_OP = "tests.faults.ops:gated"
_MORE = "hbrt.attach.slots:Slots.take"
_LINK, _BLOCKS = "hbrt.attach.link:LocalLink", "arm_client.memory.blocks:Blocks"
_HELLO, _ALLOC, _TAKE, _RECLAIM = (
    "dsp_server.daemon.leases:Leases._on_hello",
    "dsp_server.memory.owners:BoardMemory.alloc",
    "dsp_server.memory.owners:BoardMemory._take",
    "dsp_server.memory.owners:BoardMemory._reclaim",
)
_RELAY, _DISPATCH = "dsp_server.relay.server:Relay", "dsp_server.relay.dispatch:RelayDispatcher.dispatch"

POINTS = [
    # A core, with a task of one waiting client that only it may run, and another one behind it.
    Point("core", "C01", "collect: the announce byte is about to be cleared", _CORE, "", "done"),
    Point("core", "C02", "collect: the announce byte is cleared", _CORE, "", "done"),
    Point("core", "C03", "claim: the task is in its queue", _CORE, "", "done"),
    Point("core", "C04", "claim: the lock is about to be taken", _CORE, "", "done"),
    Point("core", "C05", "claim: the lock is taken", _CORE, "", "done", has_lock=True),
    Point("core", "C06", "claim: the slot is marked", _CORE, "", "done", has_lock=True),
    Point("core", "C07", "claim: RUNNING, the lock still held", _CORE, "", "lost", has_lock=True),
    Point("core", "C08", "claim: RUNNING, the lock let go", _CORE, "", "lost"),
    Point("core", "C09", "run: the record is about to be read", _RUN, "cmd, now.priority, owner", "lost"),
    Point("core", "C10", "run: the op is about to start", _RUN, "function(*views, tile_m", "lost"),
    Point("core", "C11", "op: it has started", _OP, "input[0] = 1", "lost"),
    Point("core", "C12", "op: it has done its work", _OP, "return 0", "lost"),
    Point("core", "C13", "run: the op has returned", _RUN, "now.is_in_op = False", "lost"),
    Point("core", "C14", "answer: about to be written", _CORE, "", "lost"),
    Point("core", "C15", "answer: written and in the history, the end state is not", _CORE, "", "lost"),
    Point("core", "C16", "answer: the end state is written", _CORE, "", "done"),
    Point("core", "C17", "answer: it looks again, the client is not rung", _CORE, "", "done"),
    Point("core", "C18", "answer: the client sleeps, about to be marked rung", _CORE, "", "done"),
    Point("core", "C19", "answer: marked rung, not rung", _CORE, "", "done"),
    Point("core", "C21", "wait: nothing left, about to say ASLEEP", _CORE, "", "done"),
    Point(
        "core",
        "C22",
        "wait: it said ASLEEP, about to look once more",
        _CORE,
        "",
        "done",
    ),
    # A client, from its first packet to its last.
    Point("client", "A01", "attach: connected, about to say hello", "hbrt.attach.link:_greet", "lease.send("),
    Point("client", "A02", "attach: about to read the answer", "hbrt.attach.link:_greet", "receive_fds("),
    Point("client", "A03", "attach: has its descriptors", f"{_LINK}.__init__", "self.ddr = Ddr("),
    Point("client", "M01", "alloc: about to ask", f"{_BLOCKS}.alloc", "phy_addr = self._link.request("),
    Point("client", "M02", "alloc: has the address", f"{_BLOCKS}.alloc", "block = self._adopt("),
    Point("client", "S01", "submit: a slot is taken", _CLIENT, ""),
    Point("client", "S02", "submit: the record is about to be written", _CLIENT, ""),
    Point("client", "S03", "submit: the record is written", _CLIENT, ""),
    Point("client", "S04", "submit: READY, not announced", _CLIENT, ""),
    Point("client", "S05", "submit: announced, nobody rung", _CLIENT, ""),
    Point("client", "S06", "submit: rung", _CLIENT, ""),
    Point("client", "X01", "cancel: about to take the lock", _CLIENT, ""),
    Point("client", "X02", "cancel: the lock is taken", _CLIENT, "", has_lock=True),
    Point("client", "X03", "cancel: the answer is written", _CLIENT, "", has_lock=True),
    Point("client", "X04", "cancel: CANCELLED, the lock still held", _CLIENT, "", has_lock=True),
    Point("client", "W01", "wait: about to say that it sleeps", _WAIT, ""),
    Point("client", "W02", "wait: said so, about to look once more", _WAIT, ""),
    Point("client", "W03", "wait: about to sleep", _WAIT, ""),
    Point("client", "W04", "wait: woken", _WAIT, ""),
    Point("client", "W05", "wait: about to read the result", _WAIT, ""),
    Point("client", "R01", "release: about to let the handle go", _CLIENT, ""),
    Point("client", "R02", "release: about to empty the slot", _CLIENT, ""),
    Point("client", "R03", "release: EMPTY", _CLIENT, ""),
    Point("client", "M03", "free: about to ask", f"{_BLOCKS}._request_free", 'self._link.request("free"'),
    Point(
        "client", "M04", "free: done, not noted", f"{_BLOCKS}.free", "if block is not None and not block.registrations:"
    ),
    Point("client", "L01", "slots: about to ask for more", _MORE, "self.free.extend("),
    Point("client", "E01", "detach: about to close", f"{_LINK}.close", "self.detach()"),
    Point("client", "E02", "detach: control closed, the lease open", f"{_LINK}.close", "self._close_descriptors()"),
    # The daemon, in what somebody made it do.
    Point("daemon", "D01", "attach: the client has an id", _HELLO, "self._awaiting_hello.pop(", "attach"),
    Point(
        "daemon", "D02", "attach: the lease is about to be accepted", _HELLO, "self._connections[client.id] =", "attach"
    ),
    Point("daemon", "D03", "attach: the cores know, the client does not", _HELLO, "answer = control.pack(", "attach"),
    Point("daemon", "D04", "attach: the descriptors are about to be sent", _HELLO, "socket.send_fds(", "attach"),
    Point("daemon", "D05", "alloc: taken from the heap", _TAKE, "self._find_late_write(", "alloc"),
    Point(
        "daemon",
        "D06",
        "alloc: the record is written, the pages are not",
        "hbrt.ddr.file:DdrTables.add",
        "self._mark(",
        "alloc",
    ),
    Point("daemon", "D07", "alloc: published, not answered", _ALLOC, "return block.phy_addr", "alloc"),
    Point("daemon", "D08", "free: about to be withdrawn", _RECLAIM, "self._tables.remove(", "free", has_lock=True),
    Point("daemon", "D09", "free: withdrawn", _RECLAIM, "self._check_overrun(life)", "free"),
    Point("daemon", "D10", "free: about to return to the heap", _RECLAIM, "self._heap.free(", "free"),
    Point(
        "daemon",
        "D11",
        "slots: taken, not noted",
        "dsp_server.clients:Clients.lease_slots",
        "client.slots.extend(",
        "slots",
    ),
    Point(
        "daemon",
        "D12",
        "client gone: its queued task is about to be cancelled",
        "dsp_server.clients:Clients.reclaim_tasks",
        "mailbox.move(",
        "client",
        1,
        True,
    ),
    Point(
        *("daemon", "D13", "client gone: its memory is back, its id is not"),
        *("dsp_server.daemon.leases:Leases._discard", "self._remove_client(client)", "client"),
    ),
    Point(
        "daemon",
        "D14",
        "core dead: its state is about to be published",
        "dsp_server.lifecycle.core_state:BoardCore.publish",
        "mm[record + CORE_STATE]",
        "core",
    ),
    Point(
        "daemon",
        "D15",
        "core dead: its task's answer is written, the end state is not",
        "dsp_server.lifecycle.task_ends:TaskReaper._fail",
        "mailbox.move(",
        "core",
        1,
        True,
    ),
    Point(
        "daemon",
        "D16",
        "core dead: its task is ended, the client not rung",
        "dsp_server.lifecycle.task_ends:TaskReaper._fail",
        "self._clients.ring(",
        "core",
    ),
    Point(
        "daemon",
        "D17",
        "core dead: the next is about to start",
        "dsp_server.lifecycle.processes:CoreProcesses.start",
        "child = spawn(",
        "core",
    ),
    Point(
        "daemon",
        "D18",
        "core dead: the next is about to go",
        "dsp_server.lifecycle.core_state:BoardCore.go",
        "child.go(",
        "core",
    ),
    # The relay, with one process's task.
    Point("relay", "R11", "hello: about to be known", f"{_RELAY}._admit", "self._peers[identity] =", "any"),
    Point("relay", "R12", "submit: has the message", _DISPATCH, "peer, has_cores = self._peer_of", "lost"),
    Point("relay", "R13", "submit: about to take the lock", _CLIENT, "", "lost"),
    Point("relay", "R14", "submit: the lock is taken", _CLIENT, "", "lost", has_lock=True),
    Point("relay", "R15", "submit: about to say READY", _CLIENT, "", "lost", has_lock=True),
    # From READY on, a core may be quicker than the news of the relay's end.
    Point("relay", "R16", "submit: READY, not announced", _CLIENT, "", "any", has_lock=True),
    Point("relay", "R17", "submit: announced, the lock still held", _CLIENT, "", "any", has_lock=True),
    Point("relay", "R18", "submit: announced, about to ring", _CLIENT, "", "any"),
]


@cache
def code_of(target: str) -> CodeType:
    """Code of ``module:Class.function``."""
    module, _, path = target.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    code: CodeType = found.__code__
    return code


def line_of(point: Point) -> int:
    """Number of the point's line.

    Raises:
        LookupError: the function has no such line anymore.
    """
    if point.is_in_c:
        macro = f'HBRT_KILL_POINT("{point.key}");'
        text = (SOURCES / point.target).read_text(encoding="utf-8").splitlines()
        found = [number for number, line in enumerate(text, 1) if macro in line]
        if len(found) != 1:
            raise LookupError(f"{point.key}: {point.target} has {len(found)} lines with {macro}")
        return found[0]
    code = code_of(point.target)
    if not point.anchor:
        return code.co_firstlineno + point.nth
    lines, first = inspect.getsourcelines(code)
    found = [first + at for at, line in enumerate(lines) if point.anchor in line]
    if len(found) < point.nth:
        raise LookupError(f"{point.key}: {point.target} has no line {point.nth} with {point.anchor!r}")
    return found[point.nth - 1]


def everywhere(actor: str) -> Iterator[Point]:
    """A point for every line of the functions that an actor's points lie in."""
    for target in dict.fromkeys(point.target for point in POINTS if point.actor == actor and not point.is_in_c):
        code = code_of(target)
        for line in sorted({line for *_, line in code.co_lines() if line and line > code.co_firstlineno}):
            at, name = line - code.co_firstlineno, target.partition(":")[2]
            yield Point(actor, f"{name}+{at}", inspect.getsourcelines(code)[0][at].strip(), target, "", nth=at)


def of(actor: str) -> list[Point]:
    """The numbered points of an actor."""
    return [point for point in POINTS if point.actor == actor]
