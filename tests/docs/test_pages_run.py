"""Pages whose blocks are programs: each runs as it stands, in order."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.conftest import end_boards
from tests.limits import PATIENCE_S
from tools.docs_blocks import blocks, run_page
from tools.docs_tables import REPOSITORY

DOCS = REPOSITORY / "docs"
ASR, COMPILED, FARM, IMAGES, PROGRAMS = "asr.md", "compiled-ops.md", "farm.md", "c-images.md", "c-programs.md"
RUN = (
    ASR,
    "custom-ops.md",
    "debugging.md",
    "accuracy.md",
    "cycles.md",
    "profiles.md",
    "recording.md",
    "explore.md",
    "time.md",
    "detectors.md",
    COMPILED,
    IMAGES,
    PROGRAMS,
    "porting.md",
    "ci.md",
    "python.md",
    "fastrpc.md",
    "testing.md",
    FARM,
    "remote.md",
    "hrt-model-exec.md",
    "dnn.md",
    "dnn-python.md",
    "dnn-layers.md",
    "rknn-run-time.md",
    "rdk.md",
    "rknn.md",
)
# The others build, compile, start clusters or many processes, for many seconds each.
QUICK = ("python.md", "detectors.md", "dnn-python.md", "rknn-run-time.md")


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in RUN])
def test_a_page_does_what_it_says(name: str, page_environment: dict[str, str], tmp_path: Path) -> None:
    if name in {ASR, COMPILED, IMAGES, PROGRAMS} and shutil.which("cc") is None:
        pytest.skip("no C compiler (cc) on PATH")
    if name == COMPILED:
        page_environment["HBRT_CORES"] = "1"  # each would compile what numba is to compile
    here = tmp_path / "page"
    here.mkdir()
    page = (DOCS / name).read_text(encoding="utf-8")
    ran = list(run_page(page, here, page_environment, PATIENCE_S))
    assert len(ran) == sum(block.language == "bash" for block in blocks(page)) > 0
    assert end_boards(Path(page_environment["HBRT_HOME"])) == [], "the page leaves a board running"


@pytest.mark.parametrize("path", [REPOSITORY / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda path: path.name)
def test_a_program_in_a_page_is_run_by_it(path: Path) -> None:
    """A bash or Python block that no test runs would rot."""
    page = path.read_text(encoding="utf-8")
    programs = [block for block in blocks(page) if block.language in {"bash", "python"}]
    if path.name not in {*RUN, "README.md", "tour.md"}:
        assert programs == []
    assert [block.line for block in programs if block.language == "python" and not block.file] == []
    # A file that is written is used by a block that follows.
    for block in programs:
        if block.language == "python":
            rest = page.splitlines()[block.line :]
            assert any(block.file in line for line in rest), f"nothing runs {block.file}"
