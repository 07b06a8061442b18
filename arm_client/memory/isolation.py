"""Restricts a program to its own and registered blocks, as if an MMU separated it from the rest of the DDR.

A stray pointer into another program's block then faults, and a message says whose block it is.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from arm_client.cabi.call_site import call_site
from arm_client.cabi.say import warn
from arm_client.memory import fault_sentence
from arm_client.memory.freed import freed_block_at
from hbrt.ddr.private_pages import MAX_OPEN
from hbrt.errors import BoardError, StatusError
from hbrt.findings.record import Place

if TYPE_CHECKING:
    from hbrt.attach.link import Link
    from hbrt.ddr.file import BlockEntry

MAX_LISTED = 100_000
_ASK_S = 2.0
_links: weakref.WeakSet[Link] = weakref.WeakSet()


def watch(link: Link) -> None:
    """Close the DDR for this process; its blocks are opened one by one."""
    layout = link.ddr.layout
    link.ddr.private.close_all(layout.heap, layout.file_bytes)
    _links.add(link)
    fault_sentence.install(_stray_access)


def open_all(link: Link) -> None:
    """Open the whole DDR, because the kernel has no mapping left for another block."""
    layout = link.ddr.layout
    link.ddr.private.open_all(layout.heap, layout.file_bytes)
    warn(
        "%s: this program has more than %d blocks, or as many as the kernel can isolate "
        "(vm.max_map_count): from now on, a stray pointer into another program's memory, or into "
        "freed memory, is not detected. Allocate fewer, "
        "larger blocks.",
        call_site(),
        MAX_OPEN,
    )


def _stray_access(address: int) -> str:
    """Return the message for a fault at an address; empty if it is not in closed memory."""
    if freed_block_at(address) is not None:
        return ""  # this process's own block, about which more is known
    for link in list(_links):
        ddr = link.ddr
        offset = address - ddr.address
        if link.fault or not (ddr.private.is_closed and ddr.layout.heap <= offset < ddr.layout.file_bytes):
            continue
        phy_addr, site = ddr.layout.ddr_base + offset, call_site()
        block = ddr.block_at(phy_addr)
        whose = f"memory outside any block, at {phy_addr:#x}" if block is None else _whose(link, block, phy_addr)
        if block is None and (freed := ddr.freed_block(phy_addr)) is not None:
            whose = f"byte {phy_addr - freed.phy_addr} of {freed}"
        text = (
            f"{site}: a stray access touches {whose}. A program uses its own blocks, and those of others that it "
            "registers (hbSysRegisterMem)."
        )
        touched = Place("touched", site, phy_addr=phy_addr, size_bytes=1)
        return fault_sentence.note(link, "stray-access", text, touched)
    return ""


def _whose(link: Link, block: BlockEntry, phy_addr: int) -> str:
    """Say which byte of which block it is, who owns the block, and, from the board, where it was allocated."""
    owner, site = f"client {block.owner}", ""
    try:
        from hbrt.control.ask import look_at

        with look_at(link.paths) as daemon:
            clients = daemon.request("status", _ASK_S)["clients"]
            listed = daemon.request("mem", _ASK_S, most=MAX_LISTED)["blocks"]
        owner = next((f"process {one['pid']} ({one['name']})" for one in clients if one["id"] == block.owner), owner)
        site = next((one["site"] for one in listed if one["phy_addr"] == block.phy_addr), "")
    except (BoardError, StatusError, OSError, ImportError):
        pass  # the block and its client are known even without the board
    allocated = f", allocated at {site}" if site else ""
    return (
        f"byte {phy_addr - block.phy_addr} of the block {block.phy_addr:#x}+{block.size_bytes:#x} of {owner}{allocated}"
    )
