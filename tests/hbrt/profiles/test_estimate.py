"""Estimates: parts scale by the constants that they were charged with, calls wait for cores, and ranges have causes."""

import pytest
from hypothesis import given, strategies as st

from hbrt.profiles.estimate import Call, calls_of, op_cost, parts_of, range_of, range_of_all, range_of_fit, total_us
from hbrt.profiles.profile import find
from hbrt.profiles.work import NO_WORK, Work, task_cost
from tests.each import each

J5 = find("j5")
COPY = Work(descriptors=1, dma_bytes=16_000, dma_cycles=1064, wait_cycles=1064)
OP = Call(0x1000, "op", 3000 + 16 + 1064, COPY._replace(bundles=2000), 64, 2)


def test_under_its_own_profile_an_op_costs_what_it_charged() -> None:
    assert op_cost(OP, J5, J5) == task_cost(OP.charged, OP.work, 64, J5, is_done=True)


@each(
    "key, value, vector, wait",
    [
        ("vector.schedule", 3.0, 6000, 1064),
        ("idma.bytes_per_cycle", 8, 3000, 2064),
        ("idma.setup_cycles", 164, 3000, 1164),
        ("scalar.cycles", 2, 3000, 1064),
        ("cores.dsp.clock_mhz", 324, 3000, 1064),
    ],
)
def test_each_part_scales_by_its_own_constants(key: str, value: float, vector: int, wait: int) -> None:
    other = J5.with_values({key: value})
    cost = op_cost(OP, J5, other)
    assert (cost.vector, cost.wait, cost.cycles) == (vector, wait, vector + wait + 16)
    times = parts_of(OP, J5, other, is_relayed=False)
    assert times.vector == pytest.approx(vector / other.number("cores.dsp.clock_mhz"))


@given(st.sampled_from(sorted(J5.assumed)), st.booleans())
def test_a_hidden_copy_is_waited_for_when_it_gets_longer_than_the_computing(key: str, is_high: bool) -> None:  # noqa: FBT001 - drawn
    hidden = Call(1, "op", 3016, COPY._replace(wait_cycles=0, bundles=2000), 0, 0)
    one = J5.constants[key]
    cost = op_cost(hidden, J5, J5.with_values({key: one.high if is_high else one.low}))
    assert cost.wait == max(0, cost.dma - (cost.cycles - cost.wait))
    assert cost.cycles == cost.vector + cost.scalar + cost.ddr + cost.wait


def test_an_estimated_op_is_estimated_anew() -> None:
    silent = Call(1, "op", 0, NO_WORK, 6400, 2)
    slow = J5.with_values({"ddr.stall_cycles": 80, "estimate.instructions": 8})
    assert op_cost(silent, J5, slow)[:4] == (100 * 80 + 1200, 1200, 0, 100 * 80)


def test_calls_that_were_made_together_share_the_cores() -> None:
    profile = J5.with_values({"rpc.call_us": 100, "rpc.buffer_us": 0, "cores.dsp.clock_mhz": 1000})
    work = Work(bundles=200_000)
    op = Call(1, "op", 300_000, work, 0, 0)  # 300 us
    together = [op._replace(submitted_ns=n, ended_ns=100 + n) for n in range(4)]
    in_turn = [op._replace(submitted_ns=1000 * n, ended_ns=1000 * n + 100) for n in range(4)]
    one_core = profile.with_values({"cores.dsp.count": 1})
    assert total_us(together, profile, profile, is_relayed=False) == pytest.approx(700)
    assert total_us(together, profile, one_core, is_relayed=False) == pytest.approx(1300)
    assert total_us(in_turn, profile, profile, is_relayed=False) == pytest.approx(1600)
    relayed = profile.with_values({"rpc.relay_us": 50})
    assert total_us(in_turn, profile, relayed, is_relayed=True) == pytest.approx(1800)


def test_a_range_names_what_moves_it_and_shares_add_up() -> None:
    found = range_of(lambda profile: parts_of(OP, J5, profile, is_relayed=False).total, J5)
    assert found.low < found.value < found.high
    assert found.spread[0].key == "rpc.call_us"
    assert sum(map(found.share, found.spread)) == pytest.approx(1)
    assert "cpu.random_ns" not in {one.key for one in found.spread}


def test_a_range_of_calls_that_take_no_time_is_zero() -> None:
    found = range_of_all([(range_of_fit(0.0, 0.1), 3)], 0.0)
    assert (found.low, found.value, found.high) == (0, 0, 0)


def test_calls_are_read_from_a_boards_history() -> None:
    row = {
        "cmd": 1,
        "name": "op",
        "modeled_cycles": 900,
        "modeled_is_estimated": True,
        "state": "done",
        "kind": "dsp",
    }
    row |= {"input_bytes": 8, "output_bytes": 0, "submitted_ns": 3, "ended_ns": 9, "work": NO_WORK._asdict()}
    failed, unknown = {**row, "state": "failed"}, {**row, "name": ""}
    model = {**unknown, "kind": "bpu", "modeled_ns": 5000}  # one of several that its program loaded
    assert calls_of([row, failed, unknown, model, {**model, "modeled_ns": 0}]) == [
        Call(1, "op", 0, NO_WORK, 8, 1, 3, 9),
        Call(1, "model", 0, NO_WORK, 0, 0, 3, 9, model_us=5),
    ]
