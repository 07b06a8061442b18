"""Programs in forks of one process: each has its own output and end, whatever another left running."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from arm_client.commands.run.forks import Forks, file_in_memory
from hbrt.errors import BoardError
from tests.limits import PATIENCE_S


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks("json") as made:
        yield made


def test_a_program_and_a_function_run_as_python_would_have_them(forks: Forks, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("WORD = 'beside'\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, beside\n"
        "def told():\n    print('told', file=sys.stderr)\n    raise SystemExit(3)\n"
        "if __name__ == '__main__':\n    print(sys.argv[1:], beside.WORD, os.environ['HERE'], 'json' in sys.modules)\n"
    )
    assert forks.run(str(program), ["a"], {"HERE": "1"}, PATIENCE_S) == (0, False, "['a'] beside 1 True\n")
    assert forks.run(str(program), [], {}, PATIENCE_S, "told") == (3, False, "told\n")


def test_standard_error_is_written_at_once_and_takes_any_text(forks: Forks, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os, sys\nprint('before \\udc80', file=sys.stderr)\nos._exit(4)\n")
    assert forks.run(str(program), [], {}, PATIENCE_S) == (4, False, "before \\udc80\n")


def test_one_that_hangs_is_killed_and_what_it_left_says_nothing_in_the_next(forks: Forks, tmp_path: Path) -> None:
    left, program = tmp_path / "left.py", tmp_path / "program.py"
    left.write_text(
        "import os, time\nif os.fork():\n    time.sleep(1000)\n"
        "while not os.path.exists('go'):\n    time.sleep(0.001)\n"
        "print('from the run before', flush=True)\nopen('gone', 'w').close()\n".replace("'go", f"'{tmp_path}/go")
    )
    program.write_text(
        "import time, os\nopen('go', 'w').close()\nwhile not os.path.exists('gone'):\n    time.sleep(0.001)\n".replace(
            "'go", f"'{tmp_path}/go"
        )
    )
    code, has_timed_out, _ = forks.run(str(left), [], {}, 1.0)
    assert (code, has_timed_out) == (-9, True)
    assert forks.run(str(program), [], {}, PATIENCE_S) == (0, False, "")


def test_nothing_is_left_behind_even_by_a_killed_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))  # it makes no file at all
    with Forks() as forks, file_in_memory() as log:
        program = tmp_path / "program.py"
        program.write_text("import os\nopen(os.environ['LOG'], 'a').write('logged')\nprint('told')\n")
        assert forks.run(str(program), [], {"LOG": str(log)}, PATIENCE_S) == (0, False, "told\n")
        assert log.read_text() == "logged"
    assert not log.exists()


def test_ctrl_c_interrupts_a_run_and_not_the_process_that_forks(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os, signal\nprint('runs')\nos.kill(os.getpid(), signal.SIGINT)\nprint('goes on')\n")
    others = set(psutil.Process().children())
    with Forks() as forks:
        (server,) = set(psutil.Process().children()) - others
        server.send_signal(signal.SIGINT)
        for _ in range(2):
            code, has_timed_out, output = forks.run(str(program), [], {}, PATIENCE_S)
            assert (code, has_timed_out) == (-signal.SIGINT, False)
            assert "runs\n" in output
            assert "KeyboardInterrupt\n" in output
            assert "goes on" not in output


def test_a_killed_process_is_a_sentence(tmp_path: Path) -> None:
    others = set(psutil.Process().children())
    with Forks() as forks:
        (server,) = set(psutil.Process().children()) - others
        server.kill()
        server.wait()
        with pytest.raises(BoardError, match="has ended; run the command again"):
            forks.run(str(tmp_path / "any.py"), [], {}, PATIENCE_S)
