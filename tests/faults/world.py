"""A board of the campaign, what happens on it, and what must hold afterwards."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import hbrt.board.launch
from arm_client.session.session import Session
from hbrt.board.launch import DaemonConfig, launch
from hbrt.board.paths import BoardPaths
from hbrt.control.ask import ask
from hbrt.ddr.claim_lock import ClaimLock
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import BLOCK, BLOCK_FREED, BLOCK_RECORD_BYTES, CLIENT_ASLEEP, CORE_ACTIVITY, PAGE_BYTES
from hbrt.mailbox.table import FIRST_END, Mailbox, State
from tests.faults import ops
from tests.faults.points import Point
from tests.faults.tracer import DIRECTORY
from tests.limits import PATIENCE_S
from tests.waiting import until

IMAGE = Path(__file__).parent / "image.py"
REPOSITORY = Path(__file__).resolve().parents[2]
TRACED = "from tests.faults.victims import daemon; daemon()"  # a daemon that watches its own lines
DDR_BYTES = 16 << 20
HARMLESS = {"leak", "claim-lock", "ping-blocks"}  # of a client that is killed, or stopped and killed; of nonsense


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal."""
    return _state_of(pid) == "T"


def is_blocked(pid: int) -> bool:
    """Whether the main thread of a process waits for something."""
    return _state_of(pid) == "S"


def _state_of(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):  # it has ended, and its parent knows
        return ""
    return stat.rpartition(")")[2].split()[0]


class Tokens:
    """The directory in which tests say who shall die where."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def arm(self, point: Point, how: str) -> None:
        """Have the next process that comes by die there."""
        (self.path / f"{point.key}.{how}").touch()

    def was_taken(self, point: Point, how: str) -> bool:
        """Whether somebody came by."""
        return (self.path / f"{point.key}.{how}.taken").exists()

    def clear(self) -> None:
        """Spare everybody."""
        for token in self.path.iterdir():
            token.unlink()


class Call:
    """A submitted task, and a thread that waits for it as a program does: without a time limit."""

    def __init__(self, session: Session, cmd: int, core: int, *, gate_open: bool, priority: int = 0) -> None:
        self.session = session
        self.block = session.blocks.alloc(64)
        self.block.view[1] = gate_open
        self.handle = session.tasks.submit(cmd, priority, core, 0, self.block.phy_addr, 64, 0, 0)
        assert self.handle > 0, session.tasks.why()
        self.status: int | None = None
        self.text = ""
        self._waiter = threading.Thread(target=self._wait, daemon=True)

    def _wait(self) -> None:
        status = self.session.tasks.wait(self.handle, 0)
        self.text = self.session.tasks.why() if status else ""
        self.status = status

    def start_waiting(self) -> Call:
        self._waiter.start()
        return self

    def open_gate(self) -> None:
        self.block.view[1] = 1

    def end(self) -> int:
        """Status of the task; fails when the caller hangs."""
        if not self._waiter.is_alive() and self.status is None:
            self._waiter.start()
        self._waiter.join(PATIENCE_S)
        assert self.status is not None, f"the caller hangs; {self.session.link.mailbox.story(self.slot)}"
        return self.status

    @property
    def slot(self) -> int:
        return self.handle & 4095

    @property
    def runs(self) -> int:
        """How often the op went through."""
        return int(self.block.view[2])

    def let_go(self) -> None:
        """Release the task and free its block."""
        assert self.session.tasks.release(self.handle) == 0
        self.session.blocks.free(self.block.phy_addr)


class World:
    """A board whose actors can be made to die, and a client of it in this process: the bystander."""

    def __init__(
        self, *, cores: int = 2, is_traced: bool = False, path: Path | None = None, image: Path = IMAGE
    ) -> None:
        self.home = path or Path(tempfile.mkdtemp(prefix="hbrt-f-", dir="/tmp"))
        self.tokens = Tokens(self.home / "tokens")
        self.tokens.path.mkdir(exist_ok=True)
        os.environ[DIRECTORY] = str(self.tokens.path)
        self.paths = BoardPaths(self.home / "board")
        config = DaemonConfig(str(self.paths.path), str(image), cores, DDR_BYTES, load_seconds=20.0)
        with pytest.MonkeyPatch.context() as patch:
            if is_traced:
                patch.setattr(hbrt.board.launch, "PROGRAM", TRACED)
            launched = launch(config)
        self.pid, self.removed = launched.pid, launched.removed
        self.session = self.attach()
        self.mailbox: Mailbox = self.session.link.mailbox
        self.cores = cores

    def attach(self) -> Session:
        """A client in this process."""
        session = Session(self.paths)
        session.users = 1
        return session

    def ask(self, verb: str, **args: Any) -> Any:
        return ask(self.paths, verb, PATIENCE_S, **args)

    def core_pid(self, index: int) -> int:
        """Process of a core that runs."""
        return int(until(lambda: self.ask("status")["cores"][index]["pid"], f"a process of core {index}"))

    def await_asleep(self, index: int) -> None:
        """Wait until a core sleeps."""
        at = self.mailbox.layout.core(index) + CORE_ACTIVITY
        until(lambda: self.mailbox.map[at] == 0, f"sleep of core {index}")

    def sleeps(self, client: int) -> bool:
        """Whether a client sleeps on its doorbell."""
        return bool(self.mailbox.map[self.mailbox.layout.client(client) + CLIENT_ASLEEP])

    def call(self, core: int = 0, cmd: int = ops.GATED, *, gate_open: bool = True, priority: int = 0) -> Call:
        """A submitted task of the bystander; ``core`` is a mask."""
        return Call(self.session, cmd, core, gate_open=gate_open, priority=priority)

    def serves(self) -> list[str]:
        """What a call to each core shows; empty when all answer."""
        found = []
        for index in range(self.cores):
            call = self.call(1 << index)
            status = call.end()
            if status or call.runs != 1:
                found.append(f"core {index} answered {status} ({call.text}) after {call.runs} runs")
            call.let_go()
        return found

    def settle(self) -> float:
        """Wait until every invariant holds; returns seconds. Fails with what does not hold."""
        begin = time.monotonic()
        while found := problems(self):
            assert time.monotonic() - begin < PATIENCE_S, "\n".join(found)
            time.sleep(0.002)
        return time.monotonic() - begin

    def settle_clients(self, count: int) -> None:
        """Wait until so many clients are attached, those that leave included."""
        until(lambda: len(self.ask("status")["clients"]) == count, f"{count} clients")

    def open_files(self) -> int:
        """Descriptors of the daemon."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def close(self, *, keep_home: bool = False) -> None:
        """End the board in good order."""
        self.session.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        if not keep_home:
            shutil.rmtree(self.home)


