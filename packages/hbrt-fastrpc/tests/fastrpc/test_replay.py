"""A recording of FastRPC calls replays: the image gives other handles than those that were recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shared import Shell

IMAGE = Path(__file__).parent / "images" / "plain.py"
PROGRAM = """
import numpy as np
from fastrpc import Interface
from tests.fastrpc.images import plain

class Calc(Interface):
    INTERFACE = "calc"

with Calc() as calc, Calc() as other:
    print(calc.call(plain.FAR, 21), other.call(plain.FAR, 4))
"""


@pytest.mark.long
def test_all_calls_and_one_without_its_open_replay(shell: Shell) -> None:
    (shell.cwd / "calls.py").write_text(PROGRAM)
    shell.environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    assert shell.good("run", "--image", IMAGE, "--record", "calls", "calls.py") == "42 8\n"
    told = shell.json("replay", "calls", "--image", IMAGE)
    assert (told["calls"], told["same"], told["different"]) == (6, 6, [])
    second = sorted(one.name for one in (shell.cwd / "calls/calls").iterdir())[3]
    assert shell.json("replay", "calls", second, "--image", IMAGE)["same"] == 1
