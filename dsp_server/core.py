"""A core: wait, claim, run, answer. One process, started by the supervisor with its descriptors in fixed places.

The loop follows dsp_server/schedule.py: a core that claimed a task says RUNNING and looks whether another core
should be woken for what is left; one that found nothing says ASLEEP, looks once more, and waits for its doorbell.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import select
import signal
import socket
import struct
import sys
import time
import traceback
from typing import NoReturn

from dsp_server import cycles, runtime
from dsp_server.descriptors import current as current_idma
from dsp_server.image import load_and_run
from dsp_server.schedule import ASLEEP, LOOKING, RUNNING, Entry, core_to_chain, task_key
from dsp_server.tcm import OutOfTcm
from dsp_server.tile_manager import TileManager
from hbrt import wire
from hbrt.ddr import Ddr
from hbrt.layout import (
    CLIENT_ASLEEP,
    CORE_ACTIVITY,
    CORE_BUSY_NS,
    CORE_SLOT,
    CORE_TASKS,
    NO_SLOT,
    SLOT_RECORD_BYTES,
)
from hbrt.mailbox import ANSWER, ANSWER_OFFSET, CLAIM, ORDER, REQUEST, Answer, Mailbox, State
from hbrt.spin import Spinner
from hbrt.status import Status
from hbrt.types import HB_DSP_RPC_CMD_BUTT, HB_DSP_RPC_CMD_PING

CONTROL_FD = 3
DDR_FD = 4
FIRST_DOORBELL_FD = 5
RESCAN_SECONDS = 0.05
RPC_ALIGNMENT = 8
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_LISTING_HEADER = struct.Struct("<II")
_LISTING_RECORD = struct.Struct("<II56s")


class Core:
    """The process's core; ``serve`` is the loop."""

    def __init__(self, index: int, core_count: int) -> None:
        self.index = index
        self.ddr = Ddr(DDR_FD)
        self.mailbox = Mailbox(self.ddr)
        self.control = socket.socket(fileno=CONTROL_FD)
        self.doorbells = list(range(FIRST_DOORBELL_FD, FIRST_DOORBELL_FD + core_count))
        self.client_doorbells: dict[int, int] = {}
        self.stopping = False
        self.is_released = False  # may claim: the supervisor said go
        self.queue: list[Entry] = []
        self.spinner = Spinner()
        self.epoll = select.epoll()
        # Edge-triggered: every ring wakes once, and nobody has to read the counter.
        self.epoll.register(self.doorbells[index], select.EPOLLIN | select.EPOLLET)
        self.epoll.register(self.control, select.EPOLLIN)
        layout = self.ddr.layout
        self._record = layout.core(index)
        self._activities = [layout.core(core) + CORE_ACTIVITY for core in range(core_count)]
        self._announced = layout.announced(index)
        self._announced_end = self._announced + layout.slot_count
        self._tasks = _U64.unpack_from(self.ddr.map, self._record + CORE_TASKS)[0]
        self._busy_ns = _U64.unpack_from(self.ddr.map, self._record + CORE_BUSY_NS)[0]

    # -- the loop -----------------------------------------------------------------------------------------------

    def serve(self) -> NoReturn:
        """Announce the image's commands, wait for the word to go, then serve until stopped."""
        registered = runtime.context.registry.listing()
        self.control.send(
            wire.pack(
                event="ready",
                ops=[[r.cmd, r.name, r.source, r.latency_us] for r in registered],
                files=_image_files(),
            )
        )
        while not self.is_released and not self.stopping:
            self._receive()
        if runtime.context.tile_manager is None:
            runtime.context.tile_manager = TileManager(runtime.HB_DSP_DRAM0_POOL_SIZE, runtime.HB_DSP_DRAM1_POOL_SIZE)
        self._look_at_everything()
        while not self.stopping:
            slot = self._claim()
            if slot is None:
                self._wait()
            else:
                self._run(slot)
        os._exit(0)

    def _claim(self) -> int | None:
        """Take the best task that this core may run, or None."""
        mm, layout = self.ddr.map, self.ddr.layout
        queue = self.queue
        self._collect()
        while queue:
            (_, _, sequence), slot = heapq.heappop(queue)
            record = layout.records + slot * SLOT_RECORD_BYTES
            fcntl.flock(self.mailbox.lock_fd, fcntl.LOCK_EX)
            if mm[layout.states + slot] == State.READY and _U64.unpack_from(mm, record)[0] == sequence:
                # The mark comes before the state: whoever finds RUNNING finds whose it is.
                CLAIM.pack_into(mm, record + ANSWER_OFFSET, self.index, 0, 0, 0, time.monotonic_ns())
                mm[layout.states + slot] = State.RUNNING
                fcntl.flock(self.mailbox.lock_fd, fcntl.LOCK_UN)
                mm[self._record + CORE_ACTIVITY] = RUNNING
                _U32.pack_into(mm, self._record + CORE_SLOT, slot)
                if len(self.doorbells) > 1:
                    self._chain()
                return slot
            fcntl.flock(self.mailbox.lock_fd, fcntl.LOCK_UN)
        return None

    def _collect(self) -> None:
        """Move what was announced to this core into its queue. An announce byte is cleared before the record is read."""
        mm = self.ddr.map
        start, end = self._announced, self._announced_end
        at = mm.find(b"\1", start, end)
        while at >= 0:
            mm[at] = 0
            slot = at - start
            self._enqueue(slot)
            at = mm.find(b"\1", at + 1, end)

    def _enqueue(self, slot: int) -> None:
        mm, layout = self.ddr.map, self.ddr.layout
        if mm[layout.states + slot] != State.READY:
            return
        sequence, custom_id, _, priority, _ = ORDER.unpack_from(mm, layout.records + slot * SLOT_RECORD_BYTES)
        heapq.heappush(self.queue, (task_key(priority, custom_id, sequence), slot))

    def _look_at_everything(self) -> None:
        """Rescan the state bytes: a task is never lost with its hint."""
        known = {slot for _, slot in self.queue}
        for slot in self.mailbox.slots_in(State.READY):
            mask = self.mailbox.request(slot).core_mask
            if slot not in known and (mask == 0 or mask >> self.index & 1):
                self._enqueue(slot)

    def _chain(self) -> None:
        """Ring a sleeping core for a task that this one, now busy, leaves READY."""
        mm = self.ddr.map
        activity = [mm[at] for at in self._activities]
        if ASLEEP not in activity:
            return
        self._collect()
        if self.queue:
            masks = (
                ORDER.unpack_from(mm, self.ddr.layout.record(slot))[4]
                for _, slot in self.queue
                if mm[self.ddr.layout.states + slot] == State.READY
            )
            wake = core_to_chain(self.index, masks, activity)
            if wake is not None:
                os.eventfd_write(self.doorbells[wake], 1)

    def _wait(self) -> None:
        """Look a little longer, then sleep until rung."""
        mm, start, end = self.ddr.map, self._announced, self._announced_end
        at_activity = self._record + CORE_ACTIVITY
        mm[at_activity] = LOOKING
        _U32.pack_into(mm, self._record + CORE_SLOT, NO_SLOT)
        if self.spinner.spin(lambda: mm.find(b"\1", start, end) >= 0):
            return
        mm[at_activity] = ASLEEP
        self.spinner.fence()
        if mm.find(b"\1", start, end) >= 0:
            mm[at_activity] = LOOKING
            return
        events = self.epoll.poll(RESCAN_SECONDS)
        mm[at_activity] = LOOKING
        if not events:
            self._look_at_everything()
        for fd, _ in events:
            if fd == CONTROL_FD:
                self._receive()

    # -- one task -----------------------------------------------------------------------------------------------

    def _run(self, slot: int) -> None:
        """Run the op of a claimed slot and answer, whatever the op does short of ending the process."""
        mm, layout = self.ddr.map, self.ddr.layout
        record = layout.records + slot * SLOT_RECORD_BYTES
        _, _, cmd, _, _, owner, in_phy, in_bytes, out_phy, out_bytes = REQUEST.unpack_from(mm, record)
        context = runtime.context
        context.client_id = owner
        context.map_failure = ""
        counter = cycles.current()
        cycles_before = counter.cycles
        text = ""
        start_ns = time.monotonic_ns()
        try:
            op = context.registry.get(cmd)
            if op is None:
                result, text = self._framework(cmd, out_phy, out_bytes, owner)
            else:
                returned = (op.op or op.resolve())(
                    self._view(in_phy, in_bytes, owner),
                    self._view(out_phy, out_bytes, owner),
                    context.tile_manager,
                )
                result = (
                    returned if type(returned) is int and -(1 << 31) <= returned < 1 << 31 else _as_status(returned)
                )
                if result:
                    text = f"{op.name} (command {cmd:#x}) returned {result}. {context.map_failure}".rstrip()
        except BaseException as error:  # noqa: BLE001 - an op may raise anything; its task fails, the core goes on
            result, text = _explain(error, context.map_failure)
        if current_idma().outstanding or context.tile_manager.live_count:  # type: ignore[union-attr]
            self._sweep(cmd)
        done_ns = time.monotonic_ns()
        self._tasks += 1
        self._busy_ns += done_ns - start_ns
        claim_ns = _U64.unpack_from(mm, record + ANSWER_OFFSET + 16)[0]
        spent = counter.cycles - cycles_before
        if text:
            answer = Answer(self.index, result, 0, 0, claim_ns, start_ns, done_ns, spent)
            self.mailbox.write_answer(slot, answer, text)
        else:
            ANSWER.pack_into(mm, record + ANSWER_OFFSET, self.index, result, 0, 0, claim_ns, start_ns, done_ns, spent)
        mm[layout.states + slot] = State.FAILED if result else State.DONE
        _U64.pack_into(mm, self._record + CORE_TASKS, self._tasks)
        _U64.pack_into(mm, self._record + CORE_BUSY_NS, self._busy_ns)
        self.spinner.fence()
        if mm[layout.clients + owner * 64 + CLIENT_ASLEEP]:
            self._ring_client(owner)

    def _view(self, phy_addr: int, size_bytes: int, owner: int) -> memoryview:
        """Bytes of an RPC block, checked against the live blocks that the caller may use."""
        ddr = self.ddr
        if not size_bytes and not phy_addr:
            return memoryview(b"")
        block = ddr.block_at(phy_addr)
        if block is None or size_bytes > block.phy_addr + block.size_bytes - phy_addr:
            raise _Refused(Status.HB_DSP_INVALID_ADDRESS, ddr.explain(phy_addr, size_bytes))
        if block.owner != owner and not ddr.may_use(phy_addr, owner):
            raise _Refused(
                Status.HB_DSP_INVALID_ADDRESS,
                f"The block at {block.phy_addr:#x} belongs to client {block.owner}; register it first (hbSysRegisterMem).",
            )
        if phy_addr % RPC_ALIGNMENT:
            raise _Refused(
                Status.HB_DSP_UNALIGNED_ADDRESS,
                f"The RPC block at {phy_addr:#x} does not start at a multiple of {RPC_ALIGNMENT} bytes.",
            )
        offset = phy_addr - ddr.layout.ddr_base
        return ddr.bytes[offset : offset + size_bytes]

    def _framework(self, cmd: int, out_phy: int, out_bytes: int, owner: int) -> tuple[int, str]:
        """Commands that no image registers: PING answers, BUTT lists; anything else is unknown."""
        if cmd == HB_DSP_RPC_CMD_PING:
            return 0, ""
        if cmd == HB_DSP_RPC_CMD_BUTT:
            output = self._view(out_phy, out_bytes, owner)
            listing = pack_listing([(r.cmd, r.latency_us, r.name) for r in runtime.context.registry.listing()])
            if len(output) < _LISTING_HEADER.size:
                return Status.HB_DSP_INVALID_ARGUMENT, (
                    f"Command 0xffff lists the registered commands into the output block; it needs at least "
                    f"{_LISTING_HEADER.size} bytes, {len(listing)} for all, and got {len(output)}."
                )
            size = min(len(listing), len(output))
            output[:size] = listing[:size]
            return 0, ""
        known = ", ".join(f"{r.cmd:#x} {r.name}" for r in runtime.context.registry.listing())
        return Status.HB_DSP_UNKNOWN_COMMAND, (
            f"No op is registered for command {cmd:#x}. Registered are: {known or 'none'}."
        )

    def _sweep(self, cmd: int) -> None:
        """Say what an op left behind: descriptors never waited for, TCM never freed."""
        for descriptor in current_idma().drain():
            runtime.hb_dsp_log(
                runtime.HB_DSP_LOG_WARNING,
                f"Command {cmd:#x} ended without waiting for an iDMA transfer: {descriptor}.",
            )
        manager = runtime.context.tile_manager
        for tile in manager.reset() if manager else ():
            runtime.hb_dsp_log(runtime.HB_DSP_LOG_WARNING, f"Command {cmd:#x} did not free TCM: {tile}.")

    # -- the supervisor and the clients -------------------------------------------------------------------------

    def _ring_client(self, owner: int) -> None:
        doorbell = self.client_doorbells.get(owner)
        if doorbell is None:
            while doorbell is None and self._receive(wait=False):
                doorbell = self.client_doorbells.get(owner)
        if doorbell is not None:
            try:
                os.eventfd_write(doorbell, 1)
            except OSError:
                pass  # the client has gone; the supervisor says so in its next message

    def _receive(self, *, wait: bool = True) -> bool:
        """Handle one message of the supervisor; False when there is none. Its end is the core's end."""
        flags = 0 if wait else socket.MSG_DONTWAIT
        try:
            raw, fds, _, _ = socket.recv_fds(self.control, wire.MAX_REQUEST_BYTES, 1, flags)
        except BlockingIOError:
            return False
        if not raw:
            os._exit(0)
        message = wire.unpack_map(raw, wire.MAX_REQUEST_BYTES)
        event = message.get("event")
        if event == "client":
            self._forget(message["client"])
            self.client_doorbells[message["client"]] = fds[0]
        elif event == "gone":
            self._forget(message["client"])
        elif event == "go":
            self.is_released = True
        elif event == "stop":
            self.stopping = True
        return True

    def _forget(self, client: int) -> None:
        doorbell = self.client_doorbells.pop(client, None)
        if doorbell is not None:
            os.close(doorbell)


