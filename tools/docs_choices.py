"""The table of docs/what-is-emulated.md with every value that the public manuals leave open."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import NamedTuple

from arm_client.memory import blocks as arm_memory
from dsp_server import clients, runtime
from dsp_server.hardware import cycles, descriptors, frame, tcm, tile_manager, transfers
from dsp_server.lifecycle import restart_policy
from dsp_server.memory import heap
from hbrt import settings, types
from hbrt.attach import slots
from hbrt.board import launch
from hbrt.ddr import layout
from hbrt.mailbox import table as mailbox
from hbrt.status import Status
from tools.markdown import table

KIB = 1024


class Choice(NamedTuple):
    """One thing that the manuals leave open: what, which value, why that one."""

    what: str
    value: str
    why: str


def _widths(structure: type[ctypes.Structure]) -> str:
    parts = [f"{field[0]} int{8 * ctypes.sizeof(field[1])}" for field in structure._fields_]
    return f"{', '.join(parts)}; {ctypes.sizeof(structure)} bytes"


MEMORY = (
    Choice("base of the DDR", f"{layout.DDR_BASE:#x}", "above 31 bits, so that an address kept in a signed int shows"),
    Choice("size of the DDR", settings.text("HBRT_DDR"), "sparse: untouched pages cost nothing; `hbrt start --ddr`"),
    Choice(
        "allocator",
        f"best fit by pages of {layout.PAGE_BYTES} bytes, {heap.Heap(0, 1 << 20).guard_pages} guard page after each",
        "blocks start aligned for any unit of the chip, and an overrun meets no neighbor",
    ),
    Choice("a new block holds", "zeros", "a program that reads before it writes gives the same result every time"),
    Choice("sizes", f"1 to {arm_memory.SIZE_LIMIT} bytes", "memSize is a uint32"),
    Choice("argument order of hbSysAllocMem", "(mem, size), and also (size, mem)", "the manual lists both"),
    Choice(
        "double free, a pointer inside a block, another process's block",
        f"{Status.HB_SYS_NOT_ALLOCATED.name} ({int(Status.HB_SYS_NOT_ALLOCATED)})",
        "one mistake of the caller, with a message on which it is",
    ),
    Choice(
        "free while a task of the process runs",
        "succeeds; the memory goes when that task has ended",
        "no op loses memory under its hands",
    ),
    Choice(
        "hbSysWriteMem, hbSysReadMem",
        "copy through the CPU's view, like memcpy; they do not flush",
        "cached memory needs its CLEAN or INVALIDATE, as after memcpy",
    ),
    Choice("their size above memSize", Status.HB_SYS_INVALID_ARGUMENT.name, "nothing is copied"),
    Choice(
        "cached memory",
        f"`{settings.text('HBRT_CACHE')}` by default; `strict` or `evicting` by HBRT_CACHE",
        "programs run first and are checked next",
    ),
    Choice(
        "granularity of strict mode",
        "the bytes from phyAddr on, memSize of them; no cache lines, nothing is evicted by itself",
        "the same result on every run: a flush that is missing always shows",
    ),
    Choice(
        "hbSysRegisterMem",
        "counted; cached memory, loaded from the DDR in strict mode; a program's own block stays as allocated",
        "the manual says only that the result is cacheable; one process has one view of a block",
    ),
    Choice(
        "physical addresses of a camera's buffers",
        "a call of the emulator's gives them: hbrt_register_fd, for a memfd or shared memory",
        "on a board the camera's library knows them; none is emulated",
    ),
    Choice("clients that may register one block", f"{layout.BLOCK_MAX_SHARERS}", "their ids fit the block's record"),
    Choice(
        "start of an RPC block",
        f"a multiple of {mailbox.RPC_ALIGNMENT} bytes",
        "an int64 in a parameter structure; a core hangs on an unaligned one",
    ),
)

TASKS = (
    Choice(
        "fields of hbDSPRpcCtrlParam",
        _widths(types.hbDSPRpcCtrlParam),
        "int64 as in the DNN runtime's twin, int32 else",
    ),
    Choice(
        "priority values",
        ", ".join(
            f"{name.removeprefix('HB_DSP_RPC_PRIORITY_')} {int(value)}"
            for name, value in types.hbDspRpcPriority.__members__.items()
        ),
        "equal to the DNN runtime's",
    ),
    Choice("third key of the order", "time of submission", "first come, first served"),
    Choice(
        "core for ANY",
        "the one that is free first; of sleeping ones the lowest",
        "no core idles while there is work for it",
    ),
    Choice("core masks", "any sum of core bits, 3 for both", "a mask is one; the manual names its single bits"),
    Choice(
        "timeout of hbDSPWaitTaskDone", "milliseconds; <= 0 waits forever", "as hbDNNWaitTaskDone; the samples pass 0"
    ),
    Choice("after a timeout", "the task keeps running and can be waited for again", "a wait is not a cancellation"),
    Choice(
        "hbDSPReleaseTask of a queued or running task",
        "cancels it; lets it end and drops its result",
        "a release never blocks",
    ),
    Choice(
        "hbDSPSetTaskDoneCb",
        "callback(task, status, userdata), once, in a thread of the runtime",
        "that of hbDNNSetTaskDoneCb",
    ),
    Choice(
        "unknown command",
        f"the wait returns {Status.HB_DSP_UNKNOWN_COMMAND.name}",
        "what is registered is the image's to know",
    ),
    Choice("PING (0x0)", "the core answers 0, with or without blocks", "it asks whether the core lives"),
    Choice(
        "reply of BUTT (0xffff)",
        "into the output block: {uint32 count; uint32 record_bytes = 64}, then per command "
        "{uint32 cmd; uint32 latency_us; char name[56]}; cut to what fits. With an input block a "
        "warning asks whether `rpcCmd` was forgotten",
        "fixed records, readable from C",
    ),
    Choice(
        "task slots",
        f"{layout.SLOT_COUNT} a board, {clients.MAX_SLOTS} a process, leased {clients.FIRST_SLOTS} and then "
        f"{slots.SLOTS_AT_ONCE} at a time",
        "finding work is one scan of that many bytes",
    ),
    Choice("processes", f"{layout.CLIENT_COUNT - 1} a board", "a table of records"),
    Choice(
        "text of a failed task", f"{layout.SLOT_TEXT_BYTES} bytes, cut in the middle", "a traceback's ends say most"
    ),
    Choice(
        "numbers of the HB_DSP_ codes",
        f"{int(Status.HB_DSP_INVALID_ARGUMENT)} and below",
        "a block that no public code uses; see status-codes.md",
    ),
    Choice("hbDSPGetVersion", "`MAJOR.MINOR.PATCH (hbrt VERSION emulator)`", "it says that it is an emulator"),
    Choice("DSP cores", f"as many as the profile has, up to {layout.MAX_CORES}", "J5 has 2; `hbrt start --cores`"),
    Choice(
        "a board without DSP cores",
        "a DSP task is refused with HB_DSP_INVALID_CORE, and a message",
        "the chips of the RKNN API have an NPU alone; see profiles.md",
    ),
)

DSP = (
    Choice(
        "latency of hb_dsp_register_fn",
        f"time limit in microseconds of host time; 0: {settings.text('HBRT_WATCHDOG_MS')} ms (HBRT_WATCHDOG_MS)",
        "an op that hangs costs its task and a restart of its core, not the board",
    ),
    Choice(
        "quantize, dequantize",
        f"commands {int(types.HB_DSP_RPC_CMD_NN_QUANTIZE):#x}, {int(types.HB_DSP_RPC_CMD_NN_DEQUANTIZE):#x}; "
        "parameter structures in nn-ops.md",
        "softmax's number is the only public one",
    ),
    Choice(
        "softmax of many rows",
        f"command {int(types.HB_DSP_RPC_CMD_NN_SOFTMAX_ROWS):#x}, structure in nn-ops.md; 0x400 stays one row",
        "with one call per row, a thousand rows cost a thousand calls",
    ),
    Choice("NaN into quantize", "becomes the zero point", "the number that stands for 0"),
    Choice(
        "hb_dsp_mem_map",
        "only memory that the caller's process owns or has registered; inside one block",
        "one process's mistake cannot reach another's data",
    ),
    Choice(
        "hb_dsp_mem_unmap", "refuses what this task has not mapped; no bytes move", "a core keeps the whole DDR mapped"
    ),
    Choice("HB_ERR_MMAP_FAILED", f"{int(Status.HB_ERR_MMAP_FAILED)}", "its value is not public"),
    Choice(
        "log levels",
        f"NONE {runtime.HB_DSP_LOG_NONE}, DEBUG {runtime.HB_DSP_LOG_DEBUG} to FATAL {runtime.HB_DSP_LOG_FATAL}",
        "only names are public",
    ),
    Choice(
        "TCM",
        f"{tcm.BANK_USABLE_BYTES // KIB} of {tcm.BANK_RAW_BYTES // KIB} KiB usable a bank; first fit, default "
        f"alignment {tcm.DEFAULT_ALIGN}",
        "about so much is left on the chip",
    ),
    Choice(
        "addresses of the banks", ", ".join(f"{base:#x}" for base in tcm.TCM_BASES), "what alignment is relative to"
    ),
    Choice(
        "colors",
        f"COLOR_0 {tile_manager.XV_MEM_BANK_COLOR_0}, COLOR_1 {tile_manager.XV_MEM_BANK_COLOR_1}, "
        f"COLOR_ANY {tile_manager.XV_MEM_BANK_COLOR_ANY:#x}",
        "the bank's number",
    ),
    Choice(
        "error values of the tile manager",
        f"XVTM_ERROR, a false object; {tile_manager.XVTM_FREE_ERROR} from xvFreeBuffer",
        "`if (!buffer)` reads as in C",
    ),
    Choice("a new TCM buffer holds", "what its last user left", "as on the chip"),
    Choice(
        "iDMA codes",
        f"bad transfer {transfers.IDMA_ERR_BAD_TRANSFER}, queue full {transfers.IDMA_ERR_QUEUE_FULL}",
        "all that is public is that they are negative",
    ),
    Choice(
        "wait for a handle that no copy set, or a negative one",
        "the task fails at once, with the line of the wait and the reason",
        "on the chip it never ends, or ends by chance",
    ),
    Choice(
        "iDMA queue",
        f"{descriptors.QUEUE_DEPTH} descriptors, in order",
        "the same op works at any depth it does not reach",
    ),
    Choice(
        "when a transfer's bytes move",
        "when it is waited for, or polled after its modeled end",
        "an op that does not wait sees the old bytes",
    ),
    Choice(
        "iDMA cycles",
        f"{cycles.IDMA_ISSUE_CYCLES} to issue, {cycles.IDMA_SETUP_CYCLES} to start, {cycles.IDMA_ROW_CYCLES} a further "
        f"row, {cycles.IDMA_BYTES_PER_CYCLE} bytes per cycle, {cycles.IDMA_POLL_CYCLES} per unsuccessful poll",
        "plausible; no cost is public",
    ),
    Choice(
        "DDR without iDMA",
        f"{cycles.DDR_STALL_CYCLES} cycles for {cycles.DDR_LOAD_BYTES} bytes",
        "there is no data cache",
    ),
    Choice("TILE_SIZE", f"{frame.TILE_SIZE // KIB} KiB", "two fit the usable part of a bank"),
    Choice(
        "core that dies",
        f"starts again at once, then after "
        f"{restart_policy.FIRST_PAUSE_SECONDS} to {restart_policy.MAX_PAUSE_SECONDS} s, not at "
        f"all after {restart_policy.MAX_IDLE_DEATHS} deaths in a row with no task to blame",
        "remoteproc restarts forever",
    ),
    Choice("loading an image", f"at most {launch.LOAD_SECONDS:.0f} s", "`--timeout`"),
)


def choices() -> str:
    """Every choice, by where it is met."""
    parts = (("Memory", MEMORY), ("Tasks", TASKS), ("DSP side", DSP))
    return "\n".join(f"### {name}\n\n{table(('what', 'value', 'why'), rows)}" for name, rows in parts)


PARTS: dict[str, Callable[[], str]] = {"choices": choices}
