"""Point clouds into pillars: the board's two plans compared with the CPU, numpy, numba and spconv, on one sweep.

    python -m benchmarks.pointcloud [--model centerpoint|pointpillars] [--rounds N] [--json FILE] [--markdown]

All take turns, round by round, in an order that moves on, each on a sweep that already lies where it reads it. Three of
them stop earlier than the others: a public voxelizer fills pillars with float32 points and leaves encoding, quantizing
and transposing, which the rest of the table includes, to the model. Each of the three is also measured with those steps
in numpy behind it. Machine code that numba makes is loaded before the first round. For one CPU, run it under
``taskset -c 0``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks._measure import Rounds, machine, percentile, private_directory, raise_on_sigterm, table
from benchmarks._peers.board import hbrt
from benchmarks._report import Goal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from arm_client.nn import PillarConfig

    Points = npt.NDArray[np.float32]
    Voxels = tuple[npt.NDArray[np.float32], npt.NDArray[np.int32], npt.NDArray[np.int32]]
    """(pillars, max_points, dims) points, (pillars, 3) z y x, (pillars,) number of points."""

POINTS = 300_000
CALLS_A_ROUND = {"slow": 1, "fast": 15}
PLAN_2, PLAN_2_DDR, NUMPY = "board, plan 2", "board, plan 2, straight from DDR", "numpy, all steps"
PUBLIC = ("numba loop, pillars only", "spconv CPU, pillars only")
NUMPY_TIMES, PEER_TIMES = 5.0, 1.0


def numpy_voxels(points: Points, config: PillarConfig) -> Voxels:
    """Fill pillars the way one writes it in numpy: sort by cell, take the first few of each."""
    import numpy as np

    low = np.array(config.point_cloud_range[:3], np.float32)
    size = np.array([*config.voxel_size, config.point_cloud_range[5] - config.point_cloud_range[2]], np.float32)
    cells = np.floor((points[:, :3] - low) / size).astype(np.int32)
    inside = ((cells >= 0) & (cells < (*config.grid, 1))).all(axis=1)
    points, cells = points[inside], cells[inside]
    _, first, pillar = np.unique(cells[:, 1] * config.grid[0] + cells[:, 0], return_index=True, return_inverse=True)
    appearance = np.empty(len(first), np.int64)
    appearance[np.argsort(first)] = np.arange(len(first))
    pillar = appearance[pillar]
    count = min(len(first), config.max_voxels)
    order = np.argsort(pillar, kind="stable")
    ordered = pillar[order]
    slot = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    keep = (slot < config.max_points) & (ordered < count)
    voxels = np.zeros((count, config.max_points, config.dims), np.float32)
    voxels[ordered[keep], slot[keep]] = points[order][keep]
    coordinates = cells[np.sort(first)[:count]][:, ::-1]
    return voxels, coordinates, np.minimum(np.bincount(ordered, minlength=count)[:count], config.max_points)


def finish(voxels: Voxels, config: PillarConfig) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    """Encode, quantize and transpose pillars in numpy, and fill up to the model's limits."""
    import numpy as np

    from arm_client.nn.pointcloud.reference import encode_and_quantize

    points, cells, counts = voxels
    taken = np.arange(config.max_points) < counts[:, np.newaxis]
    numbers = np.zeros((config.max_voxels, config.max_points, config.dims), np.int8)
    numbers[: len(points)][taken] = encode_and_quantize(points[taken], config)
    axes = (2, 1, 0) if config.slot_major else (2, 0, 1)
    features = np.ascontiguousarray(numbers.transpose(axes)).reshape(config.feature_shape)
    coordinates = np.full((config.max_voxels, 4), -1, np.int32)
    coordinates[: len(points), 0] = 0
    coordinates[: len(points), 1:] = cells
    return features, coordinates


