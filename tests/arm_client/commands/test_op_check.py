"""``hbrt op check`` through real processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Shell

REFERENCES = """
import numpy as np

def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max())
    return (e / e.sum()).astype(np.float32)

def off_by_one(x):
    y = softmax(x)
    y[-1] = 3.0
    return y

def nan(x):
    return np.full_like(x, np.nan)

def text(x):
    return "abc"

def ragged(x):
    return [1, [2]]

def wide(x):
    return x.astype(np.longdouble)

def leaves(x):
    raise SystemExit(0)

def swapped(x):
    return softmax(x).astype(">f4")

def near(x):
    return softmax(x) + np.float32(1e-5)

def fails(x):
    return {}["no such key"]
"""


@pytest.fixture
def references(tmp_path: Path) -> Path:
    path = tmp_path / "references.py"
    path.write_text(REFERENCES, encoding="utf-8")
    return path


def test_an_op_that_agrees(running: Shell, references: Path) -> None:
    said = running.good("op", "check", "0x400", "--against", f"{references}:softmax", "--ulp", 4, "--cases", 15)
    assert said.startswith(f"Command 0x400 (softmax) agrees with {references}:softmax in 15 cases; largest difference ")


def test_an_op_that_differs(running: Shell, references: Path) -> None:
    answer = running.hbrt("op", "check", "0x400", "--against", f"{references}:off_by_one", "--ulp", 4)
    assert answer.returncode == 1
    assert answer.stdout.startswith(
        f"Command 0x400 (softmax) differs from {references}:off_by_one. Case 0 (1 float32, normal): element 0 is 1.0, "
        "the reference has 3.0, "
    )
    answer = running.hbrt("op", "check", "0x400", "--against", f"{references}:off_by_one", "--ulp", 4, "--json")
    found = json.loads(answer.stdout)
    assert (answer.returncode, found["equal"], found["index"], found["got"], found["expected"]) == (1, False, 0, 1, 3)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--against", "nothing"], "'nothing' names no function; write MODULE:FUNCTION or FILE.py:FUNCTION."),
        (["--against", "no_such_module:f"], "no_such_module cannot be imported: No module named 'no_such_module'."),
        (["--against", "math:nope"], "math has no function nope."),
        (["--against", "math:sqrt", "--dtype", "object"], "'object' is no type to generate;"),
        (["--against", "math:sqrt", "--dtype", "longdouble"], "'longdouble' is no type to generate;"),
        (["--against", "math:sqrt", "--dtype", "f4,,"], "'f4,,' is no type to generate;"),
    ],
)
def test_wrong_usage_is_a_sentence(shell: Shell, arguments: list[str], sentence: str) -> None:
    code, said = shell.refused("op", "check", "0x400", *arguments)
    assert code == 2
    assert sentence in said


@pytest.mark.parametrize("cmd", ["0", "0xffff", "0x10000"])
def test_a_number_that_is_no_ops_is_wrong_usage(shell: Shell, cmd: str) -> None:
    code, said = shell.refused("op", "check", cmd, "--against", "math:sqrt")
    assert code == 2
    assert f"Command {int(cmd, 0):#x} is no op's; 'hbrt ops' lists those of the running board." in said


@pytest.mark.parametrize("name", ["HBRT_CACHE", "HBRT_NN_PATH", "HBRT_RELAY_IDLE_S"])
def test_a_bad_setting_is_wrong_usage(shell: Shell, references: Path, name: str) -> None:
    shell.environment[name] = "x"
    code, said = shell.refused("op", "check", "0x400", "--against", f"{references}:softmax")
    assert code == 2
    assert said.startswith(f"Error: {name} is 'x'")


def test_a_script_that_ends_when_it_is_imported_is_named(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text("import sys\nsys.exit(0)\n", encoding="utf-8")
    answer = shell.hbrt("op", "check", "0x400", "--against", f"{file}:f")
    assert answer.returncode == 2
    assert f"Error: {file} cannot be imported:\nTraceback" in answer.stderr
    assert answer.stderr.endswith("SystemExit: 0\n")


def test_the_order_of_a_references_bytes_does_not_matter(running: Shell, references: Path) -> None:
    running.good("op", "check", "0x400", "--against", f"{references}:swapped", "--ulp", 4, "--cases", 5)


def test_a_difference_may_be_small_instead_of_near(running: Shell, references: Path) -> None:
    check = ("op", "check", "0x400", "--against", f"{references}:near", "--ulp", 4, "--cases", 15)
    assert running.hbrt(*check).returncode == 1
    assert running.good(*check, "--atol", 1.1e-5).startswith("Command 0x400 (softmax) agrees with ")


def test_an_unknown_command_is_the_users_failure(running: Shell, references: Path) -> None:
    answer = running.hbrt("op", "check", "0x1abc", "--against", f"{references}:softmax")
    assert answer.returncode == 1
    assert "No op is registered for command 0x1abc." in answer.stderr


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (
            "text",
            "Error: The reference returned an array of type <U3 for case 0 (1 float32, normal): return the numbers",
        ),
        ("wide", "Error: The reference returned an array of type float128 for case 0 (1 float32, normal): return the"),
        ("ragged", "Error: The reference returned no array for case 0 (1 float32, normal): setting an array element"),
        ("leaves", "Error: The reference failed on case 0 (1 float32, normal):\nTraceback (most recent call last):\n"),
        ("fails", "Error: The reference failed on case 0 (1 float32, normal):\nTraceback (most recent call last):\n"),
    ],
)
def test_a_reference_that_fails_is_not_called_a_defect(
    running: Shell, references: Path, function: str, sentence: str
) -> None:
    answer = running.hbrt("op", "check", "0x400", "--against", f"{references}:{function}")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.startswith(sentence)
    assert "arm_client" not in answer.stderr  # of the traceback only what is the caller's
    if function == "fails":
        assert answer.stderr.endswith("KeyError: 'no such key'\n")


def test_a_reference_whose_file_fails(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("1 / 0\n", encoding="utf-8")
    answer = shell.hbrt("op", "check", "0x400", "--against", f"{file}:f")
    assert answer.returncode == 2
    assert f"Error: {file} cannot be imported:\nTraceback" in answer.stderr
    assert answer.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert "arm_client" not in answer.stderr


def test_an_op_with_other_parameters_is_told_of_params(running: Shell, references: Path) -> None:
    answer = running.hbrt("op", "check", "0x401", "--against", f"{references}:softmax")
    assert answer.returncode != 0
    assert answer.stderr.startswith("Without --params the input block was {int32 data_size; uint64 input}; ")
    assert "Error: Command 0x401: " in answer.stderr


def test_json_has_no_nan(running: Shell, references: Path) -> None:
    answer = running.hbrt("op", "check", "0x400", "--against", f"{references}:nan", "--json")
    found = json.loads(answer.stdout, parse_constant=pytest.fail)
    assert (found["got"], found["expected"], found["ulp"]) == (1.0, "nan", None)
