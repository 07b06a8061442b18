"""``hb_dsp_*``: what images and ops may call, by the vendor's names.

An image is a Python file whose ``main()`` looks like the vendor's template; a core loads it and calls ``main()``. The
functions here act on this process's core. If the process is not a core (an op under a unit test), registration fills
a registry of the process's own, and functions that need a board say so.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from enum import Enum
from types import CodeType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, NoReturn, Protocol, TypeAlias

from dsp_server.hardware import cycles
from dsp_server.hardware.buffers import address_of
from dsp_server.hardware.cycles import CLOCK_HZ
from dsp_server.hardware.tcm import BANK_USABLE_BYTES
from dsp_server.hardware.tile_manager import TileManager
from dsp_server.registry import Op, Registry
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import CLIENT_PID
from hbrt.findings.record import Finding, Place
from hbrt.status import Status

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from hbrt.injection.fault import Trigger
    from hbrt.mailbox.table import Mailbox

HB_DSP_LOG_NONE: Final = 0
HB_DSP_LOG_DEBUG: Final = 1
HB_DSP_LOG_INFO: Final = 2
HB_DSP_LOG_WARNING: Final = 3
HB_DSP_LOG_ERROR: Final = 4
HB_DSP_LOG_FATAL: Final = 5
_LEVEL_NAMES = ("NONE", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL")

HB_DSP_DRAM0_POOL_SIZE: Final = BANK_USABLE_BYTES
HB_DSP_DRAM1_POOL_SIZE: Final = BANK_USABLE_BYTES


class MapFailed(Enum):
    """Type of MAP_FAILED: false, and unlike any memoryview. Test with ``is MAP_FAILED``."""

    MAP_FAILED = "MAP_FAILED"

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "MAP_FAILED"


MAX_SAID: Final = 32
"""Number of output lines from ops that a core remembers, for the text of a task that fails."""

MAP_FAILED: Final = MapFailed.MAP_FAILED
Mapped: TypeAlias = memoryview | MapFailed


class NoBoardError(RuntimeError):
    """A call was made where it cannot work: without a core, or before hb_dsp_env_init(); the text says what to do."""


class Mapping(NamedTuple):
    """A range that an op has mapped: its view, physical address, and where it was mapped, as code or ``file:line``."""

    view: memoryview
    phy_addr: int
    code: CodeType | str
    line: int = 0

    @property
    def size_bytes(self) -> int:
        """Size in bytes."""
        return len(self.view)

    @property
    def site(self) -> str:
        """``file:line`` of the call."""
        return self.code if isinstance(self.code, str) else f"{self.code.co_filename}:{self.line}"

    def is_of(self, mapped: object) -> bool:
        """Whether this is what hb_dsp_mem_map returned, an array over it, or its physical address."""
        if mapped is self.view or (type(mapped) is int and mapped == self.phy_addr):
            return True
        try:
            return len(self.view) > 0 and address_of(memoryview(mapped)) == address_of(self.view)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return False

    def __str__(self) -> str:
        return f"{self.phy_addr:#x}+{self.size_bytes:#x}, mapped at {self.site}"


class MapWatcher(Protocol):
    """Called at each mapping by the running op: the memory check, or a recorder."""

    def mapped(self, phy_addr: int, size_bytes: int) -> None:
        """Called after a range was mapped."""

    def refused(self, phy_addr: int, size_bytes: int, why: str) -> None:
        """Called when a range may not be mapped; ``why`` is a sentence."""


class Outcome(Protocol):
    """Receives the outcome of a recorded call."""

    def ended(self, status: int, text: str, cycles: int, ddr_bytes: int, tcm_bytes: int) -> None:
        """Record status, text of a failure, and what was modeled: cycles, DDR traffic, peak TCM."""


class Recorder(Protocol):
    """Records one program's calls."""

    def recording(self, mailbox: Mailbox, slot: int, op: str) -> AbstractContextManager[Outcome | None]:
        """Record an op's call; None if recording has stopped."""


