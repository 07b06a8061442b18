"""An attachment to a board: the lease, its descriptors, and control requests. One per process and board."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import sys
import threading
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Protocol

from hbrt.attach.question import Question
from hbrt.attach.requests import Requests
from hbrt.board.descriptors import receive_fds
from hbrt.board.files import check_directory
from hbrt.board.paths import RUN, BoardPaths, BoardRef, is_text
from hbrt.borders.printable import printable
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import CLIENT_ASKED, CLIENT_CHECKS, LayoutError
from hbrt.errors import BoardError, NoDaemonError, RequestRefusedError, WrongUseError
from hbrt.mailbox.native import native
from hbrt.mailbox.submission import Refusal, block_refusal
from hbrt.mailbox.table import Mailbox
from hbrt.protocol import control as wire
from hbrt.status import Status
from hbrt.trace import switch
from hbrt.trace.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from hbrt.findings.record import Place
    from hbrt.trace.ring import Ring
    from hbrt.trace.switch import Switch

ATTACH_SECONDS = 10.0
REQUEST_MS = 60_000
_MAX_FDS = 64


class Link(Protocol):
    """One process's attachment to one board, on this machine or another."""

    request_ms: int = REQUEST_MS  # time limit for the daemon's answer
    can_import: bool = False  # whether the board can map memory of this process's other libraries
    knows_run: bool = False  # the board itself adds findings about this process to its run's record
    leases_slots: bool = True  # whether the daemon grants more than ``first_slots``
    is_watched: bool = True  # whether cores can watch this program's tasks
    is_detaching: bool = False  # requests are still answered, although every call is refused
    fault: int  # 0 while the board is up; afterwards the status that every call returns
    on_fault: Callable[[], None] | None = None  # called when ``fault`` is set in the attached process
    on_asked: Callable[[], None] | None = None  # called when the daemon has sent this process a request
    events: Ring | None = None  # for this program's calls, while the board is traced
    paths: BoardRef
    client_id: int
    first_slots: list[int]
    core_count: int  # DSP cores
    accelerators: int = 0  # accelerator cores, with the next indices; none if this process cannot reach them
    daemon_pid: int
    ddr: Ddr
    mailbox: Mailbox
    doorbell: int
    core_doorbells: list[int]
    urgent_bells: list[int]
    lease: socket.socket
    _pid: int

    @property
    def address(self) -> str:
        """Name of this board, in a form accepted by ``board_ref``."""
        return str(self.paths.path)

    @property
    def is_asking(self) -> bool:
        """Whether a thread is inside a request: a finalizer that runs there must not send another."""

    def request(self, verb: str, question: Question | None = None, **args: Any) -> Any:
        """Send the daemon a request; returns the answer's data.

        Args:
            verb: Name of the request.
            question: Lets the caller check whether an interrupted request was sent, and so will be carried out.
            args: Arguments of the verb.

        Raises:
            RequestRefusedError: the daemon refused, does not answer, or is gone.
        """

    def block_refusal(self, what: str, phy_addr: int, size_bytes: int) -> Refusal | None:
        """Return why a task's block is refused, None if it is valid; like ``submission.block_refusal``."""
        return block_refusal(self.ddr, self.client_id, what, phy_addr, size_bytes)

    def undo(self, verb: str, phy_addr: int) -> None:
        """Undo a grant that reached no caller: "free" or "unregister"; does not wait for the answer."""

    def tell(self, verb: str, **args: Any) -> None:
        """Send the daemon a request without waiting for its answer, unless another request is in progress."""

    def watch_lease(self) -> None:
        """Arrange for the doorbell to ring when the board is lost, for threads that sleep only on the doorbell."""

    def find(self, kind: str, text: str, *places: Place) -> None:
        """Have the board record a finding of this process; does nothing if the board is gone.

        Args:
            kind: One of hbrt.findings.record.KINDS.
            text: The message, with values and what to do.
            places: The sides of the mistake, the main one first.
        """
        import json

        with contextlib.suppress(RequestRefusedError):
            self.request(
                "found", kind=kind, text=text[: wire.MAX_TEXT], places=json.dumps([place.as_dict() for place in places])
            )

    def watch_tasks(self, checks: int) -> int:
        """Have cores watch this program's tasks: a Check of hbrt.findings.checks. Returns all active checks."""

    def record(self, directory: Path) -> None:
        """Have the cores record this program's calls.

        Args:
            directory: An absolute path; created, unless it already has a recording of this program.

        Raises:
            WrongUseError: something else is in the directory, it cannot be created, or the board is on another machine.
        """

    def trace(self) -> Switch | None:
        """Return the trace that this process should join now, or None."""

    def note_request(self, start_ns: int, verb: str) -> None:
        """Record a request to the daemon while the board is traced."""
        if (events := self.events) is not None:
            events.note(EventKind.ASK, start_ns, monotonic_ns(), text=events.text(verb))

    def lose(self) -> None:
        """Record that the board is gone; from now on every call returns that status."""

    def is_lost(self) -> bool:
        """Whether the board is gone, according to the lease itself."""

    def why_faulty(self) -> str:
        """Message for ``fault``."""
        if self.fault == Status.HB_DSP_FORKED:
            return (
                f"This process was forked from process {self._pid}, which attached to board {self.paths.name}. "
                "The lease belongs to the parent; allocate and submit anew in the child (in Python after connect()), "
                "or fork before attaching."
            )
        if self.fault == Status.HB_DSP_NOT_RUNNING:
            return f"This process has detached from board {self.paths.name}; call connect() again."
        return f"The daemon of board {self.paths.name} (process {self.daemon_pid}) died; start it and connect again."

    def begin_detach(self) -> None:
        """Like ``detach``, but requests that free things are still answered."""
        self.is_detaching = not self.fault
        self.detach()

    def detach(self) -> None:
        """From now on, return HB_DSP_NOT_RUNNING from every call; call ``close`` when no thread waits anymore."""
        self.fault = self.fault or Status.HB_DSP_NOT_RUNNING
        if self.on_fault is not None:
            self.on_fault()

    def close(self) -> None:
        """Detach: close the lease; the daemon then reclaims what this process held."""

    def detach_in_child(self) -> None:
        """In a forked child: close the copy of the parent's lease, so that it ends with the parent."""


