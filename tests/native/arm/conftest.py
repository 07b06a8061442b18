"""Programs in C and C++, each compiled once per run by ``hbrt cc``, and run as a user runs them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hbrt.native.files import NotBuiltError, library
from tests.limits import PATIENCE_S
from tests.shared import Once, build_c
from tests.watched import shared_board

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
SAMPLES = HERE.parents[2] / "samples" / "c"

Compile = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]


def cc(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """``hbrt cc``."""
    return subprocess.run(
        [sys.executable, "-m", "hbrt", "cc", *map(str, arguments)],
        cwd=cwd,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.fixture(scope="session")
def compiled(once: Once) -> Compile:
    """``compiled(name, *flags)``: the program of a file, which is in programs/ or a sample."""
    if shutil.which("cc") is None or shutil.which("c++") is None:
        pytest.skip("no compiler of C and C++ is here (cc, c++)")
    try:
        library("libhbrt.so")
    except NotBuiltError as error:
        pytest.skip(str(error))

    def compile_once(name: str, *flags: str) -> Path:
        source = PROGRAMS / name if (PROGRAMS / name).is_file() else SAMPLES / name

        def make(target: Path) -> None:
            warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
            build_c(source, "-o", target, *warnings, *flags)

        key = hashlib.sha256(repr((name, flags)).encode()).hexdigest()[:8]
        return once(f"arm/{source.stem}-{key}{'.so' if '-shared' in flags else ''}", make)

    return compile_once


@pytest.fixture(scope="module")
def board() -> Iterator[Path]:
    """The board of a module's programs."""
    with shared_board(cores=2, ddr_bytes=64 << 20) as paths:
        yield paths.path


@pytest.fixture
def run(board_home: Path, board: Path) -> Run:
    """``run(program, *arguments, **environment)``: to its end, on the module's board, or one of its own.

    It starts its own where its environment has another image or profile, or HBRT_BOARD="".
    """

    def run_it(program: Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        outer = {name: value for name, value in os.environ.items() if not name.startswith("HBRT_")}
        of_board = {"HBRT_BOARD", "HBRT_IMAGE", "HBRT_PROFILE"} & set(environment)
        where = {"HBRT_HOME": str(board_home)} if of_board else {"HBRT_BOARD": str(board)}
        return subprocess.run(
            [program, *map(str, arguments)],
            env={**outer, **where, **environment},
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    return run_it
