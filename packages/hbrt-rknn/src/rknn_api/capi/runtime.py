"""State shared by a process's C calls: its attachment to a board, the board's chip, memory and contexts by handle."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final, cast

from arm_client.session.process import process
from hbrt.board.forked import notice
from hbrt.errors import RequestRefusedError
from rknn_api.capi.groups import has_function
from rknn_api.capi.memory import RknnMemory
from rknn_api.errors import RknnError, RknnStatus, invalid_parameter
from rknn_api.run import board
from rknn_api.sram import Region, take
from rknn_api.types import rknn_core_mask

if TYPE_CHECKING:
    from arm_client.session.session import Session
    from rknn_api.capi.context import Context
    from rknn_api.capi.product import Matmul

_FIRST_HANDLE: Final = 0x1001


class RknnRuntime:
    """The runtime on one attachment."""

    def __init__(self, session: Session) -> None:
        profile = session.profile
        self.session = session
        self.chip = profile.name
        self.cores = profile.cores["npu"].count
        self.column = profile.whole("npu.functions")
        self.sram_bytes = profile.whole("sram.bytes")
        self.sram_base = profile.whole("sram.base")
        self.memory = RknnMemory(session)
        self._contexts: dict[int, Context] = {}
        self._matmuls: dict[int, Matmul] = {}
        self._next = _FIRST_HANDLE

    def check_function(self, name: str) -> None:
        """Reject a feature that the chip does not have.

        Raises:
            RknnError: RKNN_ERR_TARGET_PLATFORM_UNMATCH.
        """
        if not has_function(self.column, name):
            raise RknnError(
                RknnStatus.RKNN_ERR_TARGET_PLATFORM_UNMATCH,
                f"{self.chip} has no {name}: see the table of functions by chip.",
            )

    def check_platform(self, target: str) -> None:
        """Reject a model for another chip; see ``board.check_platform``."""
        board.check_platform(self.session, target)

    def priority(self, given: int) -> int:
        """The priority of a context in the mailbox.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: the chip has no such priority.
        """
        try:
            return self.session.profile.board_priority(given)
        except ValueError as error:
            raise invalid_parameter(str(error)) from None

    def mask(self, given: int) -> int:
        """The cores of a core mask: 0 for any.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: the chip has no such core.
        """
        cores = self.cores if given == rknn_core_mask.RKNN_NPU_CORE_ALL else given.bit_length()
        is_known = given in set(rknn_core_mask) and given != rknn_core_mask.RKNN_NPU_CORE_UNDEFINED
        if not is_known or cores > self.cores:
            raise invalid_parameter(
                f"core_mask is {given:#x}; {self.chip} has the cores 0 to {self.cores - 1}: use RKNN_NPU_CORE_AUTO, "
                "_0, _1 and so on, their sums, or RKNN_NPU_CORE_ALL."
            )
        return given

    def add(self, context: Context) -> int:
        """A new context's handle."""
        handle = self._next
        self._next += 1
        self._contexts[handle] = context
        return handle

    def context(self, handle: int) -> Context:
        """The context of a handle.

        Raises:
            RknnError: RKNN_ERR_CTX_INVALID: unknown handle, or already destroyed.
        """
        if (found := self._contexts.get(handle)) is None:
            raise self._invalid(handle, "rknn_init")
        return found

    def _invalid(self, handle: int, maker: str) -> RknnError:
        """The error for a handle from a different function."""
        is_other = handle in self._matmuls or handle in self._contexts
        is_gone = _FIRST_HANDLE <= handle < self._next and not is_other
        what = "was destroyed" if is_gone else f"is not from {maker}"
        return RknnError(RknnStatus.RKNN_ERR_CTX_INVALID, f"The context {handle:#x} {what}.")

    def discard(self, handle: int) -> Context:
        """Forget a context; raises as ``context``."""
        found = self.context(handle)
        del self._contexts[handle]
        return found

    def add_matmul(self, made: Matmul) -> int:
        """A new product's handle."""
        self._matmuls[self._next] = made
        self._next += 1
        return self._next - 1

    def matmul(self, handle: int) -> Matmul:
        """The product of a handle.

        Raises:
            RknnError: RKNN_ERR_CTX_INVALID: unknown handle, or already destroyed.
        """
        if (found := self._matmuls.get(handle)) is None:
            raise self._invalid(handle, "rknn_matmul_create")
        return found

    def check_handle(self, handle: int) -> None:
        """Reject a handle that is neither a context nor a product, like ``context``."""
        if handle not in self._matmuls:
            self.context(handle)

    def discard_matmul(self, handle: int) -> None:
        """Forget a product."""
        del self._matmuls[handle]

    def sram(self) -> list[Region]:
        """The SRAM pages held by the contexts of all the board's programs.

        Raises:
            RequestRefusedError: the board is gone.
        """
        return self._ask_sram("look", Region(0, 0))

    def take_sram(self, wanted_bytes: int) -> Region:
        """SRAM pages for a context; 0 bytes if none are free or requested. Raises as ``sram``."""
        taken = self.sram()
        while True:
            region = take(wanted_bytes, self.sram_bytes, taken)
            if not region.size_bytes:
                return region
            taken = self._ask_sram("take", region)
            if not any(one.start < region.end and region.start < one.end for one in taken):
                return region  # if not, another program got there first

    def give_sram(self, region: Region) -> None:
        """Free a context's pages."""
        if region.size_bytes:
            with contextlib.suppress(RequestRefusedError):  # the board is gone, and the pages with it
                self._ask_sram("give", region)

    def _ask_sram(self, do: str, region: Region) -> list[Region]:
        taken = self.session.link.request("sram", do=do, start=region.start, size=region.size_bytes)
        return [Region(start, size_bytes) for start, size_bytes in taken]


_lock = threading.Lock()


def runtime(target: str = "") -> RknnRuntime:
    """The runtime of this process's default attachment; attaches to a board, or starts a private one.

    Args:
        target: Chip of the model to run; a private board gets it if HBRT_PROFILE names no chip.

    Raises:
        RknnError: RKNN_ERR_DEVICE_UNAVAILABLE: the board has no NPU. RequestRefusedError: no board is available.
    """
    with _lock:
        session = board.npu_board(target)
        found = session.companions.get(RknnRuntime)
        if found is None:
            found = session.companions[RknnRuntime] = RknnRuntime(session)
        return cast("RknnRuntime", found)


def existing(handle: int) -> RknnRuntime:
    """The runtime that a handle belongs to.

    Raises:
        RknnError: RKNN_ERR_CTX_INVALID: no rknn_init has succeeded, or the board has gone since, or this process is a
            fork.
    """
    notice()
    session = process.default
    found = session.companions.get(RknnRuntime) if session is not None and session.is_usable else None
    if found is None:
        raise RknnError(
            RknnStatus.RKNN_ERR_CTX_INVALID,
            f"The context {handle:#x} is unknown: not created by rknn_init in this process, or its board is gone.",
        )
    return cast("RknnRuntime", found)
