"""An image's queues and calls against programs that write anything, under the sanitizers: ``fuzz.c``."""

from pathlib import Path

import pytest

from hbrt.native.files import hexagon_sources, image_folders, source_dir
from tests.native.test_fuzz import NEEDS_GCC, fuzzer, run
from tests.shared import Once

HERE = Path(__file__).resolve().parent
pytestmark = NEEDS_GCC


@pytest.fixture
def program(once: Once) -> Path:
    dsp = hexagon_sources().with_name("dsp")
    sources = [HERE / "fuzz.c", dsp / "dspqueue.c", dsp / "fastrpc.c"]
    return fuzzer(once, sources, [*image_folders(), dsp, source_dir("dsp"), source_dir("mailbox")])


def test_memory_of_any_content(program: Path) -> None:
    run(program, 1, 20_000)


@pytest.mark.long
def test_memory_of_any_content_for_long(program: Path) -> None:
    for seed in range(100, 120):
        run(program, seed, 100_000)
