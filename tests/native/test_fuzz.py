"""What C reads of memory that programs write, under the sanitizers, against programs that write anything there.

The program is ``mailbox/fuzz.c``: a core and a client.
"""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.limits import PATIENCE_S
from tests.shared import Once

HERE = Path(__file__).resolve().parent
MAILBOX = HERE.parents[1] / "native" / "mailbox"
STRICT = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
NEEDS_GCC = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not here")
pytestmark = NEEDS_GCC


def fuzzer(once: Once, sources: Iterable[Path], folders: Iterable[Path]) -> Path:
    """A fuzzer, built from its own source, the first, and those that it fuzzes."""
    first, *others = sources

    def build(target: Path) -> None:
        flags = [*STRICT, *SANITIZERS, "-Draise=fuzz_raise", *(f"-I{one}" for one in folders)]
        files = map(str, (first, *others))
        subprocess.run(["gcc", *flags, *files, "-o", str(target)], check=True, timeout=PATIENCE_S)

    return once(f"fuzz-{first.parent.name}", build)


@pytest.fixture
def program(once: Once) -> Path:
    sources = [HERE / "mailbox" / "fuzz.c", *(MAILBOX / f"{one}.c" for one in ("client", "core", "note", "wait"))]
    return fuzzer(once, sources, [MAILBOX])


def run(program: Path, seed: int, rounds: int) -> None:
    answer = subprocess.run(
        [program, str(seed), str(rounds)], check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (answer.returncode, answer.stdout) == (0, "good\n"), f"seed {seed}: {answer.stderr}"


def test_memory_of_any_content(program: Path) -> None:
    run(program, 1, 20_000)


@pytest.mark.long
def test_memory_of_any_content_for_long(program: Path) -> None:
    for seed in range(100, 120):
        run(program, seed, 100_000)
