"""What an image in C reads of a program's memory, under the sanitizers, against programs that write anything there."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Once
from tests.limits import PATIENCE_S

NATIVE = Path(__file__).resolve().parents[3] / "native"
HEADERS = ("include/dsp", "include/fastrpc", "mailbox", "dsp")
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not here")


@pytest.fixture(scope="module")
def program(once: Once) -> Path:
    """The fuzzer, built."""
    sources = [Path(__file__).with_name("fuzz_fastrpc.c"), NATIVE / "dsp/dspqueue.c", NATIVE / "dsp/fastrpc.c"]

    def build(target: Path) -> None:
        flags = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
        flags += ["-fno-sanitize-recover=all", "-Draise=fuzz_raise", *(f"-I{NATIVE / folder}" for folder in HEADERS)]
        subprocess.run(["gcc", *flags, *map(str, sources), "-o", str(target)], check=True, timeout=PATIENCE_S)

    return once("fuzz_fastrpc", build)


def run(program: Path, seed: int, rounds: int) -> None:
    answer = subprocess.run(
        [program, str(seed), str(rounds)], check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (answer.returncode, answer.stdout) == (0, "good\n"), f"seed {seed}: {answer.stderr}"


@pytest.mark.parametrize("seed", range(1, 5))
def test_messages_and_rings_of_any_content(program: Path, seed: int) -> None:
    run(program, seed, 20_000)


@pytest.mark.long
def test_messages_and_rings_of_any_content_for_long(program: Path) -> None:
    for seed in range(100, 140):
        run(program, seed, 100_000)
