"""A board: creates, connects and runs its parts until asked to stop. The process around it is in daemon.py.

One thread, one event loop. Clients attach over a Unix socket, whose connection is their lease and carries their
requests; others use ZeroMQ. Tasks do not pass through here: the supervisor touches them only if a process has died.
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
from dsp_server.lifecycle.fork_server import ForkServer
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

PARTING_SECONDS = 0.05  # between the end of a lifeline and of a lease when the kernel closes both


def _in_order(dsp_cores: int, doorbells: list[int], urgent_bells: list[int]) -> list[int]:
    """Order doorbells as clients get them: the DSP cores', then the accelerators', which not every program knows."""
    sides = (slice(None, dsp_cores), slice(dsp_cores, None))
    return [bell for side in sides for bells in (doorbells, urgent_bells) for bell in bells[side]]


class Stop:
    """Whether the board has been asked to end: by a signal, by a request, or because its starter has gone."""

    def __init__(self) -> None:
        self.is_asked = False

    def ask(self) -> None:
        """Make the board end soon."""
        self.is_asked = True


def origin_of(config: DaemonConfig) -> Path:
    """Return the image file of a board's configuration."""
    return Path(config.image).absolute() if config.image else DEFAULT_IMAGE


def accelerator_count(dsp_cores: int) -> int:
    """Number of a board's accelerator cores: those of its profile that fit alongside its DSP cores."""
    return min(sum(one.count for kind, one in active().cores.items() if kind != "dsp"), MAX_CORES - dsp_cores)


class Supervisor:
    """A board: all its parts, connected. The caller holds the board's lock and removes its files at the end."""

    def __init__(self, config: DaemonConfig, paths: BoardPaths, ddr: Ddr, loop: Loop, stop: Stop) -> None:
        self.loop = loop
        self.stop = stop
        self.journal = Journal(os.dup(2))
        self.fork_server = ForkServer(paths.name, self.journal.log_fd, loop, self.journal.say)
        self.mailbox = Mailbox(ddr)
        self.clients = Clients(self.mailbox, checks_of(settings.words("HBRT_CHECK")))
        rest_bytes = settings.size_bytes("HBRT_QUARANTINE")
        self.memory = BoardMemory(ddr, self.mailbox, self.clients, self.journal.find, rest_bytes)
        self.journal.complete = self.memory.with_history
        self.reaper = TaskReaper(self.mailbox, self.clients)
        snapshots = Snapshots(paths.path)
        image = snapshots.take(origin_of(config))
        # Made now, like the others: a disk that fills up before the first model must not keep a core from starting.
        count = accelerator_count(config.cores)
        accelerators = [snapshots.take(ACCELERATOR)] * count if count else []
        watchdog_ms = settings.integer("HBRT_WATCHDOG_MS")
        self.lifecycle = Lifecycle(
            ddr,
            image,
            config.cores,
            accelerators,
            self.loop,
            self.journal,
            self.clients,
            self.reaper,
            self.fork_server,
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
            self.leases.detach,
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
        self.log_bound = LogBound(paths.log, self.loop, self.journal)
        self._name = paths.name
        self.console: Console | None = None

    def open(self) -> None:
        """Wait until all cores are running, then accept clients.

        Raises:
            ImageError: the image did not load on a core; the text has the traceback. ImageLateError: it took too long.
            BoardError: the daemon was asked to end before the board was running, or a core's process cannot be started.
        """
        while not self._outcome and not self.stop.is_asked:
            self.loop.step()
        if self.stop.is_asked:
            raise BoardError("The board was stopped before its cores were running.")
        status, text = self._outcome[0]
        for kind in (ImageError, ImageLateError):
            if status == kind.status:
                raise kind(text)
        if status:
            raise BoardError(text)
        # From here on clients depend on this process: a bug in a handler becomes a finding and does not end the board.
        self.loop.on_defect = lambda trace: self.journal.find("defect", f"A handler failed in the daemon:\n{trace}")
        self.trace.open()
        self.leases.open(self.control.handle)
        self.watchdog.open()
        self.inversions.poll()
        self.log_bound.poll()
        if self.reloader is not None:
            self.reloader.open()

    def _tell_of_trace(self) -> None:
        """Have cores and programs check whether the board is traced; those that never sleep in a wait notice later."""
        for child in self.lifecycle.processes.children.values():
            child.send(event="trace")
        for client in self.clients.by_id.values():
            if not client.has_gone:
                self.mailbox.map[self.mailbox.layout.client(client.id) + CLIENT_ASKED] = 1
                self.clients.ring(client.id)

    def end_with_starter(self, lifeline_fd: int) -> None:
        """End because the starter is gone; if a signal ended it, its lease closes just after this lifeline.

        Args:
            lifeline_fd: The descriptor that has become readable.
        """
        self.loop.unwatch(lifeline_fd)
        if self.clients.by_id:  # first find what it leaves behind
            self.loop.later(PARTING_SECONDS, self.stop.ask)
        else:
            self.stop.ask()

    def run(self) -> None:
        """Serve until asked to end."""
        while not self.stop.is_asked:
            self.loop.step()

    def close(self) -> None:
        """Fail the queued tasks, end the cores after their running tasks, close all leases and sockets."""
        self.leases.shut()
        self.reaper.fail_all(State.SENT, State.READY)
        self.lifecycle.close()
        self.fork_server.close()
        self.reaper.fail_all(State.SENT, State.READY, State.RUNNING)
        self.leases.close()
        self.gateways.close()
        self.control_socket.close()
        self.trace.close()
        self.journal.say(f"Board {self._name} is offline.")
        if self.console is not None:
            self.console.close()
        self.loop.close()
