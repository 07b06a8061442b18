"""The short form of ``python -m benchmarks.soak``: a few seconds of mixed load with random kills."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.faults.world import REPOSITORY
from tests.limits import PATIENCE_S

SECONDS = 2


@pytest.mark.long
def test_a_few_seconds_of_everything() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.soak", "--minutes", str(SECONDS / 60)],
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found = re.fullmatch(r"calls (\d+) ended (\d+) lost 0 hung 0", answer.stdout.splitlines()[-1])
    assert found, answer.stdout
    assert int(found[1]) == int(found[2]) > 100
