"""The flag that an op polls: which bytes of the DDR its loop reads."""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Any

import numpy as np
import pytest

from dsp_server.waits.flags import Flags
from tests.each import each

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 14), reason="its bytecode is another one: nothing is told")


class Door(ctypes.Structure):
    """A structure with a flag."""

    _fields_ = (("kept", ctypes.c_uint64), ("opened", ctypes.c_uint32), ("bit", ctypes.c_uint32, 1))


def first(flag: Any) -> None:
    while not flag[0]:
        pass


def last(flag: Any) -> None:
    while not flag[-1]:
        pass


def element(flag: Any) -> None:
    while not flag[1, 0]:
        pass


def field(flag: Any) -> None:
    while not flag.opened:
        pass


DDR = memoryview(bytearray(4096))
TABLE = np.frombuffer(DDR, np.uint16, 8, offset=512).reshape(4, 2)


@each(
    "way, flag, place, open_it",
    [
        (first, DDR[64:128], (64, 1), lambda flag: flag.__setitem__(0, 1)),
        (first, DDR[64:128].cast("I"), (64, 4), lambda flag: flag.__setitem__(0, 1)),
        (last, DDR[128:192], (191, 1), lambda flag: flag.__setitem__(-1, 1)),
        (first, np.frombuffer(DDR, np.float64, 2, offset=256), (256, 8), lambda flag: flag.__setitem__(0, 1)),
        (element, TABLE, (516, 2), lambda flag: flag.__setitem__((1, 0), 1)),
        (first, (ctypes.c_uint32 * 2).from_buffer(DDR, 1024), (1024, 4), lambda flag: flag.__setitem__(0, 1)),
        (field, Door.from_buffer(DDR, 2048), (2056, 4), lambda flag: setattr(flag, "opened", 1)),
        (first, np.zeros(4), (0, 0), lambda flag: flag.__setitem__(0, 1)),  # memory of its own
        (first, [0], (0, 0), lambda flag: flag.__setitem__(0, 1)),
    ],
)
def test_the_bytes_that_a_loop_reads(way: Any, flag: Any, place: tuple[int, int], open_it: Any) -> None:
    DDR[:] = bytes(len(DDR))
    thread = threading.Thread(target=way, args=(flag,), daemon=True)
    thread.start()
    flags, found = Flags(DDR), (0, 0)
    while True:
        frame = sys._current_frames().get(thread.ident or 0)
        if frame is not None and frame.f_code is way.__code__:
            found = flags.read_by(frame)
            if found == place:
                break
    open_it(flag)
    thread.join()


def test_no_frame_reads_nothing() -> None:
    assert Flags(DDR).read_by(None) == (0, 0)
