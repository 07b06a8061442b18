"""Weeks of a team's test load in minutes: ``python -m benchmarks.soak --minutes N``.

Clients with the C names and with the Python habits, direct and through the relay, call ops that answer, fail, hang or
end their core, and cancel, abandon and allocate meanwhile; one runs a model. All the while clients, a core, the cores
for models, the relay and the relay for other machines are killed at random, or stopped by a signal. Ends:

    calls C ended E lost L hung H

where L are tasks of living clients that have no end, and H calls whose wait took longer than a minute. Sizes and
handles are taken when no client is attached, after a warm-up and at the end; size is anonymous resident memory. One
core is never killed, so that its size says something. Exit code 1 when anything was lost or hung, or grew.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import mmap
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._measure import ROOT
from benchmarks._soak_client import COUNTERS_BYTES, ENDS, Count
from hbrt.board.launch import DaemonConfig, launch
from hbrt.board.paths import BoardPaths, home
from hbrt.cli.tables import Column, plain_lines
from hbrt.control.ask import ask

IMAGE = Path(__file__).parent / "_soak_image.py"
KINDS = (
    ("python", "direct"),
    ("c", "direct"),
    ("python", "relay"),
    ("c", "relay"),
    ("model", "direct"),
    ("python", "remote"),
    ("c", "remote"),
)
MAX_GROWTH_BYTES = 3 << 20  # the names of 2048 programs, 200 findings, and the gaps that an allocator leaves
WARM_UP = 0.3  # of the time, and no longer than
MAX_WARM_UP_SECONDS = 30.0
KILL_EVERY_SECONDS = 0.5
MIN_CALLS = 50  # of each client that lives to the end: what is opened at the first of a kind has been by then
LOOKS, SECONDS_BETWEEN_LOOKS = 5, 0.05
VICTIM = 0
SPARED = "core 1"
MAX_STOPPED_SECONDS = 2.0  # a core that runs ops, and a client; one for models stays stopped until the board ends it
TOLD = frozenset({"leak", "stalled-core", "relay-died"})  # kinds of findings that the kills bring
END_SECONDS = 90.0  # longer than a wait that counts as hung


class Worker:
    """A client process and its counters, which outlive it."""

    def __init__(self, api: str, mode: str, seed: int, endpoint: str) -> None:
        fd = os.memfd_create("soak", os.MFD_CLOEXEC)
        os.ftruncate(fd, COUNTERS_BYTES)
        self._map = mmap.mmap(fd, COUNTERS_BYTES)
        self.counters = (ctypes.c_uint64 * len(Count)).from_buffer(self._map)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks._soak_client", api, str(fd), str(seed)],
            cwd=ROOT,
            env={
                **os.environ,
                "HBRT_AUTOSTART": "0",
                **({"HBRT_BOARD": endpoint} if mode == "remote" else {"HB_DSP_RPC_MODE": mode}),
            },
            pass_fds=[fd],
        )
        os.close(fd)

    @property
    def calls(self) -> int:
        """How often it has called."""
        return int(self.counters[Count.CALLS])

    def kill(self) -> None:
        """End it as kill -9 does."""
        self.process.kill()
        self.process.wait()

    def finish(self) -> bool:
        """Have it end by itself; whether it did, or had not begun yet."""
        self.process.terminate()
        try:
            code = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return code == 0 or (code == -signal.SIGTERM and not self.counters[Count.CALLS])


class Totals:
    """Sums over all clients that were."""

    def __init__(self) -> None:
        self.sums = [0] * len(Count)
        self.with_client = 0  # tasks that ended with their client
        self.lost = 0
        self.bad_exits = 0

    def add(self, worker: Worker, *, was_killed: bool) -> None:
        """Take in the counters of a client that has ended."""
        for kind in Count:
            self.sums[kind] += worker.counters[kind]
        left = worker.counters[Count.CALLS] - sum(worker.counters[kind] for kind in ENDS) - worker.counters[Count.HUNG]
        if was_killed:
            self.with_client += left
        else:
            self.lost += left

    @property
    def ended(self) -> int:
        """Tasks whose end is known."""
        return sum(self.sums[kind] for kind in ENDS) + self.with_client


class Process(NamedTuple):
    """What is watched: anonymous resident bytes and open descriptors of one process."""

    pid: int
    size_bytes: int
    handles: int


def look_at(pid: int) -> Process:
    """Size and handles of a process that has nothing to do: the least of a few looks, since some are still closing."""
    handles = []
    for _ in range(LOOKS):
        handles.append(len(list(Path(f"/proc/{pid}/fd").iterdir())))
        time.sleep(SECONDS_BETWEEN_LOOKS)
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    size = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))
    return Process(pid, size * 1024, min(handles))


class Soak:
    """A board, its clients, and who kills them."""

    def __init__(self, directory: Path, count: int, seed: int) -> None:
        self.paths = BoardPaths(directory)
        self.chance = random.Random(seed)
        self.totals = Totals()
        self.done: Counter[str] = Counter()  # what was done to whom
        self._stopped: dict[int, float] = {}  # until when a process is stopped
        self.launched = launch(DaemonConfig(str(directory), str(IMAGE), 2, 64 << 20, is_private=True))
        self.endpoint: str = self.ask("listen", endpoint="tcp://127.0.0.1:0")["endpoint"]
        self._count = count
        self.workers: list[Worker] = []

    def ask(self, verb: str, **args: Any) -> Any:
        """A request to the daemon."""
        return ask(self.paths, verb, END_SECONDS, **args)

    def load(self, seconds: float) -> None:
        """Run the clients for so long, killing at random, and until each has called; none is attached afterwards."""
        self.workers = [self._worker(index) for index in range(self._count)]
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, self.chance.uniform(0.5, 1.5) * KILL_EVERY_SECONDS))
            self._let_go_on()
            deeds = {
                self._kill_client: 50,
                self._kill_core: 20,
                self._kill_model_core: 10,
                self._kill_relay: 5,
                self._kill_gateway: 5,
                self._stop: 15,
            }
            self.chance.choices(list(deeds), list(deeds.values()))[0]()
        self._let_go_on(is_over=True)
        deadline = time.monotonic() + END_SECONDS
        while any(worker.calls < MIN_CALLS for worker in self.workers) and time.monotonic() < deadline:
            time.sleep(0.01)  # on a busy machine a client takes longer to come than to call
        for worker in self.workers:
            if not worker.finish():
                self.totals.bad_exits += 1
            self.totals.add(worker, was_killed=False)
        self.workers = []
        deadline = time.monotonic() + END_SECONDS
        while self._is_busy() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _is_busy(self) -> bool:
        status = self.ask("status")
        return bool(
            self._has_programs(status)
            or status["tasks"]["running"]
            or status["tasks"]["ready"]
            or not status["healthy"]
        )

    @staticmethod
    def _has_programs(status: Any) -> bool:
        return any(not _serves_others(client["pid"]) for client in status["clients"])

    def _worker(self, index: int) -> Worker:
        return Worker(*KINDS[index % len(KINDS)], self.chance.getrandbits(30), self.endpoint)

    def _kill_client(self) -> None:
        index = self.chance.randrange(len(self.workers))
        self.workers[index].kill()
        self.totals.add(self.workers[index], was_killed=True)
        self.workers[index] = self._worker(index)
        self.done["clients killed"] += 1

    def _kill_core(self) -> None:
        self._signal(self._pid_of(VICTIM), signal.SIGKILL, "core 0 killed")

    def _kill_model_core(self) -> None:
        self._signal(self._pid_of(self.chance.choice([2, 3])), signal.SIGKILL, "cores for models killed")

    def _kill_relay(self) -> None:
        self._signal(self.relay_pid(), signal.SIGKILL, "relays killed")

    def _kill_gateway(self) -> None:
        self._signal(self.gateway_pid(), signal.SIGKILL, "relays for other machines killed")

    def _stop(self) -> None:
        """Stop a process; a core for models for good, as the board is to end it."""
        who = self.chance.choice(["core 0", "core for models", "client", "relay for other machines"])
        if who == "core for models":
            self._signal(self._pid_of(self.chance.choice([2, 3])), signal.SIGSTOP, f"{who} stopped")
            return
        pid = {
            "core 0": lambda: self._pid_of(VICTIM),
            "client": lambda: self.chance.choice(self.workers).process.pid,
            "relay for other machines": self.gateway_pid,
        }[who]()
        if self._signal(pid, signal.SIGSTOP, f"{who} stopped") and pid is not None:
            self._stopped[pid] = time.monotonic() + self.chance.uniform(0, MAX_STOPPED_SECONDS)

    def _let_go_on(self, *, is_over: bool = False) -> None:
        for pid, until in list(self._stopped.items()):
            if is_over or time.monotonic() >= until:
                del self._stopped[pid]
                self._signal(pid, signal.SIGCONT, "")

    def _pid_of(self, core: int) -> int | None:
        pids: list[int | None] = [one["pid"] for one in self.ask("status")["cores"] if one["core"] == core]
        return pids[0] if pids else None

    def _signal(self, pid: int | None, number: int, what: str) -> bool:
        if pid is None:
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        self.done[what] += 1
        return True

    def relay_pid(self) -> int | None:
        """The relay's process, when one runs."""
        names = {client["pid"]: client["name"] for client in self.ask("status")["clients"]}
        own = {worker.process.pid for worker in self.workers}
        return next((pid for pid in names if pid not in own and _is_relay(pid)), None)

    def gateway_pid(self) -> int | None:
        """The process of the relay for other machines, while one runs."""
        pids: list[int | None] = [one["pid"] for one in self.ask("status")["gateways"]]
        return pids[0] if pids else None

    def processes(self) -> dict[str, Process]:
        """What is watched, by name, when the board has released the clients that have ended."""
        give_up = time.monotonic() + END_SECONDS
        while self._has_programs(self.ask("status")) and time.monotonic() < give_up:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        cores = self.ask("status")["cores"]
        found = {"daemon": look_at(self.launched.pid)}
        for core in cores:
            found[f"core {core['core']}"] = look_at(core["pid"])
        for name, pid in (("relay", self.relay_pid()), ("relay for other machines", self.gateway_pid())):
            if pid is not None:
                found[name] = look_at(pid)
        return found

    def story_of(self, name: str) -> str:
        """What the board's log says of a process."""
        lines = self.paths.log.read_text(encoding="utf-8", errors="replace").splitlines()
        at = [number for number, line in enumerate(lines) if name in line.lower()]
        return "\n".join(line for number in at for line in lines[number : number + 6])

    def close(self) -> None:
        """End everybody."""
        for worker in self.workers:
            worker.kill()
        os.close(self.launched.lifeline)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.launched.pid, 0)


