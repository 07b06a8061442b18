"""A board: its parts, made, joined, and run until a stop is asked for. The process around it is in daemon.py.

One thread, one loop. Clients attach over a Unix socket whose connection is their lease, and ask over it; others ask
over ZeroMQ. The path of a task does not come by here: the supervisor acts on tasks only when someone died.
"""

from __future__ import annotations

import os
from pathlib import Path

from dsp_server.clients import Clients
from dsp_server.daemon.console import Console
from dsp_server.daemon.control import Control
from dsp_server.daemon.gateways import Gateways
from dsp_server.daemon.injector import Injector
from dsp_server.daemon.leases import Leases
from dsp_server.daemon.log_bound import LogBound
from dsp_server.daemon.reload import Reloader
from dsp_server.daemon.report import Report
from dsp_server.daemon.wait_look import WaitLook
from dsp_server.daemon.watches.inversion_watch import InversionWatch
from dsp_server.daemon.watches.lock_watch import LockWatch
from dsp_server.errors import ImageError, ImageLateError
from dsp_server.lifecycle.lifecycle import Lifecycle
from dsp_server.lifecycle.snapshots import ACCELERATOR, DEFAULT_IMAGE, Snapshots
from dsp_server.lifecycle.task_ends import TaskReaper
from dsp_server.lifecycle.watchdog import Watchdog
from dsp_server.memory.owners import BoardMemory
from dsp_server.process.event_loop import Loop
from dsp_server.process.journal import Journal
from dsp_server.tracing.board_trace import BoardTrace
from hbrt import settings
from hbrt.board.launch import DaemonConfig
from hbrt.board.paths import BoardPaths
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import CLIENT_ASKED, MAX_CORES
from hbrt.errors import BoardError
from hbrt.findings.checks import checks_of
from hbrt.mailbox.table import Mailbox, State
from hbrt.models.run.accelerator import CMD
from hbrt.profiles.profile import active
from hbrt.status import Status

PARTING_SECONDS = 0.05  # between the end of a lifeline and that of a lease, when the kernel closes both


def _in_order(dsp_cores: int, doorbells: list[int], urgent_bells: list[int]) -> list[int]:
    """Bells as a client gets them: of the DSP cores, then of the accelerators, which not every program knows."""
    sides = (slice(None, dsp_cores), slice(dsp_cores, None))
    return [bell for side in sides for bells in (doorbells, urgent_bells) for bell in bells[side]]


class Stop:
    """Whether the board is asked to end: by a signal, a request, or the end of its starter."""

    def __init__(self) -> None:
        self.is_asked = False

    def ask(self) -> None:
        """Make the board end soon."""
        self.is_asked = True


def origin_of(config: DaemonConfig) -> Path:
    """The image file of a board's configuration."""
    return Path(config.image).absolute() if config.image else DEFAULT_IMAGE


def accelerator_count(dsp_cores: int) -> int:
    """Accelerator cores of a board: those of its profile, as far as there is a place for them beside its DSP cores."""
    return min(sum(one.count for kind, one in active().cores.items() if kind != "dsp"), MAX_CORES - dsp_cores)


