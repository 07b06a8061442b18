"""Frames alternate between two buffers, and the program waits for the task before the last one, of the other buffer."""

import numpy as np

from arm_client import connect
from arm_client.future import Task

with connect() as board:
    data, outs = [board.empty(8, np.int32) for _ in range(2)], [board.empty(8, np.int32) for _ in range(4)]
    tasks: list[Task] = []
    for frame, out in enumerate(outs):
        if frame > 1:
            tasks[-1].result()
        data[frame % 2][:] = frame
        tasks.append(board.submit(0x1002, data[frame % 2], out))
    for task in tasks:
        task.result()
    assert [int(out[-1]) for out in outs] == [0, 2, 4, 6], outs
