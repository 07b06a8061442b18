"""``hbrt replay --against``: what an op takes now compared with when it was recorded, and the gate over it."""

from pathlib import Path

from arm_client.commands.replay.against import changes_of, table
from hbrt.recording.format import Call
from tests.shared import Shell

BEFORE = Call(0x400, "softmax", cycles=100, ddr_bytes=64, tcm_bytes=32)
PROGRAM = """
import numpy as np
from arm_client import connect, nn
with connect() as board:
    nn.softmax(board, np.ones((1, 100), np.float32))
"""
IMAGE = """
import numpy as np
from dsp_server import hb_dsp_charge, hb_dsp_env_init, hb_dsp_mem_map, hb_dsp_register_fn, hb_dsp_start

def softmax(input, output, tm):
    size, phy = (int(word) for word in np.frombuffer(input, np.uint64))
    row = np.frombuffer(hb_dsp_mem_map(phy, size & 0xFFFFFFFF), np.float32)
    np.frombuffer(output, np.float32)[:] = 1 / len(row)
    hb_dsp_charge(100_000, 32, load=1)
    return 0

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x400, softmax)
    hb_dsp_start()
"""


def test_an_op_is_compared_over_all_its_calls() -> None:
    now = BEFORE._replace(cycles=103, tcm_bytes=16)
    (one,) = changes_of([(BEFORE, BEFORE, True), (BEFORE, now, False)])
    assert (one.op, one.calls, one.differing) == ("softmax (0x400)", 2, 1)
    assert (one.cycles, one.ddr_bytes, one.tcm_bytes) == ((200, 203), (128, 128), (32, 32))
    assert (one.grown(0.01), one.grown(0.02)) == (["cycles"], [])
    lines = table([one], 0.01)
    assert "| softmax (0x400) | 2 | 1 differ | 200 | 203 (+1.5%) | 128 | same | 32 | same |" in lines
    assert any("Grown by more than 1.0%: softmax (0x400): cycles." in line for line in lines)
    assert any("Bits or status differ: softmax (0x400)." in line for line in lines)


def test_what_a_recording_of_a_board_does_not_have_is_not_compared() -> None:
    (one,) = changes_of([(Call(0x400), BEFORE, True)])
    assert one.op == "softmax (0x400)"
    assert one.grown(0) == []
    assert "not recorded" in table([one], 0)[2]


def test_the_gate_holds_until_an_op_takes_more(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "image.py").write_text(IMAGE)
    calls = str(tmp_path / "calls")
    shell.good("run", "--record", calls, str(tmp_path / "program.py"))
    assert "| softmax (0x400) | 1 | same | " in shell.good("replay", "--against", calls)
    slower = (
        "replay",
        calls,
        "--against",
        "--image",
        str(tmp_path / "image.py"),
        "--as",
        "float32",
        "--tolerance",
        "1e-3",
    )
    told = shell.hbrt(*slower)
    assert told.returncode == 1
    assert "Grown by more than 2.0%: softmax (0x400): cycles." in told.stdout
    assert shell.hbrt(*slower, "--allow", "1e9").returncode == 0
