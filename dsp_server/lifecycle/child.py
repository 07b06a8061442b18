"""One process of a core, as the supervisor sees it: its start, messages, end and exit status."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from dsp_server.c_images.sanitizers import environment_of
from dsp_server.lifecycle.fault_trace import op_lines
from dsp_server.lifecycle.fork_server import ForkServer
from dsp_server.lifecycle.life import STOP_GRACE_SECONDS
from dsp_server.lifecycle.snapshots import ACCELERATOR, Image
from dsp_server.process.event_loop import Loop, Timer
from dsp_server.process.launch import start_interpreter
from dsp_server.waits.sentences import place_of
from hbrt.protocol import control as wire
from hbrt.protocol.stacks import Frame, frames_of
from hbrt.types import HB_DSP_RPC_CMD_BUTT, HB_DSP_RPC_CMD_PING

TRACE_SIGNAL = signal.SIGUSR2
_RETRY_SECONDS = 0.1
_TRACE_BYTES = 16 * 1024
_MESSAGE_BYTES = wire.MAX_REQUEST_BYTES * 16
_BUILTIN = {HB_DSP_RPC_CMD_PING: "ping", HB_DSP_RPC_CMD_BUTT: "butt"}  # answered by the core itself
OpRow: TypeAlias = tuple[int, str, str, int]


def name_in(ops: Iterable[OpRow], cmd: int) -> str:
    """Name of a command's op among these ops."""
    if cmd in _BUILTIN:
        return _BUILTIN[cmd]
    return next((name for number, name, _, _ in ops if number == cmd), "unregistered")


class _Unsent(NamedTuple):
    raw: bytes
    number: int  # number of the attachment that the doorbell belongs to; 0 for none
    doorbell: int | None


