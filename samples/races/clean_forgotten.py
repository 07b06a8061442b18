"""The program fills a cached block and does not clean it: the op may find the old bytes."""

import numpy as np

from arm_client import connect

with connect() as board:
    data, out = board.empty(8, np.int32, cached=True), board.empty(8, np.int32)
    data[:] = 5
    board.call(0x1002, data, out)
    assert (out == 10).all(), out
