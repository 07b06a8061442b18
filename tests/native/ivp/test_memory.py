"""Loads and stores under the address sanitizer: no byte next to those that an intrinsic names is read or written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.limits import PATIENCE_S
from tests.native.ivp.conftest import Build

pytestmark = pytest.mark.long  # the sanitizers take ten seconds to compile its formats
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.fixture(scope="module")
def program(build: Build, sanitizers: None) -> Path:
    return build("memory", "-O0", "-DHBRT_NO_CYCLES", *SANITIZERS)


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *arguments], check=False, capture_output=True, text=True, timeout=PATIENCE_S)


def test_every_format_at_every_address_and_length(program: Path) -> None:
    ended = run(program)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-4000:]
    assert int(ended.stdout) > 1_000_000


def test_a_byte_beside_the_vector_would_be_seen(program: Path) -> None:
    ended = run(program, "beside")
    assert ended.returncode != 0
    assert "ERROR: AddressSanitizer" in ended.stderr


def test_an_offset_outside_the_window_of_a_gather_is_named_once(program: Path) -> None:
    ended = run(program, "far")
    assert ended.returncode == 0
    assert [line.partition(", which")[0] for line in ended.stderr.splitlines()] == [
        f"{name}: offset 120000 is more than 64 KiB after the base"
        for name in ("IVP_GATHERAN_2X32", "IVP_SCATTERN_2X32")
    ]


def test_an_aligned_load_of_another_address_says_so(program: Path) -> None:
    ended = run(program, "misaligned")
    assert ended.returncode != 0
    assert "IVP_LV2NX8 at 0x" in ended.stderr
    assert "is not aligned to 64 bytes: use the unaligned form" in ended.stderr