def numba_voxelizer(config: PillarConfig) -> Callable[[Points], Voxels]:
    """Return the loop that public detection code bases have: look up the cell's pillar, append the point."""
    import numpy as np

    numba: Any = import_module("numba")

    @numba.njit(cache=True)  # type: ignore[untyped-decorator, unused-ignore]
    def fill(
        points: Points,
        size: Points,
        low: Points,
        grid: npt.NDArray[np.int32],
        counts: npt.NDArray[np.int32],
        pillar_of: npt.NDArray[np.int32],
        voxels: Points,
        coordinates: npt.NDArray[np.int32],
    ) -> int:
        cell = np.zeros(3, np.int32)
        found = 0
        for i in range(points.shape[0]):
            inside = True
            for axis in range(3):
                at = np.floor((points[i, axis] - low[axis]) / size[axis])
                if at < 0 or at >= grid[axis]:
                    inside = False
                    break
                cell[2 - axis] = at
            if not inside:
                continue
            pillar = pillar_of[cell[0], cell[1], cell[2]]
            if pillar == -1:
                if found >= coordinates.shape[0]:
                    continue
                pillar = found
                found += 1
                pillar_of[cell[0], cell[1], cell[2]] = pillar
                coordinates[pillar] = cell
            slot = counts[pillar]
            if slot < voxels.shape[1]:
                voxels[pillar, slot] = points[i]
                counts[pillar] = slot + 1
        return found

    low = np.array(config.point_cloud_range[:3], np.float32)
    size = np.array([*config.voxel_size, config.point_cloud_range[5] - config.point_cloud_range[2]], np.float32)
    grid = np.array([*config.grid, 1], np.int32)

    def run(points: Points) -> Voxels:
        counts = np.zeros(config.max_voxels, np.int32)
        pillar_of = np.full(tuple(grid[::-1]), -1, np.int32)
        voxels = np.zeros((config.max_voxels, config.max_points, config.dims), np.float32)
        coordinates = np.zeros((config.max_voxels, 3), np.int32)
        found = fill(points, size, low, grid, counts, pillar_of, voxels, coordinates)
        return voxels[:found], coordinates[:found], counts[:found]

    return run


def spconv_voxelizer(config: PillarConfig) -> Callable[[Points], Voxels]:
    """Return spconv's voxelizer for the CPU; its points are a tensor over the same memory."""
    spconv: Any = import_module("spconv.utils")
    tensors: Any = import_module("cumm.tensorview")
    height = config.point_cloud_range[5] - config.point_cloud_range[2]
    generator = spconv.Point2VoxelCPU3d(
        vsize_xyz=[*config.voxel_size, height],
        coors_range_xyz=list(config.point_cloud_range),
        num_point_features=config.dims,
        max_num_voxels=config.max_voxels,
        max_num_points_per_voxel=config.max_points,
    )

    def run(points: Points) -> Voxels:
        voxels, coordinates, counts = generator.point_to_voxel(tensors.from_numpy(points))
        return voxels.numpy_view(), coordinates.numpy_view(), counts.numpy_view()

    return run


def entrants(points: Points, config: PillarConfig, board: Any) -> tuple[dict[str, Callable[[], object]], list[str]]:
    """Return what takes turns, by name, and why something else does not."""
    import numpy as np

    from arm_client import nn
    from arm_client.nn.pointcloud.reference import preprocess

    pipeline = nn.PillarPipeline(board, config)
    on_board = pipeline.points[: len(points)]
    on_board[:] = points
    expected = preprocess(points, config)
    found: dict[str, Callable[[], object]] = {
        PLAN_2: lambda: pipeline.process(on_board),
        PLAN_2_DDR: lambda: pipeline.process(on_board, from_ddr=True),
        "board, plan 2, sweep copied to the board": lambda: pipeline.process(points),
        "board, plan 1": lambda: pipeline.process(on_board, plan=1),
        "our CPU reference": lambda: preprocess(points, config),
        "numpy, pillars only": lambda: numpy_voxels(points, config),
        NUMPY: lambda: finish(numpy_voxels(points, config), config),
    }
    missing = []
    for name, make in (("numba loop", numba_voxelizer), ("spconv CPU", spconv_voxelizer)):
        try:
            voxelize = make(config)
        except ImportError as error:
            missing.append(f"{name}: not installed ({error}).")
            continue
        found[f"{name}, pillars only"] = lambda voxelize=voxelize: voxelize(points)  # type: ignore[misc]
        found[f"{name}, then numpy"] = lambda voxelize=voxelize: finish(voxelize(points), config)  # type: ignore[misc]
    for name, run in found.items():  # also loads what is compiled, and touches every page
        _compare(name, run(), expected, config, np)
    return found, missing


