"""Two tasks guard a number with a flag that they check, and then set: both may pass."""

import numpy as np

from arm_client import connect

with connect() as board:
    number, address = board.empty(2, np.int32), board.empty(1, np.uint64)
    address[0] = number.phy_addr
    for task in [board.submit(0x1001, address) for _ in range(2)]:
        task.result()
    assert number[0] == 2, number