class CoreContext:
    """The state of this process's core, for the functions in this module."""

    def __init__(self) -> None:
        self.index = -1
        self.ddr: Ddr | None = None
        self.serve: Callable[[], NoReturn] | None = None
        self.trace_fd = -1  # where a core's own process writes the stack that it dies with
        self.tile_manager: TileManager | None = None
        self.registry = Registry(lambda sentence: hb_dsp_log(HB_DSP_LOG_WARNING, sentence))
        self.is_initialized = False
        self.log_level = HB_DSP_LOG_WARNING
        self.frequency_hz = CLOCK_HZ
        # For the running task: its command, owner and client, whose memory it may touch; why its last mapping failed.
        self.task: tuple[int, int, int] | None = None
        self.client_id = 0
        self.map_failure = ""
        self.mappings: list[Mapping] = []
        self.watchers: list[MapWatcher] = []
        self.mapped_bytes = 0  # by this task, to estimate what it reads and writes
        self.report: Callable[[Finding], None] | None = None  # passes a finding to the board; None without a board
        self.faults: dict[int, Trigger] = {}  # to inject, by number
        self.recorders: dict[int, Recorder] = {}  # for programs whose calls are recorded, by client
        self.on_injected: Callable[[int], None] = lambda _: None
        self.said: deque[tuple[object, str]] = deque(maxlen=MAX_SAID)  # what ops printed, and the task that was running


context = CoreContext()


def hb_dsp_env_init() -> int:
    """Initialize the core's runtime; must be called before registering. Returns 0."""
    context.is_initialized = True
    return 0


def hb_dsp_init_global_tm(
    pool0: object = None,
    pool0_bytes: int = HB_DSP_DRAM0_POOL_SIZE,
    pool1: object = None,
    pool1_bytes: int = HB_DSP_DRAM1_POOL_SIZE,
) -> int:
    """Initialize the tile manager with two TCM pools, one per bank; optional, as on the board.

    Args:
        pool0: The vendor's array in bank 0. The emulator owns its TCM, so this is ignored and may be None.
        pool0_bytes: Bytes of bank 0 that ops may use, at most 128 KiB; usually HB_DSP_DRAM0_POOL_SIZE (103 KiB).
        pool1: Like pool0, for bank 1.
        pool1_bytes: Like pool0_bytes, for bank 1.

    Returns:
        0. Without this call ops get the default pools.
    """
    del pool0, pool1  # the vendor's signature
    context.tile_manager = TileManager(pool0_bytes, pool1_bytes)
    return 0


def hb_dsp_register_fn(cmd: int, op: Op, latency: int = 0) -> int:
    """Register an op for a command number. Later registrations win, and the log says so.

    Args:
        cmd: 0x1000..0xfffe for custom ops; an NN or CV number replaces the packaged op.
        op: ``op(input, output, tm) -> int``: gets two writable memoryviews of the RPC's blocks, and the tile manager.
        latency: The op's time budget in microseconds; 0 for the board's default (HBRT_WATCHDOG_MS). If exceeded, the
            task fails with HB_DSP_WATCHDOG and the core restarts. Unit and effect are the emulator's choice.

    Returns:
        0.

    Raises:
        RegistrationError: a rule is broken; says which. NoBoardError: called before hb_dsp_env_init(). An image
            that raises does not start.
    """
    if not context.is_initialized:
        raise NoBoardError(
            f"hb_dsp_register_fn({_as_command(cmd)}, ...) was called before hb_dsp_env_init(); call that first "
            "in main()."
        )
    context.registry.register(cmd, op, latency)
    return 0


def _as_command(cmd: object) -> str:
    return f"{cmd:#x}" if type(cmd) is int else repr(cmd)


def _register_table(table: dict[int, tuple[str, str]]) -> int:
    for cmd, (name, source) in table.items():
        context.registry.register_lazy(cmd, name, source)
    return 0


def HB_DSP_REGISTER_NN_ALL() -> int:
    """Register the packaged NN ops. A macro in C, a function here."""
    from dsp_server.builtin_ops import NN_OPS

    return _register_table(NN_OPS)


