"""Images in C, each compiled once per run."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arm_client.client import Board
from hbrt.native.image_flags import is_cpp
from tests.shared import Once, build_c

IMAGES = Path(__file__).parent / "images"
WARNINGS = ("-Wall", "-Wextra", "-Werror")
Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build(once: Once) -> Build:
    """``build(source, *flags)``: the image that ``hbrt cc --dsp`` makes of a source, a path or text of C."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler is here")

    def image(source: str | Path, *flags: str, suffix: str = ".c") -> Path:
        def make(target: Path) -> None:
            path = source if isinstance(source, Path) else target.with_name(f"image{suffix}")
            if isinstance(source, str):
                path.write_text(source)
            standard = "-std=gnu++17" if is_cpp(str(path)) else "-std=gnu11"
            build_c("--dsp", standard, path, *flags, "-o", target)

        key = hashlib.sha256(repr((source, flags, suffix)).encode()).hexdigest()[:16]
        return once(f"dsp/{key}/image.so", make)

    return image


@pytest.fixture
def board(build: Build, dsp_board_factory: Callable[..., Any]) -> Iterator[Board]:
    """A board with the image of ops.c."""
    with dsp_board_factory(image=str(build(IMAGES / "ops.c", *WARNINGS)), cores=1) as board:
        yield board