class CoreChild:
    """One process of a core: a candidate until ``go``, then the core itself until it ends."""

    def __init__(self, index: int, pid: int, control: socket.socket, trace_fd: int, image: Image, loop: Loop) -> None:
        control.setblocking(False)
        self.index = index
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        self.control = control
        self.image = image
        self.has_loaded = False
        self.served_since = 0.0  # CLOCK_MONOTONIC; 0 before ``go``
        self.tasks_before = 0  # the core's task count at ``go``
        self.problem = ""  # why its image did not load, or why it ended
        self.is_late = False  # its image took too long to load
        self.overdue: tuple[int, int, int] | None = None  # slot, sequence and limit in ns of a task over its limit
        self.why: str | None = None  # who waits for a task over its limit, and for what; None if unknown
        self.trace = ""  # its stack when it died, from faulthandler
        self._trace_fd = trace_fd
        self._was_killed = False  # its task did not end within the grace period
        self.ops: list[OpRow] = []
        self.files: list[str] = []
        self.timer: Timer | None = None  # time limit for loading, or for ending
        self._loop = loop
        self._unsent: deque[_Unsent] = deque()

    def send(self, **fields: Any) -> None:
        """Send a message; it is queued while the process does not read. Messages to a dead process are dropped."""
        self._send(_Unsent(wire.pack(**fields), 0, None))

    def send_doorbell(self, client_id: int, number: int, doorbell: int) -> None:
        """Send a client's doorbell; it must stay open until ``discard_client``.

        Args:
            client_id: The client's id.
            number: Number of its attachment.
            doorbell: An eventfd.
        """
        self._send(_Unsent(wire.pack(event="client", client=client_id, number=number), number, doorbell))

    def discard_client(self, client_id: int, number: int) -> None:
        """Make the process close a client's doorbell, or cancel the message if it has not been sent yet."""
        unsent = [message for message in self._unsent if message.number == number]
        for message in unsent:
            self._unsent.remove(message)
        if not unsent:
            self.send(event="gone", client=client_id, number=number)

    def _send(self, message: _Unsent) -> None:
        self._unsent.append(message)
        if len(self._unsent) == 1:
            self._flush()

    def _flush(self) -> None:
        """Send the queued messages in order. A core in a long op does not read, but must not block the daemon."""
        while self._unsent:
            raw, _, doorbell = self._unsent[0]
            try:
                socket.send_fds(self.control, [raw], [] if doorbell is None else [doorbell])
            except BlockingIOError:
                self._loop.when_writable(self.control.fileno(), self._flush)
                return
            except OSError as error:
                if error.errno == errno.ETOOMANYREFS:  # too many of this user's descriptors are in flight in sockets
                    self._loop.later(_RETRY_SECONDS, self._flush)
                else:
                    self._unsent.clear()  # the process has ended
                return
            self._unsent.popleft()

    def receive(self) -> dict[str, Any] | None:
        """Receive one message from the process; empty if it has closed its end, None if there is no message."""
        try:
            try:
                raw = self.control.recv(_MESSAGE_BYTES)
            except ConnectionResetError:
                # It ended without reading our messages. The kernel says so first; its own messages are still here.
                raw = self.control.recv(_MESSAGE_BYTES)
            return wire.unpack_map(raw, _MESSAGE_BYTES) if raw else {}
        except BlockingIOError:
            return None
        except OSError:
            return {}
        except wire.MalformedMessageError as error:
            return {"event": "broken", "text": f"Core {self.index} sent a malformed message: {error}"}

    def go(self, tasks_before: int) -> None:
        """Have the process start claiming tasks."""
        self.served_since = time.monotonic()
        self.tasks_before = tasks_before
        self.send(event="go")

    def end(self) -> None:
        """Ask the process to end after its task; kill it after the grace period."""
        self.send(event="stop")
        self.signal(signal.SIGTERM)
        self.timer = self._loop.later(STOP_GRACE_SECONDS, self._on_grace_over)

    @property
    def has_stack(self) -> bool:
        """Whether the process has written its op's stack since it was asked to; faulthandler writes a line in parts.

        This takes longer for an op in C than for one in Python.
        """
        whole_lines, _, _ = os.pread(self._trace_fd, _TRACE_BYTES, 0).decode("utf-8", "replace").rpartition("\n")
        return self.pidfd < 0 or bool(frames_of(whole_lines))

    def ask_stack(self) -> None:
        """Make the process write its op's stack, for ``stack``; do nothing while the watchdog is asking for it."""
        if self.overdue is None:
            self._write_stack()

    def begin_end(self, task: tuple[int, int, int]) -> None:
        """Record the task over its limit, because of which the process is to end, and have it write the op's stack.

        Args:
            task: Slot, sequence, and limit in ns.
        """
        self.overdue, self.why = task, None
        self._write_stack()

    def _write_stack(self) -> None:
        self._empty_trace()
        self.signal(TRACE_SIGNAL)

    def stack(self) -> tuple[Frame, ...]:
        """Return the op's stack, innermost frame first; empty if the process has not answered ``ask_stack``."""
        text = self._read_trace()
        if self.overdue is None:
            self._empty_trace()  # leave room for the stack at its death
        return frames_of(text)

    def last_place(self) -> str:
        """Say who waited for the task over its limit, and where its op was; empty if unknown."""
        why, found = self.why or "", place_of(frames_of(self.trace))
        return f"{why and f' {why}'}{f' It was {found}.' if found and found not in why else ''}"

    def _read_trace(self) -> str:
        return op_lines(os.pread(self._trace_fd, _TRACE_BYTES, 0).decode("utf-8", "replace").strip())

    def _empty_trace(self) -> None:
        os.ftruncate(self._trace_fd, 0)
        os.lseek(
            self._trace_fd, 0, os.SEEK_SET
        )  # the process writes at the same offset, as it has a duplicate of the descriptor

    def on_ready(self, message: dict[str, Any]) -> bool:
        """Store the ops of a loaded image; if the message is malformed, end the process and return False."""
        try:
            self.ops = [(int(cmd), str(name), str(source), int(us)) for cmd, name, source, us in message["ops"]]
            self.files = [str(path) for path in message["files"]]
        except (KeyError, TypeError, ValueError) as error:
            self.fail(f"Core {self.index} sent a malformed message: {error!r}.")
            return False
        if self.has_loaded:
            return False
        self.has_loaded = True
        if self.timer is not None:
            self.timer.cancel()
        return True

    def fail_late(self, load_seconds: float) -> None:
        """Kill a process whose image takes too long to load."""
        self.is_late = True
        self.fail(
            f"It was still loading on core {self.index} after {load_seconds:g} s, so hbrt gave up. "
            "Does it loop before hb_dsp_start()? To allow more time, use --timeout SECONDS."
        )

    def fail(self, problem: str) -> None:
        """Kill a process for the given reason; only the first reason is kept."""
        self.problem = self.problem or problem
        self.signal(signal.SIGKILL)

    def forgive(self) -> None:
        """Record that the task over its limit has ended."""
        self.overdue = None

    def _on_grace_over(self) -> None:
        self._was_killed = True
        self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Send a signal to this process, never to another process that has reused its pid."""
        if self.pidfd < 0:
            return  # the process has been reaped
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def name_of(self, cmd: int) -> str:
        """Name of a command's op."""
        return name_in(self.ops, cmd)

    def op_of(self, cmd: int) -> str:
        """Name a command for a list, such as "softmax, command 0x400"; for an accelerator, "a model"."""
        if self.image.origin == ACCELERATOR:
            return "a model"
        names = [name for number, name, _, _ in self.ops if number == cmd]
        return ", ".join((*names, f"command {cmd:#x}"))

    def call_of(self, cmd: int) -> str:
        """Name a command for a sentence, such as "softmax (command 0x400)"; for an accelerator, "a model"."""
        return "a model" if self.image.origin == ACCELERATOR else f"{self.name_of(cmd)} (command {cmd:#x})"

    def budget_us(self, cmd: int) -> int:
        """Latency budget of a command's op in microseconds; 0 if it has none."""
        return next((latency_us for number, _, _, latency_us in self.ops if number == cmd), 0)

    def reap(self) -> str:
        """Reap the dead process and close its descriptors; return how it ended, as part of a sentence."""
        self.trace = self._read_trace()
        os.close(self._trace_fd)
        if self.timer is not None:
            self.timer.cancel()
        _, wait_status = os.waitpid(self.pid, 0)
        os.close(self.pidfd)
        self.pidfd = -1
        self.control.close()
        if self._was_killed:
            return f"was stopped, and was killed because its task had not finished after {STOP_GRACE_SECONDS:.0f} s,"
        if self.problem:
            return f"failed ({self.problem.splitlines()[-1]})"
        if os.WIFSIGNALED(wait_status):
            number = os.WTERMSIG(wait_status)
            return f"was ended by signal {number} ({signal.Signals(number).name})"
        return f"exited with code {os.WEXITSTATUS(wait_status)}"


def spawn(
    index: int,
    ddr_fd: int,
    doorbells: list[int],
    urgent_bell: int,
    image: Image,
    log_fd: int,
    loop: Loop,
    fork_server: ForkServer,
) -> CoreChild:
    """Start a core's process, with its descriptors at fixed numbers.

    Raises:
        OSError: out of processes or descriptors.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    trace_fd = os.memfd_create("hbrt-trace", os.MFD_CLOEXEC)
    try:
        places = [log_fd, log_fd, theirs.fileno(), ddr_fd, urgent_bell, trace_fd, *doorbells]
        arguments = [str(index), str(len(doorbells)), str(os.getpid()), str(image.snapshot), str(image.origin)]
        if image.sanitizers:  # a process has to load their libraries before all others
            pid = start_interpreter("dsp_server.core.process", places, arguments, environment_of(image.sanitizers))
        else:
            pid = fork_server.fork(places, arguments)
        try:
            return CoreChild(index, pid, ours, trace_fd, image, loop)
        except OSError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
    except BaseException:
        ours.close()
        os.close(trace_fd)
        raise
    finally:
        theirs.close()
