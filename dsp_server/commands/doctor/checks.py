"""The checks of ``hbrt doctor``: the type of a check, and the checks of the interpreter and the installed packages."""

from __future__ import annotations

import contextlib
import difflib
import importlib.metadata
import importlib.util
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
from hbrt.lazy import how_to_install
from hbrt.mailbox.native import NativeMissingError, native
from hbrt.native.hexagon_flags import QEMU, qemu
from hbrt.profiles.profile import active

OLDEST_PYTHON = (3, 11)
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9.]+)")
_EXTRA = re.compile(r"extra == ['\"]([a-z]+)['\"]")
_UNUSABLE = "cannot be used"
EXTRAS = {
    "cv": ("the CV ops", _UNUSABLE),
    "dnn": ("hbDNN and models", _UNUSABLE),
    "estimate": ("'hbrt estimate calibrate', and plots of 'hbrt op bench'", _UNUSABLE),
    "layout": ("'hbrt op check-layout' of C files", _UNUSABLE),
    "pointcloud": ("point clouds", "run without it, several times slower"),
    "trace": ("traces in Perfetto's own format (.pftrace)", _UNUSABLE),
}
"""Packages for users of boards: what each is for, and what happens without it."""
GUESTS = {
    "farm": "many boards: 'hbrt farm', arm_client.farm",
    "fastrpc": "FastRPC: its programs and images, 'hbrt idl'",
    "rdk": "programs of RDK boards: hobot_dnn, hbm_runtime, Hobot.GPIO and others",
    "rknn": "RKNN: rknn_api.h, rknn.api, rknnlite, RGA",
}
"""Distributions other than hbrt, by extra: what each is for."""