def HB_DSP_REGISTER_CV_ALL() -> int:
    """Register the packaged CV ops. A macro in C, a function here."""
    from dsp_server.builtin_ops import CV_OPS

    return _register_table(CV_OPS)


def hb_dsp_start() -> None:
    """Serve tasks until the core is stopped; never returns, even though the template has a line after it.

    Raises:
        NoBoardError: this process is not a core, or this was called before hb_dsp_env_init().
    """
    if context.serve is None:
        raise NoBoardError(
            f"hb_dsp_start() runs only on a core. Start a board with this image: hbrt start --image {sys.argv[0]}"
        )
    if not context.is_initialized:
        raise NoBoardError("hb_dsp_start() was called before hb_dsp_env_init(); call that first in main().")
    context.serve()


def hb_dsp_mem_map(phy_addr: int, size_bytes: int) -> Mapped:
    """Map a physical range for this task.

    Args:
        phy_addr: Any address inside a live block that the caller's process owns or has registered.
        size_bytes: Size; the whole range must be in that block. 0 is allowed and gives an empty view.

    Returns:
        Writable memoryview, format 'B'; or the false value MAP_FAILED, in which case the task's text gets the reason
        if the op then fails. The op should return HB_ERR_MMAP_FAILED.

    Raises:
        NoBoardError: this process is not a core.
    """
    mapped = map_range(phy_addr, size_bytes)
    if mapped is not MAP_FAILED:
        caller = sys._getframe(1)  # noqa: SLF001 - inspect.stack() reads source files: thousands of times slower
        context.mappings.append(Mapping(mapped, phy_addr, caller.f_code, caller.f_lineno))
        context.mapped_bytes += len(mapped)
    return mapped


def map_range(phy_addr: int, size_bytes: int) -> Mapped:
    """Like ``hb_dsp_mem_map``, for packaged ops: they keep views between calls, so no unmapping is expected."""
    ddr = context.ddr
    if ddr is None:
        raise NoBoardError("hb_dsp_mem_map() needs a board: run the op on one, as in hbrt start --image FILE.")
    try:
        refusal = ddr.refusal(phy_addr, size_bytes, context.client_id)
    except TypeError:
        why = f"the address and the size must be integers, not {phy_addr!r} and {size_bytes!r}."
    else:
        if refusal is None:
            for watcher in context.watchers:
                watcher.mapped(phy_addr, size_bytes)
            offset = ddr.offset_of(phy_addr)
            return ddr.bytes[offset : offset + size_bytes]
        why = refusal[1]
        for watcher in context.watchers:
            watcher.refused(phy_addr, size_bytes, why)
    context.map_failure = f"hb_dsp_mem_map: {why}"
    hb_dsp_log(HB_DSP_LOG_ERROR, context.map_failure)
    return MAP_FAILED


def hb_dsp_mem_unmap(mapped: object) -> int:
    """Undo a mapping made by this task. The DDR stays mapped in the core, so no bytes move.

    Args:
        mapped: What ``hb_dsp_mem_map`` returned, an array over it, or its physical address.

    Returns:
        0; HB_DSP_INVALID_ARGUMENT if this task has not mapped it or has already unmapped it; the log says so.
    """
    for at, mapping in enumerate(context.mappings):
        if mapping.is_of(mapped):
            del context.mappings[at]
            return 0
    caller = sys._getframe(1)  # noqa: SLF001 - as above
    what = f"{mapped:#x}" if type(mapped) is int else f"a {type(mapped).__name__}"
    return refuse_unmapping(what, f"{caller.f_code.co_filename}:{caller.f_lineno}")


def refuse_unmapping(what: str, site: str) -> int:
    """Report that an op unmaps something that it has not mapped; return the call's status."""
    live = "; ".join(map(str, context.mappings)) or "none"
    find(
        "not-mapped",
        f"hb_dsp_mem_unmap: {what}, at {site}, is not a mapping of this task, or was already unmapped. Mapped are: "
        f"{live}. "
        "Pass what hb_dsp_mem_map returned, once.",
        Place("unmapped", site, core=context.index),
    )
    return Status.HB_DSP_INVALID_ARGUMENT


