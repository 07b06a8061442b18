"""The tests of the direct mode once more, by another way to the cores, in their own pytest."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.limits import WHOLE_RUN_S

HERE = Path(__file__).parent.parent
# Strict mode looks at a task before it is handed on, and asks the way's tasks which have ended: of the tests that say
# who read and who wrote, or where an address stood, one of each kind says it of another way as well.
STRICT = "strict/test_checker.py"
STRICT_PARTS = [
    "TestMemoryThatIsPointedTo::test_registered_memory_is_looked_at_too",
    "TestMemoryThatIsPointedTo::test_what_was_cleaned_or_not_changed_is_in_order",
    "TestOutputThatWasNotCleaned::test_is_told_once_a_block",
    "TestMemoryOfTwoUnfinishedTasks",
    "TestProgramsThatAreRight::test_halves_of_one_image_by_two_threads",
    "TestProgramsThatAreRight::test_the_same_call_again_and_again",
]
_UNFINISHED = f"{STRICT}::TestMemoryOfTwoUnfinishedTasks"
STRICT_LEFT_OUT = [
    f"{_UNFINISHED}::test_reading_what_the_other_writes",
    f"{_UNFINISHED}::test_what_tells_two_structures_apart_is_numbers_and_not_addresses",
]


def run_again(
    names: Iterable[str], basetemp: Path, *options: str, parts: Mapping[str, list[str]], left_out: Iterable[str]
) -> None:
    """Run files of the ARM side's tests again; all must pass.

    Args:
        names: The files.
        basetemp: For their temporary directories.
        options: Of pytest, which say by which way.
        parts: Of a file that does not run whole, what runs.
        left_out: Tests that do not run.
    """
    chosen = [test for name in names for test in ([f"{name}::{part}" for part in parts.get(name, [])] or [name])]
    deselected = [f"--deselect=tests/arm_client/{test}" for test in left_out]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={basetemp}", *options]
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_ADDOPTS"):
            patch.delenv(variable, raising=False)
        done = subprocess.run(
            [*command, *deselected, *(str(HERE / test) for test in chosen)],
            cwd=HERE.parent.parent,
            capture_output=True,
            text=True,
            timeout=WHOLE_RUN_S,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    assert re.search(r" (passed|collected)\b", done.stdout)
