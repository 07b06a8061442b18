"""The modeled clock: exact, repeatable, and forward only."""

import pytest

from dsp_server.hardware import cycles
from dsp_server.hardware.cycles import XT_RSR_CCOUNT, CycleCounter, hb_dsp_charge, idma_cycles
from dsp_server.hardware.descriptors import Idma
from hbrt.profiles.profile import find
from hbrt.profiles.work import BUNDLES, NO_WORK, Work, task_cost
from tests.each import each


@each(
    "elements, lanes, instructions, spent",
    [(0, 16, 5, 0), (1, 16, 1, 1), (16, 16, 1, 1), (17, 16, 1, 2), (65, 64, 3, 6), (128, 64, 0, 0)],
)
def test_a_vector_loop_costs_by_groups_of_lanes(elements: int, lanes: int, instructions: int, spent: int) -> None:
    counter = CycleCounter(100)
    counter.charge_vector(elements, lanes, instructions)
    assert counter.cycles == 100 + -(-spent * cycles.SCHEDULE_MILLI // 1000)
    assert counter.work[BUNDLES] == spent


@each("size_bytes, loads", [(0, 0), (1, 1), (64, 1), (65, 2)])
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
    with pytest.raises(ValueError, match=r"^Cannot charge -1 cycles: the counter only goes forward\.$"):
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


def test_an_op_charges_what_it_would_do_on_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = CycleCounter()
    monkeypatch.setattr(cycles, "_current", counter)
    hb_dsp_charge(100, 8, load=1, alu=1, store=1)  # 64 a vector
    assert counter.work[BUNDLES] == 2
    hb_dsp_charge(100, 16, load=2)
    assert counter.work[BUNDLES] == 2 + 4
    hb_dsp_charge(100, load=2)
    assert counter.work[BUNDLES] == 2 + 4 + 7
    before = counter.cycles
    hb_dsp_charge(16, gather=2, divide=3, scalar=5)
    assert counter.cycles - before == 2 * 16 + 3 * 8 + 5
    assert Work(*counter.take_work())._replace(bundles=0) == Work(gathers=2, divides=3, scalars=5)
    assert counter.take_work() == [*NO_WORK]
    with pytest.raises(ValueError, match=r"^Cannot charge elements of 12 bits: a vector has elements of 8, 16, 32"):
        hb_dsp_charge(1, 12)
    with pytest.raises(ValueError, match="numbers must be 0 or more"):
        hb_dsp_charge(1, alu=-1)


def test_a_wait_for_a_copy_is_told_from_what_the_engine_does_meanwhile() -> None:
    counter = CycleCounter()
    idma = Idma(counter)
    handle = idma.copy(bytearray(6400), bytes(6400))
    counter.charge_vector(16 * 100, 16)
    idma.wait(handle)
    work = Work(*counter.take_work())
    cost = task_cost(counter.cycles, work, 0, find("j5"), is_done=True)
    assert cost == (16 + idma_cycles(6400), 150, 16, 0, idma_cycles(6400) - 150, idma_cycles(6400), 150, False)
