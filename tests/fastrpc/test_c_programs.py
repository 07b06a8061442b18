"""Programs in C that use FastRPC as its SDK's users do, with AddressSanitizer and UndefinedBehaviorSanitizer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.limits import PATIENCE_S

HERE = Path(__file__).parent
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "--sanitize", "address,undefined", "-fno-sanitize-recover=all"]


def build(target: Path, *arguments: object) -> Path:
    command = [sys.executable, "-m", "hbrt", "cc", *map(str, arguments), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each program, built."""
    folder = tmp_path_factory.mktemp("programs")
    return {one: build(folder / one, HERE / "programs" / f"{one}.c", *STRICT) for one in ("names",)}


@pytest.mark.parametrize(("program", "image"), [("names", HERE / "images" / "plain.py")])
def test_a_program(programs: dict[str, Path], program: str, image: Path, board_home: Path) -> None:
    outer = {name: value for name, value in os.environ.items() if not name.startswith("HBRT_")}
    # This GCC's leak checker does not survive the threads of Python.
    mine = {"HBRT_HOME": str(board_home), "HBRT_IMAGE": str(image), "HBRT_CORES": "2", "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(
        [programs[program]], env={**outer, **mine}, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout) == (0, "all is well\n"), done.stderr
    assert "runtime error" not in done.stderr
    assert "defect of hbrt" not in done.stderr
    assert "leak:" not in done.stderr