class LocalLink(Link):
    """The attachment of a process on the board's own machine."""

    paths: BoardPaths
    can_import = knows_run = True

    def __init__(self, paths: BoardPaths, name: str | None = None) -> None:
        """Attach; ``name`` is the name shown on the board, this program's by default.

        Raises:
            NoDaemonError: no daemon serves the board. BoardError: the daemon refused, or has a different version.
        """
        self.paths = paths
        native()  # needed for requests: set before there is anything to close
        self.lease = _connect(paths)
        run = os.environ.get(RUN, "") if name is None else ""  # a relay does not belong to a run
        fds: list[int] = []
        try:
            hello, fds = _greet(self.lease, (name or program_name())[:64], run, paths.name)
            self.client_id: int = hello["client"]
            self.first_slots: list[int] = hello["slots"]
            self.core_count: int = hello["cores"]
            self.accelerators: int = hello["accelerators"]
            self.daemon_pid: int = hello["daemon"]
            self._token: bytes = hello["token"]
            self.ddr = Ddr(fds.pop(0))
            self.ddr.imports.holder = self.daemon_pid
        except BaseException as error:
            self.lease.close()
            for fd in fds:
                os.close(fd)
            if isinstance(error, wire.MalformedMessageError | LayoutError | LookupError):
                raise BoardError(f"The daemon of board {paths.name} has a different version: {error}") from None
            if isinstance(error, OSError):
                why = "it does not answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
                raise BoardError(f"This process cannot attach to board {paths.name}: {why}; see 'hbrt log'.") from None
            raise
        self.mailbox = Mailbox(self.ddr)
        self.doorbell = fds[0]
        dsp, others = self.core_count, self.accelerators
        self.core_doorbells = [*fds[1 : 1 + dsp], *fds[1 + 2 * dsp : 1 + 2 * dsp + others]]
        self.urgent_bells = [*fds[1 + dsp : 1 + 2 * dsp], *fds[1 + 2 * dsp + others :]]
        self.fault = 0
        self._pid = os.getpid()
        self._asked_at = self.ddr.layout.client(self.client_id) + CLIENT_ASKED
        self.requests = Requests(self)
        self._is_cut = False  # whether the program has closed or replaced this attachment's descriptors
        self._watching = threading.RLock()
        self._watcher: threading.Thread | None = None

    @property
    def is_asking(self) -> bool:
        """See ``Link.is_asking``."""
        return self.requests.is_asking

    def request(self, verb: str, question: Question | None = None, **args: Any) -> Any:
        """See ``Link.request``."""
        reply = self.requests.ask(question or Question(), verb, args)
        if self.mailbox.map[self._asked_at] and self.on_asked is not None:
            self.on_asked()  # a program that never sleeps in a wait sees the daemon's request here
        if reply.status:
            raise RequestRefusedError(reply.status, reply.text)
        return reply.data

    def watch_tasks(self, checks: int) -> int:
        """Like ``Link.watch_tasks``; the board may watch more."""
        mm, at = self.mailbox.map, self.ddr.layout.client(self.client_id) + CLIENT_CHECKS
        mm[at] |= checks
        return mm[at]

    def record(self, directory: Path) -> None:
        """See ``Link.record``."""
        from hbrt.recording import format as recording  # no cost for a program that is not recorded

        if not is_text(directory):
            raise WrongUseError(
                f"The recording directory {str(directory)!r} is not valid text in this locale, so messages cannot "
                "name it; choose another, or set LC_ALL=C.UTF-8."
            )
        try:
            recording.begin(directory, "hbrt")
        except OSError as error:
            raise WrongUseError(f"Cannot create {directory} for a recording: {error.strerror}.") from None
        self.request("record", directory=str(directory))

    def trace(self) -> Switch | None:
        """Like ``Link.trace``: the board's trace."""
        return switch.read(self.paths)

    def undo(self, verb: str, phy_addr: int) -> None:
        """See ``Requests.undo``."""
        self.requests.undo(verb, phy_addr)

    def tell(self, verb: str, **args: Any) -> None:
        """See ``Link.tell``."""
        self.requests.tell(verb, args)

    def proof(self, nonce: str) -> str:
        """Return proof to another process that this one holds its lease; see ``hbrt.protocol.control.lease_proof``."""
        return wire.lease_proof(self._token, nonce)

    def watch_lease(self) -> None:
        """See ``Link.watch_lease``."""
        if self._watcher is None:
            with self._watching:
                if self._watcher is None:
                    self._watcher = threading.Thread(target=self._watch, name="hbrt-lease", daemon=True)
                    self._watcher.start()

    def _watch(self) -> None:
        poller = select.poll()
        poller.register(self.lease, 0)  # hang-ups are always reported
        poller.poll()
        self.lose()
        if not self._is_cut:
            os.eventfd_write(self.doorbell, 1)

    def lose(self) -> None:
        """See ``Link.lose``."""
        if not self.fault:
            self._is_cut = not self.requests.is_open
            self.fault = Status.HB_DSP_BOARD_LOST
        if self.on_fault is not None:
            self.on_fault()

    def is_lost(self) -> bool:
        """See ``Link.is_lost``."""
        if not self.fault and self.has_ended():
            self.lose()
        return bool(self.fault)

    def why_faulty(self) -> str:
        """See ``Link.why_faulty``."""
        if self.fault == Status.HB_DSP_BOARD_LOST and self._is_cut:
            return (
                f"This program closed or replaced the file descriptors of board {self.paths.name}, as closefrom() "
                "does: close only descriptors that it opened, or do so before its first call."
            )
        return super().why_faulty()

    def has_ended(self) -> bool:
        """Whether the lease has hung up: its daemon is gone, but another may serve the same directory."""
        poller = select.poll()
        poller.register(self.lease, 0)
        return bool(poller.poll(0))

    def close(self) -> None:
        """See ``Link.close``."""
        self.is_detaching = False
        self.detach()
        self.on_fault = None  # break reference cycles, which would keep this attachment's descriptors
        is_cut = not self.requests.is_open
        self.requests.close()
        if is_cut:  # their numbers may be other files' by now, and nothing wakes the watcher
            self.lease.detach()
        else:
            self._close_descriptors()

    def detach_in_child(self) -> None:
        """See ``Link.detach_in_child``."""
        self.fault = Status.HB_DSP_FORKED
        self._watching = threading.RLock()
        self.lease.close()

    def _close_descriptors(self) -> None:
        if self._watcher is not None:
            self._watcher.join()
        self.lease.close()
        self.ddr.close()
        for fd in (self.doorbell, *self.core_doorbells, *self.urgent_bells):
            os.close(fd)


