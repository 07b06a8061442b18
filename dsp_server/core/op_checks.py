"""Resources that an op did not release: TCM, iDMA descriptors, mappings. Each is a finding with file and line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsp_server import runtime
from hbrt.findings.record import Place

if TYPE_CHECKING:
    from dsp_server.hardware.descriptors import Idma
    from dsp_server.hardware.tile_manager import TileManager


def unknown_handle(why: str, site: str) -> None:
    """Report a wait for an iDMA handle that no copy returned, which counts as done: on the board it ends by chance."""
    cmd = (runtime.context.task or (0,))[0]
    runtime.find(
        "dma-handle",
        f"{why} The wait counts as done here, and may never end on the board.",
        Place("waited", site, core=runtime.context.index, cmd=cmd),
    )


def sweep(cmd: int, op: str, idma: Idma, tile_manager: TileManager, *, has_raised: bool) -> None:
    """Release the resources that an op left, and report them; those of an op that raised are not reported.

    Args:
        cmd: Command number.
        op: Name of the op.
        idma: The engine that it used.
        tile_manager: The TCM that it used.
        has_raised: Whether it ended by an exception.
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
            f"{who} without freeing TCM: {tile}. Free it with xvFreeBuffer on each way out of the op.",
            Place("tile allocated", tile.where, core=core, cmd=cmd, op=op, size_bytes=tile.size_bytes),
        )
    for mapping in mappings:
        runtime.find(
            "left-mapped",
            f"{who} without unmapping {mapping}. Call hb_dsp_mem_unmap with what hb_dsp_mem_map returned, on each way "
            "out of the op.",
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
