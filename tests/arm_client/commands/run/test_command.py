"""``hbrt run``: the samples for real, each in its own process."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pytest

from arm_client.commands.run.board import mode_of
from arm_client.commands.run.forks import Forks
from arm_client.commands.run.samples import LOADED, chosen, run_sample, samples_of, summary_of
from hbrt import samples_dir as samples
from hbrt.board.paths import BoardPaths
from hbrt.status import Status
from hbrt.types import HB_DSP_CORE_1, HB_DSP_RPC_CMD_PING
from tests.limits import PATIENCE_S
from tools.docs_blocks import blocks

if TYPE_CHECKING:
    from arm_client.client import Board
    from tests.shared import Shell

PAGE = Path(__file__).resolve().parents[4] / "docs" / "install.md"
NN = {"softmax": "0x400", "quantize": "0x401", "dequantize": "0x402"}
# A board that knows no NN op at all.
BARE_IMAGE = """
from dsp_server import hb_dsp_env_init, hb_dsp_start

def main():
    hb_dsp_env_init()
    hb_dsp_start()
"""


def words(line: str) -> list[str]:
    """A line's words but the measured ones."""
    return ["..." if word[0].isdigit() and "0x" not in word else word for word in line.split()]


def test_the_nn_samples_run_on_a_private_board_as_the_page_shows_and_leave_nothing(shell: Shell) -> None:
    base = [name for name in samples_of("nn") if name != "digits"]  # what `make demo` has the libraries for
    run = shell.hbrt("run", "nn", *base, "--timeout", PATIENCE_S)  # numba may compile first
    assert run.returncode == 0, run.stdout + run.stderr
    assert all(line.startswith("nn: ") for line in run.stderr.splitlines())  # how far it is, each 30 s
    printed = run.stdout.splitlines()
    (shown,) = (
        block.text.splitlines() for block in blocks(PAGE.read_text(encoding="utf-8")) if block.text.startswith("OP  ")
    )
    assert [words(line) for line in printed] == [words(line) for line in shown]
    heading, *lines, last, where = printed
    assert heading.split("  ")[0] == "OP"
    rows = {line.split()[0]: line.split() for line in lines}
    assert set(NN) <= set(rows)
    for op, command in NN.items():
        assert rows[op][1:4] == [command, "any", "0"]
        assert rows[op][-1] == "ok"
        assert float(rows[op][4]) < 1e-6
    assert last == f"{len(rows)} of {len(rows)} passed, on a private board, in relay mode."
    assert where == "Results: output"
    made = {path.name for path in (shell.cwd / "output").iterdir()}
    assert {"results.json", "softmax.log", "centerpoint.png", "pointpillars.png"} <= made
    assert list(shell.home.iterdir()) == []
    assert relays(shell.home) == []


def test_named_samples_run_on_the_running_board(shell: Shell, tmp_path: Path) -> None:
    shell.good("start")
    document = shell.json("run", "nn", "softmax", "quantize", "--output", tmp_path / "out")
    assert (document["group"], document["board"], document["passed"]) == ("nn", "default", True)
    assert [result["op"] for result in document["results"]] == ["softmax", "quantize"]
    assert sum(core["tasks"] for core in shell.status()["cores"]) >= 2
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == document
    assert [result["output_file"] for result in document["results"]] == [
        str(tmp_path / "out" / f"{name}.npy") for name in ("softmax", "quantize")
    ]
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert made == {"results.json", "softmax.log", "quantize.log", "softmax.npy", "quantize.npy"}
    good = shell.good("run", "nn", "softmax")
    assert good.endswith("1 of 1 passed, on board default, in relay mode.\nResults: output\n")