class Voice(NamedTuple):
    """What a client of the nursery said when it had attached."""

    connection: socket.socket
    client: int
    phy_addr: int


class Nursery:
    """Forks clients that can be made to die."""

    def __init__(self, world: World) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        address = str(world.home / f"voice-{secrets.token_hex(4)}")
        self._listener.bind(address)
        self._listener.listen(64)
        self._listener.settimeout(PATIENCE_S)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.victims", "nursery", str(world.paths.path), address],
            cwd=REPOSITORY,
            env={**os.environ, DIRECTORY: str(world.tokens.path)},
            stdin=subprocess.PIPE,
        )

    def bear(self, life: str = "live") -> tuple[int, socket.socket]:
        """A new client (see victims.LIVES): its process, and the connection over which it speaks."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{life}\n".encode())
        self._process.stdin.flush()
        voice, _ = self._listener.accept()
        voice.settimeout(PATIENCE_S)
        pid, _, _ = np.frombuffer(voice.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12), dtype=np.int32)
        return int(pid), voice

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(PATIENCE_S) == 0
        self._listener.close()


@contextlib.contextmanager
def nursery(world: World) -> Iterator[Nursery]:
    """A nursery for a while."""
    made = Nursery(world)
    yield made
    made.close()


# -- invariants: what must hold whenever nobody has a task under way ------------------------------------------------


def problems(world: World) -> list[str]:
    """Sentences on every invariant that does not hold now."""
    status, memory = world.ask("status"), world.ask("mem", most=1_000_000)
    return [
        *_no_task_is_left(world.mailbox),
        *_every_slot_is_leased_or_free(status),
        *_tables_equal_heap(world.session.link.ddr, memory["blocks"]),
        *_clients_own_what_the_heap_says(world.session, status, memory["blocks"]),
        *_nobody_holds_the_lock(world.mailbox),
        *_every_core_is_well(status),
        *(f"finding {f['kind']}: {f['text']}" for f in status["findings"] if f["kind"] not in HARMLESS),
    ]


def _no_task_is_left(mailbox: Mailbox) -> list[str]:
    """Every task has ended and its slot is empty: none is queued, none runs, no end is unread."""
    left = mailbox.slots_in(
        State.SENT, State.READY, State.RUNNING, *(State(end) for end in range(FIRST_END, max(State) + 1))
    )
    return [f"slot {slot} is {mailbox.state(slot).name}: {mailbox.story(slot)}" for slot in left]


def _every_slot_is_leased_or_free(status: dict[str, Any]) -> list[str]:
    slots = status["slots"]
    if slots["leased"] + slots["free"] == slots["total"]:
        return []
    return [f"{slots['leased']} slots leased + {slots['free']} free are not {slots['total']}"]


def _tables_equal_heap(ddr: Ddr, blocks: list[dict[str, Any]]) -> list[str]:
    """The page table and the block table say what the heap says, and nothing else."""
    layout, found = ddr.layout, []
    pages = np.frombuffer(
        ddr.bytes[layout.pages : layout.pages + layout.heap_bytes // PAGE_BYTES * 4], np.uint32
    ).copy()
    for block in blocks:
        first = (block["phy_addr"] - layout.phy_base) // PAGE_BYTES
        count = -(-block["size_bytes"] // PAGE_BYTES)
        ids = set(pages[first : first + count].tolist())
        pages[first : first + count] = 0
        if max(ids) >= BLOCK_FREED:
            found.append(f"the block was freed after the daemon had listed it: {block}")
            continue
        record = layout.blocks + min(ids) * BLOCK_RECORD_BYTES
        phy_addr, size_bytes, owner, _ = BLOCK.unpack_from(ddr.map, record)
        if len(ids) != 1 or (phy_addr, size_bytes, owner) != (block["phy_addr"], block["size_bytes"], block["client"]):
            found.append(f"the tables have {ids} {phy_addr:#x}+{size_bytes:#x} of {owner} for {block}")
    live = pages[(pages != 0) & (pages < BLOCK_FREED)]
    if live.any():
        found.append(f"the page table has blocks {sorted(set(live.tolist()))} that the heap has not")
    return found


def _clients_own_what_the_heap_says(
    session: Session, status: dict[str, Any], blocks: list[dict[str, Any]]
) -> list[str]:
    found = []
    for client in status["clients"]:
        sizes = [block["size_bytes"] for block in blocks if block["client"] == client["id"]]
        if (client["blocks"], client["bytes"]) != (len(sizes), sum(sizes)):
            found.append(f"client {client['id']} has {client['blocks']} blocks, the heap says {len(sizes)}")
    known = {client["id"] for client in status["clients"]}
    found += [f"{block} belongs to a client that is gone" for block in blocks if block["client"] not in known]
    ours = [block["phy_addr"] for block in blocks if block["client"] == session.link.client_id]
    if (held := [block.phy_addr for block in session.blocks.owned()]) != ours:
        found.append(f"this client holds {held}, the heap says {ours}")
    return found


def _nobody_holds_the_lock(mailbox: Mailbox) -> list[str]:
    """Whoever holds it now is a core at work: it comes free at once."""
    lock = mailbox.claim_lock
    deadline = time.monotonic() + PATIENCE_S
    while (code := ClaimLock.try_acquire(lock.handle)) == errno.EBUSY:
        if time.monotonic() > deadline:
            return ["the claim lock is held"]
    if code == errno.EOWNERDEAD:
        lock.acquire_slowly(code)
    elif code:
        return [f"the claim lock is broken: {os.strerror(code)}"]
    lock.release(lock.handle)
    return []


def _every_core_is_well(status: dict[str, Any]) -> list[str]:
    return [
        f"core {c['core']} is {c['state']}, {c['health']}" for c in status["cores"] if c["health"] not in {"ok", "busy"}
    ]
