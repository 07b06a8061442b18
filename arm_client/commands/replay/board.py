"""A private board whose memory has the addresses of a recording."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from arm_client.session.session import Inline, Session
from hbrt import settings
from hbrt.board.launch import DaemonConfig, launch
from hbrt.board.paths import BoardPaths, private_directory
from hbrt.borders import guests
from hbrt.ddr.layout import DDR_BASE, GUARD_PAGES, MAX_CORES, PAGE_BYTES, plan
from hbrt.errors import RequestRefusedError
from hbrt.profiles.profile import active
from hbrt.recording.format import BadRecordingError, Range, Recorded

_MIN_HEAP_BYTES = 16 << 20
_ALL_CORES = (1 << MAX_CORES) - 1
"""A board has no others; a call that only they could run has any core here."""
_SETTINGS = {"HBRT_QUARANTINE": "0", "HB_DSP_RPC_MODE": "direct", "HBRT_CACHE": "coherent", "HBRT_RECORD": ""}
"""So that a freed address is free at once, and a call reaches a core with nothing between."""


class Handles(Protocol):
    """Data of a guest's recorded calls that depends on the recording board: its entry point in ``hbrt.replays``.

    An entry point has the name of a command, such as ``0xfa57``, and is called with all calls of the recording,
    including those that are not replayed.
    """

    def open_of(self, recorded: Recorded) -> Recorded | None:
        """Return the call that must run before a call and has not run yet, or None."""

    def replace(self, recorded: Recorded, message: memoryview) -> None:
        """Write the board's values into the message of a call."""

    def restore(self, recorded: Recorded, message: memoryview, output: memoryview) -> None:
        """After a call, write the recorded values in place of the board's."""


def _handles_of(calls: Sequence[Recorded]) -> list[Handles]:
    commands = {f"{one.call.cmd:#x}" for one in calls}
    names = commands & guests.targets("hbrt.replays").keys()
    return [guests.load("hbrt.replays", name, "", "")(calls) for name in sorted(names)]


def blocks_for(ranges: Sequence[Range]) -> list[tuple[int, int]]:
    """Blocks that hold all ranges, as starts and ends: whole pages, each followed by room for the guard."""
    found: list[tuple[int, int]] = []
    for one in sorted(ranges):
        start, end = one.phy_addr // PAGE_BYTES * PAGE_BYTES, -(-one.end // PAGE_BYTES) * PAGE_BYTES
        if found and start < found[-1][1] + GUARD_PAGES * PAGE_BYTES:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def span_of(calls: Sequence[Recorded]) -> tuple[int, int]:
    """Base and bytes of a DDR whose heap holds the ranges of all calls.

    Raises:
        BadRecordingError: no DDR can hold them; says why.
    """
    ranges = [used for one in calls for used in one.call.ranges]
    if not ranges:
        return DDR_BASE, _MIN_HEAP_BYTES
    low = min(used.phy_addr for used in ranges) // PAGE_BYTES * PAGE_BYTES
    heap_bytes = max(_MIN_HEAP_BYTES, max(used.end for used in ranges) - low)
    base = low - plan(heap_bytes, 1).heap
    if base < 0:
        raise BadRecordingError(
            f"The recording has memory at {low:#x}; a board of the emulator keeps the first {low - base:#x} bytes of "
            "its memory for itself. Record with memory at higher addresses."
        )
    return base, heap_bytes


