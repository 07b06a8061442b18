"""tools/compatibility.py: what it writes of programs that build, run, or do not."""

import json
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tools import compatibility
from tools.compatibility import Result, absolute_files, compared, merged, results, rows_of, table, write
from tools.stand_in import write_model

RUN = (
    "import numpy as np\nfrom hobot_dnn import pyeasy_dnn as dnn\n"
    "print(dnn.load('net.bin')[0].forward(np.arange(1536, dtype=np.uint8))[0].buffer)\n"
)
BOOK = ["%matplotlib inline\n", "print('begin')\n", "!ls \\\n", "  --all\n", "print('end')"]


@pytest.fixture
def mirror(tmp_path: Path) -> tuple[Path, str]:
    """A folder with one clone, and its commit."""
    clone = tmp_path / "author" / "name"
    clone.mkdir(parents=True)
    for name, text in {
        "good.c": '#include "dnn/hb_dnn.h"\nint main(void) { return !hbDNNGetVersion(); }\n',
        "bad.c": "#include <no/such.h>\n",
        "py/run.py": RUN,
        "py/wait.py": "import time\nwhile True:\n    time.sleep(1)\n",
        "py/book.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": BOOK}, {"cell_type": "raw"}]}),
        "py/none.py": "import sys\nprint('E inference: no camera', file=sys.stderr)\nlen(None)\n",
        "py/stop.py": "raise SystemExit('no | camera')\n",
    }.items():
        (clone / name).parent.mkdir(exist_ok=True)
        (clone / name).write_text(text)
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], check=True)
    found = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return tmp_path, found.stdout.strip()


@pytest.mark.long
def test_each_program_has_its_result(mirror: tuple[Path, str]) -> None:
    folder, commit = mirror
    net = {"file": "net.bin", "inputs": [{"shape": [1, 3, 32, 32], "type": "nv12"}], "outputs": [{"shape": [1, 4]}]}
    runs = [{"path": "py/run.py", "models": [net]}, {"path": "py/stop.py"}]
    runs += [{"path": "py/wait.py", "interrupt_s": 1, "pictures": ["in.png"]}, {"path": "py/none.py"}]
    runs += [{"path": "py/book.ipynb", "prints": "begin\nend"}, {"path": "py/book.ipynb", "prints": "more"}]
    repository = {"vendor": "RDK", "name": "author/name", "commit": commit, "run": runs}
    rows = list(results(folder, repository, ["good.c", "bad.c"]))
    assert [row.values for row in rows if row.values] == ["1 of 1 equal"]
    assert [(row.path, row.text) for row in rows] == [
        ("good.c", "builds"),
        ("bad.c", "no/such.h: No such file or directory"),
        ("py/run.py", "runs"),
        ("py/stop.py", "no \\| camera"),
        ("py/wait.py", "runs"),
        ("py/none.py", "E inference: no camera"),
        ("py/book.ipynb", "runs"),
        ("py/book.ipynb", "exit code 0"),
    ]
    whole = results(folder, {"vendor": "RDK", "name": "author/name", "commit": commit}, [])
    assert {row.path: row.text for row in whole} == {row.path: row.text for row in rows[:2]}
    reasons = [
        {"name": "NO", "match": "^no/", "offered": False},
        {"name": "camera", "match": "camera", "complete": False},
    ]
    shown = table(rows, {"repository": [{**repository, "board": "S9"}], "reason": reasons})
    assert "| C and C++ for S9 | 1 of 2 (50.0%) | 1 of 1 (100.0%) | 1 of 1 (100.0%) |\n" in shown
    assert "| Python | 3 of 6 (50.0%) | 3 of 6 (50.0%) | 3 of 4 (75.0%) |" in shown
    assert "without NO | of complete ones |" in shown
    assert "| all | 4 of 8 (50.0%) | 4 of 7 (57.1%) | 4 of 5 (80.0%) |" in shown
    assert "| camera | 2 |\n| NO | 1 |\n| hbrt or the stand-in | 1 |" in shown
    assert "| no \\| camera |  | camera |\n| author/name | py/wait.py" in shown
    with pytest.raises(FileNotFoundError, match="has no commit"):
        list(results(folder, {**repository, "commit": "0" * 40}, []))


def test_a_program_that_ignores_its_interrupt_is_ended(
    mirror: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = mirror
    monkeypatch.setattr(compatibility, "INTERRUPTED_S", 0.5)
    own = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program inherits it
    try:
        text = compatibility.run(folder / "author" / "name", {"path": "py/wait.py", "interrupt_s": 0.1})
    finally:
        signal.signal(signal.SIGINT, own)
    assert text == "did not end when interrupted"


def test_a_model_run_that_differs_from_onnxruntimes_is_counted(tmp_path: Path) -> None:
    outputs: list[dict[str, Any]] = [{"shape": [1, 4]}, {"shape": [1, 4], "type": "s32", "scale": 0.5}]
    model: dict[str, Any] = {"file": "net.bin", "inputs": [{"shape": [1, 2]}], "outputs": outputs}
    write_model(tmp_path / "net.bin", model["inputs"], outputs)
    (tmp_path / compatibility.RUNS).mkdir()
    ramp = np.linspace(-1, 1, 4, dtype=np.float32)[None] + np.float32(0.5)
    for number, added in enumerate((0, 1)):
        held: dict[str, Any] = {
            "i:input0": np.full((1, 2), 0.5, np.float32),
            "o:output0": ramp,
            "o:output1": ramp.astype(int) + added,
        }
        np.savez(tmp_path / compatibility.RUNS / f"net-1-{number}.npz", **held)
    assert compared(tmp_path, {"path": "run.py", "models": [model]}) == "1 of 2 equal"
    assert not compared(tmp_path / "none", {"path": "run.py"})


def test_files_at_absolute_paths_go_with_their_program(tmp_path: Path) -> None:
    model, text = tmp_path / "far" / "away" / "net.bin", tmp_path / "one.txt"
    with absolute_files({"models": [{"file": str(model)}, {"file": "near.bin"}], "texts": {str(text): "1"}}):
        model.parent.mkdir(parents=True)
        model.touch()
        text.touch()
    assert not list(tmp_path.iterdir())
    text.touch()
    with pytest.raises(FileExistsError, match=r"one\.txt already exists"), absolute_files({"arrays": {str(text): [1]}}):
        pass


def test_a_vendors_section_is_replaced_and_others_stay() -> None:
    row = Result("ZZ", "author/name", "one.c", "0" * 10, "builds")
    listed: dict[str, Any] = {"repository": []}
    page = write(compatibility.PAGE.read_text(encoding="utf-8"), "ZZ", [row], listed)
    other = Result("ZZ", "author/other", "two.c", "1" * 10, "no \\| camera")
    ran = replace(row, text="runs")
    before = [row, ran, other]
    assert rows_of(write(page, "ZZ", before, listed), "ZZ") == before
    better = replace(row, commit="0" * 40, text="no/such.h: No such file or directory")
    assert merged(before, [replace(other, path="new.c"), better]) == [ran, better, other, replace(other, path="new.c")]
    full = merged(before, [better])  # what was tried has its whole commit
    assert merged(full, [other]) == full
    again = write(write(page, "AA", [row], listed), "ZZ", [], listed)
    assert again.index("## AA") < again.index("## ZZ")
    assert again.count("one.c") == 1
    assert "| all | 0 of 0 (0.0%)" in again
    with pytest.raises(ValueError, match="has no lines"):
        write("nothing", "A", [row], listed)
