"""``hbrt estimate --self-check``: the vendor's published times of CenterPoint's pre-processing next to the model's.

A check of consistency: one profile, no separate factor for any op. Unpublished numbers are assumed here and stated in
docs/cycles.md: the points per frame, and the CPU's work for each.

Source: DSP sample package guide (J5 OE 1.1.77), 10.4.5.6, for the times of the CPU and of the two plans.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from arm_client.client import connect
from arm_client.commands.estimate import accuracy
from arm_client.commands.estimate.calls import board_of
from arm_client.nn.pointcloud.config import CENTERPOINT, PillarConfig
from hbrt.cli.exits import Exit
from hbrt.cli.report import Report
from hbrt.cli.tables import Column, Table, in_unit, numbers, unit_of
from hbrt.control.ask import ask
from hbrt.nn_types import POINTCLOUD_ENCODE_PILLARS, POINTCLOUD_ENCODE_POINTS, POINTCLOUD_TRANSPOSE
from hbrt.profiles.estimate import Call, calls_of, parts_of
from hbrt.profiles.profile import Profile


class Frame(NamedTuple):
    """The published times of a frame, in microseconds: on the CPU alone, and with the two plans that use the DSP."""

    what: str
    cpu_us: float
    plan_1_us: float
    plan_2_us: float

    @property
    def kept(self) -> int:
        """Points inside the range, assumed: the CPU's time is proportional to them, and the slowest frame is full."""
        return round(POINTS * self.cpu_us / SLOWEST.cpu_us)


AVERAGE: Final = Frame("average", 119_374, 23_251, 16_126)
SLOWEST: Final = Frame("slowest", 206_633, 31_437, 17_841)
FASTEST: Final = Frame("fastest", 57_109, 18_223, 15_042)
POINTS: Final = 300_000
"""Of a frame, the guide's most; those inside the range are fewer."""
GOAL, RATIO_GOAL, CALL_US = 0.20, 0.10, (500.0, 2000.0)


class Point(NamedTuple):
    """A published time and the model's, in microseconds; ``published_most_us`` is the end of a published interval."""

    what: str
    published_us: float
    modeled_us: float
    goal: float | None = GOAL
    published_most_us: float | None = None

    @property
    def error(self) -> float | None:
        """The model's error, as a share of the published time; None for an interval."""
        return None if self.published_most_us else self.modeled_us / self.published_us - 1

    @property
    def is_met(self) -> bool:
        """Whether it is within the goal, when there is one, or inside the published interval."""
        if self.published_most_us:
            return self.published_us <= self.modeled_us <= self.published_most_us
        return self.goal is None or abs(self.modeled_us / self.published_us - 1) <= self.goal


class Cpu(NamedTuple):
    """A step's work on one core of the CPU."""

    accesses: float = 0  # that miss the near caches
    operations: float = 0
    divisions: float = 0
    streamed_bytes: float = 0  # in a row: read, written or cleared

    def us(self, profile: Profile) -> float:
        """Modeled time."""
        number = profile.number
        return (
            self.accesses * number("cpu.random_ns")
            + self.operations * number("cpu.operation_ns")
            + self.divisions * number("cpu.divide_ns")
        ) / 1000 + self.streamed_bytes / number("cpu.bytes_per_us")


def cpu_steps(config: PillarConfig, points: int, kept: int) -> dict[str, Cpu]:
    """Each implementation's work on the CPU.

    Per point: two distant accesses (its cell in the table of pillars, its slot in the features). Where the CPU
    finds the cell: six comparisons and two divisions; where it encodes: two divisions and four operations a number.
    Where it transposes: an access a number.
    """
    table = 4 * config.grid[0] * config.grid[1]
    places, dims = config.places, config.dims
    find = Cpu(2 * kept, 6 * points + 12 * kept, 2 * kept, 4 * dims * points + table)
    encode_and_transpose = dims * kept
    return {
        "plan 2": Cpu(2 * kept, 6 * kept, 0, 4 * (dims - 2) * points + table + dims * places),
        "plan 1": find._replace(streamed_bytes=find.streamed_bytes + 4 * dims * places),
        "CPU": Cpu(
            find.accesses + encode_and_transpose,
            find.operations + 4 * encode_and_transpose,
            find.divisions + 2 * encode_and_transpose,
            find.streamed_bytes + 4 * dims * places + dims * places,
        ),
    }