def find(kind: str, sentence: str, *places: Place) -> None:
    """Report a mistake of the running task, or of the image, to the board; without a board, to the log.

    Args:
        kind: One of hbrt.findings.record.KINDS.
        sentence: What is wrong, with values, and what to do.
        places: The places involved, the main one first.
    """
    if context.report is not None:
        context.report(Finding(kind, sentence, places, context.client_id))
    else:
        hb_dsp_log(HB_DSP_LOG_WARNING, sentence)


def process_of(client: int) -> int:
    """Process id of a client of the board; 0 for none."""
    ddr = context.ddr
    return 0 if ddr is None else int(struct.unpack_from("<I", ddr.map, ddr.layout.client(client) + CLIENT_PID)[0])


def hb_dsp_core_id() -> int:
    """Index of this core; -1 outside a core."""
    return context.index


def hb_dsp_set_log_level(level: int) -> int:
    """Show log records of this level and above; HB_DSP_LOG_NONE shows none. Returns 0, or an error value."""
    if not HB_DSP_LOG_NONE <= level <= HB_DSP_LOG_FATAL:
        return Status.HB_DSP_INVALID_ARGUMENT
    context.log_level = level
    return 0


def hb_dsp_log(level: int, message: str, *args: object) -> None:
    """Write a record to the board's log (``hbrt log``), with %-formatting, if its level is shown."""
    if context.log_level == HB_DSP_LOG_NONE or level < context.log_level:
        return
    try:
        text = message % args if args else message
    except (TypeError, ValueError) as error:  # a task must not fail because of what it logs
        text = f"{message} {args!r} (arguments do not match the format: {error})"
    name = _LEVEL_NAMES[level] if 0 <= level < len(_LEVEL_NAMES) else str(level)
    context.said.append((context.task, text))
    if context.task:
        cycles.current().charge_print(len(text))
    write_log(f"{name} {text}")


def write_log(text: str) -> None:
    """Write text that is not an op's own to the board's log, after the time, the core and the command it is running."""
    who = f"core{context.index}" if context.index >= 0 else "dsp"
    cmd = f" {context.task[0]:#x}" if context.task else ""
    stamp = time.strftime("%H:%M:%S", time.localtime())
    with contextlib.suppress(OSError):  # a log that cannot be written must not end a task
        os.write(2, f"{stamp} {who}{cmd} {text}\n".encode("utf-8", "replace"))


def DSP_ERR(message: str, *args: object) -> None:
    """hb_dsp_log at level ERROR."""
    hb_dsp_log(HB_DSP_LOG_ERROR, message, *args)


def DSP_WARN(message: str, *args: object) -> None:
    """hb_dsp_log at level WARNING."""
    hb_dsp_log(HB_DSP_LOG_WARNING, message, *args)


def DSP_INFO(message: str, *args: object) -> None:
    """hb_dsp_log at level INFO."""
    hb_dsp_log(HB_DSP_LOG_INFO, message, *args)


def DSP_DBG(message: str, *args: object) -> None:
    """hb_dsp_log at level DEBUG."""
    hb_dsp_log(HB_DSP_LOG_DEBUG, message, *args)


def xos_set_clock_freq(frequency_hz: int) -> None:
    """Set the clock of the RTOS; kept so that a template reads like the vendor's. Modeled cycles stay at 648 MHz."""
    context.frequency_hz = int(frequency_hz)


def xos_get_clock_freq() -> int:
    """Return the clock that was set, in Hz."""
    return context.frequency_hz


def xos_start_system_timer(timer: int, tick_cycles: int) -> int:
    """Start the RTOS tick; there is none here, so this only checks its arguments. Returns 0, or an error value."""
    return 0 if timer >= 0 and tick_cycles >= 0 else Status.HB_DSP_INVALID_ARGUMENT
