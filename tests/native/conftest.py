"""What is compiled for the tests of native code: each file once a run, whatever the number of test processes."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest

Once = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """``once(name, make)``: a file of this name, which ``make(path)`` writes in the first process that asks for it."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if base.name.startswith("popen-") else base) / "native"

    def made(name: str, make: Callable[[Path], object]) -> Path:
        target = shared / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.with_name(f"{target.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                new = target.with_name(f"{target.name}.new")
                make(new)
                new.rename(target)
        return target

    return made
