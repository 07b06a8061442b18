"""Libraries of C++ that the tests call."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.limits import WHOLE_RUN_S
from tests.shared import Once

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[2] / "native" / "include" / "dsp"
FLAGS = ("-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-fPIC", f"-I{INCLUDE}")
Build = Callable[..., Path]
Load = Callable[..., ctypes.CDLL]


def compiled(target: Path, source: Path, *flags: str) -> Path:
    """A library or program of one source; a compiler that refuses shows what it said."""
    standard = () if any(flag.startswith("-std=") for flag in flags) else ("-std=c++17",)
    command = ["g++", *standard, *FLAGS, *flags, str(source), "-o", str(target)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=WHOLE_RUN_S)
    assert ran.returncode == 0, f"{' '.join(command)}\n{ran.stderr[:4000]}"
    return target


@pytest.fixture(scope="session")
def build(once: Once) -> Build:
    """Compile a source of this folder, or a text."""
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler (g++) is here")

    def build(name: str, *flags: str, text: str | None = None) -> Path:
        def make(target: Path) -> None:
            source = HERE / f"{Path(name).stem}.cpp"
            if text is not None:
                source = target.with_name(source.name)
                source.write_text(text, encoding="utf-8")
            compiled(target, source, *flags)

        return once(f"ivp/{name}", make)

    return build


@pytest.fixture(scope="session")
def sanitizers(build: Build) -> None:
    """Skips where the compiler has no sanitizers to link."""
    try:
        build("sanitized", "-fsanitize=address,undefined", text="int main() { return 0; }\n")
    except AssertionError as error:
        pytest.skip(f"g++ cannot link the sanitizers: {str(error).splitlines()[-1]}")


@pytest.fixture(scope="session")
def load(build: Build) -> Load:
    """The same as a shared library that ctypes has opened; it owns the cycle counters."""

    def load(name: str, *flags: str, text: str | None = None) -> ctypes.CDLL:
        options = ("-O1", "-shared", "-DHBRT_CYCLES_DEFINE", *flags)  # a later -O counts
        return ctypes.CDLL(str(build(f"{name}.so", *options, text=text)))

    return load
