"""The mailbox in C under the sanitizers: clients of several threads, and cores, on one table; and when they poll."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.limits import PATIENCE_S

REPOSITORY = Path(__file__).resolve().parents[3]
MAILBOX = REPOSITORY / "native" / "mailbox"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not here")
def test_when_a_waiter_polls(tmp_path: Path) -> None:
    program = tmp_path / "polling"
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", f"-I{MAILBOX}"]
    subprocess.run(
        ["gcc", *flags, str(Path(__file__).with_name("polling.c")), "-o", str(program)], check=True, timeout=PATIENCE_S
    )
    answer = subprocess.run([str(program)], check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (answer.returncode, answer.stdout) == (0, "good\n"), answer.stderr


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not here")
@pytest.mark.parametrize("sanitizers", ["thread", pytest.param("address,undefined", marks=pytest.mark.long)])
def test_threads_of_clients_and_cores(sanitizers: str, tmp_path: Path) -> None:
    program = tmp_path / "threads"
    flags = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-tsan", "-pthread", f"-I{MAILBOX}"]
    sources = [Path(__file__).with_name("threads.c"), *sorted(MAILBOX.glob("*.c"))]
    subprocess.run(
        [
            "gcc",
            *flags,
            f"-fsanitize={sanitizers}",
            "-fno-sanitize-recover=all",
            *map(str, sources),
            "-o",
            str(program),
        ],
        check=True,
        timeout=PATIENCE_S,
    )
    answer = subprocess.run([str(program)], check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (answer.returncode, answer.stdout) == (0, "good\n"), answer.stderr
