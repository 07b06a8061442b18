"""What C reads of memory that programs write, under the sanitizers, against programs that write anything there.

The programs are ``fuzz.c`` of the folders: an image's queues and calls (dsp), a core and a client (mailbox).
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.limits import PATIENCE_S
from tests.shared import Once

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[1] / "native"
FASTRPC = "../packages/hbrt-fastrpc/src/fastrpc/native"
SOURCES = {
    "dsp": [f"{FASTRPC}/dsp/{one}.c" for one in ("dspqueue", "fastrpc")],
    "mailbox": [f"mailbox/{one}.c" for one in ("client", "core", "note", "wait")],
}
HEADERS = (
    *("include/dsp", "mailbox", "dsp", f"{FASTRPC}/dsp"),
    *(f"{FASTRPC}/include/fastrpc{one}" for one in ("", "/qurt", "/stddef")),
)
STRICT = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not here"),
    pytest.mark.parametrize("folder", SOURCES),
]


@pytest.fixture
def program(once: Once, folder: str) -> Path:
    """A fuzzer, built."""
    sources = [HERE / folder / "fuzz.c", *(NATIVE / one for one in SOURCES[folder])]

    def build(target: Path) -> None:
        flags = [*STRICT, *SANITIZERS, "-Draise=fuzz_raise", *(f"-I{NATIVE / one}" for one in HEADERS)]
        subprocess.run(["gcc", *flags, *map(str, sources), "-o", str(target)], check=True, timeout=PATIENCE_S)

    return once(f"fuzz-{folder}", build)


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
