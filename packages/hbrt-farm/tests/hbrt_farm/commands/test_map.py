"""``hbrt farm map``: a run whose driver, board and process are killed has each item once; bad input is a sentence."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest

from tests.limits import PATIENCE_S
from tests.shared import Shell

IMAGE = """
import time
import numpy as np
from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

def square(input, output, tm):
    x, y = np.frombuffer(input, np.float32), np.frombuffer(output, np.float32)
    np.multiply(x, x, out=y)
    time.sleep(0.05)
    y[0] += x[0] == 11
    return int(x[0] == 7)

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, square, 0)
    hb_dsp_start()
"""
COUNT = 120


def killed(title: str, home: str) -> bool:
    """Kill one process of the farm by its title; whether there was one."""
    for process in psutil.process_iter(["cmdline", "environ"]):
        told, environment = " ".join(process.info["cmdline"] or ()), process.info["environ"] or {}
        if told.startswith(title) and environment.get("HBRT_HOME") == home:
            process.kill()
            return True
    return False


@pytest.mark.long
def test_what_kills_break_off_is_gone_on_with_and_each_item_is_there_once(shell: Shell, tmp_path: Path) -> None:
    frames, out = tmp_path / "frames", tmp_path / "out"
    frames.mkdir()
    for index in range(COUNT):
        np.save(frames / f"{index:03}.npy", np.full(64, index, np.float32))
    (tmp_path / "image.py").write_text(IMAGE)
    (tmp_path / "reference.py").write_text("def square(x):\n    return x * x\n")
    arguments = ["-m", "hbrt", "farm", "map", "0x1000", "--image", "image.py", "--over", "frames", "--out", "out"]
    arguments += ["--against", "reference.py:square", "--tolerance", "0.5", "--json"]
    driver = shell.start(*arguments)
    until = time.monotonic() + PATIENCE_S
    while not list(out.glob("parts/*.parquet")):
        assert driver.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    before = sum(pq.read_metadata(file).num_rows for file in out.glob("parts/*.parquet"))
    driver = shell.start(*arguments)
    for title in ("hbrt daemon of board private-", "ray::Worker"):
        while driver.poll() is None and not killed(title, shell.environment["HBRT_HOME"]):
            time.sleep(0.05)
        at = len(list(out.glob("parts/*.parquet")))
        while driver.poll() is None and len(list(out.glob("parts/*.parquet"))) == at:
            time.sleep(0.05)
    printed, said = driver.communicate()
    assert f"{before} of {COUNT} items are done" in said
    told = json.loads(printed)
    assert driver.returncode == 1
    assert told["statuses"] == {"good": COUNT - 2, "failed": 2}
    assert [one["index"] for one in told["failed"]] == [7, 11]
    assert "differs from the reference by 1" in told["failed"][1]["text"]
    assert told["worst"][0] == {"index": 11, "item": str(frames / "011.npy"), "error": 1.0}
    table = pq.read_table(out / "results.parquet")
    assert table["index"].to_pylist() == list(range(COUNT))
    assert table["item"].to_pylist() == [str(frames / f"{index:03}.npy") for index in range(COUNT)]
    assert len(set(table["digests"][12].as_py() + table["digests"][13].as_py())) == 2
    with np.load(out / "worst/1-011.npz") as worst:
        assert worst["made_0"][0] - worst["wanted_0"][0] == 1
    assert "<img" in (out / "report.html").read_text()


def test_bad_use_is_a_sentence(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("")
    (tmp_path / "a.npy").touch()
    over = ["--over", "a.npy", "--out", "out"]
    for arguments, why in (
        (["nothing", *over], "is neither a command number, such as 0x1000, nor a file"),
        (["a.npy", *over], "Cannot run a.npy: not a model"),
        (["0x1000", "more", *over], "An op takes no arguments"),
        (["program.py", *over, "--output-bytes", "4"], "is for a command number only"),
        (["0x1000", *over, "--tolerance", "1"], "add --against"),
        (["0x1000", *over, "--against", "program.py:f"], "has no function f"),
    ):
        code, said = shell.refused("farm", "map", *arguments)
        assert (code, why in said) == (2, True), said
    assert not (tmp_path / "out").exists()
