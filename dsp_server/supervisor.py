"""The daemon of a board: the only place with policy about lives and leases.

One thread, one epoll loop. Clients attach over a Unix socket whose connection is their lease; everything else is a
control request over ZeroMQ. The path of a task does not come by here: the supervisor acts on tasks only when someone died.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dsp_server import cores as core_states
from dsp_server.clients import Client, Clients, NoRoomError
from dsp_server.control import Control, Pending
from dsp_server.cores import CoreProcess, CoreSlot, CoreStateError, spawn
from dsp_server.image import DEFAULT_IMAGE, ImageError, ImageLateError, read_image
from dsp_server.memory import Memory
from dsp_server.registry import range_name
from hbrt import wire
from hbrt.board import BoardError, BoardPaths, WrongUseError, leftovers, remove_files, take_lock
from hbrt.ddr import Ddr
from hbrt.launch import DaemonConfig
from hbrt.layout import SLOT_COUNT, LayoutError
from hbrt.mailbox import Actor, Mailbox, State
from hbrt.status import Status

TICK_SECONDS = 0.5
BUSY_TICK_SECONDS = 0.02
RELOAD_SECONDS = 0.25
MOST_FINDINGS = 200
HELLO_BYTES = 4096


class Supervisor:
    """A running daemon."""

    def __init__(self, config: DaemonConfig) -> None:
        self.config = config
        self.paths = BoardPaths(Path(config.directory))
        self.origin = Path(config.image).absolute() if config.image else DEFAULT_IMAGE
        source = read_image(self.origin)
        self.ddr = Ddr.create(config.ddr_bytes, config.cores)
        # What can be wrong with the request has been found: from here on there is something to take away again.
        self.lock_fd = take_lock(self.paths)
        self.removed = [path for path in leftovers(self.paths) if _unlink(path)]
        self.log_fd = os.dup(2)
        self.started_at = time.time()
        self.findings: deque[dict[str, Any]] = deque(maxlen=MOST_FINDINGS)
        self.epoll = select.epoll()
        self.handlers: dict[int, Callable[[], None]] = {}
        self.mailbox = Mailbox(self.ddr)
        self.memory = Memory(self.ddr, self.find)
        self.clients = Clients(self.mailbox)
        self.parting: list[Client] = []  # gone, but a core still runs a task of theirs
        self.deferred: list[tuple[int, int]] = []  # (phy_addr, client): freed while a task of theirs ran
        self.doorbells = [os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(config.cores)]
        self.cores = [CoreSlot(index, self.ddr) for index in range(config.cores)]
        self.ending: list[CoreProcess] = []
        self.snapshots = 0
        self.snapshot = self._snapshot(source)
        self.image_error = ""
        self.watched: dict[str, int] = {}
        self.waiting: list[Pending] = []  # restarts that were asked for and are under way
        self.waiting_stops: list[tuple[int, Pending]] = []  # (core, who asked): stops that are under way
        self.is_ending = False

    # -- start and end ------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open the sockets and start the cores; returns when all run.

        Raises:
            ImageError: the image did not load on a core; has its traceback. ImageLateError: it took too long.
            BoardError: the daemon was told to end before the board ran.
        """
        for path in self.removed:
            self.say(f"Removed what an earlier daemon left: {path.name}.")
        for core in self.cores:
            core.candidate = self._spawn(core.index)
        self._open_sockets()
        while any(core.candidate for core in self.cores):
            self._step(TICK_SECONDS)
            self._give_up_late_candidates()
            broken = next((core.candidate for core in self.cores if core.candidate and core.candidate.problem), None)
            if broken is not None:
                kind = ImageLateError if broken.is_late else ImageError
                raise kind(f"The image {self.origin} did not load on core {broken.index}:\n{broken.problem}")
            if self.is_ending:
                raise BoardError("It was told to end before its cores ran.")
            if all(core.candidate is None or core.candidate.is_ready for core in self.cores):
                self._promote_all()
        self._remember_files()
        self.say(f"Board {self.paths.name} is running: {len(self.cores)} cores, image {self.origin}.")

    def _open_sockets(self) -> None:
        import zmq  # takes as long as a core's interpreter to start: loaded once the cores are on their way

        self.context = zmq.Context(io_threads=1)
        self.control_socket = self.context.socket(zmq.ROUTER)
        self.control_socket.linger = 0
        self.control_socket.maxmsgsize = wire.MAX_REQUEST_BYTES
        self.control_socket.bind(self.paths.control_endpoint)
        self.paths.control.chmod(0o600)
        self.control = Control(self)
        self.watch(int(self.control_socket.fd), self._on_control)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.setblocking(False)
        self.listener.bind(str(self.paths.attach))
        self.paths.attach.chmod(0o600)
        self.listener.listen(128)
        self.watch(self.listener.fileno(), self._on_attach)

    def run(self) -> None:
        """Serve until told to end."""
        next_look = time.monotonic() + RELOAD_SECONDS
        while not self.is_ending:
            self._step(self._patience())
            now = time.monotonic()
            self._settle_parting()
            self._settle_deferred()
            self._give_up_late_candidates()
            for process in self.ending:
                if process.kill_at and now >= process.kill_at:
                    process.signal(signal.SIGKILL)
            for core in self.cores:
                if core.restart_at and now >= core.restart_at and core.candidate is None:
                    core.candidate = self._spawn(core.index)
            if self.config.is_reloading and now >= next_look:
                next_look = now + RELOAD_SECONDS
                self._look_at_files()

    def close(self) -> None:
        """End the cores, fail what is queued, take away the sockets and files."""
        processes = [p for core in self.cores for p in (core.process, core.candidate) if p is not None] + self.ending
        now = time.monotonic()
        for process in processes:
            process.stop(now)
            if not process.is_ready:
                process.signal(signal.SIGKILL)
        for process in processes:
            if not select.select([process.pidfd], [], [], max(0.0, process.kill_at - time.monotonic()))[0]:
                process.signal(signal.SIGKILL)
            process.reap()
        for slot in self.mailbox.slots_in(State.READY, State.RUNNING):
            self._settle_slot(slot, State.LOST, Status.HB_DSP_BOARD_LOST, "The board was stopped.")
        for client in list(self.clients.by_id.values()) + self.parting:
            client.connection.close()
        if hasattr(self, "listener"):
            self.listener.close()
            self.control_socket.close()
            self.context.term()
        self.say(f"Board {self.paths.name} is offline.")
        remove_files(self.paths, keep_log=not self.config.is_private)
        os.close(self.lock_fd)

    def _patience(self) -> float:
        if self.parting or self.deferred or any(process.kill_at for process in self.ending):
            return BUSY_TICK_SECONDS
        if self.config.is_reloading:
            return RELOAD_SECONDS
        return BUSY_TICK_SECONDS if any(core.restart_at for core in self.cores) else TICK_SECONDS

    def _step(self, patience: float) -> None:
        for fd, _ in self.epoll.poll(patience):
            handler = self.handlers.get(fd)
            if handler is not None:
                handler()

    def watch(self, fd: int, handler: Callable[[], None]) -> None:
        """Call ``handler`` whenever the descriptor is readable."""
        self.handlers[fd] = handler
        self.epoll.register(fd, select.EPOLLIN)

    def unwatch(self, fd: int) -> None:
        """Undo ``watch``; nothing to do when it is not watched."""
        if self.handlers.pop(fd, None) is not None:
            self.epoll.unregister(fd)

    # -- what it says -------------------------------------------------------------------------------------------

    def say(self, sentence: str) -> None:
        """Write a line to the board's log."""
        stamp = time.strftime("%H:%M:%S", time.localtime())
        try:
            os.write(self.log_fd, f"{stamp} daemon {sentence}\n".encode("utf-8", "replace"))
        except OSError:
            pass  # a full disk must not end the board

    def find(self, kind: str, sentence: str) -> None:
        """Keep a mistake of a client that a board would hide, and log it."""
        self.findings.append({"kind": kind, "text": sentence, "time": time.time()})
        self.say(f"{kind}: {sentence}")

    # -- clients ------------------------------------------------------------------------------------------------

    def _on_attach(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except BlockingIOError:
                return
            connection.setblocking(False)
            fd = connection.fileno()
            self.watch(fd, lambda connection=connection: self._on_hello(connection))  # type: ignore[misc]

    def _on_hello(self, connection: socket.socket) -> None:
        self.unwatch(connection.fileno())
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, uid, _ = struct.unpack("3i", credentials)
        try:
            hello = wire.unpack_map(connection.recv(HELLO_BYTES), HELLO_BYTES)
            name = str(hello.get("name", ""))[:64]
            if uid != os.getuid():
                raise wire.MalformedMessageError(f"This board belongs to user {os.getuid()}, not to user {uid}.")
            client = self.clients.attach(connection, pid, name)
        except (OSError, wire.MalformedMessageError, NoRoomError) as error:
            self.say(f"Refused to attach process {pid}: {error}")
            _send(connection, wire.pack(ok=0, text=str(error)))
            connection.close()
            return
        for process in self._all_processes():
            process.send_doorbell(client.id, client.doorbell)
        answer = wire.pack(
            ok=1,
            client=client.id,
            token=client.token,
            slots=client.slots,
            cores=len(self.cores),
            board=self.paths.name,
            daemon=os.getpid(),
        )
        try:
            socket.send_fds(connection, [answer], [self.ddr.fd, client.doorbell, *self.doorbells])
        except OSError:
            self._on_client_gone(client)
            return
        self.watch(connection.fileno(), lambda: self._on_client_gone(client))

    def _on_client_gone(self, client: Client) -> None:
        """A lease is readable when it closes; whatever a client sends over it ends it as well."""
        self.unwatch(client.connection.fileno())
        client.has_gone = True
        self.clients.by_id.pop(client.id, None)
        self.parting.append(client)
        self._settle_parting()

    def _settle_parting(self) -> None:
        for client in list(self.parting):
            if not self.clients.withdraw_tasks(client):
                continue
            self.parting.remove(client)
            self.deferred = [(phy, owner) for phy, owner in self.deferred if owner != client.id]
            blocks, size_bytes = self.memory.release_client(client.id)
            if blocks:
                self.find(
                    "leak",
                    f"Process {client.pid} ({client.name}) ended with {blocks} blocks ({size_bytes} bytes) not freed.",
                )
            for process in self._all_processes():
                process.send(event="gone", client=client.id)
            self.clients.forget(client)

    def is_running_for(self, client_id: int) -> bool:
        """Whether a core runs a task of this client now."""
        running = self.mailbox.slots_in(State.RUNNING)
        return any(self.mailbox.request(slot).owner == client_id for slot in running)

    def _settle_deferred(self) -> None:
        for phy_addr, client_id in list(self.deferred):
            if not self.is_running_for(client_id):
                self.deferred.remove((phy_addr, client_id))
                self.memory.free(phy_addr, client_id)

    # -- cores --------------------------------------------------------------------------------------------------

    def _all_processes(self) -> list[CoreProcess]:
        return [p for core in self.cores for p in (core.process, core.candidate) if p is not None] + self.ending

    def _snapshot(self, source: str) -> Path:
        """Keep the image's text, so that a core that restarts later runs what the others run."""
        self.snapshots += 1
        path = self.paths.path / f"image-{self.snapshots}.py"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(source)
        return path

    def _spawn(
        self,
        index: int,
        snapshot: Path | None = None,
        origin: Path | None = None,
        load_seconds: float | None = None,
    ) -> CoreProcess:
        process = spawn(
            index,
            len(self.cores),
            self.ddr.fd,
            self.doorbells,
            snapshot or self.snapshot,
            origin or self.origin,
            self.log_fd,
        )
        process.load_seconds = load_seconds or self.config.load_seconds
        for client in self.clients.by_id.values():
            process.send_doorbell(client.id, client.doorbell)
        self.watch(process.control.fileno(), lambda: self._on_core_message(process))
        self.watch(process.pidfd, lambda: self._on_core_death(process))
        return process

    def _on_core_message(self, process: CoreProcess) -> None:
        try:
            raw = process.control.recv(wire.MAX_REQUEST_BYTES * 16)
            message = wire.unpack_map(raw, wire.MAX_REQUEST_BYTES * 16) if raw else {}
        except (OSError, wire.MalformedMessageError) as error:
            message = {"event": "broken", "text": f"Core {process.index} sent nonsense: {error}"}
        if not message:
            self.unwatch(process.control.fileno())  # its death is told by its pidfd
        elif message.get("event") == "ready":
            process.is_ready = True
            process.ops = [tuple(row) for row in message["ops"]]
            process.files = list(message["files"])
            self._after_candidate()
        elif message.get("event") == "broken":
            process.problem = str(message.get("text", ""))
            self._after_candidate()

    def _after_candidate(self) -> None:
        """A candidate is ready or broken: finish restarts for which all are, or give them up."""
        if not hasattr(self, "control") or not all(c.process or c.restart_at or c.epoch for c in self.cores):
            return  # the board is still starting: open() decides
        candidates = [core.candidate for core in self.cores if core.candidate]
        broken = next((candidate for candidate in candidates if candidate.problem), None)
        if broken is not None:
            self.image_error = broken.problem
            self.say(f"The image {broken.origin} did not load; the last good one goes on.\n{broken.problem}")
            self._abandon_candidates()
            self._watch_beside(broken.origin)
            status = ImageLateError.status if broken.is_late else ImageError.status
            self._answer_waiting(status, f"The image {broken.origin} did not load:\n{broken.problem}")
        elif all(candidate.is_ready for candidate in candidates):
            for core in self.cores:
                if core.candidate and core.process:
                    self._retire(core.process)
            self._promote_all()

    def _give_up_late_candidates(self) -> None:
        """An image that loops while it loads must not keep anyone waiting for ever."""
        now = time.monotonic()
        for process in [core.candidate for core in self.cores if core.candidate]:
            if not (process.is_ready or process.problem) and now >= process.started_at + process.load_seconds:
                process.is_late = True
                process.problem = (
                    f"It was still loading on core {process.index} after {process.load_seconds:g} s and was given up. "
                    "Does it loop before hb_dsp_start()? A longer limit: --timeout SECONDS."
                )
                self._after_candidate()

    def _abandon_candidates(self) -> None:
        for core in self.cores:
            if core.candidate:
                self._retire(core.candidate)
                core.candidate = None
                core.restart_at = time.monotonic() + 1.0 if core.state == core_states.CRASHED else 0.0

    def _promote_all(self) -> None:
        """Every candidate whose core's old process has gone becomes the core."""
        for core in self.cores:
            if core.candidate is None or not core.candidate.is_ready or core.process is not None:
                continue
            self.snapshot, self.origin = core.candidate.snapshot, core.candidate.origin
            core.promote()
        if not any(core.candidate for core in self.cores):
            self.image_error = ""
            self._remember_files()
            self._answer_waiting(Status.HB_SYS_SUCCESS, "")

    def _retire(self, process: CoreProcess) -> None:
        process.stop(time.monotonic())
        if not process.is_ready:
            process.signal(signal.SIGKILL)  # it runs nothing that could be lost, and may be deaf
        if process not in self.ending:
            self.ending.append(process)

    def _on_core_death(self, process: CoreProcess) -> None:
        self._drain(process)
        self.unwatch(process.pidfd)
        self.unwatch(process.control.fileno())
        how = process.reap()
        was_asked = process in self.ending
        if was_asked:
            self.ending.remove(process)
        core = self.cores[process.index]
        if core.candidate is process:
            if not process.problem:
                process.problem = f"Core {process.index} {how} while it loaded the image."
            self._after_candidate()
            return
        if core.process is not process:
            return
        core.process = None
        self._settle_tasks_of(process, how)
        if was_asked and not core.restart_at:
            if core.candidate is None:
                core.move(core_states.OFFLINE)
                self._fail_unservable()
                self._answer_stops(core.index)
            self._promote_all()
        else:
            self._on_crash(core, process, how)

    def _drain(self, process: CoreProcess) -> None:
        """Read what a dead core had still to say."""
        while process.control.fileno() in self.handlers and select.select([process.control], [], [], 0)[0]:
            self._on_core_message(process)

    def _settle_tasks_of(self, process: CoreProcess, how: str) -> None:
        for slot in self.mailbox.slots_in(State.RUNNING):
            if self.mailbox.answer(slot).core == process.index:
                cmd = self.mailbox.request(slot).cmd
                text = f"Core {process.index} (process {process.pid}) {how} while it ran command {cmd:#x}."
                self._settle_slot(slot, State.LOST, Status.HB_DSP_CORE_LOST, text)

    def _settle_slot(self, slot: int, end: State, status: Status, text: str) -> None:
        """End a task for a core that cannot, and wake its owner."""
        mailbox = self.mailbox
        mailbox.lock()
        try:
            if mailbox.state(slot) not in {State.READY, State.RUNNING}:
                return
            answer = mailbox.answer(slot)._replace(result=status, done_ns=time.monotonic_ns())
            mailbox.write_answer(slot, answer, text)
            mailbox.move(slot, end, Actor.SUPERVISOR)
        finally:
            mailbox.unlock()
        self.clients.ring(mailbox.request(slot).owner)

    def _on_crash(self, core: CoreSlot, process: CoreProcess, how: str) -> None:
        """Restart a core that died by itself, more slowly each time it dies at once, and in the end not at all."""
        core.crashes += 1
        core.last_crash = f"process {process.pid} {how}"
        lived = time.monotonic() - process.started_at
        core.quick_deaths = core.quick_deaths + 1 if lived < core_states.QUICK_DEATH_SECONDS else 0
        core.move(core_states.CRASHED)
        if core.quick_deaths >= core_states.MOST_QUICK_DEATHS:
            core.restart_at = 0.0
            core.accept_work(accepts=False)
            self._fail_unservable()
            self.say(
                f"Core {core.index} {how}; it died {core.quick_deaths} times in a row within "
                f"{core_states.QUICK_DEATH_SECONDS:.0f} s of its start and stays crashed. "
                f"Run 'hbrt restart --core {core.index}' when the cause is removed."
            )
            return
        pause = 0.0 if not core.quick_deaths else 0.05 * (1 << core.quick_deaths)
        core.restart_at = time.monotonic() + pause
        core.accept_work(accepts=True)  # its queue waits for the next process
        self.say(f"Core {core.index} {how}; it starts again.")
        if not pause:
            core.candidate = self._spawn(core.index)

    def _fail_unservable(self) -> None:
        """End queued tasks that no core will ever run as things are."""
        alive = [core.index for core in self.cores if core.process or core.candidate or core.restart_at]
        for slot in self.mailbox.slots_in(State.READY):
            mask = self.mailbox.request(slot).core_mask
            if not any(mask == 0 or mask >> index & 1 for index in alive):
                text = "No core that may run the task is running; see 'hbrt status'."
                self._settle_slot(slot, State.LOST, Status.HB_DSP_NOT_RUNNING, text)

    def start_core(self, index: int) -> None:
        """Start an offline or crashed core.

        Raises:
            CoreStateError: it runs, or there is no such core.
        """
        core = self._core(index)
        if core.state == core_states.RUNNING or core.candidate is not None:
            raise CoreStateError(f"Core {index} is already {core_states.RUNNING}; nothing was changed.")
        core.quick_deaths = 0
        core.candidate = self._spawn(index)

    def stop_core(self, index: int, pending: Pending) -> None:
        """Stop a core after its task; answers when it is offline.

        Raises:
            CoreStateError: it is offline, or there is no such core.
        """
        core = self._core(index)
        if core.state == core_states.OFFLINE:
            raise CoreStateError(f"Core {index} is already {core_states.OFFLINE}; nothing was changed.")
        core.restart_at = 0.0
        if core.candidate is not None:
            self._retire(core.candidate)
            core.candidate = None
        if core.process is not None:
            self._retire(core.process)
        else:
            core.move(core_states.OFFLINE)
        core.accept_work(accepts=False)
        self.waiting_stops.append((index, pending))
        if core.process is None:
            self._answer_stops(index)

    def _answer_stops(self, index: int) -> None:
        for pending in [pending for stopped, pending in self.waiting_stops if stopped == index]:
            self.control.answer(pending, Status.HB_SYS_SUCCESS, "")
        self.waiting_stops = [row for row in self.waiting_stops if row[0] != index]

    def _core(self, index: int) -> CoreSlot:
        if not 0 <= index < len(self.cores):
            raise CoreStateError(f"There is no core {index}; this board has cores 0 to {len(self.cores) - 1}.")
        return self.cores[index]

    # -- restart and reload -------------------------------------------------------------------------------------

    def restart(
        self, index: int, image: str | None, pending: Pending | None, load_seconds: float | None = None
    ) -> None:
        """Load the image in new processes and, when all are ready, put them in the old ones' place.

        Args:
            index: Core, or -1 for all.
            image: Its file; None takes the present one's file, as it is now.
            pending: Who waits for the answer.
            load_seconds: How long the image may take to load; None takes what the daemon was started with.

        Raises:
            ImageError: the image cannot be read. CoreStateError: no such core, or a restart is under way.
        """
        wanted = self.cores if index < 0 else [self._core(index)]
        if any(core.candidate for core in self.cores):
            raise CoreStateError("A restart is under way; wait for it to end.")
        origin = Path(image).absolute() if image else self.origin
        source = read_image(origin)
        snapshot = self._snapshot(source)
        for core in wanted:
            core.quick_deaths = 0
            core.candidate = self._spawn(core.index, snapshot, origin, load_seconds)
        if pending is not None:
            self.waiting.append(pending)

    def _answer_waiting(self, status: Status, text: str) -> None:
        waiting, self.waiting = self.waiting, []
        for pending in waiting:
            self.control.answer(pending, status, text)

    def _remember_files(self) -> None:
        files = {str(self.origin)}
        for core in self.cores:
            files.update(core.process.files if core.process else ())
        self.watched = {path: _stamp(path) for path in files}

    def _look_at_files(self) -> None:
        """--reload: restart when the image, or a module beside it that it imports, has changed."""
        changed = [path for path, stamp in self.watched.items() if _stamp(path) != stamp]
        if not changed or self.waiting:
            return
        self._abandon_candidates()  # of the change before this one, if they still load
        self.watched = {path: _stamp(path) for path in self.watched}
        self.say(f"Changed: {', '.join(sorted(changed))}. Reloading.")
        try:
            self.restart(-1, None, None)
        except ImageError as error:
            self.image_error = str(error)
            self.say(f"{error} The last good image goes on.")

    def _watch_beside(self, origin: Path) -> None:
        """What a broken image imports is not known, and may be what is broken: any module beside it may mend it."""
        for path in origin.parent.glob("*.py"):
            self.watched.setdefault(str(path), _stamp(str(path)))

    # -- control ------------------------------------------------------------------------------------------------

    def _on_control(self) -> None:
        """ZeroMQ's descriptor is edge-triggered: read until there is nothing left."""
        import zmq

        while True:
            try:
                frames = self.control_socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self.control.handle(frames)

    def reply(self, identity: bytes, raw: bytes) -> None:
        """Send a reply to a peer; a peer that has gone or does not read loses it."""
        import zmq

        try:
            self.control_socket.send_multipart([identity, raw], zmq.NOBLOCK)
        except zmq.ZMQError:
            pass

    def status(self) -> dict[str, Any]:
        """What ``hbrt status`` shows."""
        states = self.mailbox.slots_in
        return {
            "board": self.paths.name,
            "directory": str(self.paths.path),
            "state": self._state(),
            "pid": os.getpid(),
            "uptime_s": time.time() - self.started_at,
            "image": str(self.origin),
            "image_error": self.image_error,
            "cores": [self._core_status(core) for core in self.cores],
            "tasks": {"ready": len(states(State.READY)), "running": len(states(State.RUNNING))},
            "slots": {"total": SLOT_COUNT, "leased": sum(len(c.slots) for c in self.clients.by_id.values())},
            "memory": self.memory.summary(),
            "clients": [
                {
                    "id": client.id,
                    "pid": client.pid,
                    "name": client.name,
                    "age_s": time.time() - client.attached_at,
                    "blocks": self.memory.owned(client.id)[0],
                    "bytes": self.memory.owned(client.id)[1],
                    "slots": len(client.slots),
                    "tasks": sum(self.mailbox.state(slot) is not State.EMPTY for slot in client.slots),
                }
                for client in self.clients.by_id.values()
            ],
            "findings": list(self.findings),
        }

    def _state(self) -> str:
        states = {core.state for core in self.cores}
        by_rank = (core_states.RUNNING, core_states.CRASHED, core_states.OFFLINE)
        return next(state for state in by_rank if state in states)

    def _core_status(self, core: CoreSlot) -> dict[str, Any]:
        return {
            "core": core.index,
            "state": core.state,
            "pid": core.process.pid if core.process else None,
            "epoch": core.epoch,
            "crashes": core.crashes,
            "last_crash": core.last_crash,
            **core.counters(),
        }

    def ops(self) -> list[dict[str, Any]]:
        """What ``hbrt ops`` shows: the commands of the first core that has any."""
        rows = next((core.process.ops for core in self.cores if core.process), [])
        return [
            {"cmd": cmd, "name": name, "range": range_name(cmd), "source": source, "latency_us": latency_us}
            for cmd, name, source, latency_us in rows
        ]


def _send(connection: socket.socket, raw: bytes) -> None:
    try:
        connection.send(raw)
    except OSError:
        pass  # it did not wait for its refusal


def _discard(fd: int) -> None:
    os.read(fd, 512)


def _unlink(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def _stamp(path: str) -> int:
    """Something that differs when a file changed; 0 when it is not there."""
    try:
        info = os.stat(path)
    except OSError:
        return 0
    return hash((info.st_mtime_ns, info.st_size, info.st_ino))


def serve(config: DaemonConfig, on_running: Callable[[list[str]], None], lifeline_fd: int = -1) -> None:
    """Be the daemon of a board until told to end.

    Args:
        config: What to serve.
        on_running: Called once, when the board runs, with the names of files that a dead daemon had left.
        lifeline_fd: Its end of file ends a private board; -1 for none.

    Raises:
        BoardError: the board's directory or its state forbids it. ImageError: the image does not load.
        LayoutError: the number of cores or the size of the DDR is out of range.
    """
    supervisor = Supervisor(config)
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)

    def end(*_: object) -> None:
        supervisor.is_ending = True

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    supervisor.watch(wake_read, lambda: _discard(wake_read))
    if config.is_private and lifeline_fd >= 0:
        supervisor.watch(lifeline_fd, end)
    try:
        supervisor.open()
        on_running([path.name for path in supervisor.removed])
        supervisor.run()
    finally:
        supervisor.close()


def serve_and_announce(config: DaemonConfig, ready_fd: int, lifeline_fd: int = -1) -> int:
    """``serve`` for a process that another one waits for; returns an exit code.

    Args:
        config: What to serve.
        ready_fd: Gets one JSON line ``{ok, status, text, removed}`` when the board runs or cannot (see hbrt.launch).
        lifeline_fd: As for ``serve``.
    """

    def announce(**fields: Any) -> None:
        os.write(ready_fd, json.dumps(fields).encode())
        os.close(ready_fd)

    try:
        serve(config, lambda removed: announce(ok=True, removed=removed), lifeline_fd)
    except (BoardError, ImageError, LayoutError) as error:
        announce(ok=False, status=int(_status_of(error)), text=str(error))
        return 3
    return 0


def _status_of(error: BoardError | ImageError | LayoutError) -> Status:
    if isinstance(error, ImageError):
        return error.status
    is_wrong_use = isinstance(error, (WrongUseError, LayoutError))
    return Status.HB_SYS_INVALID_ARGUMENT if is_wrong_use else Status.HB_SYS_NOT_RUNNING


def main() -> None:
    """Entry of a launched daemon: ``config ready_fd lifeline_fd`` (see hbrt.launch)."""
    config = DaemonConfig(**json.loads(sys.argv[1]))
    ready_fd, lifeline_fd = int(sys.argv[2]), int(sys.argv[3])
    for fd in (ready_fd, lifeline_fd):
        os.set_inheritable(fd, False)
    sys.exit(serve_and_announce(config, ready_fd, lifeline_fd))
