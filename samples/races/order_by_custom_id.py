"""The same with customId, which orders the starts of tasks, not their ends."""

import numpy as np

from arm_client import connect

with connect() as board:
    data, middle, out = (
        board.from_array(np.arange(8, dtype=np.int32)),
        board.empty(8, np.int32),
        board.empty(8, np.int32),
    )
    tasks = [board.submit(0x1002, data, middle, custom_id=1), board.submit(0x1002, middle, out, custom_id=2)]
    for task in tasks:
        task.result()
    assert (out == data * 4).all(), out
