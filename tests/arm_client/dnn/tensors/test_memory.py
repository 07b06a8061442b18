"""The short form of benchmarks/dnn_memory.py: inferences of every kind leave no memory behind."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from arm_client.client import Board
from benchmarks._board_model import BoardModel
from benchmarks.dnn_memory import infer, private_bytes
from tests.arm_client.dnn.nets import double

WARM, COUNT = 500, 1500
MAX_BYTES = 200  # an inference; a task that is kept has thousands


@pytest.mark.long
def test_inferences_leave_memory_flat(dsp_board: Board) -> None:
    with BoardModel(double()) as model:
        model([np.ones((1, 4), np.float32)])
        infer(model, WARM)
        gc.collect()
        grown = []
        for _ in range(3):  # a leak grows each time; the allocator may take a step once
            objects, before = len(gc.get_objects()), private_bytes()
            infer(model, COUNT)
            gc.collect()
            assert len(gc.get_objects()) - objects < COUNT / 10
            grown.append((private_bytes() - before) / COUNT)
        assert min(grown) < MAX_BYTES