class Level(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(NamedTuple):
    """One line of the report: the result and, unless all is well, the remedy."""

    name: str
    level: Level
    found: str
    advice: str = ""


def judged(name: str, found: str, *, is_good: bool, advice: str, level: Level = Level.WARN) -> Check:
    """A check that is good, or has this level and advice."""
    return Check(name, Level.OK, found) if is_good else Check(name, level, found, advice)


def installation() -> Iterator[Check]:
    """The interpreter, the machine, the packages."""
    is_known = sys.version_info >= OLDEST_PYTHON and platform.python_implementation() == "CPython"
    found = f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"
    yield judged("python", found, is_good=is_known, advice="Use CPython 3.11 or newer.", level=Level.FAIL)
    found = f"{platform.system()} {platform.release()} on {platform.machine()}"
    is_known = sys.platform == "linux" and platform.machine() in {"x86_64", "aarch64"}
    advice = "The emulator runs on Linux, x86-64 and arm64."
    yield judged("machine", found, is_good=is_known, advice=advice, level=Level.FAIL)
    yield from _packages()
    yield _mailbox()
    yield _program()


def environment() -> Iterator[Check]:
    """Check the settings that are set; a misspelled name would otherwise go unnoticed."""
    known = [setting.name for setting in settings.TABLE]
    for name in sorted(name for name in os.environ if name.startswith("HBRT_") and name not in known):
        near = difflib.get_close_matches(name, known, 1, cutoff=0.7)
        advice = f"Did you mean {near[0]}?" if near else "docs/settings.md lists the settings."
        yield Check(f"setting {name}", Level.WARN, "unknown setting", advice)
    given = ", ".join(f"{name}={os.environ[name]}" for name in known if os.environ.get(name))
    try:
        settings.check()
    except settings.BadSettingError as error:
        yield Check("settings", Level.FAIL, given, str(error))
    else:
        yield Check("settings", Level.OK, given or "none set: all have their defaults")


def profile() -> Iterator[Check]:
    """Check the constants of the modeled board."""
    try:
        found = active()
    except settings.BadSettingError as error:
        yield Check("profile", Level.FAIL, settings.text("HBRT_PROFILE"), str(error))
    else:
        how = f"{len(found.constants)} constants, {len(found.assumed)} of them assumed"
        yield Check("profile", Level.OK, f"{found.name}, {found.origin}: {how}")


def _packages() -> Iterator[Check]:
    try:
        requirements = importlib.metadata.requires("hbrt") or []
    except importlib.metadata.PackageNotFoundError:
        yield Check(
            "package hbrt", Level.WARN, "not installed: it runs from its source tree", "Run 'pip install -e .' there."
        )
        return
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        if match and not _EXTRA.search(requirement):
            yield package(match[1], match[2])
    yield from extras()


def extras() -> Iterator[Check]:
    """Check whether the packages of each extra for users are installed."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        requirements = importlib.metadata.requires("hbrt") or []
        for name, (use, without) in EXTRAS.items():
            yield extra(name, use, requirements, without)
    for name, use in GUESTS.items():
        yield guest(name, use)
    yield _hexagon()


def guest(name: str, use: str) -> Check:
    """Check whether an extra's distribution is installed; the core works without it.

    Args:
        name: Name of the extra.
        use: What the extra is for.
    """
    distribution = f"hbrt-{name}"
    how = f"To get it, {how_to_install(name, is_guest=True)}."
    try:
        version, ours = importlib.metadata.version(distribution), importlib.metadata.version("hbrt")
    except importlib.metadata.PackageNotFoundError:
        return Check(f"package {distribution}", Level.WARN, f"not installed, for {use}", how)
    if version != ours:
        return Check(f"package {distribution}", Level.WARN, f"{version}, but hbrt is {ours}, for {use}", how)
    return Check(f"package {distribution}", Level.OK, f"{version}, for {use}")


def _hexagon() -> Check:
    """Check the compiler and QEMU for images of Hexagon code; boards work without them."""
    has_compiler = importlib.util.find_spec("ziglang") is not None
    found_qemu = qemu()
    missing = [] if has_compiler else [how_to_install("hexagon")]
    missing += [] if found_qemu else [f"install {QEMU} (Debian: apt install qemu-user)"]
    found = (
        f"ziglang, and {found_qemu}"
        if not missing
        else f"not complete (optional), for images of Hexagon code: {', and '.join(missing)}"
    )
    return Check("hexagon", Level.OK, found)


def extra(name: str, use: str, requirements: list[str], without: str = _UNUSABLE) -> Check:
    """Check whether an extra's packages are installed and recent enough; boards run without them.

    Args:
        name: Name of the extra.
        use: What needs it.
        requirements: The project's requirements, as in its metadata.
        without: What happens to ``use`` without them.
    """
    matches = [_REQUIREMENT.match(one) for one in requirements if (of := _EXTRA.search(one)) and of[1] == name]
    checks = [(match, package(match[1], match[2])) for match in matches if match]
    bad = [(match, check) for match, check in checks if check.level is not Level.OK]
    if not bad:
        return Check(f"extra {name}", Level.OK, f"complete, for {use}")
    found = ", ".join(f"{match[1]} is {check.found}" for match, check in bad)
    wanted = " ".join(f'"{match[1]}>={match[2]}"' for match, _ in bad)
    return Check(f"extra {name}", Level.WARN, f"{found}: {use} {without}", f"Run 'pip install {wanted}'.")


def package(name: str, floor: str) -> Check:
    """Check whether a package is installed and not older than ``floor``."""
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


def _mailbox() -> Check:
    try:
        native()
    except NativeMissingError as error:
        return Check("mailbox", Level.FAIL, "cannot be used", str(error))
    return Check("mailbox", Level.OK, "in C")


def _program() -> Check:
    program = shutil.which("hbrt")
    ours = Path(sys.executable).parent / "hbrt"
    if program is None:
        return Check(
            "program hbrt", Level.WARN, "not on PATH", "Activate its virtual environment, or use 'python -m hbrt'."
        )
    if ours.exists() and not ours.samefile(program):
        advice = f"'hbrt' on PATH belongs to a different installation than this one ({ours}); activate the right one."
        return Check("program hbrt", Level.WARN, program, advice)
    return Check("program hbrt", Level.OK, program)
