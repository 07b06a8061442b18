"""The rule of off-loading, and the published figures that it is fitted to, with no board."""

from __future__ import annotations

import pytest

from recognizer import break_even, call_cost, saved


def test_a_module_moves_when_it_saves_more_than_its_calls_take() -> None:
    assert saved(1.7, 0, 1, 1.8) < 0
    assert saved(10, 1.2, 1, 1.8) == pytest.approx(7.0)
    assert saved(10, 1.2, 10, 1.8) < 0
    assert break_even(0.05, 0.014, 1.8) == pytest.approx(50)
    assert break_even(0.01, 0.02, 1.8) is None


@pytest.mark.parametrize(("buffers", "base", "each"), [(64, 0.586, 0.303), (100, 1.028, 0.193)])
def test_both_published_figures_give_the_cost_of_a_call_by_the_buffers_that_there_were(
    buffers: int, base: float, each: float
) -> None:
    cost = call_cost(buffers)
    assert cost == pytest.approx((base, each), abs=1e-3)
    assert cost.of(4) == pytest.approx(1.8)
    assert cost.of(3 + buffers) / cost.of(4) == pytest.approx(11.62)


@pytest.mark.parametrize("buffers", [1, 43])
def test_so_few_buffers_cannot_explain_the_figures(buffers: int) -> None:
    with pytest.raises(ValueError, match="at least 44 are needed"):
        call_cost(buffers)
