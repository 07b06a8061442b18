"""The checks of ``hbrt doctor``: what one is, and those of the interpreter and of what is installed."""

from __future__ import annotations

import difflib
import importlib.metadata
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from hbrt import settings

OLDEST_PYTHON = (3, 11)
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9.]+)")


class Level(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(NamedTuple):
    """One line of the report: what was found and, unless it is good, what to do."""

    name: str
    level: Level
    found: str
    advice: str = ""


def installation() -> Iterator[Check]:
    """The interpreter, the machine, the packages."""
    version = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON and sys.implementation.name == "cpython":
        yield Check("python", Level.OK, f"CPython {version} at {sys.executable}")
    else:
        found = f"{sys.implementation.name} {version} at {sys.executable}"
        yield Check("python", Level.FAIL, found, "Use CPython 3.11 or newer.")
    machine = f"{platform.system()} {platform.release()} on {platform.machine()}"
    is_known = sys.platform == "linux" and platform.machine() in {"x86_64", "aarch64"}
    yield (
        Check("machine", Level.OK, machine)
        if is_known
        else Check("machine", Level.FAIL, machine, "The emulator runs on Linux, x86-64 and arm64.")
    )
    yield from _packages()
    yield _program()


def environment() -> Iterator[Check]:
    """The settings that are given; a name that is misspelt would otherwise go unnoticed."""
    known = [setting.name for setting in settings.TABLE]
    for name in sorted(name for name in os.environ if name.startswith("HBRT_") and name not in known):
        near = difflib.get_close_matches(name, known, 1, cutoff=0.8)
        advice = f"Did you mean {near[0]}?" if near else "docs/settings.md lists those that there are."
        yield Check(f"setting {name}", Level.WARN, "no setting of that name: nothing reads it", advice)
    given = ", ".join(f"{name}={os.environ[name]}" for name in known if os.environ.get(name))
    try:
        settings.check()
    except settings.BadSettingError as error:
        yield Check("settings", Level.FAIL, given, str(error))
    else:
        yield Check("settings", Level.OK, given or "none is given: all have their defaults")


def _packages() -> Iterator[Check]:
    try:
        requirements = importlib.metadata.requires("hbrt") or []
    except importlib.metadata.PackageNotFoundError:
        yield Check(
            "package hbrt", Level.WARN, "not installed: it runs from its source", "Run 'pip install -e .' there."
        )
        return
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        if match and "extra ==" not in requirement:
            yield package(match[1], match[2])


def package(name: str, floor: str) -> Check:
    """Whether an installed package is there, and not older than ``floor``."""
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Check(f"package {name}", Level.FAIL, "not installed", f"Run 'pip install \"{name}>={floor}\"'.")
    if _numbers(version) < _numbers(floor):
        found = f"{version}, older than {floor}"
        return Check(f"package {name}", Level.FAIL, found, f"Run 'pip install --upgrade \"{name}>={floor}\"'.")
    return Check(f"package {name}", Level.OK, version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])


def _program() -> Check:
    program = shutil.which("hbrt")
    ours = Path(sys.executable).parent / "hbrt"
    if program is None:
        return Check(
            "program hbrt", Level.WARN, "not on PATH", "Activate its virtual environment, or use 'python -m hbrt'."
        )
    if ours.exists() and not ours.samefile(program):
        advice = f"'hbrt' on PATH is another installation's than this one's ({ours}); activate the one that you mean."
        return Check("program hbrt", Level.WARN, program, advice)
    return Check("program hbrt", Level.OK, program)
