"""``hbrt op new``: what it writes runs as written."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from arm_client.commands.op.kinds import DTYPES, KINDS, WAYS, NewOp
from arm_client.commands.op.new import OpError, check_op, write_op
from tests.limits import full_disk

if TYPE_CHECKING:
    from tests.shared import Shell

FILES = ["call_scale.py", "scale_image.py", "scale_param.py", "test_scale.py"]


@pytest.fixture
def written(shell: Shell) -> Shell:
    """A shell in a directory with a new op."""
    said = shell.good("op", "new", "scale", "--cmd", "0x1000")
    assert (
        said
        == """\
Wrote scale_image.py (the op), call_scale.py (calls it), test_scale.py (checks it) and scale_param.py (what they share).
To make it your op, edit compute_tile() in scale_image.py, and its reference expected() in call_scale.py;
its parameters are ScaleParam in scale_param.py.
Run them (if a board is running, with 'hbrt restart' instead of 'hbrt start'):

  hbrt start --image scale_image.py
  python call_scale.py
  pytest test_scale.py
  hbrt op check 0x1000 --against call_scale.py:expected --params call_scale.py:params
  hbrt stop
"""
    )
    assert sorted(path.name for path in shell.cwd.glob("*.py")) == FILES
    return shell


def test_the_program_runs_on_a_board_that_was_started_with_the_image(written: Shell) -> None:
    written.good("start", "--image", "scale_image.py")
    ops = {row["cmd"]: row for row in written.json("ops")}
    assert {0x400, 0x404, 0x800, 0x818} <= set(ops)  # the packaged ops stay
    op = ops[0x1000]
    assert (op["name"], op["range"]) == ("scale", "custom")
    answer = written.python("call_scale.py")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == "scale: 50000 values by command 0x1000, largest error against numpy 0\n"
    assert sum(core["tasks"] for core in written.status()["cores"]) == 1
    written.good("stop")
    log = written.good("log").splitlines()
    assert len(log) == 2, f"the op left something behind: {log}"


def test_the_program_runs_with_no_board_too(written: Shell) -> None:
    answer = written.python("call_scale.py")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert list(written.home.iterdir()) == []


def test_the_program_says_what_to_do_on_a_board_that_lacks_the_op(written: Shell) -> None:
    written.good("start")
    answer = written.python("call_scale.py")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == "The running board has no scale; give it one: hbrt restart --image scale_image.py\n"
    written.good("restart", "--image", "scale_image.py")
    assert written.python("call_scale.py").returncode == 0


def run_tests(written: Shell, *options: str) -> subprocess.CompletedProcess[str]:
    """Pytest with our plugin alone: others' are most of a short run's time."""
    written.environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return written.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "arm_client.testing", *options)


@pytest.mark.long
def test_the_test_finds_a_wrong_op(written: Shell) -> None:
    image = written.cwd / "scale_image.py"
    text = image.read_text()
    assert text.count("np.add(y, b, out=y)") == 1
    image.write_text(text.replace("np.add(y, b, out=y)", "np.subtract(y, b, out=y)"))
    answer = run_tests(written, "--tb=no", "--maxfail=2")  # a test that failed has had its last board
    assert answer.returncode == 1
    assert "2 failed" in answer.stdout


def test_another_directory_is_made_and_json_names_the_files(shell: Shell) -> None:
    answer = shell.json("op", "new", "my_op", "--cmd", "4097", "--dir", "a/b")
    assert (answer["op"], answer["cmd"], answer["command"]) == ("my_op", 4097, "0x1001")
    assert answer["files"] == [
        f"a/b/{name}" for name in ("my_op_param.py", "my_op_image.py", "call_my_op.py", "test_my_op.py")
    ]
    assert all((shell.cwd / file).is_file() for file in answer["files"])
    assert "class MyOpParam(" in (shell.cwd / "a/b/my_op_param.py").read_text()


@pytest.mark.parametrize("there", FILES)
def test_nothing_is_overwritten(shell: Shell, there: str) -> None:
    (shell.cwd / there).write_text("mine\n")
    answer = shell.hbrt("op", "new", "scale", "--cmd", "0x1000")
    assert answer.returncode == 2
    assert f"{there} already exists; nothing was written. Choose another name, or --dir." in answer.stderr
    assert [path.name for path in shell.cwd.iterdir()] == [there]
    assert (shell.cwd / there).read_text() == "mine\n"


def test_a_directory_that_cannot_be_written_is_the_environments_fault(shell: Shell) -> None:
    (shell.cwd / "file").write_text("")
    answer = shell.hbrt("op", "new", "scale", "--cmd", "0x1000", "--dir", "file/below")
    assert answer.returncode == 3
    assert answer.stderr.startswith("Error: Not a directory: ")


def test_a_disk_that_is_full_is_told_with_the_file(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(OSError, match="File too large") as caught:
        write_op(NewOp("scale", 0x1000), tmp_path)
    assert Path(caught.value.filename).parent == tmp_path
    assert not list(tmp_path.iterdir())


NAME = "cannot name an op: it becomes a Python function and part of file names."


@pytest.mark.parametrize(
    ("name", "cmd", "sentence"),
    [
        ("two words", 0x1000, NAME),
        ("2fast", 0x1000, NAME),
        ("_hidden", 0x1000, NAME),
        ("lambda", 0x1000, NAME),
        ("größe", 0x1000, NAME),
        ("", 0x1000, NAME),
        (
            "tester",
            0x1000,
            "'tester' cannot name an op: pytest would collect functions whose names begin with 'test'.",
        ),
        ("main", 0x1000, "'main' cannot name an op: the generated programs use this name"),
        ("np", 0x1000, "'np' cannot name an op: the generated programs use this name"),
        ("x", 0x1000, "'x' cannot name an op: the generated programs use this name"),
        ("good", 0x0, "Command 0x0 is reserved for the framework; your own op takes 0x1000 to 0xfffe."),
        ("good", 0x3FF, "Command 0x3ff is reserved for the framework"),
        ("good", 0x400, "Command 0x400 belongs to the packaged NN ops"),
        ("good", 0xFFF, "Command 0xfff belongs to the packaged CV ops"),
        ("good", 0xFFFF, "Command 0xffff lists the registered commands"),
        ("good", 0x10000, "Command 0x10000 is not a command number"),
        ("good", -1, "Command -0x1 is not a command number"),
    ],
)
def test_a_name_or_number_that_cannot_be_is_refused(tmp_path: Path, name: str, cmd: int, sentence: str) -> None:
    with pytest.raises(OpError) as refused:
        write_op(NewOp(name, cmd), tmp_path)
    assert sentence in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "cmd"), [("a2", 0x1000), ("normalize_rows", 0xFFFE), ("Relu6", 0x2000)])
def test_other_names_and_numbers_give_programs_that_compile(tmp_path: Path, name: str, cmd: int) -> None:
    check_op(NewOp(name, cmd))
    for file in write_op(NewOp(name, cmd), tmp_path):
        tree = ast.parse(file.read_text())
        assert ast.get_docstring(tree)
        assert "$" not in file.read_text()


def test_the_number_is_needed_and_may_be_decimal_or_hex(shell: Shell) -> None:
    missing = shell.hbrt("op", "new", "scale")
    assert missing.returncode == 2
    assert "Missing option '--cmd'" in missing.stderr
    wrong = shell.hbrt("op", "new", "scale", "--cmd", "one")
    assert wrong.returncode == 2
    assert "Invalid command 'one': expected a number, such as 0x1000." in wrong.stderr


COMBINATIONS = [(way, kind, dtype) for way in WAYS for kind in KINDS for dtype in DTYPES]


def test_what_is_written_is_clean(tmp_path: Path) -> None:
    ruff = [sys.executable, "-m", "ruff"]
    if subprocess.run([*ruff, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("ruff is not installed: the extra 'dev' brings it")
    ours = 'lint.isort.known-first-party=["call_scale", "scale_param"]'
    rules = ["--isolated", "--line-length", "120", "--config", ours]
    for way, kind, dtype in COMBINATIONS:
        write_op(NewOp("scale", 0x1000, way, kind, dtype), tmp_path / f"{way}-{kind}-{dtype}")
    for command in (
        ["format", "--check"],
        ["check", "--select", "E,F,W,I,UP,B,ANN,D205,D4,RUF", "--ignore", "D401,D413"],
    ):
        answer = subprocess.run(
            [*ruff, *command, *rules, "."], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert answer.returncode == 0, answer.stdout


def test_an_image_in_c_says_how_it_is_built(shell: Shell) -> None:
    said = shell.good("op", "new", "scale", "--cmd", "0x1000", "--c")
    assert "Wrote scale_image.c (the op), call_scale.py (calls it), test_scale.py (checks it) and scale_param.h" in said
    assert "  hbrt cc --dsp -O3 scale_image.c\n  hbrt start --image scale_image.so\n" in said


@pytest.mark.parametrize("name", ["double", "main", "await", "tiles", "hb_dsp_start"])
def test_a_name_that_the_image_in_c_needs_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OpError, match=r"the generated programs use this name|no keyword"):
        write_op(NewOp(name, 0x1000, way="c"), tmp_path)
    assert not list(tmp_path.iterdir())


# What calls the op and what it is compared with are the same of every way, so that they run as written once a kind, and
# of the kind that has all parts for every way. Of each way and kind one type; of numba, which compiles for seconds, the
# kind that has all parts. The others take a compiler and a pytest each, some two minutes together.
RUN = [
    pytest.param(
        way,
        kind,
        DTYPES[(3 * i + j) % len(DTYPES)],
        marks=() if (way, kind) == ("numpy", "rows") else pytest.mark.long,
    )
    for i, way in enumerate(WAYS)
    for j, kind in enumerate(KINDS)
    if way != "numba" or kind == "image"
]


@pytest.mark.parametrize(("way", "kind", "dtype"), RUN)
def test_every_way_and_kind_runs_as_written_under_all_checks(shell: Shell, way: str, kind: str, dtype: str) -> None:
    if way == "c" and shutil.which("cc") is None:
        pytest.skip("no C compiler is here")
    if way == "numba":
        pytest.importorskip("numba")
    how = [*([f"--{way}"] if way != "numpy" else []), "--kind", kind, "--dtype", dtype]
    said = shell.good("op", "new", "scale", "--cmd", "0x1000", *how, *(["--halo", "2"] if kind == "image" else []))
    if way == "c":
        shell.good("cc", "--dsp", "-O3", "-Wall", "-Wextra", "-Werror", "scale_image.c")
        shell.good("op", "check-layout", "scale_param.py:ScaleParam", "scale_param.h:ScaleParam")
    shell.environment |= {"HBRT_CHECK": "all,fail", "HBRT_IMAGE": f"scale_image.{'so' if way == 'c' else 'py'}"}
    shell.environment["HBRT_CORES"] = "1"  # each would compile what numba is to compile
    answer = run_tests(shell)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert list(shell.home.iterdir()) == []
    if way != "numpy" and kind != "image":
        return
    called = shell.python("call_scale.py")
    assert (called.returncode, called.stderr) == (0, "")
    [check] = [line.split()[1:] for line in said.splitlines() if line.startswith("  hbrt op check")]
    assert "in 20 cases; largest difference 0 ulp" in shell.good(*check, "--cases", "20")


@pytest.mark.parametrize("options", [["--halo", "2"], ["--kind", "image", "--halo", "9"], ["--dtype", "float64"]])
def test_a_shape_that_is_none_is_refused(shell: Shell, options: list[str]) -> None:
    assert shell.hbrt("op", "new", "scale", "--cmd", "0x1000", *options).returncode == 2
    assert not list(shell.cwd.iterdir())
