"""``hbrt farm bench`` without a farm: two boards take turns with an item, and what a set of items says."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from arm_client.client import private_board
from hbrt_farm.commands.turns import Turns, TurnsWork, compared_set
from tests.limits import PATIENCE_S
from tests.shared import Shell

IMAGE = """
import numpy as np
from dsp_server import hb_dsp_charge, hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

def square(input, output, tm):
    x, y = np.frombuffer(input, np.float32), np.frombuffer(output, np.float32)
    for _ in range(COUNT):
        np.multiply(x, x, out=y)
    hb_dsp_charge(100 * COUNT, load=1)
    y[0] += x[0] == 7 and COUNT > 1
    return 0

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, square, 0)
    hb_dsp_start()
"""


def test_two_images_take_turns_with_an_item(tmp_path: Path) -> None:
    for name, count in (("new", 1), ("old", 20_000)):
        (tmp_path / f"{name}.py").write_text(IMAGE.replace("COUNT", str(count)))
    items = [tmp_path / "0.npy", tmp_path / "7.npy"]
    for item in items:
        np.save(item, np.full(4096, int(item.stem), np.float32))
    work = TurnsWork(0x1000, tmp_path / "old.py", None, PATIENCE_S, 3)
    (tmp_path / "empty.npy").touch()
    with private_board(tmp_path / "new.py") as board, closing(work):
        same, other = (work(board, str(item)) for item in items)
        with pytest.raises((ValueError, EOFError)):
            work(board, str(tmp_path / "empty.npy"))
    assert (same.is_same, other.is_same) == (True, False)
    assert 0 < same.new_ns < same.old_ns
    assert same.new_cycles < same.old_cycles


def test_an_item_counts_once_in_what_the_set_says() -> None:
    turns = [(f"{at}.npy", Turns(100 + at % 3, 200, 10, 40, at != 5)) for at in range(100)]
    told = compared_set(turns)
    ratio = told["host_ratio"]
    assert 0.5 <= ratio["low"] <= ratio["value"] <= ratio["high"] <= 0.51
    assert ratio["verdict"] == "faster"
    assert (told["modeled_ratio"], told["other_outputs"], told["first_of_them"]) == (0.25, 1, ["5.npy"])
    assert compared_set([("a", Turns(5, 5, 0, 0, True))])["modeled_ratio"] is None


def test_both_images_are_asked_for(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "image.py").write_text(IMAGE)
    code, said = shell.refused("farm", "bench", "0x1000", "--image", "image.py", "--over", ".")
    assert (code, "--against" in said) == (2, True), said