def _is_relay(pid: int) -> bool:
    return b"relay" in _command(pid)


def _serves_others(pid: int) -> bool:
    return _is_relay(pid) or b"gateway" in _command(pid)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def report(soak: Soak, before: dict[str, Process], after: dict[str, Process]) -> bool:
    """Print what was found; True when all is well."""
    totals, status, memory = soak.totals, soak.ask("status"), soak.ask("mem", most=10)
    rows = [(kind.name.lower().replace("_", " "), str(totals.sums[kind])) for kind in ENDS]
    rows.append(("ended with a client that was killed", str(totals.with_client)))
    rows.append(("(refused, never a task)", str(totals.sums[Count.REFUSED])))
    print("\n".join(plain_lines((Column("TASKS ENDED AS"), Column("NUMBER", is_number=True)), rows)))
    print(f"\nat random: {', '.join(f'{what} {times}' for what, times in sorted(soak.done.items()) if what)}")
    is_well = True
    lines = []
    for name, then in before.items():
        now = after.get(name)
        if now is None:
            continue
        is_same = now.pid == then.pid
        grown = now.size_bytes - then.size_bytes
        if not is_same and name in {"daemon", SPARED}:
            print(f"{name} has ended although nobody killed it:\n{soak.story_of(name)}")
            is_well = False
        has_leaked = is_same and (grown > MAX_GROWTH_BYTES or now.handles > then.handles)
        is_well = is_well and not has_leaked
        note = "grew" if has_leaked else "" if is_same else "another process"
        sizes = (f"{then.size_bytes >> 10}", f"{now.size_bytes >> 10}")
        lines.append((name, *sizes, str(then.handles), str(now.handles), note))
    columns = [Column("PROCESS")]
    columns += [Column(name, is_number=True) for name in ("KIB, START", "KIB, END", "HANDLES, START", "HANDLES, END")]
    print("\n" + "\n".join(plain_lines([*columns, Column("")], lines)))
    relay = {client["id"] for client in status["clients"]}
    slots, blocks = status["slots"], [block for block in memory["blocks"] if block["client"] not in relay]
    if slots["leased"] + slots["free"] != slots["total"] or blocks:
        print(f"not everything came back: {slots}, {memory['summary']}")
        is_well = False
    defects = [finding["text"] for finding in status["findings"] if finding["kind"] not in TOLD]
    for text in defects:
        print(f"finding: {text}")
    if totals.bad_exits:
        print(f"{totals.bad_exits} clients did not end well when told to")
    return is_well and not (defects or totals.bad_exits or totals.sums[Count.WRONG])


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, report, exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=3.0, help="how long; default 3")
    parser.add_argument("--clients", type=int, default=7, help="client processes at a time; default 7")
    parser.add_argument("--seed", type=int, default=None, help="of the chances; default a new one, which is printed")
    options = parser.parse_args(arguments)
    seed = random.randrange(1 << 30) if options.seed is None else options.seed
    seconds = options.minutes * 60
    warm_up = min(seconds * WARM_UP, MAX_WARM_UP_SECONDS)
    with tempfile.TemporaryDirectory(prefix="hbrt-s-", dir="/tmp") as directory:
        os.environ["HBRT_HOME"] = directory
        os.environ["HBRT_BOARD"] = str(home() / "soak")
        os.environ["HBRT_QUARANTINE"] = "1M"  # full after the warm-up: what the daemon remembers grows no more
        print(f"{options.minutes:g} minutes, {options.clients} clients at a time, --seed {seed}", flush=True)
        soak = Soak(home() / "soak", options.clients, seed)
        try:
            soak.load(warm_up)
            before, warmed = soak.processes(), soak.totals
            soak.totals = Totals()
            soak.load(seconds - warm_up)
            after = soak.processes()
            soak.totals.lost += warmed.lost
            is_well = report(soak, before, after)
            totals = soak.totals
        finally:
            soak.close()
    calls, hung = totals.sums[Count.CALLS], totals.sums[Count.HUNG]
    print(f"\ncalls {calls} ended {totals.ended} lost {totals.lost} hung {hung}")
    return 0 if is_well and not totals.lost and not hung else 1


if __name__ == "__main__":
    sys.exit(main())
