"""Tables of opaque handles. A handle is a kind and a serial, so that a stale one differs from a foreign one.

Serials are never reused, not even in a forked child: a handle inherited by the child is recognized as its parent's.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from enum import IntEnum
from typing import Generic, TypeVar

from arm_client.dnn.errors import ModelError
from hbrt.board.forked import mark, notice
from hbrt.status import Status

_Value = TypeVar("_Value")
_SERIAL_BITS = 44
_STEP = 16  # so that a handle looks like a pointer, and arithmetic on it gives an invalid handle


class HandleKind(IntEnum):
    """What a handle stands for."""

    PACKED = 0xD1
    MODEL = 0xD2
    TASK = 0xD3


_SAID = {HandleKind.PACKED: "packed model", HandleKind.MODEL: "model", HandleKind.TASK: "task"}
_STATUS = {
    HandleKind.PACKED: Status.HB_DNN_INVALID_PACKED_DNN_HANDLE,
    HandleKind.MODEL: Status.HB_DNN_INVALID_DNN_HANDLE,
    HandleKind.TASK: Status.HB_DNN_INVALID_TASK_HANDLE,
}
_MADE_BY = {
    HandleKind.PACKED: "hbDNNInitializeFromFiles or hbDNNInitializeFromDDR",
    HandleKind.MODEL: "hbDNNGetModelHandle",
    HandleKind.TASK: "hbDNNInfer or hbDNNRoiInfer",
}


class Handles(Generic[_Value]):
    """The live handles of one kind."""

    def __init__(self, kind: HandleKind) -> None:
        self.kind = kind
        self._first = kind << _SERIAL_BITS
        self._serials = itertools.count(1)
        self._live: dict[int, _Value] = {}
        self._last = self._first
        self._last_of_parent = self._first

    def __len__(self) -> int:
        return len(self._live)

    def add(self, value: _Value) -> int:
        """Create a handle."""
        handle = self._first + next(self._serials) * _STEP
        self._last = max(self._last, handle)
        self._live[handle] = value  # last: an interrupt after any call would leave an unknown entry
        return handle

    def get(self, handle: int | None) -> _Value:
        """Return what a handle stands for.

        Raises:
            ModelError: INVALID_..._HANDLE: null, released, or of another kind; MULTI_PROGRESS_USE_ERROR: it belongs to
                the parent process.
        """
        if not mark[0]:
            notice()
        found = self._live.get(handle) if handle else None
        if found is None:
            is_parents = handle is not None and self._first < handle <= self._last_of_parent
            status = Status.HB_DNN_MULTI_PROGRESS_USE_ERROR if is_parents else _STATUS[self.kind]
            raise ModelError(status, self._why(handle))
        return found

    def find(self, handle: int | None) -> _Value | None:
        """Return the object of a handle, or None."""
        return self._live.get(handle) if handle else None

    def remove(self, handle: int) -> _Value | None:
        """Remove a handle; returns None if another thread already did."""
        return self._live.pop(handle, None)

    def values(self) -> list[_Value]:
        """Return the objects of all live handles, oldest first."""
        return list(self._live.values())

    def detach_in_child(self) -> None:
        """In a forked child: the live handles belong to the parent."""
        # Kept forever: when freed, an onnxruntime session waits for threads that did not survive the fork.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._live))
        self._live = {}
        self._last_of_parent = self._last

    def _why(self, handle: int | None) -> str:
        said, made_by = _SAID[self.kind], _MADE_BY[self.kind]
        if not handle:
            return f"The {said} handle is null; get one from {made_by}."
        kind = handle >> _SERIAL_BITS
        if kind != self.kind:
            other = f"a {_SAID[HandleKind(kind)]} handle" if kind in _SAID else "not a handle of this runtime"
            return f"{handle:#x} is {other}, not a {said} handle; get one from {made_by}."
        if handle <= self._last_of_parent:
            return (
                f"The {said} handle {handle:#x} belongs to the parent of this process ({os.getpid()}); "
                f"after a fork, the child must get its own from {made_by}."
            )
        if handle <= self._last and not handle % _STEP:
            return f"The {said} handle {handle:#x} was already released."
        return f"{handle:#x} is not a {said} handle of this process; get one from {made_by}."
