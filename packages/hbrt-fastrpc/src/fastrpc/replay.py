"""FastRPC handles in a replay: an image returns other handles than those recorded."""

from __future__ import annotations

from collections.abc import Sequence

from fastrpc.wire.message import CLOSE, FASTRPC_CMD, HANDLE, HEAD, INVOKE, OPEN
from hbrt.recording.format import Recorded

_HANDLE_AT = 8  # of HEAD


class Handles:
    """The handles of a recording, and the corresponding ones on the board that replays it.

    Args:
        calls: All calls of the recording, including those that are not replayed.
    """

    def __init__(self, calls: Sequence[Recorded]) -> None:
        self._opens = {_opened_by(one): one for one in calls if _kind(one) == OPEN and one.call.status == 0}
        self._given: dict[int, int] = {}

    def open_of(self, recorded: Recorded) -> Recorded | None:
        """Return the open that a call needs and that has not been replayed, or None."""
        handle = _used_by(recorded)
        return None if handle in self._given else self._opens.get(handle)

    def replace(self, recorded: Recorded, message: memoryview) -> None:
        """Write the board's handle into the message of a call that uses one."""
        handle = _used_by(recorded)
        if handle in self._given:
            HANDLE.pack_into(message, _HANDLE_AT, self._given[handle])

    def restore(self, recorded: Recorded, message: memoryview, output: memoryview) -> None:
        """After a call, record the handle that it returned, and replace the board's handles with the recorded ones."""
        if _used_by(recorded) in self._given:
            HANDLE.pack_into(message, _HANDLE_AT, _used_by(recorded))
        elif _kind(recorded) == OPEN and recorded.call.status == 0 and any(output):
            handle = _opened_by(recorded)
            (self._given[handle],) = HANDLE.unpack_from(output)
            HANDLE.pack_into(output, 0, handle)


def _message(recorded: Recorded) -> bytes:
    at, size_bytes = recorded.call.input
    if recorded.call.cmd != FASTRPC_CMD or size_bytes < HEAD.size:
        return bytes(HEAD.size)
    return _bytes_at(recorded, at, is_after=False)[:size_bytes]


def _kind(recorded: Recorded) -> int:
    kind: int = HEAD.unpack_from(_message(recorded))[0]
    return kind


def _used_by(recorded: Recorded) -> int:
    """The handle that a call uses; 0 if it uses none."""
    kind, _, handle, *_ = HEAD.unpack_from(_message(recorded))
    return handle if kind in {INVOKE, CLOSE} else 0


def _opened_by(recorded: Recorded) -> int:
    """The handle that an open returned; 0 if it returned none."""
    at, size_bytes = recorded.call.output
    if size_bytes < HANDLE.size:
        return 0
    handle: int = HANDLE.unpack_from(_bytes_at(recorded, at, is_after=True))[0]
    return handle


def _bytes_at(recorded: Recorded, phy_addr: int, *, is_after: bool) -> bytes:
    """The bytes of a call's memory from an address on."""
    used = next(one for one in recorded.call.ranges if one.phy_addr <= phy_addr < one.end)
    return recorded.bytes_of(used, is_after=is_after)[phy_addr - used.phy_addr :]
