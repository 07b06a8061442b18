"""The modelled clock: exact, repeatable, and forward only."""

import pytest

from dsp_server.hardware import cycles
from dsp_server.hardware.cycles import XT_RSR_CCOUNT, CycleCounter, idma_cycles


@pytest.mark.parametrize(
    ("elements", "lanes", "instructions", "spent"),
    [(0, 16, 5, 0), (1, 16, 1, 1), (16, 16, 1, 1), (17, 16, 1, 2), (65, 64, 3, 6), (128, 64, 0, 0)],
)
def test_a_vector_loop_costs_by_groups_of_lanes(elements: int, lanes: int, instructions: int, spent: int) -> None:
    counter = CycleCounter(100)
    counter.charge_vector(elements, lanes, instructions)
    assert counter.cycles == 100 + spent


@pytest.mark.parametrize(("size_bytes", "loads"), [(0, 0), (1, 1), (64, 1), (65, 2)])
def test_ddr_stalls_for_each_load(size_bytes: int, loads: int) -> None:
    counter = CycleCounter()
    counter.charge_ddr(size_bytes)
    assert counter.cycles == loads * cycles.DDR_STALL_CYCLES


def test_a_tensor_costs_less_by_idma_than_straight_from_ddr() -> None:
    counter = CycleCounter()
    counter.charge_ddr(51_200)
    assert idma_cycles(51_200) < counter.cycles / 5


def test_the_counter_only_goes_forward() -> None:
    counter = CycleCounter()
    counter.charge(10)
    counter.advance_to(7)
    assert counter.cycles == 10
    counter.advance_to(70)
    assert counter.cycles == 70
    with pytest.raises(ValueError, match=r"^-1 cycles cannot be charged: the counter only goes forward\.$"):
        counter.charge(-1)


def test_ccount_is_the_low_32_bits_of_the_current_counter() -> None:
    mine = CycleCounter(2**32 - 1)
    before = cycles.install(mine)
    try:
        assert cycles.current() is mine
        assert XT_RSR_CCOUNT() == 2**32 - 1
        mine.charge(3)
        assert XT_RSR_CCOUNT() == 2
        assert mine.cycles == 2**32 + 2
    finally:
        assert cycles.install(before) is mine
    assert cycles.current() is before
