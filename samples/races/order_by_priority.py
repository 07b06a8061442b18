"""A high-priority task produces the input of a low-priority one: with two cores, both run at once."""

import numpy as np

from arm_client import connect

with connect() as board:
    data, middle, out = (
        board.from_array(np.arange(8, dtype=np.int32)),
        board.empty(8, np.int32),
        board.empty(8, np.int32),
    )
    first = board.submit(0x1002, data, middle, priority=200)
    second = board.submit(0x1002, middle, out, priority=1)
    first.result()
    second.result()
    assert (out == data * 4).all(), out
