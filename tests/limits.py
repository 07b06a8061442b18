"""How long tests wait, and limits of a process under test that are shorter than the product's."""

from __future__ import annotations

import gc
import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SLOWER = float(os.environ.get("PYTEST_HBRT_SLOWER", "1"))
"""How much slower than a machine this one is: an emulated one."""
PATIENCE_S = 120.0 * SLOWER
"""For what must come, on a machine as busy as may be: only a test that fails waits so long."""
WHOLE_RUN_S = 4 * PATIENCE_S
"""For a run of many tests, or of all that a page says. pyproject.toml gives a test longer than that."""


def with_limits(limits: Mapping[str, float], program: str) -> str:
    """A program for ``python -c`` that gives constants ("module.NAME") other values before it does what it does."""
    lines = []
    for name, value in limits.items():
        module = name.rpartition(".")[0]
        lines += [f"import {module}", f"{name}, old = {value!r}, {name}"]  # which fails for a constant that is none
    return "\n".join([*lines, program])


@contextmanager
def full_disk(pid: int = 0) -> Iterator[None]:
    """As if the disk were full: no file of a process may grow, by default of this one."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def open_descriptors() -> set[str]:
    """Numbers of this process's descriptors, without those that garbage of other tests still holds."""
    gc.collect()
    return {path.name for path in Path("/proc/self/fd").iterdir()}
