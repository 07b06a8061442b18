"""Two tasks are submitted, but only the second is awaited: with two cores, the first may still run."""

import numpy as np

from arm_client import connect

with connect() as board:
    data, out = board.from_array(np.arange(8, dtype=np.int32)), board.empty(8, np.int32)
    small = board.from_array(np.ones(2, np.int32))
    first = board.submit(0x1002, data, out)
    last = board.submit(0x1002, small, board.empty(2, np.int32))
    last.result()
    assert (out == data * 2).all(), out
    first.result()
