"""What all tests share: hypothesis profiles, and a home for boards that ends with the test run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("dev", deadline=None)
settings.register_profile(
    "ci", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_configure() -> None:
    """Give this process's boards a home of their own: short, since a socket's path is."""
    home = Path(tempfile.mkdtemp(prefix="hbrt-t-", dir="/tmp"))
    os.environ["HBRT_HOME"] = str(home)
    os.environ["HBRT_BOARD"] = "default"


def pytest_unconfigure() -> None:
    """Take the home away; a board that still lives in it is a defect that test_nothing_left.py names."""
    shutil.rmtree(os.environ["HBRT_HOME"], ignore_errors=True)


@pytest.fixture
def board_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A short directory for boards that a test starts by command, removed afterwards."""
    del tmp_path_factory
    path = Path(tempfile.mkdtemp(prefix="hbrt-h-", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)