def program_name() -> str:
    """Return this program's name as shown on a board."""
    return printable(os.path.basename(sys.argv[0] or "python"))  # noqa: PTH119 - argv is no path of ours


def _greet(lease: socket.socket, name: str, run: str, board: str) -> tuple[dict[str, Any], list[int]]:
    """Send hello on a new lease; returns the daemon's answer and its descriptors.

    Raises:
        NoDaemonError: it ended. BoardError: it refused. MalformedMessageError: malformed answer. OSError.
    """
    lease.send(wire.pack(pid=os.getpid(), name=name, run=run), socket.MSG_NOSIGNAL)
    raw, fds, flags = receive_fds(lease, wire.MAX_REQUEST_BYTES, _MAX_FDS)
    if flags & socket.MSG_CTRUNC:  # this process cannot hold all the descriptors
        for fd in fds:
            os.close(fd)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    if not raw:
        raise NoDaemonError(f"The daemon of board {board} ended while this process was attaching.")
    hello = wire.unpack_map(raw, wire.MAX_REQUEST_BYTES)
    if not hello.get("ok"):
        raise BoardError(f"Board {board} refused this process: {hello.get('text', 'no reason given')}")
    return hello, fds


def _none_runs(paths: BoardPaths) -> str:
    from hbrt.board.paths import is_private_name
    from hbrt.control.ask import how_to_name

    if is_private_name(paths.name):
        return (
            f"The private board {paths.name} ended with the process that started it. Make the first call after "
            "daemon() or fork(), or start a board for all of them: 'hbrt start'."
        )
    return f"Board {paths.name} is not running; start it with 'hbrt start{how_to_name(paths)}'."


def _connect(paths: BoardPaths) -> socket.socket:
    try:
        check_directory(paths)
    except FileNotFoundError:
        raise NoDaemonError(_none_runs(paths)) from None
    lease = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    lease.settimeout(ATTACH_SECONDS)
    try:
        lease.connect(paths.attach_address)
    except (FileNotFoundError, ConnectionRefusedError):
        lease.close()
        raise NoDaemonError(_none_runs(paths)) from None
    except OSError as error:
        lease.close()
        raise BoardError(f"Board {paths.name} does not accept this process: {error}.") from None
    return lease
