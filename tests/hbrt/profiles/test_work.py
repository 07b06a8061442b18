"""What a task has charged, and what it costs: slots, parts that add up, estimates of ops that charge nothing."""

import re
from pathlib import Path

from hypothesis import given, strategies as st

from hbrt.profiles.profile import find
from hbrt.profiles.work import NO_WORK, Operations, Work, task_cost
from tests.each import each

J5 = find("j5")
CYCLES_H = Path(__file__).resolve().parents[3] / "native" / "include" / "dsp" / "hbrt" / "cycles.h"


@each(
    "operations, bundles_milli",
    [
        (Operations(), 0),
        (Operations(load=2), 1000),  # two loads an instruction
        (Operations(load=1, store=1), 1000),
        (Operations(store=2), 2000),  # one store
        (Operations(alu=3), 1500),
        (Operations(load=2, alu=2, mul=1, move=1), 1200),  # five slots
        (Operations(mul=11, alu=15, load=9, store=1, pack=2, move=4), 11_000),
    ],
)
def test_the_scarcest_slot_of_a_loop_decides(operations: Operations, bundles_milli: int) -> None:
    assert operations.of(J5).bundles_milli == bundles_milli
    assert operations.of(J5).cycles_milli == bundles_milli * J5.number("vector.schedule")


def test_gathers_divisions_and_scalar_operations_come_on_top() -> None:
    loop = Operations(alu=2, gather=1, divide=2, scalar=3).of(J5)
    assert loop == (1500 + 16_000 + 2 * 8000 + 3000, 1000, 1, 2, 3)


@given(st.tuples(*[st.integers(0, 1000)] * len(Work._fields)), st.integers(0, 1 << 40), st.booleans())
def test_the_parts_of_a_cost_add_up(counts: tuple[int, ...], more: int, is_done: bool) -> None:  # noqa: FBT001 - drawn
    work = Work(*counts)
    least = task_cost(0, work, 0, J5, is_done=False).cycles
    cost = task_cost(least + more, work, 100, J5, is_done=is_done)
    assert cost.cycles == cost.vector + cost.scalar + cost.ddr + cost.wait
    assert cost.is_estimated or cost.cycles == least + more
    assert cost.is_estimated == (is_done and not more and not work.scalars)


def test_an_op_that_charges_nothing_is_estimated_from_what_it_reads_and_writes() -> None:
    straight = task_cost(0, NO_WORK, 6400, J5, is_done=True)
    assert (straight.is_estimated, straight.ddr, straight.vector) == (True, 100 * 40, 100 * 4 * 1.5)
    by_dma = task_cost(
        4016, Work(descriptors=1, dma_bytes=6400, dma_cycles=4000, wait_cycles=4000), 6400, J5, is_done=True
    )
    assert by_dma == (4016 + 600, 600, 16, 0, 4000, 4000, 0, True)
    mapped = task_cost(0, Work(mapped_bytes=6400), 0, J5, is_done=True)
    assert mapped == straight
    assert not task_cost(0, NO_WORK, 6400, J5, is_done=False).cycles


def test_a_program_in_c_without_a_core_has_the_constants_of_j5() -> None:
    said = re.search(r"hbrt_cycles_model = \{([\d, ]+)\}", CYCLES_H.read_text("utf-8"))
    assert said is not None
    kinds = (
        "slots",
        "memory_slots",
        "store_slots",
        "alu_slots",
        "mul_slots",
        "pack_slots",
        "select_slots",
        "reduce_slots",
    )
    assert [int(number) for number in said[1].split(",")] == [
        *(J5.whole(f"vector.{kind}") for kind in kinds),
        round(1000 * J5.number("vector.schedule")),
        *map(J5.whole, ("vector.gather_cycles", "vector.divide_cycles", "scalar.cycles")),
        *map(J5.whole, ("scalar.printf_cycles", "scalar.printf_byte_cycles", "vector.bits")),
    ]
