"""``hbrt op bench``: sizes, a roofline, and two images with the confidence of their difference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from arm_client.commands.op.bench import dot_of, ratio_of, roofs
from arm_client.commands.op.sweep import Sample, to_sizes
from hbrt.profiles.estimate import Call
from hbrt.profiles.profile import find
from hbrt.profiles.work import Work
from tests.shared import Shell

J5 = find("j5")
IMAGE = """
import time
from dsp_server import hb_dsp_charge, hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

def op(input, output, tm):
    time.sleep({seconds})
    hb_dsp_charge(len(output) // 4, 32, load=1, mul={operations}, store=1)
    return 0

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, op, 0)
    hb_dsp_start()
"""


def test_sizes_are_a_list_or_double() -> None:
    assert to_sizes("1K,16,1K") == [16, 1024]
    assert to_sizes("1K-5K") == [1024, 2048, 4096]
    for bad in ("", "1K-", "a,b", "3-2-1"):
        with pytest.raises(ValueError, match="Invalid sizes"):
            to_sizes(bad)


def test_a_difference_is_told_only_where_the_measurements_show_it() -> None:
    random = np.random.default_rng(1)
    slow = random.normal(2000, 100, 40).astype(int).tolist()
    fast = random.normal(1000, 100, 40).astype(int).tolist()
    assert ratio_of(slow, fast).verdict == "slower"
    assert ratio_of(fast, slow).verdict == "faster"
    assert ratio_of(fast, random.permutation(fast).tolist()).verdict == "no difference"
    drift = np.linspace(1, 3, 40)  # a machine that becomes slower while both are measured
    ratio = ratio_of((drift * random.normal(1010, 5, 40)).tolist(), (drift * random.normal(1000, 5, 40)).tolist())
    assert (ratio.verdict, round(ratio.value, 2)) == ("slower", 1.01)


@pytest.mark.parametrize(
    "work", [Work(bundles=100), Work(bundles=10_000, dma_bytes=6400, dma_cycles=464, wait_cycles=464)]
)
def test_no_op_stands_above_the_roofs(work: Work) -> None:
    call = Call(1, "op", round(1.5 * work.bundles) + work.wait_cycles, work, 6400, 2)
    dot = dot_of(Sample(1600, [1], call), J5)
    bytes_per_us, most = roofs(J5)["DDR by iDMA"]
    assert dot.performance <= most
    assert not work.dma_bytes or dot.performance <= dot.intensity * bytes_per_us


def test_an_op_is_measured_modeled_plotted_and_compared(shell: Shell, tmp_path: Path) -> None:
    new, old, plot = tmp_path / "new.py", tmp_path / "old.py", tmp_path / "roofline.png"
    new.write_text(IMAGE.format(seconds=0, operations=1))
    old.write_text(IMAGE.format(seconds=0.002, operations=4))
    words = ("op", "bench", "0x1000", "--sizes", "1K,4K", "--repeats", "5", "--image", new, "--against", old)
    told = shell.json(*words, "--plot", plot)
    for row in told["sizes"]:
        assert row["modeled_cycles"] == row["elements"] // 16 * 1.5
        assert row["modeled_ratio"] == pytest.approx(0.25)
        ratio = row["host_ratio"]  # a busy machine may hide the difference
        assert ratio["verdict"] in {"faster", "no difference"}
        assert ratio["low"] <= ratio["value"] <= ratio["high"]
        assert len(row["host_runs_ns"]) == 5
    assert plot.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    said = shell.good(*words[:-4], "--image", new)
    assert said.splitlines()[0] == f"Runs on a private board: profile j5, DSP image {new}."
    assert said.splitlines()[1].split() == ["ELEMENTS", "HOST", "MODELED", "OF", "IT"]
    code, said = shell.refused("op", "bench", "0x1000", "--image", new, "--sizes", "1K", "--dtype", "text")
    assert (code, "Unknown type" in said) == (2, True)
    code, said = shell.refused("op", "bench", "0x1000", "--image", new, "--board", "nowhere")
    assert (code, "Use either --board or --image" in said) == (2, True)