@contextmanager
def board_for(calls: Sequence[Recorded], image: str | None, record_into: Path | None = None) -> Iterator[Board]:
    """A board for these calls.

    Args:
        calls: The calls of a recording: those to run and those that they need.
        image: File of the image; None for the packaged ops. Under HBRT_INLINE its ops run in this process.
        record_into: A directory for a recording of the replay, or None.

    Raises:
        BoardError: it does not start, or the image does not load. BadRecordingError: as ``span_of``.
    """
    os.environ.update({**_SETTINGS, "HBRT_RECORD": str(record_into or "")})
    base, heap_bytes = span_of(calls)
    masks = [one.call.core_mask & _ALL_CORES for one in calls]
    cores = max(active().dsp_cores(), *(mask.bit_length() for mask in masks), 1)
    is_inline = settings.flag("HBRT_INLINE")
    file = str(Path(image).absolute()) if image else None
    directory = private_directory()
    config = DaemonConfig(
        directory=str(directory),
        image=None if is_inline else file,
        cores=cores,
        ddr_bytes=heap_bytes,
        ddr_base=base,
        is_private=True,
    )
    daemon = launch(config, has_console=True)
    session = Session(BoardPaths(directory), daemon, inline=Inline(file) if is_inline else None)
    board = Board(session, _handles_of(calls))
    try:
        yield board
        board.close()
    except (BadRecordingError, RequestRefusedError):
        board.close()  # no task runs: the recording is at fault, and nothing is left behind
        raise
    finally:
        session.close()


class Board:
    """The memory and the cores that calls are replayed on."""

    def __init__(self, session: Session, handles: list[Handles]) -> None:
        self._session, self._handles = session, handles
        self._blocks: set[tuple[int, int]] = set()  # starts and ends
        self.ran: list[str] = []
        """Names of the calls so far; the custom id of each on the board is its place, by which a recording tells it."""

    def run(self, recorded: Recorded, timeout_ms: float) -> tuple[int, str]:
        """Run a call on the memory that it had; returns its status, and an error message if it failed.

        Raises:
            BadRecordingError: a file of the recording is invalid. TimeoutError: the call does not end.
            RequestRefusedError: no memory is available at these addresses.
        """
        call, session = recorded.call, self._session
        for opened in (one.open_of(recorded) for one in self._handles):
            if opened is not None:
                self.run(opened, timeout_ms)
        self._place(blocks_for(call.ranges))
        for used in call.ranges:
            self._view(used)[:] = recorded.bytes_of(used)
        message, output = (self._view(Range(*block, "", "")) for block in (call.input, call.output))
        for handles in self._handles:
            handles.replace(recorded, message)
        place = len(self.ran)
        self.ran.append(recorded.name)
        given = call.cmd, call.priority, call.core_mask & _ALL_CORES, place, *call.input, *call.output
        handle = session.tasks.submit(*given)
        if handle < 0:
            return handle, session.why(handle)
        status = session.tasks.wait(handle, timeout_ms)
        if not session.tasks.has_ended(handle):
            raise TimeoutError(
                f"Call {recorded.name} ({call.op or 'its op'}, command {call.cmd:#x}) does not end within "
                f"{timeout_ms / 1000:g} s; give it longer with --timeout."
            )
        text = session.why(status) if status else ""
        session.tasks.release(handle)
        for handles in self._handles:
            handles.restore(recorded, message, output)
        return status, text

    def ended(self) -> list[dict[str, Any]]:
        """The task that has ended last, as reported by the daemon's verb ``tasks``."""
        rows: list[dict[str, Any]] = self._session.link.request("tasks", last=1)
        return rows

    def bytes_of(self, used: Range) -> bytes:
        """The contents of a range of the last call."""
        return bytes(self._view(used))

    def _view(self, used: Range) -> memoryview:
        ddr = self._session.link.ddr
        if not used.size_bytes:
            return memoryview(b"")
        offset = ddr.offset_of(used.phy_addr)
        return ddr.bytes[offset : offset + used.size_bytes]

    def _place(self, wanted: list[tuple[int, int]]) -> None:
        """Have these blocks, and no other one in their way."""
        guard = GUARD_PAGES * PAGE_BYTES
        for start, end in [one for one in self._blocks if one not in wanted]:
            if any(start < other_end + guard and other_start < end + guard for other_start, other_end in wanted):
                self._free(start, end)
        for start, end in wanted:
            if (start, end) not in self._blocks:
                self._session.blocks.alloc(end - start, at=start)
                self._blocks.add((start, end))

    def close(self) -> None:
        """Free all memory."""
        for start, end in list(self._blocks):
            self._free(start, end)

    def _free(self, start: int, end: int) -> None:
        self._session.blocks.free(start)
        self._blocks.discard((start, end))
