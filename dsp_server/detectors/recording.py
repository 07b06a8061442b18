"""Writes a program's calls to a recording: what each used, before and after; see hbrt/recording/format.py.

An op can access its two blocks and what it maps. A mapping's bytes are written when the mapping is made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING

from dsp_server import runtime
from dsp_server.detectors.page_faults import opened
from hbrt import settings
from hbrt.mailbox.schedule import OF_ITS_OWNER
from hbrt.recording.format import CALL, CALLS, INDEX, Call, Range, uncovered, write_text

if TYPE_CHECKING:
    from dsp_server.runtime import CoreContext
    from hbrt.ddr.file import Ddr
    from hbrt.mailbox.table import Mailbox

MIN_SHARED_BYTES = 1 << 16
"""Contents of at least this many bytes are stored once: later files with the same bytes are links."""
MAX_KNOWN = 1024
MAX_BYTES = 4 << 30
"""Limit of the memory that one core writes for one program."""


class Recorder:
    """Records one program's calls on one core.

    Args:
        directory: The recording's directory, which must exist.
        context: The core's context; its DDR is recorded.
    """

    def __init__(self, directory: str, context: CoreContext) -> None:
        self._directory = Path(directory)
        self._context = context
        self._calls = 0
        self._bytes_left = MAX_BYTES
        self._known: dict[bytes, Path] = {}  # digest -> a file with those bytes
        self._has_stopped = False

    @contextmanager
    def recording(self, mailbox: Mailbox, slot: int, op: str) -> Iterator[CallRecorder | None]:
        """Record an op's call; None if recording has stopped."""
        record = None if self._has_stopped or self._context.ddr is None else self._begin(mailbox, slot, op)
        if record is None:
            yield None
            return
        self._context.watchers.append(record)
        try:
            yield record
        finally:
            self._context.watchers.remove(record)
            record.end()

    def _begin(self, mailbox: Mailbox, slot: int, op: str) -> CallRecorder | None:
        task, answer = mailbox.request(slot), mailbox.answer(slot)
        call = Call(
            task.cmd,
            op,
            task.priority,
            task.custom_id,
            0 if task.core_mask == OF_ITS_OWNER else task.core_mask,
            (task.input_phy, task.input_bytes),
            (task.output_phy, task.output_bytes),
            site=mailbox.site(slot),
            core=self._context.index,
            submitted_ns=task.sequence,
            claimed_ns=answer.claim_ns,
        )
        try:
            return CallRecorder(self, self._context, self._next_folder(), call)
        except OSError as error:
            self.stop(f"Cannot write {self._directory}: {error.strerror}.")
            return None

    def _next_folder(self) -> Path:
        """Create a new folder; one left by an earlier process of this core is not touched."""
        while True:
            self._calls += 1
            folder = self._directory / CALLS / f"core{self._context.index}-{self._calls:06}"
            with suppress(FileExistsError):
                folder.mkdir()
                return folder

    def keep(self, file: Path, raw: bytes, digest: bytes) -> None:
        """Write bytes to a file.

        Raises:
            OSError: they cannot be written, or would exceed the recording's limit.
        """
        first = self._known.get(digest)
        if first is not None:
            with suppress(OSError):  # too many links, or a file system without links
                os.link(first, file)
                return
        if len(raw) > self._bytes_left:
            raise OSError(None, f"it would exceed the limit of {settings.format_size(MAX_BYTES)} per core")
        self._bytes_left -= len(raw)
        file.write_bytes(raw)
        if len(raw) >= MIN_SHARED_BYTES:
            self._known[digest] = file
            if len(self._known) > MAX_KNOWN:
                del self._known[next(iter(self._known))]

    def append(self, line: str) -> None:
        """Append a line to the index right away: other cores append to it too."""
        fd = os.open(self._directory / INDEX, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)

    def stop(self, why: str) -> None:
        """Stop recording, and report why."""
        if self._has_stopped:
            return
        self._has_stopped = True
        with suppress(OSError):
            self.append(json.dumps({"stopped": why}) + "\n")
        runtime.find("recording-stopped", f"Core {self._context.index} stopped recording this program's calls: {why}")


class CallRecorder:
    """The record of one call. As a ``MapWatcher``, it watches what the op maps."""

    def __init__(self, recorder: Recorder, context: CoreContext, folder: Path, call: Call) -> None:
        self._recorder, self._context, self._folder, self._call = recorder, context, folder, call
        self._task, self._pid = context.task, os.getpid()
        self._digests: list[bytes] = []  # digests of the ranges before the op
        for phy_addr, size_bytes in (call.input, call.output):
            self._use(phy_addr, size_bytes)
        self._write()
        self._call = self._call._replace(started_ns=monotonic_ns())

    def mapped(self, phy_addr: int, size_bytes: int) -> None:
        """Write the bytes of a range that the op maps before the op can change them."""
        if self._context.task is not self._task or os.getpid() != self._pid:
            return  # an op that interrupted this one, or a fork
        known = len(self._call.ranges)
        try:
            self._use(phy_addr, size_bytes)
            if len(self._call.ranges) > known:
                self._write()
        except OSError as error:
            self._recorder.stop(_why(error))

    def refused(self, phy_addr: int, size_bytes: int, why: str) -> None:
        """Do nothing: the op gets no memory."""

    def ended(self, status: int, text: str, cycles: int, ddr_bytes: int, tcm_bytes: int) -> None:
        """Record the outcome."""
        now_ns = monotonic_ns()
        self._call = self._call._replace(status=status, text=text, ended_ns=now_ns)
        self._call = self._call._replace(cycles=cycles, ddr_bytes=ddr_bytes, tcm_bytes=tcm_bytes)

    def end(self) -> None:
        """Write what the op has changed, and add the call to the index."""
        if os.getpid() != self._pid or self._call.status is None:
            return
        try:
            ranges = [self._after(*one) for one in zip(self._call.ranges, self._digests, strict=True)]
            self._call = self._call._replace(ranges=tuple(ranges))
            self._write()
            self._recorder.append(self._call.line(self._folder.name))
        except OSError as error:
            self._recorder.stop(_why(error))

    def _use(self, phy_addr: int, size_bytes: int) -> None:
        for start, end in uncovered(self._call.ranges, phy_addr, phy_addr + size_bytes):
            raw = self._read(start, end - start)
            name, digest = f"{start:#x}.before", blake2b(raw).digest()
            self._recorder.keep(self._folder / name, raw, digest)
            self._call = self._call._replace(ranges=(*self._call.ranges, Range(start, end - start, name)))
            self._digests.append(digest)

    def _after(self, used: Range, before: bytes) -> Range:
        raw = self._read(used.phy_addr, used.size_bytes)
        digest = blake2b(raw).digest()
        if digest == before:
            return used
        name = f"{used.phy_addr:#x}.after"
        self._recorder.keep(self._folder / name, raw, digest)
        return used._replace(after=name)

    def _read(self, phy_addr: int, size_bytes: int) -> bytes:
        ddr = self._ddr
        offset = ddr.offset_of(phy_addr)
        with opened(ddr.address + offset, ddr.address + offset + size_bytes):  # other detectors may guard the range
            return bytes(ddr.bytes[offset : offset + size_bytes])

    @property
    def _ddr(self) -> Ddr:
        if self._context.ddr is None:
            raise OSError(None, "the core is out of memory")
        return self._context.ddr

    def _write(self) -> None:
        write_text(self._folder / CALL, json.dumps(self._call.as_dict()) + "\n")


def _why(error: OSError) -> str:
    return f"{error.strerror}." if error.filename is None else f"Cannot write {error.filename}: {error.strerror}."
