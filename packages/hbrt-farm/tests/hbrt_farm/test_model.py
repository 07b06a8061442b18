"""The model of a farm beyond this machine: it gives what boards, and what a driver, can give at most."""

from __future__ import annotations

import pytest

from benchmarks._farm_model import Model, Overheads
from tests.each import each

FREE = Overheads(0, 0, 0, 0, 0)


@each("boards", [1, 7, 50])
def test_without_overheads_each_board_brings_as_much_as_the_first(boards: int) -> None:
    run = Model(boards, [0.05], FREE).run()
    assert run.rate == pytest.approx(boards / 0.05)
    assert run.busy == 0


def test_a_driver_bounds_the_rate_and_a_way_is_hidden_by_the_next_item() -> None:
    run = Model(200, [0.01], FREE._replace(item=0.001)).run()
    assert 900 < run.rate <= 1000
    assert run.busy > 0.9
    assert Model(5, [0.05], FREE._replace(transit=0.01)).run().rate > 0.9 * 100
    slower = Model(200, [0.01], FREE._replace(item=0.001, pending=1e-5)).run()
    assert slower.rate < run.rate
