"""A core's process: its descriptors at fixed numbers, messages from the supervisor, the image, and its exit."""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from dsp_server import runtime
from dsp_server.core import forked, image_loader, op_effects
from dsp_server.core.fault_log import FaultLog, FindingReports
from dsp_server.core.heartbeat import doorbells_in_use
from dsp_server.core.image_loader import load_and_run
from dsp_server.core.loop import Core
from dsp_server.errors import ImageError
from dsp_server.process.launch import set_title
from hbrt.board.descriptors import receive_fds
from hbrt.board.forked import end_with
from hbrt.board.paths import BoardPaths
from hbrt.borders.traces import beyond
from hbrt.ddr.file import Ddr
from hbrt.findings.record import Finding, Place
from hbrt.injection.fault import Trigger, parse
from hbrt.protocol import control
from hbrt.trace import switch
from hbrt.trace.switch import Recorder

CONTROL_FD = 3
DDR_FD = 4
URGENT_FD = 5
TRACE_FD = 6
FIRST_DOORBELL_FD = 7
_MAX_FINDING = 4096  # characters of a finding's text


class CoreProcess:
    """This process, acting as a core of a board."""

    def __init__(self, index: int, core_count: int, board: BoardPaths, origin: str) -> None:
        self.index = index
        self._origin = origin  # the image's file
        self._reports = FindingReports(self._send_finding)
        self._board = board
        self._recorder = Recorder(lambda: switch.read(board), f"core {index}", Path(origin).name)
        self.control = socket.socket(fileno=CONTROL_FD)
        try:
            self.ddr = Ddr(DDR_FD)
        except OSError as error:
            self.give_up(
                f"The process of core {index} cannot map the DDR: {error.strerror}. A memory limit ('ulimit -v') "
                "must leave room for all of the DDR; or start the board with a smaller one (--ddr or HBRT_DDR)."
            )
        self.doorbells = list(range(FIRST_DOORBELL_FD, FIRST_DOORBELL_FD + core_count))
        self.client_doorbells: dict[int, int] = {}
        self.core: Core | None = None
        self._may_go = False
        self._is_stopping = False

    def serve(self) -> NoReturn:
        """Report the image's commands, wait for ``go``, then serve until stopped. Called by hb_dsp_start."""
        if not forked.mark[0]:
            forked.leave("The image's main()", came="called hb_dsp_start(). ")
        ops = [[r.cmd, r.name, r.source, r.latency_us] for r in runtime.context.registry.listing()]
        if not ops:
            runtime.find(
                "image",
                f"The image {self._origin} registers no ops. Call hb_dsp_register_fn() or HB_DSP_REGISTER_NN_ALL() in "
                "main() before hb_dsp_start().",
                Place("image", self._origin),
            )
        self.control.send(control.pack(event="ready", ops=ops, files=_image_files()))
        while not (self._may_go or self._is_stopping):
            self.listen(wait=True)
        if not self._is_stopping:
            faults = FaultLog(lambda text: runtime.write_log(f"ERROR {text}"))
            self.core = Core(
                self.index, self.ddr, self.doorbells, CONTROL_FD, self.listen, self.client_doorbells, faults
            )
            self.core.is_stopping = self._is_stopping
            self._follow_trace()
            self.core.serve(URGENT_FD)
        os._exit(0)

    def give_up(self, problem: str) -> NoReturn:
        """Report why this process cannot serve, and exit."""
        if not forked.mark[0]:
            forked.leave("The image's main()", came=f"came to this end:\n{problem}\n")
        self.control.send(control.pack(event="broken", text=problem[-control.MAX_REQUEST_BYTES // 2 :]))
        os._exit(1)

    def report(self, found: Finding) -> None:
        """Pass a finding to the daemon; in a child forked by an op, do nothing."""
        if forked.mark[0]:
            self._reports.report(found)

    def _send_finding(self, found: Finding) -> bool:
        found = found._replace(text=found.text[:_MAX_FINDING])
        try:
            self.control.send(control.pack(event="finding", finding=found.as_dict()), socket.MSG_DONTWAIT)
        except BlockingIOError:  # the daemon is busy: do not make the op wait
            return False
        return True

    def on_injected(self, number: int) -> None:
        """Notify the daemon of an injected fault before it happens, as it may end this process."""
        self.control.send(control.pack(event="injected", number=number))

    def stop(self) -> None:
        """Exit after the running task."""
        self._is_stopping = True
        if self.core is not None:
            self.core.is_stopping = True

    def listen(self, *, wait: bool = False) -> bool:
        """Handle one message from the supervisor; False if there is none. If the supervisor is gone, exit."""
        try:
            raw, fds, _ = receive_fds(self.control, control.MAX_REQUEST_BYTES, 1, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        if not raw:
            os._exit(0)
        message = control.unpack_map(raw, control.MAX_REQUEST_BYTES)
        event = message.get("event")
        if event == "client":
            self._discard(message["client"])
            (self.client_doorbells[message["number"]],) = fds
        elif event == "gone":
            self._discard(message["client"])
            self._close_doorbell(message["client"], message["number"])
        elif event == "inject":
            runtime.context.faults = {number: Trigger(parse(text)) for number, text in message["faults"]}
        elif event == "record":
            from dsp_server.detectors.recording import Recorder  # loaded only if the core records

            runtime.context.recorders[message["client"]] = Recorder(message["directory"], runtime.context)
        elif event == "trace":
            self._follow_trace()
        elif event == "go":
            self._may_go = True
        elif event == "stop":
            self.stop()
        return True

    def _follow_trace(self) -> None:
        """Start or stop tracing what the core does, as the board's switch says."""
        if self.core is not None and self._recorder.look():
            self.core.follow_trace(self._recorder.ring)

    def _discard(self, client: int) -> None:
        if (memory := sys.modules.get("dsp_server.detectors.memory")) is not None:
            memory.known.discard()  # another program may be given the same addresses
        self._reports.discard(client)
        runtime.context.recorders.pop(client, None)

    def _close_doorbell(self, client: int, number: int) -> None:
        if self.core is not None:
            self.core.mailbox.discard_client(client)
        doorbell = self.client_doorbells.pop(number, None)
        if doorbell is not None:
            with doorbells_in_use:
                os.close(doorbell)


def _image_files() -> list[str]:
    """Python files that this process has loaded from the image's own directory (for --reload)."""
    if image_loader.MODULE_NAME not in sys.modules:
        return []  # an image in C
    folder = sys.path[0] + os.sep
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return sorted({path for path in files if path and path.startswith(folder)})


def _image_traceback(error: BaseException) -> str:
    """Traceback of an image that did not load, without the frames above the image."""
    trace = beyond(error, lambda frame: frame.f_code.co_filename in {__file__, image_loader.__file__})
    return "".join(traceback.format_exception(type(error), error, trace, limit=-20)).rstrip()


def _refuse_breakpoint(*_: object, **__: object) -> None:
    """Refuse breakpoint() in an op if PYTHONBREAKPOINT is not set: pdb would end the op without saying why.

    Raises:
        RuntimeError: always; the text says what to do instead.
    """
    raise RuntimeError(
        "breakpoint() needs a terminal, and a core has none. Run the program with HBRT_INLINE=1 (and HBRT_IMAGE), so "
        "that its ops run in its own process. Or start the board with --watchdog 0 and a debugger that needs no "
        "terminal in the environment, such as PYTHONBREAKPOINT=remote_pdb.set_trace."
    )


def main() -> NoReturn:
    """Run a core's process; arguments: ``index core_count supervisor snapshot origin``."""
    index, core_count, supervisor = (int(argument) for argument in sys.argv[1:4])
    snapshot, origin = sys.argv[4:6]
    end_with(supervisor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the daemon handles Ctrl-C
    for fd in range(CONTROL_FD, FIRST_DOORBELL_FD + core_count):
        os.set_inheritable(fd, False)  # ops may start programs
    # Dump the stack when this process dies in C or is about to be killed for exceeding its time limit.
    faulthandler.enable(file=TRACE_FD, all_threads=False)
    faulthandler.register(signal.SIGUSR2, file=TRACE_FD, all_threads=False)
    forked.be_the_core(signal.SIGUSR2)
    op_effects.install()
    board = BoardPaths(Path(snapshot).parent)
    set_title(f"core {index}", board.name)
    process = CoreProcess(index, core_count, board, origin)
    signal.signal(signal.SIGTERM, lambda *_: process.stop())
    runtime.context.index = index
    process.ddr.imports.holder = supervisor
    runtime.context.ddr = process.ddr
    runtime.context.serve = process.serve
    runtime.context.report = process.report
    runtime.context.trace_fd = TRACE_FD
    runtime.context.on_injected = process.on_injected
    if not os.environ.get("PYTHONBREAKPOINT"):
        sys.breakpointhook = _refuse_breakpoint
    try:
        load_and_run(snapshot, origin)
        problem = f"main() of {origin} returned; it must end with hb_dsp_start(), which never returns."
    except ImageError as error:
        problem = str(error)
    except BaseException as error:  # noqa: BLE001 - report every way that an image can end
        problem = _image_traceback(error)
    process.give_up(problem)