def dsp_calls(config: PillarConfig, points: int, kept: Iterable[int], profile: Profile) -> dict[tuple[int, int], Call]:
    """The packaged op's charges by step: all points, the pillars filled by the kept points, all slots.

    Args:
        config: Of the op.
        points: Of a frame.
        kept: For each frame, its points inside the range.
        profile: Of the board.

    Returns:
        The calls by their step and, if the step depends on it, the frame's points inside the range, otherwise 0.
    """
    steps: list[tuple[int, int, dict[str, int]]] = [
        (POINTCLOUD_ENCODE_POINTS, 0, {"count": points}),
        (POINTCLOUD_TRANSPOSE, 0, {"voxel_count": config.max_voxels}),
    ]
    steps += [(POINTCLOUD_ENCODE_PILLARS, one, {"voxel_count": -(-one // config.max_points)}) for one in kept]
    found = {}
    with board_of(profile, "") as paths, connect(str(paths.path)) as board:
        numbers_of = {
            POINTCLOUD_ENCODE_POINTS: points * config.dims * 4,
            POINTCLOUD_TRANSPOSE: config.places * config.dims,
        }
        for step, of, fields in steps:
            source = board.empty(numbers_of.get(step, config.places * config.dims * 4), np.uint8)
            target = board.empty(max(points * (config.dims - 2) * 4, config.places * config.dims), np.uint8)
            param = config.param(step, input=source.phy_addr, **fields)
            block = board.from_array(np.frombuffer(bytes(param), np.uint8))
            board.call(config.command, block, target)
            found[step, of] = calls_of(ask(paths, "tasks", last=1))[0]
    return found


def points_of(profile: Profile) -> list[Point]:
    """The published figures and the model's."""
    frames = (AVERAGE, SLOWEST, FASTEST)
    calls = dsp_calls(CENTERPOINT, POINTS, [one.kept for one in frames], profile)

    def dsp_us(step: int, kept: int = 0) -> float:
        return parts_of(_without_flush(calls[step, kept]), profile, profile, is_relayed=False).total

    found: list[Point] = []
    for frame in frames:
        cpu = cpu_steps(CENTERPOINT, POINTS, frame.kept)
        transpose_us = dsp_us(POINTCLOUD_TRANSPOSE)
        plan_1_us = cpu["plan 1"].us(profile) + dsp_us(POINTCLOUD_ENCODE_PILLARS, frame.kept) + transpose_us
        plan_2_us = cpu["plan 2"].us(profile) + dsp_us(POINTCLOUD_ENCODE_POINTS) + transpose_us
        ratio = Point("plan 1 against plan 2, ratio", frame.plan_1_us / frame.plan_2_us, plan_1_us / plan_2_us)
        found += [
            Point(f"CenterPoint, plan 1, {frame.what}", frame.plan_1_us, plan_1_us),
            Point(f"CenterPoint, plan 2, {frame.what}", frame.plan_2_us, plan_2_us),
            *([ratio._replace(goal=RATIO_GOAL)] if frame is AVERAGE else []),
            Point(f"CenterPoint, CPU alone, {frame.what}", frame.cpu_us, cpu["CPU"].us(profile), None),
        ]
    least_us, most_us = CALL_US
    return [*found, Point("a FastRPC call", least_us, profile.number("rpc.call_us"), 0, most_us)]


def _without_flush(call: Call) -> Call:
    """A call whose data stays in place: the CPU's reading and clearing of it is counted with its step."""
    return call._replace(block_bytes=0)


def self_check(profile: Profile, plot: Path | None) -> Report:
    """The published figures next to the model's; the exit code is 1 if one is outside the stated range.

    Args:
        profile: Of the board with the DSP.
        plot: File for a plot of the accelerators' rows, or None.

    Raises:
        ImportError: a plot needs matplotlib.
    """
    points = points_of(profile)
    held_out = accuracy.held_out()
    if plot is not None:
        accuracy.write_plot(plot)
    goals = [*accuracy.goals(held_out), _of_dsp(points), *accuracy.of_speed()]
    are_met = all(one.is_met for one in points) and all(one.is_met for one in goals)
    dsp = [{**one._asdict(), "error": one.error, "is_met": one.is_met} for one in points]
    times = [time for one in points if one.goal != RATIO_GOAL for time in (one.published_us, one.modeled_us)]
    unit = unit_of([1000 * time for time in times])
    columns = (Column("PUBLISHED"), *numbers("FIGURE", "MODEL", "OFF", "GOAL"), Column(""))
    return Report(
        {"dsp": dsp, "accelerators": accuracy.document(goals), "are_met": are_met},
        Table(columns, [_row(one, unit) for one in points]),
        f"\nA check of consistency, with profile {profile.name}: how many points the published frames had is not "
        f"public, and is taken as {' and '.join(str(one.kept) for one in (AVERAGE, SLOWEST, FASTEST))} of {POINTS}. "
        "docs/cycles.md says what else is assumed.\n",
        *accuracy.parts_shown(goals),
        *([f"Wrote {plot}."] if plot else []),
        code=Exit.GOOD if are_met else Exit.FAILED,
    )


def _of_dsp(points: list[Point]) -> accuracy.Goal:
    """The goal for the DSP's published times: the one with the largest error."""
    worst = max(abs(one.error) for one in points if one.error is not None and one.goal is not None)
    return accuracy.Goal("published times of the DSP, the worst", f"{GOAL:.0%} at most", f"{worst:.1%}", worst <= GOAL)


def _row(one: Point, unit: str) -> tuple[Any, ...]:
    def text(figure: float) -> str:
        return f"{figure:.2f}" if one.goal == RATIO_GOAL else in_unit(figure * 1000, unit)

    figure = text(one.published_us)
    if one.published_most_us:
        figure += f" to {text(one.published_most_us)}"
    goal = "" if one.goal is None else "inside" if one.published_most_us else f"{one.goal:.0%}"
    off = "" if one.error is None else f"{one.error:+.0%}"
    return one.what, figure, text(one.modeled_us), off, goal, "" if not goal else "met" if one.is_met else "missed"
