"""Finds the memory at an address passed by C code: a tile, a block in DDR, or other memory; and where it ends."""

from __future__ import annotations

import ctypes
import mmap

from dsp_server import runtime
from dsp_server.hardware.tile_manager import TileManager
from dsp_server.hardware.transfers import BadTransfer
from hbrt.ddr.private_pages import bytes_at

_mincore = ctypes.CDLL(None, use_errno=True).mincore
_mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_MAX_PAGES = 1 << 20


def memory_at(side: str, address: int, size_bytes: int, tile_manager: TileManager) -> memoryview:
    """Return the bytes from an address to the end of its tile or block; ``size_bytes`` if it is the image's memory.

    Args:
        side: Name of the address in sentences: "source", "destination".
        address: The address, in this process.
        size_bytes: How many bytes will be used.
        tile_manager: The op's TCM.

    Raises:
        BadTransfer: the op may not use that memory.
    """
    if not address:
        raise BadTransfer(f"The {side} is NULL: allocate it, and check that this succeeds.")
    ddr = runtime.context.ddr
    if ddr is not None and 0 <= (offset := address - ddr.address) < ddr.layout.file_bytes:
        phy_addr = offset + ddr.layout.ddr_base
        block = ddr.block_at(phy_addr)
        refusal = ddr.refusal(phy_addr, size_bytes, runtime.context.client_id)
        if block is None or refusal is not None:
            raise BadTransfer(
                f"The {side} cannot be used. {refusal[1] if refusal else ddr.explain(phy_addr, size_bytes)}"
            )
        return ddr.bytes[offset : offset + block.end - phy_addr]
    if (rest := tile_manager.bytes_from(address)) is not None:
        return rest
    if (bank := tile_manager.bank_at(address)) is not None:
        raise BadTransfer(
            f"The {side} is in TCM bank {bank} but not in a tile: it was freed, or never allocated (xvAllocateBuffer)."
        )
    start = address // mmap.PAGESIZE * mmap.PAGESIZE
    pages = -(-(address + size_bytes - start) // mmap.PAGESIZE)
    if pages > _MAX_PAGES or _mincore(start, pages * mmap.PAGESIZE, ctypes.create_string_buffer(pages)):
        raise BadTransfer(
            f"The {side}, {size_bytes} bytes at {address:#x}, is not entirely memory of this process: it is neither "
            "TCM nor DDR mapped by hb_dsp_mem_map."
        )
    return bytes_at(address, size_bytes)
