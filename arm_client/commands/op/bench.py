"""``hbrt op bench``: an op over sizes, measured here and modeled for the board; two images against each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from arm_client.commands.op.sweep import Sample
from hbrt.profiles.estimate import op_cost
from hbrt.profiles.profile import Profile

DRAWS: Final = 2000
"""Of a bootstrap."""
CONFIDENCE: Final = 0.95


class Ratio(NamedTuple):
    """How many times longer one takes than another, with the ends of its confidence interval."""

    value: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Which is faster, as far as the measurements show."""
        if self.low > 1:
            return "slower"
        return "faster" if self.high < 1 else "no difference"


class Dot(NamedTuple):
    """An op at one size in a roofline plot: VLIW instructions per byte moved, and per modeled µs."""

    elements: int
    intensity: float
    performance: float
    is_estimated: bool


def ratio_of(new_ns: Sequence[int], old_ns: Sequence[int]) -> Ratio:
    """The median ratio of pairs, with a bootstrap's interval: the pairs are drawn anew, with repetition, many times.

    Args:
        new_ns: Times of the first.
        old_ns: Times of the second, each measured next to the same index in ``new_ns``.
    """
    pairs = np.asarray(new_ns, float) / np.maximum(np.asarray(old_ns, float), 1)
    generator = np.random.default_rng(0)
    draws = [np.median(generator.choice(pairs, len(pairs))) for _ in range(DRAWS)]  # one at a time: there may be many
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Ratio(float(np.median(pairs)), float(low), float(high))


def dot_of(sample: Sample, profile: Profile) -> Dot:
    """An op's position in a roofline plot."""
    cost, work = op_cost(sample.call, profile, profile), sample.call.work
    instructions = cost.vector / profile.number("vector.schedule")
    moved = work.dma_bytes + work.ddr_loads * profile.whole("ddr.load_bytes")
    if not moved:
        moved = sample.call.block_bytes + work.mapped_bytes
    time_us = profile.us(cost.cycles)
    return Dot(sample.elements, instructions / max(moved, 1), instructions / max(time_us, 1e-9), cost.is_estimated)


def roofs(profile: Profile) -> dict[str, tuple[float, float]]:
    """For each limit, its bytes per µs; and the maximum instructions per µs.

    One vector instruction per cycle; TCM by an instruction's loads and stores; DDR by iDMA, and by blocking loads.
    """
    mhz, number = profile.number("cores.dsp.clock_mhz"), profile.number
    return {
        "TCM": (mhz * profile.vector_bytes * number("vector.memory_slots"), mhz),
        "DDR by iDMA": (mhz * number("idma.bytes_per_cycle"), mhz),
        "DDR by loads": (mhz * number("ddr.load_bytes") / max(number("ddr.stall_cycles"), 1), mhz),
    }


def row_of(sample: Sample, profile: Profile) -> dict[str, Any]:
    """An op at one size, as data: measured times have ``host`` in their names, modeled ones ``modeled``."""
    cost = op_cost(sample.call, profile, profile)
    dot = dot_of(sample, profile)
    return {
        "elements": sample.elements,
        "host_median_us": float(np.median(sample.host_ns)) / 1000,
        "host_runs_ns": sample.host_ns,
        "modeled_us": profile.us(cost.cycles),
        "modeled_cycles": cost.cycles,
        **{f"modeled_{name}_cycles": count for name, count in cost._asdict().items() if name in _PARTS},
        "modeled_is_estimated": cost.is_estimated,
        "intensity": dot.intensity,
        "modeled_instructions_per_us": dot.performance,
    }


_PARTS: Final = ("vector", "scalar", "ddr", "wait", "dma", "overlap")


def plot(dots: Sequence[Dot], profile: Profile, title: str, file: Path) -> None:
    """Write a roofline plot as PNG.

    Raises:
        ImportError: matplotlib is not installed. OSError: the file cannot be written.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.5), layout="constrained")
    axes = figure.subplots()
    marked = [dot for dot in dots if dot.intensity > 0]
    spans = [dot.intensity for dot in marked] or [0.1]
    x = np.geomspace(min(spans) / 30, max(spans) * 30, 200)
    for name, (bytes_per_us, most) in roofs(profile).items():
        axes.loglog(x, np.minimum(x * bytes_per_us, most), label=f"{name}: {bytes_per_us / 1000:.3g} GB/s")
    axes.loglog([dot.intensity for dot in marked], [dot.performance for dot in marked], "o:", color="black", ms=4)
    # The first below and the last above its point: at a roof both are at the same place.
    for dot, lift in zip(dict.fromkeys([*marked[:1], *marked[-1:]]), (-12, 7), strict=False):
        note = f"{'~' if dot.is_estimated else ''}{dot.elements}"
        axes.annotate(note, (dot.intensity, dot.performance), (5, lift), textcoords="offset points", fontsize=8)
    axes.set(
        title=f"{title}\nmodeled for the board, profile {profile.name}; numbers are elements",
        xlabel="vector instructions for each byte moved",
        ylabel="vector instructions per µs, one core",
    )
    axes.grid(visible=True, which="both", alpha=0.2)
    axes.legend(loc="lower right")
    figure.savefig(file, format="png", dpi=110)
