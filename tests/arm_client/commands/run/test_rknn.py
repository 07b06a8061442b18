"""``hbrt run rknn``: the samples of RKNN for real."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.shared import Shell


@pytest.mark.long
def test_all_samples_run(shell: Shell) -> None:
    document = shell.json("run", "rknn")
    assert document["passed"]
    assert document["mode"] == "direct"
    assert not [one for one in document["results"] if "in this process" in one["output"]]  # they run on NPU cores
    by_name = {one["sample"]: one for one in document["results"]}
    assert {"classification", "custom_op", "custom_op_c", "dynamic_shape", "multi_batch", "zero_copy"} <= set(by_name)
    assert by_name["classification"]["accuracy"] > 0.97
    assert by_name["multi_batch"]["report"] == ["6 images per run: 356 of 360 right (98.89%)"]
    assert by_name["zero_copy"]["report"] == ["in board memory: 356 of 360 right (98.89%)"]
