"""``hbrt estimate --self-check``: the vendor's published times of CenterPoint's pre-processing beside the model's.

A check of consistency: one profile, no factor of its own for any op. What was not published is assumed here and said in
docs/cycles.md: how many points a frame has, and what the CPU does with each.

Source: DSP sample package guide (J5 OE 1.1.77), 10.4.5.6, for the times of the CPU and of the two plans.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import click
import numpy as np

from arm_client.client import connect
from arm_client.commands.estimate.calls import board_of
from arm_client.commands.estimate.report import us
from arm_client.nn.pointcloud.config import CENTERPOINT, PillarConfig
from hbrt.cli.tables import Column, numbers, show_json, show_table
from hbrt.control.ask import ask
from hbrt.pointcloud_types import POINTCLOUD_ENCODE_PILLARS, POINTCLOUD_ENCODE_POINTS, POINTCLOUD_TRANSPOSE
from hbrt.profiles.estimate import Call, calls_of, parts_of
from hbrt.profiles.profile import Profile

CPU_AVERAGE_US, CPU_MOST_US = 119_374.0, 206_633.0
POINTS: Final = 300_000
"""Of a frame, the guide's most; those inside the range are fewer."""
KEPT: Final = round(POINTS * CPU_AVERAGE_US / CPU_MOST_US)
"""Points of the average frame inside the range: the CPU's time goes with them, and the slowest frame is full."""
GOAL, RATIO_GOAL, CALL_US = 0.25, 0.10, (500.0, 2000.0)


class Point(NamedTuple):
    """A published time and the model's, in microseconds."""

    what: str
    published_us: float
    modelled_us: float
    goal: float | None = GOAL

    @property
    def error(self) -> float:
        """How far the model is off, as a share of the published time."""
        return self.modelled_us / self.published_us - 1

    @property
    def is_met(self) -> bool:
        """Whether it is within the goal, when there is one."""
        return self.goal is None or abs(self.error) <= self.goal


class Cpu(NamedTuple):
    """What a step does on one core of the CPU."""

    accesses: float = 0  # that miss the near caches
    operations: float = 0
    divisions: float = 0
    streamed_bytes: float = 0  # in a row: read, written or cleared

    def us(self, profile: Profile) -> float:
        """Modelled time."""
        number = profile.number
        return (
            self.accesses * number("cpu.random_ns")
            + self.operations * number("cpu.operation_ns")
            + self.divisions * number("cpu.divide_ns")
        ) / 1000 + self.streamed_bytes / number("cpu.bytes_per_us")


def cpu_steps(config: PillarConfig, points: int, kept: int) -> dict[str, Cpu]:
    """What each implementation does on the CPU.

    Of a point: two accesses far apart (its cell in the table of pillars, its place in the features). Where the CPU
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


def dsp_calls(config: PillarConfig, points: int, kept: int, profile: Profile) -> dict[int, Call]:
    """What the packaged op charges, by its steps: all points, the pillars that the kept ones fill, all places."""
    pillars = -(-kept // config.max_points)
    steps = {
        POINTCLOUD_ENCODE_POINTS: {"count": points},
        POINTCLOUD_ENCODE_PILLARS: {"voxel_count": pillars},
        POINTCLOUD_TRANSPOSE: {"voxel_count": config.max_voxels},
    }
    found = {}
    with board_of(profile, None) as paths, connect(str(paths.path)) as board:
        numbers_of = {
            POINTCLOUD_ENCODE_POINTS: points * config.dims * 4,
            POINTCLOUD_TRANSPOSE: config.places * config.dims,
        }
        for step, fields in steps.items():
            source = board.empty(numbers_of.get(step, config.places * config.dims * 4), np.uint8)
            target = board.empty(max(points * (config.dims - 2) * 4, config.places * config.dims), np.uint8)
            param = config.param(step, input=source.phy_addr, **fields)
            block = board.from_array(np.frombuffer(bytes(param), np.uint8))
            board.call(config.command, block, target)
            found[step] = calls_of(ask(paths, "tasks", last=1))[0]
    return found


def points_of(profile: Profile) -> list[Point]:
    """The published figures and the model's."""
    config = CENTERPOINT
    calls, cpu = dsp_calls(config, POINTS, KEPT, profile), cpu_steps(config, POINTS, KEPT)

    def dsp_us(*steps: int) -> float:
        return sum(parts_of(_without_flush(calls[step]), profile, profile, is_relayed=False).total for step in steps)

    plan_1 = cpu["plan 1"].us(profile) + dsp_us(POINTCLOUD_ENCODE_PILLARS, POINTCLOUD_TRANSPOSE)
    plan_2 = cpu["plan 2"].us(profile) + dsp_us(POINTCLOUD_ENCODE_POINTS, POINTCLOUD_TRANSPOSE)
    call_us = profile.number("rpc.call_us")
    return [
        Point("CenterPoint, plan 1, average", 23_251, plan_1),
        Point("CenterPoint, plan 2, average", 16_126, plan_2),
        Point("plan 1 against plan 2, ratio", 23.251 / 16.126, plan_1 / plan_2, RATIO_GOAL),
        Point("CenterPoint, CPU alone, average", CPU_AVERAGE_US, cpu["CPU"].us(profile), None),
        Point("a FastRPC call, 0.5 to 2 ms", min(max(call_us, CALL_US[0]), CALL_US[1]), call_us, 0),
    ]


def _without_flush(call: Call) -> Call:
    """A call whose data stay where they are: the CPU's own reading and clearing of them is counted with its step."""
    return call._replace(block_bytes=0)


def self_check(profile: Profile, *, as_json: bool) -> None:
    """Show the published figures beside the model's."""
    points = points_of(profile)
    if as_json:
        show_json([{**one._asdict(), "error": one.error, "is_met": one.is_met} for one in points])
        return
    columns = (Column("PUBLISHED"), *numbers("FIGURE", "MODEL", "OFF", "GOAL"), Column(""))
    show_table(columns, [_row(one) for one in points])
    click.echo(
        f"\nA check of consistency, with profile {profile.name}: how many points the published frames had is not "
        f"public, and is taken as {KEPT} of {POINTS}. docs/cycles.md says what else is assumed."
    )


def _row(one: Point) -> tuple[Any, ...]:
    is_ratio = one.goal == RATIO_GOAL
    figure, model = (f"{one:.2f}" if is_ratio else us(one) for one in (one.published_us, one.modelled_us))
    goal = "" if one.goal is None else f"{one.goal:.0%}" if one.goal else "inside"
    return (
        one.what,
        figure,
        model,
        f"{one.error:+.0%}",
        goal,
        "" if one.goal is None else "met" if one.is_met else "missed",
    )
