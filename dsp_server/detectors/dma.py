"""The ``dma`` check: iDMA copies, and the op's accesses to their bytes while they are in progress.

A copy is in progress from its issue until a wait covers it (see hardware/channels.py). Until then the pages of its
destination are closed, and those of its source are read-only. A fault proves the mistake: it is reported, the pages
are opened, and the op sees whatever bytes are there now, as on the chip. Overlapping copies are found by comparing
their ranges. The copies of a frame are not watched: the frame itself waits for them.

With the ``advice`` check, while a copy that uses a bank has not reached its modeled end, the bank's other tiles are
closed too: an access to one is a bank conflict, reported once per call. Frames report theirs by ``note_compute``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from dsp_server import runtime
from dsp_server.detectors.page_faults import NO_ACCESS, READ_ONLY, Hold, Pages, Span, op_line, spans_of
from dsp_server.detectors.tiles import PagedTileManager
from dsp_server.hardware import descriptors
from dsp_server.hardware.buffers import address_of, caller_line
from dsp_server.hardware.channels import ChannelIdma
from dsp_server.hardware.tcm import DEFAULT_ALIGN, Tile
from dsp_server.hardware.transfers import UnknownHandle
from hbrt import settings
from hbrt.findings.checks import Check
from hbrt.findings.text import counted

if TYPE_CHECKING:
    from dsp_server.detectors.call import Call
    from dsp_server.hardware.buffers import BufferLike
    from dsp_server.hardware.descriptors import Descriptor
    from dsp_server.hardware.transfers import Shape
    from hbrt.findings.record import Place

_WAIT = "Wait for its handle first (idma_desc_done)."
_ACCESS = {True: "writes", False: "reads", None: "uses"}


class Copy(NamedTuple):
    """A copy in progress: the line that issued it, and the bytes that it writes and reads."""

    handle: int
    where: str
    dst: Span
    src: Span


class WatchedIdma(ChannelIdma):
    """An engine and its TCM that close to the op the bytes of copies in progress."""

    def __init__(self, pool_bytes: tuple[int, int], seed: int | None) -> None:
        self.tcm = PagedTileManager(pool_bytes, self._before_free, self._check_alignment)
        super().__init__(None, self.tcm, seed=seed)
        self._call: Call | None = None
        self._copies: dict[int, Copy] = {}  # in progress, by handle; excludes those of frames
        self._pages = Pages(self._touch)
        self._beside = Pages(self._on_conflict)  # other tiles in the banks that copies in progress use
        self._looks_for_conflicts = self._advises_alignment = False
        self._thread = 0  # the thread that runs the op

    @property
    def is_idle(self) -> bool:
        """Whether no op is using it."""
        return self._call is None and not self.queue and not self.tcm.live_count

    def begin(self, call: Call) -> None:
        """Watch an op."""
        self._call, self._counter, self._thread = call, call.counter, threading.get_ident()
        self.last_handle = max(self.last_handle, call.idma.last_handle)
        self.begin_task()
        self.last_error = ""
        self._looks_for_conflicts = self._advises_alignment = bool(call.checks & Check.ADVICE)

    def end(self) -> None:
        """Stop watching: the op has returned, and the core releases what it left behind."""
        self._call = None
        self._copies.clear()
        self._pages.release_all()
        self._beside.release_all()

    def enqueue(self, dst: memoryview, src: memoryview, shape: Shape | None = None, where: str = "") -> int:
        """Do what ``ChannelIdma.enqueue`` does, and close the bytes to the op.

        Raises:
            MistakeError: it overlaps another copy, under FAIL_FAST.
        """
        if not where or self._call is None:
            return super().enqueue(dst, src, shape, where)
        to, from_ = spans_of(dst, src, shape)
        copy = Copy(self.last_handle + 1, where, to, from_)
        for other in self._copies.values():
            self._meet(self._call, copy, other, is_ordered=self.channel_of(other.handle) == self._channel(dst, src))
        handle = super().enqueue(dst, src, shape, where)
        self._copies[handle] = copy
        if self._can_close(to):
            self._pages.hold(handle, to, NO_ACCESS)
        if self._can_close(from_):
            self._pages.hold(handle, from_, READ_ONLY)
        if self._looks_for_conflicts:
            self._close_beside(handle, dst, src)
        return handle

    def note_compute(self, *buffers: BufferLike) -> None:
        """Do what ``Idma.note_compute`` does, for frames; with the ``advice`` check, report conflicts."""
        before = self.tcm.bank_conflicts.copy()
        super().note_compute(*buffers)
        conflicts = [bank for bank in (0, 1) if self.tcm.bank_conflicts[bank] > before[bank]]
        if conflicts and self._looks_for_conflicts and self._call is not None:
            self._report_conflict(self._call, conflicts[0], "its frame computes", op_line(self._thread), None)

    def _check_alignment(self, tile: Tile) -> None:
        """Advise the alignment that the guide recommends for a tile, once per call.

        Source: DSP development guide (J5 OE), 10.2: 64 bytes for pools, arrays in TCM and xvAllocateBuffer,
        https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html
        """
        if not self._advises_alignment or self._call is None or tile.align >= DEFAULT_ALIGN:
            return
        self._advises_alignment = False
        self._call.find(
            "tile-alignment",
            f"{self._call.who}: the tile of {tile.size_bytes} bytes at {tile.tcm_addr:#x}, "
            f"allocated at {tile.where}, is aligned to {counted(tile.align, 'byte')}. All pools, arrays and tiles in "
            f"the DSP development guide are aligned to {DEFAULT_ALIGN}; request that from xvAllocateBuffer.",
            self._call.place("allocated", tile.where),
        )

    def _close_beside(self, handle: int, *views: memoryview) -> None:
        """Close the other tiles in the banks that a copy uses."""
        own = {address_of(view) for view in views}
        for bank in {self.tcm.bank_at(address) for address in own} - {None}:
            for tile, view in self.tcm.tiles_in(bank or 0):
                start = address_of(view)
                is_own = any(start <= address < start + tile.size_bytes for address in own)
                if not is_own and self.tcm.is_paged(start):
                    self._beside.hold(handle, Span(start, tile.size_bytes), NO_ACCESS)

    def _on_conflict(self, hold: Hold, address: int, is_write: bool | None) -> None:  # noqa: FBT001 - as of a fault
        """Report a conflict, unless the modeled time is past the end of the copy."""
        copy, call, end_cycle = self._copies.get(hold.handle), self._call, self._ends.get(hold.handle)
        self._beside.release(hold.handle)
        if call is None or copy is None or end_cycle is None or descriptors.current() is not self:
            return
        bank, line = self.tcm.bank_at(address), op_line(self._thread)
        if bank is not None and call.counter.cycles < end_cycle:
            access = f"it {_ACCESS[is_write]} {self._name(address)}"
            self._report_conflict(call, bank, access, line, copy)

    def _report_conflict(self, call: Call, bank: int, does: str, line: str, copy: Copy | None) -> None:
        self._looks_for_conflicts = False
        self._beside.release_all()
        which = "a copy uses it" if copy is None else f"another tile of it is in use: {self._words_of(copy)}"
        places = () if copy is None else (self._place(call, "copy started", copy.where, copy.dst),)
        call.find(
            "bank-conflict",
            f"{call.who}: at {line} {does} in TCM bank {bank} while {which}. A bank serves one access at a time, so "
            "the core waits for iDMA. Give ping and pong a bank each (XV_MEM_BANK_COLOR_0 and XV_MEM_BANK_COLOR_1).",
            call.place("computed", line),
            *places,
            is_in_handler=True,
        )

    def _touch(self, hold: Hold, address: int, is_write: bool | None) -> None:  # noqa: FBT001 - as of a fault
        """Report that the op accesses a byte of a copy in progress, and let the access proceed."""
        self._pages.release(hold.handle)
        call, copy = self._call, self._copies[hold.handle]
        if call is None or descriptors.current() is not self:  # an urgent op, which has a different engine
            return
        is_destination, site = hold.access == NO_ACCESS, op_line(self._thread)
        access = _ACCESS[is_write if is_destination else True]
        why = "into it is done" if is_destination else "that reads it is done"
        call.find(
            "dma-early" if is_destination else "dma-busy",
            f"{call.who} {access} {self._name(address)} at {site} before the copy {why}: "
            f"{self._words_of(copy)}. {_WAIT}",
            self._place(call, access, site, Span(address, 1)),
            self._place(call, "copy started", copy.where, copy.dst if is_destination else copy.src),
            is_in_handler=True,
        )

    def _meet(self, call: Call, copy: Copy, other: Copy, *, is_ordered: bool) -> None:
        """Report a copy that uses bytes of another copy in progress.

        Args:
            call: The op's call.
            copy: The new copy.
            other: The copy in progress.
            is_ordered: Whether both use the same channel.
        """
        kind, span = "dma-busy", copy.dst
        if (at := copy.dst.first_common(other.dst)) is not None and (
            not is_ordered or (copy.dst == other.dst and self.tcm.tile_at(at) is not None)
        ):
            what = "writes {}, which another copy still writes"
        elif not is_ordered and (at := copy.dst.first_common(other.src)) is not None:
            what = "writes {}, which another copy may still read"
        elif not is_ordered and (at := copy.src.first_common(other.dst)) is not None:
            kind, span, what = "dma-early", copy.src, "reads {}, which another copy may still write"
        else:
            return
        call.find(
            kind,
            f"{call.who} starts a copy of {copy.dst.size_bytes} bytes at {copy.where} that "
            f"{what.format(self._name(at))}: {self._words_of(other)}. Wait for that copy's handle "
            "first (idma_desc_done), or give each its own buffer.",
            self._place(call, "copy started", copy.where, span),
            self._place(call, "earlier copy started", other.where, other.dst if span is copy.src else other.src),
        )

    def _before_free(self, view: memoryview) -> None:
        """Report the copies that use a tile that the op frees; its pages are open from now on."""
        tile = Span(address_of(view), view.nbytes)
        self._beside.release_at(tile)
        for copy in list(self._copies.values()):
            used = next((one for one in (copy.src, copy.dst) if one.first_common(tile) is not None), None)
            if used is None:
                continue
            self._pages.release(copy.handle)
            del self._copies[copy.handle]
            call = self._call
            if call is not None and sys.exc_info()[0] is None:  # otherwise an exception is ending the op
                site = caller_line()
                call.find(
                    "dma-busy",
                    f"{call.who} frees the tile of {self.tcm.tile_at(tile.start)} at {site} while a copy "
                    f"{'reads' if used is copy.src else 'writes'} it: {self._words_of(copy)}. {_WAIT}",
                    self._place(call, "tile freed", site, tile),
                    self._place(call, "copy started", copy.where, used),
                )

    def _known(self, handle: int | None) -> int:
        """Do what ``Idma._known`` does, but report a handle that no copy has set, and count it as done."""
        try:
            return super()._known(handle)
        except UnknownHandle as error:
            if self._call is None:
                raise
            site = caller_line()
            self._call.find("dma-handle", f"{self._call.who}: {error}", self._call.place("waited", site))
            return 0

    def _complete_through(self, handle: int) -> None:
        channel = self.channel_of(handle)
        self._release(one for one in self.queue if one.handle <= handle and self.channel_of(one.handle) == channel)
        super()._complete_through(handle)

    def _complete(self, done: list[Descriptor], *, are_moved: bool = False) -> None:
        self._release(done)
        super()._complete(done, are_moved=are_moved)

    def _release(self, copies: Iterable[Descriptor]) -> None:
        """Open the pages of finished copies before moving their bytes."""
        for one in copies:
            if self._copies.pop(one.handle, None) is not None:
                self._pages.release(one.handle)
                self._beside.release(one.handle)

    def _move(self, descriptor: Descriptor) -> None:
        if not self._pages and not self._beside:
            super()._move(descriptor)
            return
        spans = [Span(address_of(view), view.nbytes) for view in (descriptor.dst, descriptor.src)]
        with self._pages.lifted(*spans), self._beside.lifted(*spans):
            super()._move(descriptor)

    def _words_of(self, copy: Copy) -> str:
        """Describe a copy."""
        to, from_ = (f"{self._core_address(span.start):#x}" for span in (copy.dst, copy.src))
        return f"copy {copy.handle} of {copy.dst.size_bytes} bytes from {from_} to {to}, issued at {copy.where}"

    def _name(self, address: int) -> str:
        """Name the byte at an address of this process in the op author's terms."""
        at = self._core_address(address)
        if (tile := self.tcm.tile_at(address)) is not None:
            return f"byte {at - tile.tcm_addr} of the tile of {tile}"
        return f"DDR at {at:#x}" if _is_in_heap(address) else f"the op's own memory at {at:#x}"

    def _core_address(self, address: int) -> int:
        """Convert to the core's address: in TCM, or physical; other memory keeps this process's address."""
        if (core_address := self.tcm.core_address(address)) is not None:
            return core_address
        ddr = runtime.context.ddr
        if ddr is None or not _is_in_heap(address):
            return address
        return address - ddr.address + ddr.layout.ddr_base

    def _place(self, call: Call, what: str, site: str, span: Span) -> Place:
        return call.place(what, site, self._core_address(span.start), span.size_bytes)

    def _can_close(self, span: Span) -> bool:
        """Whether the pages of a span belong to a single tile or to blocks."""
        return self.tcm.is_paged(span.start) or _is_in_heap(span.start)


def _is_in_heap(address: int) -> bool:
    """Whether an address of this process lies in the blocks' memory."""
    ddr = runtime.context.ddr
    return ddr is not None and ddr.layout.heap <= address - ddr.address < ddr.layout.file_bytes


_engines: list[WatchedIdma] = []  # may be several: an urgent op inside another op has its own


@contextmanager
def watch(call: Call) -> Iterator[None]:
    """Give an op an engine and TCM that watch it."""
    pool_bytes = call.tile_manager.pool_bytes
    idma = next((one for one in _engines if one.is_idle and one.tcm.pool_bytes == pool_bytes), None)
    if idma is None:
        order, seed = settings.seeded("HBRT_DMA_ORDER")
        idma = WatchedIdma(pool_bytes, None if order == "strict" else seed)
        _engines.append(idma)
    idma.begin(call)
    call.use(idma.tcm, idma)
    try:
        yield
    finally:
        idma.end()
