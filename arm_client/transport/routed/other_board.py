"""This process's view of a route's board: an attachment, its tasks there, and its blocks there.

A block has the same physical address on both boards, since task parameters may point to it.
"""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from arm_client.cabi.last_error import RequestRefusedError
from arm_client.transport.remote import Remote
from arm_client.transport.routed.memory import MirroredMemory
from hbrt.attach.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from arm_client.memory.block import Block
    from arm_client.transport.remote_link import RemoteLink
    from hbrt.board.paths import RemoteBoard
    from hbrt.ddr.file import Ddr

    Dial = Callable[[RemoteBoard, Callable[[Ddr, int], MirroredMemory]], RemoteLink]


_DETACH_MS = 1000  # as for a session


class Ended(NamedTuple):
    """How a task ended on a board; ``is_refused`` if it was never queued."""

    status: int
    text: str
    is_refused: bool = False


class OtherBoard:
    """The board of a route.

    Args:
        board: Its address.
        here: This board's DDR.
        dial: Attaches to it.
        on_ended: Called by the connection's thread with this object and a task's remote handle.
        on_lost: Called by that thread with this object when the connection is lost.

    Raises:
        BoardError: it cannot be reached.
    """

    def __init__(
        self,
        board: RemoteBoard,
        here: Ddr,
        dial: Dial,
        on_ended: Callable[[OtherBoard, int], None],
        on_lost: Callable[[OtherBoard], None],
    ) -> None:
        self.name = board.name
        self.link = dial(board, partial(MirroredMemory, here=here))
        self._carrier = Remote(partial(on_ended, self))
        self.tasks = Tasks(self.link, self._carrier, polls=False)
        self.memory: MirroredMemory = self.link.memory  # type: ignore[assignment]  # as made above
        self._blocks: set[int] = set()
        self._leaving: set[int] = set()
        self.refused: dict[int, str] = {}  # blocks missing on the board, and why
        self._lock = threading.RLock()
        release_waiters = self.link.on_fault

        def lost() -> None:
            if release_waiters is not None:
                release_waiters()
            on_lost(self)

        self.link.on_fault = lost

    def discard_block(self, phy_addr: int) -> None:
        """Before this board frees a block: have the other board free it before its address is reused."""
        if phy_addr in self._blocks:
            self.memory.discard_block(phy_addr)
            self._blocks.discard(phy_addr)
            self._leaving.add(phy_addr)

    def follow(self, blocks: Iterable[Block]) -> None:
        """Make the blocks there match those of this process.

        Raises:
            RequestRefusedError: the connection is gone.
        """
        with self._lock:
            wanted = {block.phy_addr: block for block in blocks}
            for phy_addr in self._blocks - wanted.keys():
                self.discard_block(phy_addr)
            self._free_left()
            self.refused.clear()
            for phy_addr in wanted.keys() - self._blocks:
                block = wanted[phy_addr]
                try:
                    if block.is_imported:
                        self.refused[phy_addr] = "It is another library's memory, which stays on its machine."
                    else:
                        self._alloc(block.size_bytes, block.allocated_at, phy_addr, is_cached=block.is_cached)
                except RequestRefusedError as error:
                    if self.link.fault:
                        raise
                    self.refused[phy_addr] = str(error)

    def alloc(self, size_bytes: int, site: str, at: int | None = None, *, is_cached: bool) -> int | None:
        """Allocate a block there for one that this board will have at the same address; None if there is no room.

        Args:
            size_bytes: How many bytes.
            site: Calling line of the program.
            at: Its address; None for any.
            is_cached: As for ``Blocks.alloc``.
        """
        with self._lock:
            try:
                self._free_left()
                return self._alloc(size_bytes, site, at, is_cached=is_cached)
            except RequestRefusedError:
                return None

    def fetch(self, phy_addr: int, size_bytes: int) -> None:
        """Fetch changes of a block from there; does nothing if it is not there, or the connection is lost."""
        with contextlib.suppress(RequestRefusedError):
            self.link.pull(phy_addr, size_bytes)

    def send(self, phy_addr: int) -> None:
        """Send local changes of a block; like ``fetch``."""
        with contextlib.suppress(RequestRefusedError):
            self.link.push(phy_addr)

    def run(self, *given: int) -> Ended:
        """Run a task there and wait for it; arguments as for ``Tasks.submit``."""
        tasks = self.tasks
        handle = tasks.submit(*given)
        if handle < 0:
            return Ended(handle, tasks.why(), is_refused=True)
        try:
            return Ended(tasks.wait(handle, 0), tasks.why())
        finally:
            tasks.release(handle)

    def _alloc(self, size_bytes: int, site: str, at: int | None, *, is_cached: bool) -> int:
        request, cached = self.link.request, int(is_cached)
        if at is None:
            at = request("alloc", size=size_bytes, cached=cached, site=site)
        else:
            request("alloc", size=size_bytes, cached=cached, site=site, at=at)
        self.memory.begin(at)
        try:
            self.link.pull(at, size_bytes)
            self._blocks.add(at)
        except BaseException:
            self.link.undo("free", at)
            raise
        finally:
            self.memory.begin(0)
        return at

    def _free_left(self) -> None:
        for phy_addr in list(self._leaving):
            if self.link.fault:
                return
            with contextlib.suppress(RequestRefusedError):
                self.link.request("free", phy=phy_addr)
            self._leaving.discard(phy_addr)

    def detach(self) -> None:
        """Free all blocks there."""
        self.link.request_ms = _DETACH_MS
        self._leaving |= self._blocks
        self._free_left()

    def close(self) -> None:
        """Detach; after ``leave``, nothing of this process remains there."""
        self.link.on_fault = None
        self.tasks.close()
        self.link.close()
        self._carrier.on_ended = lambda _: None  # break the cycle, which would keep this object

    def detach_in_child(self) -> None:
        """In a forked child: drop the connection, which is the parent's."""
        self.link.detach_in_child()
        self.tasks.detach_in_child()