class _Refused(Exception):
    def __init__(self, status: Status, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def pack_listing(ops: list[tuple[int, int, str]]) -> bytes:
    """Answer of BUTT: u32 count, u32 record bytes (64), then records {u32 cmd; u32 latency_us; char name[56]}."""
    records = b"".join(_LISTING_RECORD.pack(cmd, latency, name.encode()[:55]) for cmd, latency, name in ops)
    return _LISTING_HEADER.pack(len(ops), _LISTING_RECORD.size) + records


def _as_status(returned: object) -> int:
    """Integer that an op returned as another type (a numpy integer, an enum); anything else is a mistake."""
    try:
        value = returned.__index__()  # type: ignore[attr-defined]
    except AttributeError:
        raise TypeError(
            f"The op returned {returned!r}; an op returns an int, 0 for success. Is a 'return 0' missing?"
        ) from None
    if not -(1 << 31) <= value < 1 << 31:
        raise OverflowError(f"The op returned {value}, which does not fit a C int.")
    return int(value)


def _explain(error: BaseException, map_failure: str) -> tuple[int, str]:
    if isinstance(error, _Refused):
        return error.status, str(error)
    text = "".join(traceback.format_exception(error, limit=-20)).rstrip()
    if map_failure:
        text = f"{text}\n{map_failure}"
    status = Status.HB_DSP_OUT_OF_TCM if isinstance(error, OutOfTcm) else Status.HB_DSP_RUN_TASK_FAILED
    return status, text


def _image_files() -> list[str]:
    """Python files that this process loaded from the image's own directory (for --reload)."""
    folder = sys.path[0] + os.sep
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return sorted({path for path in files if path and path.startswith(folder)})


def main() -> NoReturn:
    """Entry of the process: ``index core_count snapshot origin``."""
    index, core_count = int(sys.argv[1]), int(sys.argv[2])
    snapshot, origin = sys.argv[3], sys.argv[4]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the daemon's to handle
    core = Core(index, core_count)

    def stop(_signum: int, _frame: object) -> None:
        core.stopping = True

    signal.signal(signal.SIGTERM, stop)
    runtime.context.index = index
    runtime.context.ddr = core.ddr
    runtime.context.serve = core.serve
    try:
        load_and_run(snapshot, origin)
        problem = f"main() of {origin} returned; it must end with hb_dsp_start(), which never returns."
    except BaseException as error:  # noqa: BLE001 - whatever an image does is reported, never lost
        problem = "".join(traceback.format_exception(error, limit=-20)).rstrip()
    core.control.send(wire.pack(event="broken", text=problem[-wire.MAX_REQUEST_BYTES // 2 :]))
    os._exit(1)
