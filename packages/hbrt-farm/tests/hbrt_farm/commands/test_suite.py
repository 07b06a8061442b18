"""``hbrt farm test``: pytest's own output and exit code; what dies costs its test alone, once."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hbrt_farm.engine import engine
from tests.shared import Shell

TESTS = """
import os, signal
from pathlib import Path


def is_first(name):
    mark = Path(name)
    was_there = mark.exists()
    mark.touch()
    return not was_there


def kill_board(dsp_board):
    os.kill(dsp_board.status()["pid"], signal.SIGKILL)
    dsp_board.empty(4)


def test_good(dsp_board):
    assert 0x1000 in dsp_board.ops()

def test_board_dies(dsp_board):
    if is_first("board"):
        kill_board(dsp_board)

def test_process_dies():
    if is_first("process"):
        os.kill(os.getpid(), signal.SIGKILL)

def test_board_dies_each_time(dsp_board):
    kill_board(dsp_board)
"""
IMAGE = """
from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, lambda input, output, tm: 0, 0)
    hb_dsp_start()
"""


def results_in(report: Path) -> dict[str, list[str]]:
    """Each test's elements in JUnit's XML, by its name."""
    return {case.attrib["name"]: [one.tag for one in case] for case in ET.parse(report).iter("testcase")}  # noqa: S314 - our own


@pytest.mark.long
@pytest.mark.parametrize("is_cluster", [False, True])
def test_a_board_that_dies_costs_its_test_alone_and_once(shell: Shell, tmp_path: Path, *, is_cluster: bool) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "image.py").write_text(IMAGE)
    arguments = ["farm", "test", "--boards", "2", "--image", "image.py"]
    more = ["-q", "--junit-xml=report.xml", "test_some.py"]
    if is_cluster:
        with engine(2, None) as ray:  # whose token is in the environment
            shell.environment |= {name: value for name, value in os.environ.items() if "RAY" in name}
            answer = shell.hbrt(*arguments, "--address", ray.get_runtime_context().gcs_address, *more)
    else:
        answer = shell.hbrt(*arguments, *more)
    assert answer.returncode == 1, answer
    assert "1 failed, 3 passed, 1 retried in" in answer.stdout
    assert "test_some.py::test_process_dies: its process died" in answer.stdout
    assert "test_some.py::test_board_dies: its board died: The daemon of board test-" in answer.stdout
    assert results_in(tmp_path / "report.xml") == {
        "test_good": [],
        "test_board_dies": ["properties"],
        "test_process_dies": [],
        "test_board_dies_each_time": ["properties", "failure"],
    }
