"""When a module is worth moving to the DSP: the rule, and what a call costs by its buffers. Pure.

Source: Youdao's account of speech recognition on a DSP, 5.2.2, for the rule and the figures,
https://segmentfault.com/a/1190000039169471
"""

from __future__ import annotations

from typing import Final, NamedTuple

CALL_MS: Final = 1.8
"""Of the account: the mean of a call with one block of weights."""
FEWER_BUFFERS: Final = 11.62
"""Of the account: how many times less the calls take with one block of weights."""
OTHER_BUFFERS: Final = 3
"""Buffers of a call beside the weights: numbers, input and output."""


class CallCost(NamedTuple):
    """What a call takes: ``base`` and ``buffer`` for each of its buffers, in one unit of time."""

    base: float
    buffer: float

    def of(self, buffers: int) -> float:
        """A call with so many buffers."""
        return self.base + buffers * self.buffer


def saved(cpu: float, dsp: float, calls: int, call: float) -> float:
    """What moving a module saves: its time on the CPU, less that on the DSP and that of its calls.

    Args:
        cpu: Its time on the CPU.
        dsp: Its time on the DSP, without calls.
        calls: How many calls it takes.
        call: The time of a call; one unit for all.

    Returns:
        Above 0 it is worth it.
    """
    return cpu - dsp - calls * call


def break_even(cpu_of_one: float, dsp_of_one: float, call: float) -> float | None:
    """From how many units of work on one call is worth it; None when the CPU is no slower than the DSP.

    Args:
        cpu_of_one: Time of a unit of work on the CPU.
        dsp_of_one: The same on the DSP.
        call: Time of the call.
    """
    return call / (cpu_of_one - dsp_of_one) if cpu_of_one > dsp_of_one else None


def call_cost(weights: int, with_one: float = CALL_MS, fewer: float = FEWER_BUFFERS) -> CallCost:
    """The cost of a call that the account's two figures give, if it had so many buffers of weights before.

    Args:
        weights: Buffers of weights, which became one. The account's number is not public.
        with_one: Time of a call with one.
        fewer: How many times more it took with all.

    Raises:
        ValueError: for so few buffers a call with none would take less than no time.
    """
    buffer = with_one * (fewer - 1) / (weights - 1) if weights > 1 else float("inf")
    base = with_one - (OTHER_BUFFERS + 1) * buffer
    if base < 0:
        least = 1 + int(-(-(OTHER_BUFFERS + 1) * (fewer - 1) // 1))
        raise ValueError(f"{weights} buffers of weights cannot explain a factor of {fewer}: it takes {least} or more.")
    return CallCost(base, buffer)