class Supervisor:
    """A board: all its parts, connected. The caller holds the board's lock and removes its files at the end."""

    def __init__(self, config: DaemonConfig, paths: BoardPaths, ddr: Ddr, loop: Loop, stop: Stop) -> None:
        self.loop = loop
        self.stop = stop
        self.journal = Journal(os.dup(2))
        self.mailbox = Mailbox(ddr)
        self.clients = Clients(self.mailbox, checks_of(settings.words("HBRT_CHECK")))
        rest_bytes = settings.size_bytes("HBRT_QUARANTINE")
        self.memory = BoardMemory(ddr, self.mailbox, self.clients, self.journal.find, rest_bytes)
        self.journal.complete = self.memory.with_history
        self.reaper = TaskReaper(self.mailbox, self.clients)
        snapshots = Snapshots(paths.path)
        image = snapshots.take(origin_of(config))
        # Now, as the others': a disk that is full by the first model keeps no core from starting.
        count = accelerator_count(config.cores)
        accelerators = [snapshots.take(ACCELERATOR)] * count if count else []
        watchdog_ms = settings.integer("HBRT_WATCHDOG_MS") if config.watchdog_ms is None else config.watchdog_ms
        self.lifecycle = Lifecycle(
            ddr,
            image,
            config.cores,
            accelerators,
            self.loop,
            self.journal,
            self.clients,
            self.reaper,
            snapshots,
            config.load_seconds,
            watchdog_ms,
            active().process_domains(config.cores),
        )
        processes = self.lifecycle.processes
        self.memory.settle = processes.read_messages
        self._outcome: list[tuple[Status, str]] = []
        self.lifecycle.start_all(lambda status, text: self._outcome.append((status, text)))

        from dsp_server.daemon.control_socket import ControlSocket  # ZeroMQ loads while the cores start

        self.leases = Leases(
            paths,
            self.loop,
            self.journal,
            self.clients,
            self.memory,
            [ddr.fd, *_in_order(config.cores, processes.doorbells, processes.urgent_bells)],
            processes.add_client,
            processes.remove_client,
            processes.read_messages,
            is_private=config.is_private,
        )
        self.control_socket = ControlSocket(paths, self.loop, self.journal)
        locks = LockWatch(self.mailbox.claim_lock, self.clients, self.journal)
        self.gateways = Gateways(paths, self.loop, self.journal)
        self.watchdog = Watchdog(
            self.mailbox, self.reaper, self.lifecycle.cores, self.lifecycle.handle, locks.poll, self.loop, watchdog_ms
        )
        report = Report(
            paths,
            self.mailbox,
            self.clients,
            self.memory,
            self.lifecycle,
            self.watchdog,
            self.journal,
            locks,
            self.gateways,
        )
        self.inversions = InversionWatch(
            self.mailbox, self.clients, self.lifecycle.dsp_cores, report, self.journal, self.loop
        )
        wait_look = WaitLook(paths, self.mailbox, self.clients, self.lifecycle, report, locks, self.loop, watchdog_ms)
        self.lifecycle.ask_why = wait_look.say
        self.injector = Injector(paths, self.clients, processes, self.journal, config.cores)
        self.memory.refuses = self.injector.refuses_alloc
        self.trace = BoardTrace(
            paths,
            ddr,
            self.loop,
            self._tell_of_trace,
            lambda: {CMD: "model"} | {row["cmd"]: row["name"] for row in report.ops()},
            self.clients.names,
            len(self.lifecycle.accelerators),
        )
        self.journal.on_found, self.journal.on_said = self.trace.found, self.trace.said
        self.control = Control(
            self.clients,
            self.memory,
            self.lifecycle,
            report,
            self.journal,
            self.leases.leave,
            self.leases.reclaim_soon,
            stop.ask,
            self.gateways,
            wait_look.begin,
            self.injector,
            self.trace,
        )
        self.control_socket.open(self.control.handle)
        self.lifecycle.is_recovering = config.is_recovering
        self.reloader = Reloader(self.loop, self.journal, self.lifecycle) if config.is_reloading else None
        self.log_bound = LogBound(paths.log, self.loop, self.journal, settings.size_bytes("HBRT_LOG"))
        self._name = paths.name
        self.console: Console | None = None

    def open(self) -> None:
        """Wait until all cores run, then accept clients.

        Raises:
            ImageError: the image did not load on a core; the text has its traceback. ImageLateError: it took too long.
            BoardError: the daemon was asked to end before the board ran, or a core's process cannot be started.
        """
        while not self._outcome and not self.stop.is_asked:
            self.loop.step()
        if self.stop.is_asked:
            raise BoardError("It was stopped before its cores ran.")
        status, text = self._outcome[0]
        for kind in (ImageError, ImageLateError):
            if status == kind.status:
                raise kind(text)
        if status:
            raise BoardError(text)
        # From here on clients depend on this process: a defect in one handler is a finding and does not end the board.
        self.loop.on_defect = lambda trace: self.journal.find("defect", f"The daemon failed at something:\n{trace}")
        self.trace.open()
        self.leases.open(self.control.handle)
        self.watchdog.open()
        self.inversions.poll()
        self.log_bound.poll()
        if self.reloader is not None:
            self.reloader.open()

    def _tell_of_trace(self) -> None:
        """Have cores and programs look whether the board is traced; one that never sleeps in a wait sees it later."""
        for child in self.lifecycle.processes.children.values():
            child.send(event="trace")
        for client in self.clients.by_id.values():
            if not client.has_gone:
                self.mailbox.map[self.mailbox.layout.client(client.id) + CLIENT_ASKED] = 1
                self.clients.ring(client.id)

    def end_with_starter(self, lifeline_fd: int) -> None:
        """End, since the starter is gone; one that a signal ended hangs up its lease after this lifeline.

        Args:
            lifeline_fd: Readable since then.
        """
        self.loop.unwatch(lifeline_fd)
        if self.clients.by_id:  # what it leaves is looked for first
            self.loop.later(PARTING_SECONDS, self.stop.ask)
        else:
            self.stop.ask()

    def run(self) -> None:
        """Serve until asked to end."""
        while not self.stop.is_asked:
            self.loop.step()

    def close(self) -> None:
        """Fail the queued tasks, end the cores after their tasks, close every lease and socket."""
        self.leases.shut()
        self.reaper.fail_all(State.SENT, State.READY)
        self.lifecycle.close()
        self.reaper.fail_all(State.SENT, State.READY, State.RUNNING)
        self.leases.close()
        self.gateways.close()
        self.control_socket.close()
        self.trace.close()
        self.journal.say(f"Board {self._name} is offline.")
        if self.console is not None:
            self.console.close()
        self.loop.close()
