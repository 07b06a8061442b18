"""``hbrt estimate``: programs, commands, what-if, the published figures, and constants fitted to measurements."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from arm_client.commands.estimate.against import changes_of
from arm_client.commands.estimate.fit import BadMeasurementsError, Measurement, errors, fit, held_out_errors, read
from arm_client.commands.estimate.model import document_of_model
from arm_client.commands.estimate.self_check import Point
from arm_client.commands.estimate.what_if import as_toml, changes
from hbrt.profiles.estimate import Call, parts_of
from hbrt.profiles.profile import BadProfileError, find, load
from hbrt.profiles.work import Work
from tests.shared import Shell

J5 = find("j5")
PROGRAM = """
import sys
import numpy as np
from arm_client import connect, nn
with connect() as board:
    for _ in range(int(sys.argv[1])):
        nn.softmax(board, np.zeros((1, 50_000), np.float32))
"""

MODEL_PROGRAM = """
import sys
import numpy as np
from arm_client import dnn
(net,) = dnn.load(sys.argv[1])
for _ in range(2):
    net(np.zeros(net.inputs[0].properties.shape, np.float32))
"""


def test_a_program_and_a_command_are_estimated_and_asked_what_if(shell: Shell, tmp_path: Path) -> None:
    program = tmp_path / "calls.py"
    program.write_text(PROGRAM)
    told = shell.json("estimate", "--relay", "--what-if", "rpc_us=100,cores=1", str(program), "3")
    (softmax,) = told["calls"]
    assert (softmax["name"], softmax["calls"], told["cores"], told["relayed"]) == ("softmax", 3, 1, True)
    assert softmax["low_us"] < softmax["modeled_us"] < softmax["high_us"]
    assert sum(softmax["parts_us"].values()) == pytest.approx(softmax["modeled_us"])
    assert softmax["parts_us"]["rpc"] > 200  # with the relay's 100
    assert told["total"]["modeled_us"] == pytest.approx(3 * softmax["modeled_us"])

    smaller = shell.json("estimate", "--what-if", "tile=8K,rpc_us=100", str(program), "1")
    assert smaller["calls"][0]["cycles"] != softmax["cycles"]  # it ran with tiles of that size

    shell.good("start")
    code, said = shell.refused("estimate", "0x400")
    assert code == 2
    assert "has no record of a successful call of command 0x400" in said
    shell.python(str(program), "2")
    said = shell.good("estimate", "0x400", "--what-if", "clock=1296")
    assert "2 calls in total: " in said
    assert "not included: a board keeps" not in said
    assert shell.json("estimate", "0x400")["forgotten"] == 0
    assert "at 1296 MHz" in said
    boards = shell.json("estimate", "0x400", "--profiles", "j5,sd865")["boards"]
    assert [one["board"] for one in boards] == ["j5", "sd865"]
    for one in boards:
        assert one["run_us"] == shell.json("estimate", "0x400", "--profile", one["board"])["total"]["modeled_us"]
        assert one["low_us"] < one["run_us"] < one["high_us"]
    assert boards[0]["run_us"] != boards[1]["run_us"]
    assert "The range comes from rpc.call_us " in said
    code, said = shell.refused("estimate", "0x400", "--what-if", "tile=8K")
    assert "tcm.usable_bytes changes the op's behavior: estimate a program with it" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("estimate",), "Name a program or a command number, or use --self-check."),
        (("estimate", "nothing"), "'nothing' is neither a file nor a command number"),
        (
            ("estimate", "0x1", "--what-if", "speed=3"),
            "Invalid change 'speed=3': expected NAME=VALUE, with clock, cores",
        ),
        (
            ("estimate", "0x1", "--what-if", "clock=fast"),
            "Invalid cores.dsp.clock_mhz 'fast': expected a number of MHz.",
        ),
        (("estimate", __file__, "--what-if", "clock=0"), "Error: cores.dsp.clock_mhz is 0.0; write a number from 1 to"),
        (("estimate", "0x1", "--profile", "none"), "it is 'none', which is not a file"),
        (("estimate", "0x1", "--profiles", "j5,none"), "--profiles is 'none', which is not a file"),
        (("estimate", "0x1", "--profiles", "j5", "--profile", "j5"), "Use either --profile, for one board"),
        (("estimate", "0x1", "--profiles", " ,"), "' ,' names no board"),
        (("estimate", "/etc/passwd"), "a model an .onnx file"),
    ],
)
def test_what_cannot_be_estimated_is_said(shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    code, said = shell.refused(*words)
    assert code == 2
    assert sentence in said


def test_what_if_leaves_no_range_of_what_it_fixes(shell: Shell, tmp_path: Path) -> None:
    program = tmp_path / "calls.py"
    program.write_text(PROGRAM)
    told = shell.json("estimate", "--what-if", "rpc_us=100", str(program), "1")
    assert "rpc.call_us" not in {one["key"] for one in told["total"]["spread"]}
    assert J5.fixed({"rpc.call_us": 100}, "a test").constants["rpc.call_us"].high == 100
    with pytest.raises(BadProfileError, match=r"has no npu\.int8_macs: .* such as rk3588"):
        J5.fixed({"npu.int8_macs": 1}, "a test")


@pytest.mark.long
def test_runs_of_models_are_estimated_by_their_layers(shell: Shell, tmp_path: Path) -> None:
    program = tmp_path / "model.py"
    program.write_text(MODEL_PROGRAM)
    net = model_file(tmp_path / "net.onnx")
    told = shell.good("estimate", str(program), net)
    assert ["model", "net.onnx", "2"] in [line.split()[:3] for line in told.splitlines()]
    assert "The times of models are assumed, not fitted" in told
    (runs,) = shell.json("estimate", "--json", "--profile", "x5", str(program), net)["calls"]
    (alone,) = document_of_model(Path(net), ["x5"])["boards"]
    assert runs["modeled_us"] == pytest.approx(alone["run_us"], rel=1e-3)
    assert runs["low_us"] == pytest.approx(alone["low_us"], rel=1e-3)


def model_file(file: Path, batch: int | str = 1) -> Path:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, 64, 32, 32]) for name in "xy"]
    weights = numpy_helper.from_array(np.zeros((64, 64, 3, 3), np.float32), "w")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4, name="first"),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "net", values[:1], values[1:], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(file))
    return file


def test_a_model_is_estimated_by_its_layers_for_boards_side_by_side(shell: Shell, tmp_path: Path) -> None:
    file = model_file(tmp_path / "net.onnx")
    told = shell.json("estimate", file, "--profiles", "rk3588,rk3568,x5")
    assert [one["board"] for one in told["boards"]] == ["rk3588", "rk3568", "x5"]
    assert told["macs"] == 64 * 64 * 9 * 32 * 32
    for board in told["boards"]:
        (layer,) = board["layers"]
        assert (layer["name"], layer["kind"]) == ("first", "conv")
        assert board["low_us"] < board["run_us"] < board["high_us"]
        assert sum(board["bounds"].values()) == pytest.approx(1)
        assert board["frames_per_s"] == pytest.approx(1e6 / board["run_us"])
    said = shell.good("estimate", file)
    assert said.split()[:4] == ["BOARD", "A", "RUN", "90%"]
    assert "The slowest layers on " in said
    open_batch = model_file(tmp_path / "open.onnx", "N")
    assert shell.json("estimate", open_batch, "--profiles", "x5")["macs"] == told["macs"]


def test_an_estimate_is_compared_with_a_former_one(shell: Shell, tmp_path: Path) -> None:
    file, before = model_file(tmp_path / "net.onnx"), tmp_path / "before.json"
    document = shell.json("estimate", file, "--profiles", "rk3588,x5")
    before.write_text(json.dumps(document))
    said = shell.good("estimate", file, "--profiles", "rk3588,x5", "--against", before)
    assert said.splitlines()[:2] == ["| what | before | now | change |", "|---|---|---|---|"]
    assert said.count("+0.0%") == 2
    document["boards"][0]["run_us"] /= 1.5
    document["boards"][1]["board"] = "another"
    before.write_text(json.dumps(document))
    code, said = shell.refused("estimate", file, "--profiles", "rk3588,x5", "--against", before)
    assert code == 1
    for part in ("| +50.0% |", "only now", "only before", "Slower by more than 2.0%: rk3588."):
        assert part in said
    code, said = shell.refused("estimate", file, "--profiles", "rk3588", "--against", before, "--allow", "60", "--json")
    assert (code, json.loads(said)["passed"]) == (0, True)
    before.write_text("{}")
    code, said = shell.refused("estimate", file, "--profiles", "x5", "--against", before)
    assert (code, "is not the output of 'hbrt estimate --json'" in said) == (2, True)


def test_the_ops_of_two_estimates_are_compared_by_name() -> None:
    def document(us: float) -> dict[str, Any]:
        return {"calls": [{"name": "op", "cmd": 1, "modeled_us": us}], "total": {"modeled_us": 2 * us}}

    changes = changes_of(document(10), document(12))
    assert [one.what for one in changes] == ["op (0x1)", "all calls"]
    assert [one.growth for one in changes] == pytest.approx([0.2, 0.2])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--profiles", "sd865"), "Models cannot be estimated for 'sd865'"),
        (("--what-if", "clock=1"), "A model accepts only --profiles, --against and --json"),
    ],
)
def test_what_a_model_cannot_be_estimated_with_is_said(
    shell: Shell, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    code, said = shell.refused("estimate", model_file(tmp_path / "net.onnx"), *words)
    assert code == 2
    assert sentence in said


def test_a_file_that_is_no_model_is_said_to_be_none(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_text("no model")
    code, said = shell.refused("estimate", tmp_path / "bad.onnx")
    assert (code, "is not an ONNX model, or is damaged" in said) == (2, True)


def test_a_program_that_fails_is_told_where_it_ran(shell: Shell, tmp_path: Path) -> None:
    program = tmp_path / "fails.py"
    program.write_text("raise SystemExit(3)")
    done = shell.hbrt("estimate", str(program))
    assert (done.returncode, done.stdout) == (
        1,
        "Runs on a private board: profile j5, DSP image the packaged ops.\n",
    )
    assert "exited with code 3; `hbrt estimate` needs a successful run." in done.stderr
    assert "pass --image FILE" in done.stderr


def test_the_help_of_an_estimate_has_the_options_of_a_program(shell: Shell) -> None:
    told = shell.good("estimate", "--help")
    for option in ("--image", "--what-if", "--relay", "--profile", "--board", "--self-check"):
        assert option in told


@pytest.mark.long
def test_the_model_is_consistent_with_the_published_figures(shell: Shell) -> None:
    shell.environment["HBRT_PROFILE"] = "rk3588"  # has no DSP: the published times are those of the J5
    told = shell.json("estimate", "--self-check", "--plot", "plot.png")
    assert (shell.cwd / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert told["are_met"]
    assert told["accelerators"]["band"]["rows"] == len(told["accelerators"]["held_out"]) > 50
    points = told["dsp"]
    plans = {one["what"]: one for one in points}
    assert len([name for name in plans if name.startswith("CenterPoint, plan")]) == 6
    for one in points:
        assert one["is_met"], one
    assert plans["CenterPoint, CPU alone, average"]["published_us"] == 119_374
    call = plans["a FastRPC call"]
    assert (call["published_us"], call["published_most_us"], call["error"]) == (500, 2000, None)
    assert Point("a call", 500, 2001, 0, 2000).is_met is False


def test_changes_are_constants_and_a_profile_is_a_file_again(tmp_path: Path) -> None:
    assert changes(("clock=800,tile=32K", "idma.row_cycles=7")) == {
        "cores.dsp.clock_mhz": 800,
        "tcm.usable_bytes": 32 * 1024,
        "idma.row_cycles": 7,
    }
    with pytest.raises(BadProfileError, match="Invalid change"):
        changes(("clock",))
    file = tmp_path / "again.toml"
    changed = J5.with_values({"ddr.stall_cycles": 99})
    file.write_text(as_toml(changed))
    assert load(file).constants == changed.constants


def measured(true: dict[str, float]) -> list[Measurement]:
    board, calls = J5.with_values(true), []
    for n in range(1, 9):
        work = Work(bundles=10_000 * n, gathers=100 * n * n, descriptors=n, dma_bytes=7000 * n, ddr_loads=n % 3 * 500)
        charged = 15_000 * n + 1600 * n * n + 16 * n + 40 * work.ddr_loads
        calls.append(Call(1, "op", charged, work, 64, 2))
    return [Measurement(one, parts_of(one, J5, board, is_relayed=False).total, is_whole=True) for one in calls]


def test_a_fit_finds_the_constants_that_the_measurements_had_and_keeps_the_others() -> None:
    measurements = measured({"vector.gather_cycles": 28, "rpc.call_us": 300, "vector.schedule": 2.5})
    fitted = fit(measurements, J5)
    assert fitted.before > 0.3
    assert fitted.after < 0.02
    assert fitted.values["rpc.call_us"] == pytest.approx(300, rel=0.1)
    assert "cpu.random_ns" not in fitted.values
    for key, value in fitted.values.items():
        assert J5.constants[key].low <= value <= J5.constants[key].high
    assert max(map(abs, errors(measurements, J5, J5.with_values(fitted.values)))) < 0.05


def test_each_op_is_held_out_of_its_fit() -> None:
    measurements = measured({"vector.gather_cycles": 28, "rpc.call_us": 300})
    assert held_out_errors(measurements, J5) == {}
    second = [one._replace(call=one.call._replace(name="other", cmd=2)) for one in measurements[::2]]
    found = held_out_errors([*measurements[1::2], *second], J5)
    assert sorted(found) == ["op", "other"]
    assert all(error < 0.1 for error in found.values())
    odd = [one._replace(board_us=4 * one.board_us) for one in second]
    assert held_out_errors([*measurements, *odd], J5)["other"] > 1


def test_measurements_are_lines_of_tasks_with_a_column_more(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "calls.py").write_text(PROGRAM)
    shell.good("start")
    shell.python(str(tmp_path / "calls.py"), "3")
    rows = list(csv.DictReader(shell.good("tasks", "--csv").splitlines()))
    file, out = tmp_path / "measurements.csv", tmp_path / "ours.toml"
    with file.open("w", newline="") as target:
        writer = csv.DictWriter(target, [*rows[0], "board_op_us"])
        writer.writeheader()
        writer.writerows({**row, "board_op_us": 1000} for row in rows)
    said = shell.good("estimate", "calibrate", str(file), "--output", str(out))
    assert "root mean square of 3 measurements" in said
    assert "They cover only one op" in said
    assert "At the end of their range, where the board may lie beyond it: vector.schedule, " in said
    assert "Not determined by these measurements, and kept: " in said
    assert load(out).name == "ours"
    assert [one.error for one in load(out).measured.values()] == [None]
    file.write_text(file.read_text().replace(",1000", ",soon"))
    code, said = shell.refused("estimate", "calibrate", str(file), "--output", str(out))
    assert code == 2
    assert "measurements.csv, line 2: could not convert string to float: 'soon'" in said
    file.write_text("a,b\n1,2\n")
    with pytest.raises(BadMeasurementsError, match="line 2 has neither board_op_us nor board_call_us"):
        read(file)
