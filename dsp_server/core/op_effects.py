"""What ops do outside their blocks: output to the board's log, and TCM, iDMA and mappings that they do not release."""

from __future__ import annotations

import io
import sys
import threading
from typing import TYPE_CHECKING

from dsp_server import runtime
from dsp_server.hardware import cycles
from hbrt.findings.record import Place

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from dsp_server.hardware.descriptors import Idma
    from dsp_server.hardware.tile_manager import TileManager

_LOG_FD = 2
_MAX_TEXT = 1000  # characters of a failed task's text: leave room for its traceback


class _Lines(io.RawIOBase):
    """Accepts bytes and writes each complete line to the board's log."""

    def __init__(self) -> None:
        self._pending = b""
        self._lock = threading.RLock()  # a priority 255 op may print while another op is printing

    def writable(self) -> bool:
        """Yes."""
        return True

    def fileno(self) -> int:
        """Descriptor of the log itself, for code that bypasses this object."""
        return _LOG_FD

    def write(self, data: ReadableBuffer, /) -> int:
        """Log the lines that are now complete."""
        raw = bytes(data)
        with self._lock:
            *lines, self._pending = (self._pending + raw).split(b"\n")
        for line in lines:
            _log(line)
        return len(raw)

    def flush(self) -> None:
        """Log a line that has not been ended yet."""
        with self._lock:
            line, self._pending = self._pending, b""
        if line:
            _log(line)


def _log(line: bytes) -> None:
    text = line.decode("utf-8", "replace")
    if runtime.context.task:
        cycles.current().charge_print(len(line) + 1)
    runtime.context.said.append((runtime.context.task, text))
    runtime.write_log(text)


def install() -> None:
    """Redirect ``print``, and Python code that writes to standard error, to the board's log."""
    # TextIOWrapper needs only these methods from its buffer.
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(_Lines(), "utf-8", "replace", write_through=True)  # type: ignore[type-var]
        for _ in range(2)
    )


def with_output(text: str) -> str:
    """Return a failed task's text, followed by those output and log lines of its op that it lacks."""
    context = runtime.context
    if not context.said:
        return text
    for stream in (sys.stdout, sys.stderr):
        if isinstance(lines := getattr(stream, "buffer", None), _Lines):
            lines.flush()
    said = [line for task, line in context.said if task is context.task and line not in text]
    if not said:
        return text
    return f"{text}\nIts output:\n" + "\n".join(said)[-_MAX_TEXT:]


def unknown_handle(why: str, site: str) -> None:
    """Report a wait for an iDMA handle that no copy returned. It counts as done here; on a board it may never end."""
    cmd = (runtime.context.task or (0,))[0]
    runtime.find(
        "dma-handle",
        f"{why} The wait counts as done here; on the board it may never end.",
        Place("waited", site, core=runtime.context.index, cmd=cmd),
    )


def sweep(cmd: int, op: str, idma: Idma, tile_manager: TileManager, *, has_raised: bool) -> None:
    """Release the resources that an op left behind, and report them unless the op raised.

    Args:
        cmd: Command number.
        op: Name of the op.
        idma: The engine that the op used.
        tile_manager: The TCM that the op used.
        has_raised: Whether the op ended with an exception.
    """
    descriptors, tiles, mappings = idma.drain(), tile_manager.reset(), runtime.context.mappings
    runtime.context.mappings = []
    if has_raised:
        return
    core = runtime.context.index
    who = f"{op} (command {cmd:#x}) returned on core {core}"
    for one in descriptors:
        runtime.find(
            "dma-left",
            f"{who} without waiting for an iDMA transfer: {one}. {idma.left_says} Wait for its handle "
            "(idma_desc_done) before the op returns.",
            Place("copy started", one.where or None, core=core, cmd=cmd, op=op, size_bytes=one.size_bytes),
        )
    for tile in tiles:
        runtime.find(
            "tcm-left",
            f"{who} without freeing TCM: {tile}. Free it with xvFreeBuffer on every path out of the op.",
            Place("tile allocated", tile.where, core=core, cmd=cmd, op=op, size_bytes=tile.size_bytes),
        )
    for mapping in mappings:
        runtime.find(
            "left-mapped",
            f"{who} without unmapping {mapping}. Call hb_dsp_mem_unmap with the address from hb_dsp_mem_map on every "
            "path out of the op.",
            Place(
                "mapped",
                mapping.site,
                core=core,
                cmd=cmd,
                op=op,
                phy_addr=mapping.phy_addr,
                size_bytes=mapping.size_bytes,
            ),
        )
