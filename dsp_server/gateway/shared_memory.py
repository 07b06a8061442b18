"""The board's side of a remote program's memory: the blocks that it may access, and changes to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hbrt.attach.link import Link
from hbrt.attach.tasks import Tasks
from hbrt.errors import RequestRefusedError
from hbrt.protocol.control import ControlRequest, MalformedMessageError
from hbrt.protocol.remote import RemoteFrame, encode
from hbrt.remote.shadow import Change
from hbrt.remote.shadow_memory import Holdings, ShadowMemory
from hbrt.status import Status


class RemoteClientMemory:
    """A remote client's blocks; the gateway reads and writes no other memory for the program.

    Args:
        link: The remote client's attachment; its lease holds the blocks.
        tasks: The remote client's tasks, which are notified of its blocks.
        next_number: Returns the number for the next DATA.
    """

    def __init__(self, link: Link, tasks: Tasks, next_number: Callable[[], int]) -> None:
        self._link = link
        self._tasks = tasks
        self._holdings = Holdings(link.ddr.layout.phy_end)
        self._shadow = ShadowMemory(link.ddr)
        self._next_number = next_number
        self._seen = 0  # number of the last PUSH applied

    def ask(self, request: ControlRequest) -> object:
        """Send a control request to the daemon and keep track of memory; return the answer for the program.

        Raises:
            RequestRefusedError: the daemon refused the request.
        """
        data = self._link.request(request.verb, **request.args)
        phy_addr = request.args.get("phy", 0)
        if request.verb == "alloc":
            self._holdings.hold(data, request.args["size"], is_owned=True)
        elif request.verb == "register":
            return self._on_register(data)
        elif request.verb == "free":
            self._release_holding(phy_addr, is_owned=True)
        elif request.verb == "unregister":
            found = self._holdings.find(phy_addr, 0)
            if found is not None:
                self._release_holding(found[0], is_owned=False)
        return data

    def push(self, number: int, phy_addr: int, change: Change) -> None:
        """Apply bytes changed by the program.

        Raises:
            MalformedMessageError: not the next number, or not inside a single block of the program.
        """
        if number != self._seen + 1:
            raise MalformedMessageError(f"PUSH {number} arrived after PUSH {self._seen}.")
        if self._holdings.find(phy_addr, change.size_bytes) is None:
            raise MalformedMessageError(
                f"The range {phy_addr:#x}+{change.size_bytes:#x} of a PUSH is not inside one block of its program."
            )
        self._shadow.accept(phy_addr, change)
        self._seen = number

    def pull(self, phy_addr: int, size_bytes: int) -> Iterator[tuple[int, bytes]]:
        """Yield numbered DATA frames for the changes in the pages of a range.

        Raises:
            RequestRefusedError: the range is not inside a single block of the program.
        """
        found = self._holdings.find(phy_addr, size_bytes)
        if found is None:
            raise RequestRefusedError(
                Status.HB_SYS_INVALID_ARGUMENT,
                f"The range {phy_addr:#x}+{size_bytes:#x} is not inside one block of this process.",
            )
        return self._data(found[0], found[1].extent)

    def everything(self) -> Iterator[tuple[int, bytes]]:
        """Yield DATA frames for the changes in all blocks of the program, except blocks freed meanwhile."""
        for phy_addr, held in self._holdings.all():
            if self._holdings.find(phy_addr, held.extent) is not None:
                yield from self._data(phy_addr, held.extent)

    def close(self) -> None:
        """Free the shadow copy; the blocks are freed when the lease ends."""
        self._shadow.close()

    def _data(self, phy_addr: int, size_bytes: int) -> Iterator[tuple[int, bytes]]:
        for address, change, seen in self._shadow.changes(phy_addr, size_bytes, lambda *_: self._seen):
            number = self._next_number()
            yield number, encode(RemoteFrame.DATA, number, seen, address, *change)

    def _on_register(self, base: int) -> object:
        entry = self._link.ddr.block_at(base)
        if entry is None:
            raise RequestRefusedError(
                Status.HB_SYS_REGISTER_MEM_FAILED, f"The block at {base:#x} was freed while it was being registered."
            )
        if self._link.ddr.imported(base):
            self._link.undo("unregister", base)
            raise RequestRefusedError(
                Status.HB_SYS_REGISTER_MEM_FAILED,
                f"The block at {base:#x} is another library's memory, which only programs on that machine can access: "
                "copy it there into memory from hbSysAllocMem.",
            )
        self._holdings.hold(base, entry.size_bytes, is_owned=False)
        return [base, entry.size_bytes, entry.owner]

    def _release_holding(self, phy_addr: int, *, is_owned: bool) -> None:
        found = self._holdings.find(phy_addr, 0)
        if found is not None and self._holdings.release(phy_addr, is_owned=is_owned) is None:
            self._shadow.discard(phy_addr, found[1].extent)
