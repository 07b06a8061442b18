"""Two tasks share one scratch block."""

import numpy as np

from arm_client import connect

with connect() as board:
    scratch, outs = board.empty(1, np.int64), [board.empty(1, np.int64) for _ in range(2)]
    tasks = []
    for value, out in zip((3, 5), outs):
        block = board.from_array(np.array([scratch.phy_addr, value], np.uint64))
        tasks.append(board.submit(0x1004, block, out))
    for task in tasks:
        task.result()
    assert [int(out[0]) for out in outs] == [9, 25], outs
