"""When it pays to move a module to the DSP: the rule, and the cost of a call by its buffers. Pure.

Source: Youdao's account of speech recognition on a DSP, 5.2.2, for the rule and the figures,
https://segmentfault.com/a/1190000039169471
"""

from __future__ import annotations

from typing import Final, NamedTuple

CALL_MS: Final = 1.8
"""From the account: the mean of a call with one block of weights."""
FEWER_BUFFERS: Final = 11.62
"""From the account: the factor by which calls are shorter with one block of weights."""
OTHER_BUFFERS: Final = 3
"""Buffers of a call besides the weights: parameters, input and output."""


class CallCost(NamedTuple):
    """The cost of a call: ``base``, and ``buffer`` for each of its buffers, in one unit of time."""

    base: float
    buffer: float

    def of(self, buffers: int) -> float:
        """A call with this many buffers."""
        return self.base + buffers * self.buffer


def saved(cpu: float, dsp: float, calls: int, call: float) -> float:
    """The saving from moving a module: its time on the CPU, less its time on the DSP and that of its calls.

    Args:
        cpu: Its time on the CPU.
        dsp: Its time on the DSP, without calls.
        calls: Number of calls that it takes.
        call: The time of a call; all in the same unit.

    Returns:
        Above 0, the move pays off.
    """
    return cpu - dsp - calls * call


def break_even(cpu_of_one: float, dsp_of_one: float, call: float) -> float | None:
    """From how many units of work one call pays off; None if the CPU is not slower than the DSP.

    Args:
        cpu_of_one: Time of a unit of work on the CPU.
        dsp_of_one: The same on the DSP.
        call: Time of the call.
    """
    return call / (cpu_of_one - dsp_of_one) if cpu_of_one > dsp_of_one else None


def call_cost(weights: int, with_one: float = CALL_MS, fewer: float = FEWER_BUFFERS) -> CallCost:
    """The cost of a call that follows from the account's two figures, given the number of weight buffers before.

    Args:
        weights: Buffers of weights, which became one. The account's number is not public.
        with_one: Time of a call with one.
        fewer: How many times longer it took with all.

    Raises:
        ValueError: with this few buffers, a call without any would take negative time.
    """
    buffer = with_one * (fewer - 1) / (weights - 1) if weights > 1 else float("inf")
    base = with_one - (OTHER_BUFFERS + 1) * buffer
    if base < 0:
        least = 1 + int(-(-(OTHER_BUFFERS + 1) * (fewer - 1) // 1))
        raise ValueError(f"{weights} weight buffers cannot explain a factor of {fewer}: at least {least} are needed.")
    return CallCost(base, buffer)