def relays(home: Path) -> list[int]:
    """Relays that live on the boards of a home, this very moment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            is_there = process.environ().get("HBRT_HOME") == str(home) and process.status() != psutil.STATUS_ZOMBIE
            if is_there and "relay" in " ".join(process.cmdline()):
                found.append(process.pid)
    return found


@pytest.mark.parametrize(
    ("setting", "asked", "mode"),
    [
        ({}, None, "relay"),
        ({"HB_DSP_RPC_MODE": "direct"}, None, "direct"),
        ({"HB_UCP_ENABLE_RELAY_MODE": "0"}, None, "direct"),
        ({"HB_DSP_RPC_MODE": "direct"}, "relay", "relay"),
        ({}, "direct", "direct"),
        ({"HBRT_INLINE": "1", "HB_DSP_RPC_MODE": "relay"}, None, "inline"),
    ],
)
def test_the_mode_is_the_option_or_else_the_setting_or_else_relay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: dict[str, str], asked: str | None, mode: str
) -> None:
    for name in ("HB_DSP_RPC_MODE", "HB_UCP_ENABLE_RELAY_MODE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    assert mode_of(BoardPaths(tmp_path), asked) == mode


def test_samples_that_run_their_ops_themselves(shell: Shell) -> None:
    shell.environment["HBRT_INLINE"] = "1"
    document = shell.json("run", "nn", "softmax")
    assert (document["mode"], document["board"], document["passed"]) == ("inline", None, True)
    for option, value in (("--mode", "relay"), ("--board", "mine")):
        code, said = shell.refused("run", "nn", "softmax", option, value)
        assert code == 2
        assert f"{option} {value} has no effect under HBRT_INLINE: unset one of the two." in said


def test_tasks_go_by_the_relay_unless_the_user_says_otherwise(shell: Shell) -> None:
    for name in ("HB_DSP_RPC_MODE", "HB_UCP_ENABLE_RELAY_MODE"):
        shell.environment.pop(name, None)
    shell.good("start", "--cores", "1")
    shell.environment["HB_DSP_RPC_MODE"] = "relay"
    document = shell.json("run", "nn", "softmax", "--mode", "direct")
    assert (document["mode"], document["passed"]) == ("direct", True)
    assert relays(shell.home) == []
    del shell.environment["HB_DSP_RPC_MODE"]
    document = shell.json("run", "nn", "softmax")
    assert (document["mode"], document["passed"]) == ("relay", True)
    assert len(relays(shell.home)) == 1
    assert "attached" not in shell.good("stop")  # a board's relay is no program that loses its board


def test_help_lists_the_samples_with_what_they_are(shell: Shell) -> None:
    listed = shell.good("run", "nn", "help")
    for name, file in samples_of("nn").items():
        assert f"{name}  " in listed
        assert summary_of(file) in listed
    assert {row["sample"] for row in shell.json("run", "nn", "help")} == set(samples_of("nn"))


def test_names_may_be_spelled_as_the_manual_spells_them() -> None:
    assert list(chosen("cv", ("BilateralFilter", "SepFilter2D", "canny"))) == [
        "bilateral_filter",
        "sep_filter2d",
        "canny",
    ]
    assert list(chosen("nn", ("pointpillar", "softmax"))) == ["pointpillars", "softmax"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Name a program, or a group of samples; there are "),
        (("space",), "Unknown group 'space' of samples; known are "),
        (("nn", "softmin"), "Unknown sample 'softmin' of group nn; known are "),
        (("nn", "pointpilar"), "softmax, digits. Did you mean pointpillars?"),
        (("nn", "digit8"), "softmax, digits. Did you mean digits?"),
        (("nn", "mobilenet"), "softmax, digits. Did you mean 'hbrt run dnn mobilenetv1'?"),
        (("nn", "zzz"), "softmax, digits.\n"),
        (("nnn",), "known are asr, cv, defects, dnn, fastrpc, nn, rknn. Did you mean "),
        (
            ("softmax",),
            "of samples; known are asr, cv, defects, dnn, fastrpc, nn, rknn. Did you mean 'hbrt run nn softmax'?",
        ),
        (("nn", "--board", "nowhere"), "No board nowhere in "),
    ],
)
def test_wrong_usage_says_what_there_is(shell: Shell, arguments: tuple[str, ...], sentence: str) -> None:
    code, said = shell.refused("run", *arguments)
    assert code == 2
    assert sentence in said
    assert list(shell.home.iterdir()) == []


def write_points(path: Path, size_bytes: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size_bytes)
    return path


def test_a_point_cloud_of_another_format_is_wrong_usage(shell: Shell) -> None:
    sweep = write_points(shell.cwd / "sweep.bin", 5 * 20)
    code, said = shell.refused("run", "nn", "pointpillars", "--points", sweep)
    assert code == 2
    assert (
        f"--points {sweep}, for pointpillars: {sweep} has 100 bytes, which is not a whole number of points of 16 bytes "
        "(x, y, z, intensity, float32): it has a different format, or is truncated."
    ) in said


@pytest.mark.parametrize("names", [(), ("centerpoint", "pointpillars"), ("softmax", "PointPillars", "centerpoint")])
def test_a_point_cloud_is_for_the_sample_that_is_named(shell: Shell, names: tuple[str, ...]) -> None:
    scan = write_points(shell.cwd / "scan.bin", 80 * 10)  # whole points of either model
    code, said = shell.refused("run", "nn", *names, "--points", scan)
    assert code == 2
    assert (
        f"--points {scan} is for one sample, and centerpoint and pointpillars read different files: name one, as in: "
        "hbrt run nn centerpoint --points FILE."
    ) in said
    assert list(shell.home.iterdir()) == []


def test_points_in_a_npy_file_are_not_read_with_its_header(shell: Shell) -> None:
    scan = shell.cwd / "scan.npy"
    np.save(scan, np.zeros((10, 4), np.float32))
    assert scan.stat().st_size % 16 == 0  # it would pass for points
    code, said = shell.refused("run", "nn", "pointpillars", "--points", scan)
    assert code == 2
    assert f"{scan} is a .npy file, but points are read without a header: convert it with np.load(FILE)." in said


@pytest.mark.parametrize(("name", "dims"), [("centerpoint", 5), ("pointpillars", 4)])
def test_more_points_than_the_wrapper_takes_are_refused_with_its_words(shell: Shell, name: str, dims: int) -> None:
    scan = write_points(shell.cwd / "scan.bin", 300_001 * 4 * dims)
    code, said = shell.refused("run", "nn", name, "--points", scan)
    assert code == 2
    assert f"--points {scan}, for {name}: 300001 points exceed max_input_points, 300000: pass fewer" in said
    program = samples.samples_dir() / "arm" / "nn" / f"{name}.py"
    answer = shell.python(program, scan)
    assert answer.returncode == 1
    # What it did not free comes after it.
    assert any("300001 points exceed max_input" in line for line in answer.stderr.splitlines())


def test_a_file_without_an_end_is_not_read(shell: Shell) -> None:
    os.mkfifo(shell.cwd / "pipe")
    for file in ("/dev/zero", "pipe"):
        answer = shell.hbrt("run", "nn", "centerpoint", "--points", file)
        assert answer.returncode == 2
        assert f"'{file}' is not a regular file; name one." in answer.stderr


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_results_that_have_no_place_are_said_before_anything_runs(shell: Shell, place: str) -> None:
    (shell.cwd / "file").touch()
    (shell.cwd / "output").symlink_to(place)
    answer = shell.hbrt("run", "nn", "softmax")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "Cannot write results to output: it, or a part of its path, is not a directory." in answer.stderr
    assert list(shell.home.iterdir()) == []


def test_results_that_cannot_be_written_are_shown_all_the_same(shell: Shell) -> None:
    (shell.cwd / "output" / "results.json").mkdir(parents=True)
    answer = shell.hbrt("run", "nn", "softmax")
    assert answer.returncode == 3
    assert answer.stdout.endswith("1 of 1 passed, on a private board, in relay mode.\n")
    assert answer.stderr == "Error: Is a directory: output/results.json.\n"


def test_a_relay_that_is_not_there_is_said_once(shell: Shell) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        answer = shell.hbrt("run", "nn", "--board", address)
    assert (answer.returncode, answer.stdout) == (3, "")
    assert answer.stderr.startswith(f"Error: Cannot reach a relay at {address}: Connection refused.")
    assert not (shell.cwd / "output").exists()


def test_a_failed_sample_has_every_field_with_what_is_known(shell: Shell) -> None:
    (shell.cwd / "bare.py").write_text(BARE_IMAGE)
    shell.environment["HBRT_IMAGE"] = "bare.py"
    answer = shell.hbrt("run", "nn", "softmax", "pointpillars", "--json")
    assert answer.returncode == 1
    document = json.loads(answer.stdout)
    assert json.loads((shell.cwd / "output" / "results.json").read_text()) == document
    for record, command in zip(document["results"], (0x400, 0x404), strict=True):
        assert "returned -6000267: No op is registered" in record.pop("problem")
        assert record.pop("output").startswith("hbDSPWaitTaskDone returned ")
        name = record.pop("sample")
        assert record == {
            "op": name,
            "command": command,
            "core": 0,
            "status": Status.HB_DSP_UNKNOWN_COMMAND,
            "max_error": None,
            "host_time_us": None,
            "modeled_us": None,
            "output_file": None,
            "passed": False,
        }


def test_a_sample_whose_op_is_missing_fails_the_run(shell: Shell) -> None:
    image = shell.cwd / "bare.py"
    image.write_text(BARE_IMAGE)
    shell.environment["HBRT_IMAGE"] = "bare.py"
    answer = shell.hbrt("run", "nn", "softmax")
    assert answer.returncode == 1
    row = answer.stdout.splitlines()[1].split()
    assert row == ["softmax", "0x400", "any", "HB_DSP_UNKNOWN_COMMAND", "-", "-", "-", "FAILED"]
    assert answer.stdout.endswith("0 of 1 passed, on a private board, in relay mode.\nResults: output\n")
    assert answer.stderr.startswith("softmax failed: hbDSPWaitTaskDone returned ")
    assert "No op is registered for command 0x400" in answer.stderr
    assert list(shell.home.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("HBRT_CACHE", "Invalid HBRT_CACHE 'x': must be coherent, strict or evicting:SEED, as in evicting:7.\n"),
        ("HBRT_LEASE_WAIT_S", "Invalid HBRT_LEASE_WAIT_S 'x': must be an integer."),
        ("HBRT_BPU", "Invalid HBRT_BPU 'x': must be one of board, inline.\n"),
    ],
)
def test_a_bad_setting_is_wrong_usage_and_said_once(shell: Shell, name: str, sentence: str) -> None:
    shell.environment[name] = "x"
    code, said = shell.refused("run", "nn")
    assert code == 2
    assert said.startswith(f"Error: {sentence}")
    assert said.count(name) == 1
    assert not (shell.cwd / "output").exists()


def test_a_private_board_that_does_not_start_is_said_once(shell: Shell) -> None:
    (shell.cwd / "broken.py").write_text("1 / 0\n")
    shell.environment["HBRT_IMAGE"] = "broken.py"
    answer = shell.hbrt("run", "nn")
    assert answer.returncode == 1
    assert answer.stderr.count("ZeroDivisionError: division by zero") == 1


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks(*LOADED) as made:
        yield made


CALLER_ERROR = "arm_client.errors.CallerError: no [-9]"


@pytest.mark.parametrize(
    ("text", "problem", "status"),
    [
        ("def main(): return 7", "", None),
        ("x = 1", "sample.py has no main(), which every sample needs.", None),
        ("def main(): raise SystemExit('hbSysAllocMem returned -7: no')", "hbSysAllocMem returned -7: no", -7),
        ("from arm_client.errors import CallerError\ndef main(): raise CallerError(-9, 'no')", CALLER_ERROR, -9),
        ("def main(): raise RuntimeError('no luck')", "RuntimeError: no luck", None),
        ("import os\ndef main(): os.kill(os.getpid(), 11)", "It was killed by signal 11 (SIGSEGV).", None),
        ("import os\ndef main(): os._exit(9)", "It exited with code 9.", None),
        ("import os\ndef main(): os._exit(0)", "It ended without a result.", None),
        ("def main():\n    while True: pass", "It was killed at the time limit of 0.5 s.", None),
    ],
)
def test_what_becomes_of_a_sample_is_told_apart(
    forks: Forks, tmp_path: Path, text: str, problem: str, status: int | None
) -> None:
    file = tmp_path / "sample.py"
    file.write_text(text + "\n")
    outcome = run_sample(forks, "sample", file, str(tmp_path), 0.5 if "while True" in text else 30.0)
    assert outcome.problem.removeprefix(str(tmp_path) + os.sep) == problem
    assert outcome.has_passed is not bool(problem)
    assert outcome.has_timed_out is ("while True" in text)
    record = outcome.document()
    assert (record["op"], record["command"], record["status"]) == ("sample", None, status)
    if "RuntimeError" in text:  # the trace is of the sample's own lines
        lines = outcome.output.splitlines()
        assert lines[:2] == ["Traceback (most recent call last):", f'  File "{file}", line 1, in main']
        assert lines[-1] == "RuntimeError: no luck"


@pytest.mark.parametrize(("result", "error"), [("LOGITS * 0", 1), ("LOGITS[1:]", float("inf"))])
def test_a_result_is_held_to_its_reference(forks: Forks, tmp_path: Path, result: str, error: float) -> None:
    (tmp_path / "nn").mkdir()
    file = tmp_path / "nn" / "softmax.py"
    file.write_text(f"import numpy as np\nLOGITS = np.float32([[0, 99], [0, 99]])\ndef main(): return {result}\n")
    outcome = run_sample(forks, "softmax", file, str(tmp_path), 30.0)
    assert outcome.result["max_error"] == pytest.approx(error)
    assert outcome.problem == f"The largest error, {outcome.result['max_error']}, is above the sample's tolerance."


def test_calls_are_seen_from_outside_and_the_fastest_run_is_the_one_that_counts(
    forks: Forks, dsp_board: Board, tmp_path: Path
) -> None:
    file = tmp_path / "sample.py"
    file.write_text(
        "import arm_client as hb, time\nruns = 0\n"
        "def main():\n"
        "    global runs\n"
        "    runs += 1\n"
        "    mem, ctrl, task = hb.hbSysMem(), hb.hbDSPRpcCtrlParam(), hb.hbDSPTask_t()\n"
        "    assert hb.hbSysAllocMem(mem, 64) == 0\n"
        "    ctrl.rpcCmd, ctrl.dspCoreId = hb.HB_DSP_RPC_CMD_PING, hb.HB_DSP_CORE_1\n"
        "    assert hb.hbDSPRpc(task, None, None, ctrl) == 0\n"
        "    assert hb.hbDSPWaitTaskDone(task, 0) == 0\n"
        "    if runs < 4: time.sleep(0.5)\n"
        "    assert hb.hbDSPReleaseTask(task) == 0\n"
        "    assert hb.hbSysFreeMem(mem) == 0\n"
        "    print('run', runs)\n"
    )
    outcome = run_sample(forks, "sample", file, str(dsp_board.path), 30.0)
    assert (outcome.problem, outcome.output) == ("", "run 1\n")
    known = {key: outcome.result[key] for key in ("command", "core", "status")}
    assert known == {"command": HB_DSP_RPC_CMD_PING, "core": HB_DSP_CORE_1, "status": 0}
    assert 0 < outcome.result["host_time_us"] < 500_000


@pytest.mark.long
def test_without_the_libraries_of_models_the_nn_group_runs_without_the_model(shell: Shell) -> None:
    program = (
        "import sys, importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'onnx' else real(name, *a)\n"
        "sys.argv = ['hbrt', 'run', *sys.argv[1:]]\nfrom hbrt.cli.group import main; main()"
    )
    answer = shell.python("-c", program, "nn", "digits")
    assert answer.returncode == 3
    assert answer.stderr.endswith(
        "Models need onnx, which this Python does not have: install hbrt with its extra 'dnn', as "
        "in pip install '.[dnn]' in its clone.\n"
    )
    assert list(shell.home.iterdir()) == []
    (shell.cwd / "bare.py").write_text(BARE_IMAGE)
    shell.environment["HBRT_IMAGE"] = "bare.py"
    answer = shell.python("-c", program, "nn")
    assert "Left out: digits, which needs onnx (hbrt's extra 'dnn').\n" in answer.stderr
    assert "0 of 5 passed" in answer.stdout


def test_what_a_sample_prints_does_not_mix_with_its_result(forks: Forks, tmp_path: Path) -> None:
    file = tmp_path / "sample.py"
    file.write_text("import sys\nprint('hello')\nprint('there', file=sys.stderr)\ndef main(): return 7\n")
    outcome = run_sample(forks, "sample", file, str(tmp_path), 30.0)
    assert outcome.has_passed
    assert sorted(outcome.output.split()) == ["hello", "there"]


def test_the_samples_are_found_in_the_clone_and_nowhere_else_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert (samples.samples_dir() / "arm" / "nn" / "softmax.py").is_file()
    (tmp_path / "hbrt" / "_samples" / "arm").mkdir(parents=True)
    monkeypatch.setattr(samples, "_HERE", tmp_path / "hbrt")
    assert samples.samples_dir() == tmp_path / "hbrt" / "_samples"
    monkeypatch.setattr(samples, "_HERE", tmp_path / "nowhere")
    with pytest.raises(samples.NoSamplesError, match="The samples are not installed; searched"):
        samples.samples_dir()