def _compare(name: str, got: Any, expected: Any, config: PillarConfig, np: Any) -> None:
    """Stop when a result differs, as far as it can be compared: public code drops points once all pillars are taken."""
    is_short = "pillars only" in name
    coordinates = got[1] if is_short else np.asarray(got[1]).reshape(-1, 4)[: expected.voxel_count, 1:]
    same = np.array_equal(coordinates, expected.coordinates[0, 0, : expected.voxel_count, 1:])
    if not is_short:
        features, wanted = (np.asarray(part[0])[0] for part in (got, expected))
        if "board" not in name and "our" not in name and expected.voxel_count == config.max_voxels:
            features, wanted = (part[..., :-1] if config.slot_major else part[:, :-1] for part in (features, wanted))
        same = same and np.array_equal(features, wanted)
    if not same:
        raise ValueError(f"The result of '{name}' differs from the CPU reference's.")


def take_turns(actions: dict[str, Callable[[], object]], rounds: int) -> dict[str, Rounds]:
    """Return the median time of each in each round, in milliseconds."""
    found: dict[str, list[float]] = {name: [] for name in actions}
    order = deque(actions.items())
    for _ in range(rounds):
        order.rotate(1)  # what comes first finds caches that what comes last has filled, and CPUs asleep
        for name, action in order:
            is_slow = bool(found[name]) and found[name][0] > 20
            times = []
            for _ in range(CALLS_A_ROUND["slow" if is_slow else "fast"]):
                before_ns = time.perf_counter_ns()
                action()
                times.append(time.perf_counter_ns() - before_ns)
            found[name].append(percentile(sorted(times), 0.5) / 1e6)
    return {name: Rounds(tuple(values)) for name, values in found.items()}


def judge(times: dict[str, Rounds]) -> list[Goal]:
    """Compare plan 2, remote calls included, with the fastest public voxelizer and with numpy, round by round."""
    goals = []
    public = [name for name in PUBLIC if name in times]
    if public:
        peer = min(public, key=lambda name: times[name].median)
        value = times[peer].ratio_to(times[PLAN_2]).median
        goals.append(Goal(f"{PLAN_2}, at least as fast as {peer}", value, PEER_TIMES, value >= PEER_TIMES))
    value = times[NUMPY].ratio_to(times[PLAN_2]).median
    goals.append(Goal(f"{PLAN_2}, at least {NUMPY_TIMES:g}x {NUMPY}", value, NUMPY_TIMES, value >= NUMPY_TIMES))
    return goals


@click.command()
@click.option("--model", type=click.Choice(["centerpoint", "pointpillars"]), default="centerpoint", show_default=True)
@click.option("--rounds", default=15, show_default=True, help="How often each takes its turn.")
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write every round here.")
def main(*, model: str, rounds: int, markdown: bool, json_file: Path | None) -> None:
    """Measure how long a sweep of 300 000 points takes into pillars."""
    raise_on_sigterm()
    from arm_client import connect, nn

    config = nn.CENTERPOINT if model == "centerpoint" else nn.POINTPILLARS
    points = nn.lidar_sweep(0, dims=config.dims, rings=40, max_points=POINTS)
    with private_directory() as directory:
        os.environ |= {"HBRT_HOME": str(directory), "HBRT_BOARD": "bench", "HBRT_AUTOSTART": "0"}
        hbrt("start", "--board", "bench", "--cores", "2")
        try:
            with connect() as board:
                actions, missing = entrants(points, config, board)
                times = take_turns(actions, rounds)
                actions.clear()
        finally:
            hbrt("stop", "--board", "bench")
    verdict = judge(times)
    unit = times[PLAN_2]
    rows = [
        [name, f"{found.median:.2f}", f"{min(found.values):.2f}", f"{found.ratio_to(unit).median:.2f}x"]
        for name, found in times.items()
    ]
    head = [f"{model}, {len(points)} points", "ms", "best ms", "/ plan 2"]
    about = machine()
    print(f"{about['cpu']}, {about['cpus']} CPUs, load {about['load_1min']}, medians of {rounds} rounds.")
    print(table(head, rows, markdown=markdown), *missing, "", *verdict, sep="\n")
    if json_file:
        report = {
            "machine": about,
            "ms": {name: found.values for name, found in times.items()},
            "goals": [asdict(goal) for goal in verdict],
        }
        json_file.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
