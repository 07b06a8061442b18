"""docs/pointcloud.md: its program runs, its numbers are the code's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from arm_client import nn
from arm_client.client import Board
from hbrt.nn_types import hbDSPPointCloudParam

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "pointcloud.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_program_runs(dsp_board: Board, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(program, "pointcloud.md", "exec"), {})  # noqa: S102 - the page's own program
    assert capsys.readouterr().out.startswith("(1, 5, 20, 40000) (1, 1, 40000, 4) ")


def test_the_table_of_the_structure() -> None:
    rows = re.findall(r"^\| (\d+) \| \w+ \| ((?:`\w+`(?:, )?)+) \|", PAGE, re.MULTILINE)
    listed = []
    for offset, names in rows:
        fields = re.findall(r"`(\w+)`", names)
        assert getattr(hbDSPPointCloudParam, fields[0]).offset == int(offset)
        listed += fields
    assert listed == [field[0] for field in hbDSPPointCloudParam._fields_]


def test_the_presets() -> None:
    rows = {cells[0]: cells[1:] for line in PAGE.splitlines() if len(cells := line.strip("| ").split(" | ")) == 3}
    for column, config in enumerate((nn.CENTERPOINT, nn.POINTPILLARS)):
        numbers = {
            name: [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", cells[column])] for name, cells in rows.items()
        }
        assert numbers["`point_cloud_range`, metres"] == list(config.point_cloud_range)
        assert numbers["`voxel_size`, metres"] == list(config.voxel_size)
        assert numbers["grid, from the two above"] == list(config.grid)
        assert numbers["`dims`"] == [config.dims]
        low, high = rows["`intensity_range`"][column].split(" ")[0].split("..")
        assert (float(low), float(high)) == config.intensity_range
        limits = [config.max_voxels, config.max_points, config.max_input_points]
        assert numbers["`max_voxels`, `max_points`, `max_input_points`"] == limits
        one, steps = numbers["`scale`"]
        assert one / steps == config.scale
        assert rows["`slot_major`"][column] == ("yes" if config.slot_major else "no")
