"""``hbrt estimate offload``: the size from which an op is worth a call, by the profile's constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any, Final, NamedTuple

from arm_client.commands.estimate.report import range_as_dict, shares_of
from arm_client.commands.op.sweep import Sample
from hbrt.cli.report import Report
from hbrt.cli.tables import Column, Table, number, numbers, time_of_us
from hbrt.profiles.estimate import Range, parts_of, range_of
from hbrt.profiles.profile import Profile

MIN_NS: Final = 20_000_000
"""How long the function of the CPU is measured at a size, at least; and no more than MAX_RUNS runs."""
MAX_RUNS: Final = 200


class Choice(NamedTuple):
    """One size: the times on the board's CPU and on the DSP, all modeled, in microseconds.

    Attributes:
        elements: Of the array.
        host_us: The CPU function's median on this machine, measured.
        cpu: The same on the board's CPU, scaled by the profile's ``cpu.host_ratio``.
        one_call: The whole array in one call.
        many_calls: The same in several calls, one after another.
        many_buffers: One call with several buffers instead of one.
        gain: The CPU's time minus one call's time: above 0, the DSP wins.
    """

    elements: int
    host_us: float
    cpu: Range
    one_call: Range
    many_calls: float
    many_buffers: float
    gain: Range

    @property
    def verdict(self) -> str:
        """Who wins, and whether the assumed constants leave a doubt."""
        if self.gain.low > 0:
            return "DSP"
        if self.gain.high < 0:
            return "CPU"
        return "DSP, likely" if self.gain.value > 0 else "CPU, likely"


def host_us(function: Callable[[Any], Any], data: Any) -> float:
    """Median time of a function on this machine."""
    times: list[int] = []
    function(data)
    while sum(times) < MIN_NS and len(times) < MAX_RUNS:
        start = perf_counter_ns()
        function(data)
        times.append(perf_counter_ns() - start)
    return sorted(times)[len(times) // 2] / 1000


def choice_of(
    whole: Sample, part: Sample, cpu_us: float, profile: Profile, calls: int, buffers: int, *, is_relayed: bool
) -> Choice:
    """Compare one size.

    Args:
        whole: The op over all elements.
        part: The op over a ``calls``-th of them.
        cpu_us: The CPU function's time on this machine.
        profile: Of the board.
        calls: Number of calls to compare with one.
        buffers: Number of buffers to compare with one buffer and offsets.
        is_relayed: Whether calls go through a relay.
    """

    def dsp(sample: Sample, other: Profile) -> float:
        return parts_of(sample.call, profile, other, is_relayed=is_relayed).total

    def cpu(other: Profile) -> float:
        return cpu_us * other.number("cpu.host_ratio")

    one = range_of(lambda other: dsp(whole, other), profile)
    more_buffers = (buffers - 1) * profile.number("rpc.buffer_us")
    return Choice(
        whole.elements,
        cpu_us,
        range_of(cpu, profile),
        one,
        calls * dsp(part, profile),
        one.value + more_buffers,
        range_of(lambda other: cpu(other) - dsp(whole, other), profile),
    )


def first_win(choices: Sequence[Choice], pick: Callable[[Choice], float]) -> float | None:
    """The number of elements from which a gain is above 0, interpolated between sizes; None if it never is."""
    for at in range(len(choices)):
        if all(pick(one) > 0 for one in choices[at:]):
            if at == 0:
                return choices[0].elements
            left, right = choices[at - 1], choices[at]
            low, high = pick(left), pick(right)
            return left.elements + (right.elements - left.elements) * -low / (high - low)
    return None


def report(choices: Sequence[Choice], profile: Profile, calls: int, buffers: int) -> Report:
    """Who wins at which size, and from which size on the DSP does."""
    likely = first_win(choices, lambda one: one.gain.value)
    surely = first_win(choices, lambda one: one.gain.low)
    perhaps = first_win(choices, lambda one: one.gain.high)
    sizes = [
        {
            "elements": one.elements,
            "host_cpu_us": one.host_us,
            "modeled_cpu": range_as_dict(one.cpu),
            "modeled_one_call": range_as_dict(one.one_call),
            "modeled_many_calls_us": one.many_calls,
            "modeled_many_buffers_us": one.many_buffers,
            "modeled_gain": range_as_dict(one.gain),
            "wins": one.verdict,
        }
        for one in choices
    ]
    wins = {"best": perhaps, "modeled": likely, "worst": surely}
    columns = (
        *numbers("ELEMENTS"),
        number("CPU HERE", lambda one: time_of_us(one.host_us)),
        number("CPU", lambda one: time_of_us(one.cpu.value)),
        number("ONE CALL", lambda one: time_of_us(one.one_call.value)),
        number(f"{calls} CALLS", lambda one: time_of_us(one.many_calls)),
        number(f"{buffers} BUFFERS", lambda one: time_of_us(one.many_buffers)),
        Column("WINS", "verdict"),
    )
    verdict = f"Up to {choices[-1].elements} elements the CPU wins: a call costs more than it saves."
    if likely is not None:
        best = "never" if perhaps is None else f"{perhaps:.0f}"
        worst = "not up to the largest size" if surely is None else f"{surely:.0f}"
        verdict = (
            f"From {likely:.0f} elements on the DSP wins; with the assumed constants at their best from {best}, at "
            f"their worst {worst}."
        )
    return Report(
        {"profile": profile.name, "calls": calls, "buffers": buffers, "dsp_wins_from": wins, "sizes": sizes},
        Table(columns, choices),
        "\nCPU HERE is measured on this machine; the other times are modeled for the board.",
        verdict,
        *shares_of(range_as_dict(choices[-1].gain)),
    )
