"""The checks of a task when it is submitted: those of strict mode (HBRT_CACHE=strict) and those of HBRT_CHECK.

The checker finds mistakes that a board hides: memory that the CPU changed but did not clean before the DSP uses it
(strict mode, or the check coherence), and memory that two unfinished tasks use, one of which writes it (strict mode, or
the check race). A task uses its two blocks, and the blocks whose addresses are in its input block. An address is an
aligned 8-byte word that points into a block of this process, found as a conservative garbage collector finds pointers.
docs/what-is-emulated.md lists the findings; rules.py has the rules.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_right, insort
from functools import partial
from typing import TYPE_CHECKING

from arm_client.cabi.call_site import call_site
from arm_client.memory.block import block_users
from arm_client.strict.addresses import double_free, freed_in_use, late_flush, refused_block, virtual_words
from arm_client.strict.dirty_ranges import dirty_ranges_of, key_of, reach_of
from arm_client.strict.eviction import Eviction
from arm_client.strict.late_views import LateViews
from arm_client.strict.report import (
    ENDLESS_WAIT,
    Mistake,
    MistakeError,
    dirty_byte_count,
    is_needless,
    missing_clean,
    missing_clean_behind_pointer,
    missing_clean_in_output,
    needless_flush,
    report_mistake,
    shared_block,
)
from arm_client.strict.rules import (
    MAX_MARKS,
    MAX_PARAMETER_BYTES,
    WORD_BYTES,
    DataRace,
    Span,
    TaskFootprint,
    data_race,
    words,
)
from arm_client.strict.stale import StaleReads
from arm_client.strict.structures import StructureWatch
from hbrt import settings
from hbrt.attach.watcher import Watcher
from hbrt.ddr.layout import TABLES_GENERATION
from hbrt.findings.checks import Check
from hbrt.findings.record import lines_of
from hbrt.mailbox.handle import SLOT_MASK
from hbrt.protocol.control import MAX_SITE
from hbrt.status import Status
from hbrt.types import HB_DSP_RPC_CMD_BUTT, HB_DSP_RPC_CMD_PING, HB_SYS_MEM_CACHE_INVALIDATE

if TYPE_CHECKING:
    from types import FrameType

    from arm_client.memory.block import Block
    from arm_client.memory.blocks import Blocks
    from hbrt.attach.link import Link
    from hbrt.attach.tasks import Tasks

FEW_BYTES = 256  # up to this many bytes, a word-by-word search is as fast as a vectorized one
_LOWEST_VIRTUAL = 1 << 32
_TASKS = "hbrt.attach.tasks"
MAX_KNOWN = 1024  # calls

_OF_THE_CORE = frozenset({HB_DSP_RPC_CMD_PING, HB_DSP_RPC_CMD_BUTT})
"""Commands that a core answers by itself, without an op."""


class _Entry:
    """A submitted task.

    ``is_over``: the program has seen it end.
    """

    __slots__ = ("footprint", "handle", "is_over", "site")

    def __init__(self, handle: int, footprint: TaskFootprint) -> None:
        self.footprint = footprint
        self.site = ""  # of the submission, under the check coherence
        self.handle = handle
        self.is_over = False


class TaskChecker(Watcher):
    """Checks each task that a process submits, and reports a mistake once per block.

    Args:
        link: The process's attachment.
        tasks: Its tasks.
        blocks: Its memory.
        checks: The checks to apply.
    """

    def __init__(self, link: Link, tasks: Tasks, blocks: Blocks, checks: Check) -> None:
        self._link = link
        self._tasks = tasks
        self._blocks = blocks
        self._checks = checks
        self._looks_for_races = bool(checks & Check.RACE)
        self._entries: list[_Entry] = []
        self._advised: set[str] = set()  # program lines that have received advice
        self._lock = threading.RLock()  # reentrant: a finalizer may flush while its thread holds the lock
        self._cores_watch = Check.COHERENCE in checks and link.is_watched  # whether ops use dirty bytes
        self._lists_dirty = self._cores_watch or (Check.MEMORY in checks and blocks.is_strict and link.is_watched)
        self._all_cores = (1 << link.core_count) - 1
        how, seed = settings.seeded("HBRT_CACHE")
        self._eviction = Eviction(seed) if how == "evicting" else None
        report = partial(report_mistake, link)
        self.stale = StaleReads(blocks, report) if Check.COHERENCE in checks else None
        self.structures = StructureWatch(report) if Check.LAYOUT in checks else None
        blocks.on_flush, blocks.notes_writes = self._on_flush, self._cores_watch
        if Check.COHERENCE | Check.ADVICE in checks:
            blocks.before_flush = self._advise_on_flush
        self._late_views: LateViews | None = None
        if Check.MEMORY in checks:
            blocks.on_double_free = lambda gone, freed_at: report(double_free(gone, freed_at))
            blocks.on_late_flush = lambda gone: report(late_flush(gone))
            blocks.before_free = self._look_at_free
            self._late_views = LateViews(report)
            blocks.views.on_kept = self._late_views.close_kept
        self._known: dict[tuple[int, ...], tuple[bytes, bytes, TaskFootprint]] = {}  # with generation, parameters
        tasks.watchers.append(self)

    def submitted(self, handle: int, given: tuple[int, ...]) -> int:
        """Like ``Watcher.submitted``: check the task; record its line, and which dirty bytes its core watches."""
        try:
            entry = self._check(handle, given)
        except MistakeError as error:
            return self._tasks.refusals.refuse(Status.HB_DSP_INVALID_ARGUMENT, str(error))
        if entry is not None:
            mailbox, footprint, slot = self._link.mailbox, entry.footprint, handle & SLOT_MASK
            mailbox.note_site(slot, call_site())
            if self._lists_dirty and footprint.cmd not in _OF_THE_CORE:
                found = dirty_ranges_of(footprint, self._block_of)
                mailbox.note_dirty(slot, key_of(self._link.client_id, footprint), found)
        return 0

    def _is_for_core(self, entry: _Entry) -> bool:
        """Return whether the core that runs a task watches its use of dirty memory."""
        return self._cores_watch and entry.footprint.cmd not in _OF_THE_CORE

    def waiting(self, handle: int, timeout_ms: float) -> int:  # noqa: ARG002 - of any task
        """Like ``Watcher.waiting``: advise C calls that wait without a timeout to use one; Python has the watchdog."""
        if timeout_ms <= 0 and Check.ADVICE in self._checks:
            frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - which call waits
            while frame is not None and frame.f_globals.get("__name__") == _TASKS:
                frame = frame.f_back
            if frame is not None and frame.f_code.co_name == "hbDSPWaitTaskDone":
                self._advise(ENDLESS_WAIT)
        return 0

    def _advise_on_flush(self, block: Block, start: int, end: int, flag: int) -> None:
        """Advise against a flush that moves nothing."""
        if end > start and is_needless(block, start, end, flag):
            self._advise(needless_flush(Span(block.phy_addr + start, block.phy_addr + end), flag))
        if flag == HB_SYS_MEM_CACHE_INVALIDATE and end - start == block.size_bytes:
            block.is_given = False

    def _advise(self, mistake: Mistake) -> None:
        """Report an advice, once per line of the program."""
        (site, *_) = lines_of(call_site())
        if site not in self._advised:
            self._advised.add(site)
            report_mistake(self._link, mistake)

    def close(self) -> None:
        """Stop checking, and drop the references between this object, the tasks and the memory."""
        self._tasks.watchers.remove(self)
        for watch in (self.stale, self._late_views):
            if watch is not None:
                watch.close()
        self._blocks.views.on_kept = None
        self._blocks.on_flush = self._blocks.before_flush = None
        self._blocks.on_double_free = self._blocks.on_late_flush = self._blocks.before_free = None
        self._entries.clear()

    def mark(self, block: Block, start: int, end: int) -> None:
        """Record a range of a block, by offsets, that the program uses as a unit."""
        with self._lock:
            for offset in (start, end):
                at = bisect_right(block.marks, offset)
                if not (at and block.marks[at - 1] == offset) and len(block.marks) <= MAX_MARKS:
                    insort(block.marks, offset)

    def check_input(self, what: str, phy_addr: int, size_bytes: int) -> None:
        """Report to the program, once per block, bytes that it wrote but did not clean before they are read.

        Args:
            what: What is about to be read: "input block", "input tensor".
            phy_addr: Its start.
            size_bytes: Its size.

        Raises:
            MistakeError: under fail-fast.
        """
        block = self._blocks.holding(phy_addr)
        if block is None or block.image is None or block.is_reported:
            return
        start = phy_addr - block.phy_addr
        count = dirty_byte_count(block, start, min(start + size_bytes, block.size_bytes))
        if count:
            block.is_reported = True
            self._find(missing_clean(what, Span(phy_addr, phy_addr + size_bytes), count))

    def _on_flush(self, block: Block, start: int, end: int) -> None:
        block.is_flushed = True
        if block.writes is not None:
            block.writes.flushed(start, end)
        if self._cores_watch:
            block.flushed_at = call_site(MAX_SITE)
        self.mark(block, start, end)
        if self.stale is not None:
            self.stale.note_flush(block)

    def ended(self, handle: int) -> None:
        """Like ``Watcher.ended``: the program's later tasks run after this one."""
        for entry in list(self._entries):
            if entry.handle == handle and not entry.is_over:
                entry.is_over = True
                self._evict()
                if self.stale is not None:
                    self._close_stale(self.stale, entry)

    def _evict(self) -> None:
        if self._eviction is not None:
            self._eviction.evict(self._blocks.cached())

    def _close_stale(self, stale: StaleReads, entry: _Entry) -> None:
        footprint = entry.footprint
        addresses = [footprint.output.start, *(address for _, address in footprint.pointers)]
        for block in {self._block_of(address) for address in addresses}:
            if block is not None:
                stale.close_stale(block, footprint.cmd, entry.site)

    def _is_unfinished(self, entry: _Entry) -> bool:
        """Return whether nothing orders a task before the next; one that only happens to end early is unfinished."""
        return not entry.is_over and self._tasks.handles[entry.handle & SLOT_MASK] == entry.handle

    def _look_at_free(self, block: Block, freed_at: str) -> None:
        """Report a block freed before the program has seen the end of a task that uses it."""
        if block.is_managed or block.is_runtimes:  # they keep it until the task ends
            return
        span = Span(block.phy_addr, block.phy_addr + block.size_bytes)
        for entry in list(self._entries):
            footprint = entry.footprint
            uses = (
                span.common(footprint.input)
                or span.common(footprint.output)
                or any(span.holds(address) for _, address in footprint.pointers)
            )
            if uses and self._is_unfinished(entry):
                site = self._link.mailbox.site(entry.handle & SLOT_MASK)
                whose = f"a task of command {footprint.cmd:#x}"
                report_mistake(self._link, freed_in_use(block, freed_at, whose, site, footprint.cmd))
                return
        for one in block_users:
            if (use := one.user_of(block.phy_addr, block.size_bytes)) is not None:
                report_mistake(self._link, freed_in_use(block, freed_at, *use))

    def _check(self, handle: int, given: tuple[int, ...]) -> _Entry | None:
        """Report mistakes of a task about to be queued; None for a task that runs only on another board."""
        cmd, _, _, _, input_phy, input_bytes, _, _ = given
        footprint = self._footprint(handle, given)
        if footprint is None:
            return None
        if self.structures is not None and (block := self._blocks.holding(input_phy)) is not None:
            self.structures.check_input(cmd, block.address + input_phy - block.phy_addr, input_bytes)
        entry = _Entry(handle, footprint)
        if self._blocks.is_strict:
            self._note_given(footprint)
            if not self._is_for_core(entry):
                self._check_cache(footprint)
        self._evict()
        if self.stale is not None:
            entry.site = call_site(MAX_SITE)
        may_race = self._blocks.is_strict or self._looks_for_races
        if not may_race and self._late_views is None:
            return entry
        with self._lock:
            self._entries = [one for one in self._entries if self._is_unfinished(one)]
            others = self._entries[:] if may_race else []
            self._entries.append(entry)
        for other in others:
            if (found := data_race(footprint, other.footprint)) is not None:
                self._report_shared(footprint, other, found)
        return entry

    def refused(self, given: tuple[int, ...], status: int, why: str) -> None:
        """Like ``Watcher.refused``: report what is wrong with the block that caused a refusal."""
        if Check.MEMORY not in self._checks or status != Status.HB_DSP_INVALID_ADDRESS:
            return
        cmd, blocks = given[0], given[4:]
        ddr, client = self._link.ddr, self._link.client_id
        for phy_addr, size_bytes in (blocks[:2], blocks[2:]):
            if (phy_addr or size_bytes) and ddr.refusal(phy_addr, size_bytes, client) is not None:
                report_mistake(self._link, refused_block(ddr, self._blocks, cmd, phy_addr, size_bytes, why))
                return

    def _find(self, mistake: Mistake) -> None:
        """Report a mistake of a task about to be submitted.

        Raises:
            MistakeError: under fail-fast.
        """
        report_mistake(self._link, mistake)
        if Check.FAIL_FAST in self._checks:
            raise MistakeError(mistake.text)

    def _footprint(self, handle: int, given: tuple[int, ...]) -> TaskFootprint | None:
        """Return a task's footprint; None if its blocks are not on this board.

        The footprint of the same call is reused until a block is allocated, registered or freed.
        """
        generation = self._link.ddr.map[TABLES_GENERATION : TABLES_GENERATION + 8]
        known = self._known.get(given)
        if known is not None and known[0] == generation and known[1] == self._parameters(*given[4:6]):
            return known[2]
        cmd, priority, core_mask, custom_id, input_phy, input_bytes, output_phy, output_bytes = given
        if self._tasks.slots.is_held(handle & SLOT_MASK) and self._tasks.refusals.of_task(*given) is not None:
            return None
        into, out = Span(input_phy, input_phy + input_bytes), Span(output_phy, output_phy + output_bytes)
        raw = self._parameters(input_phy, input_bytes)
        pointers, virtual, numbers = self._words(into, raw)
        if virtual and Check.MEMORY in self._checks:
            found = virtual_words(self._blocks, cmd, into, virtual, pointers)
            if found is not None:
                self._find(found)
        footprint = TaskFootprint(
            cmd, priority, custom_id, core_mask or self._all_cores, into, out, tuple(pointers), numbers
        )
        is_ours = all(not address or self._block_of(address) is not None for address in (input_phy, output_phy))
        if is_ours and not virtual:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[given] = generation, raw, footprint
        return footprint

    def _parameters(self, phy_addr: int, size_bytes: int) -> bytes:
        """Copy the first bytes of an input block, as the DSP will read them, so a check sees one state."""
        if not size_bytes:
            return b""
        size = min(size_bytes, MAX_PARAMETER_BYTES)
        ddr, offset = self._link.ddr.bytes_with(self._link.ddr.offset_of(phy_addr), size)
        return bytes(ddr[offset : offset + size])

    def _words(self, into: Span, given: bytes) -> tuple[list[tuple[int, int]], list[tuple[int, int]], bytes]:
        """Return an input block's physical and virtual addresses of device memory, by offset, and its other bytes."""
        raw = bytearray(given)
        is_data = into.end - into.start > MAX_PARAMETER_BYTES
        pointers, virtual = [], []
        for at, word in self._addresses(given):
            block = self._block_of(word)
            if block is not None and not (is_data and word != block.phy_addr):
                pointers.append((at, word))
            elif block is not None or not self._is_virtual(word):
                continue
            else:
                virtual.append((at, word))
            raw[at : at + WORD_BYTES] = bytes(WORD_BYTES)
        return pointers, virtual, bytes(raw)

    def _addresses(self, raw: bytes) -> list[tuple[int, int]]:
        """Return offset and value of words that may be addresses of device memory, physical or virtual."""
        if len(raw) <= FEW_BYTES:
            return words(memoryview(raw))
        import numpy as np

        layout, size = self._link.ddr.layout, len(raw) // WORD_BYTES * WORD_BYTES
        found = np.frombuffer(raw, np.uint64, size // WORD_BYTES)
        may_be = (found >= layout.phy_base) & (found < layout.phy_end)
        for start, end in self._blocks.mapped_ranges():
            may_be |= (found >= start) & (found < end)
        return [(int(at) * WORD_BYTES, int(found[at])) for at in np.flatnonzero(may_be)]

    def _block_of(self, address: int) -> Block | None:
        """Return this process's block that contains an address."""
        entry = self._link.ddr.block_at(address)
        return None if entry is None else self._blocks.holding(entry.phy_addr)

    def _is_virtual(self, word: int) -> bool:
        """Return whether a word is a virtual address in device memory or in a block's image."""
        return word >= _LOWEST_VIRTUAL and self._blocks.is_mapped_at(word)

    def _note_given(self, footprint: TaskFootprint) -> None:
        """Record the ranges of this process's blocks that a task names."""
        spans = footprint.input, footprint.output, *(Span(address, address) for _, address in footprint.beside)
        for span in spans:
            block = self._block_of(span.start)
            if block is not None and block.image is not None:
                block.is_given = True
                self.mark(block, span.start - block.phy_addr, span.end - block.phy_addr)

    def _check_cache(self, footprint: TaskFootprint) -> None:
        """Report task memory that the CPU changed but did not clean; call after ``_note_given``.

        Marks come before checks: where one range begins, another ends.
        """
        into = footprint.input
        if into.start:
            self.check_input("input block", into.start, into.end - into.start)
        if not footprint.targets and footprint.cmd != HB_DSP_RPC_CMD_PING:
            self._check_output(footprint.output)
        for at, address in footprint.beside:
            self._check_pointed(at, address, into)

    def _check_output(self, out: Span) -> None:
        block = self._block_of(out.start)
        if block is None or block.image is None or block.is_reported:
            return
        count = dirty_byte_count(block, out.start - block.phy_addr, out.end - block.phy_addr)
        if count:
            block.is_reported = True
            self._find(missing_clean_in_output(out, count))

    def _check_pointed(self, at: int, address: int, into: Span) -> None:
        """Report changes from an address on, if one of them is certainly within the op's reach."""
        block = self._block_of(address)
        if block is None or block.image is None or block.is_reported or len(block.marks) > MAX_MARKS:
            return
        start = address - block.phy_addr
        near, end = reach_of(block, start)
        if not dirty_byte_count(block, start, near):
            return
        block.is_reported = True
        count = dirty_byte_count(block, start, end)
        self._find(missing_clean_behind_pointer(Span(address, address + end - start), count, into.start, at))

    def _report_shared(self, new: TaskFootprint, old: _Entry, found: DataRace) -> None:
        block = self._block_of(found.span.start)
        if block is None or block.is_shared_reported:
            return
        block.is_shared_reported = True
        site = self._link.mailbox.site(old.handle & SLOT_MASK)
        self._find(shared_block(found.span, (new.cmd, found.new), (old.footprint.cmd, found.old), site))
