"""Compiles the units of a tree, each for the side that it belongs to: a program, an image, or Hexagon code."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from hbrt.borders.guests import MissingGuestError
from hbrt.cc.toolchain import Flags, arm_flags, command_line, compiler_of
from hbrt.native.files import folders_of, hexagon_sources, include_dir, include_folders
from hbrt.native.hexagon_flags import hexagon_assembler, hexagon_compiler, hexagon_flags
from hbrt.native.image_flags import image_flags, is_cpp
from hbrt.port.headers import nearest_first, package_flags
from hbrt.port.scan import Found, Unit

TIMEOUT_S = 120.0
"""The longest that one compilation may take."""
_HEXAGON_VERSION = 79  # what current programs ask for; older code is in it
_HEXAGON_HEADER = re.compile(r"(?:.*/)?(?:HAP_|qurt|hexagon_|hvx|hmx_|worker_pool|qprintf|q6sim|sim_).*\.h$")
_HEXAGON_TEXT = re.compile(r"\bHVX_Vector|\bQ6_\w+_")
_OF_THIS_MACHINE = ("-I/usr/", "-idirafter/usr/")
_WITHOUT_MACRO = re.compile(r"No such file or directory$|file not found$|^did not end ")
"""Errors that defining another macro does not mend."""
_BOARD = "__aarch64__"
"""The macro of the board's compiler, under which a header may have what is used everywhere."""
_ASSEMBLY = re.compile(r"\b(?:__)?asm(?:__)?\b")
_IDL = [sys.executable, "-m", "hbrt", "idl"]


class Built(NamedTuple):
    """How units build.

    Attributes:
        failed: The first error of each that does not build.
        macros: Of each that builds only with a macro that its build files define under a condition, this macro; or
            the board's own, __aarch64__.
    """

    failed: dict[str, str]
    macros: dict[str, str]


def build(root: Path, found: Found) -> Built:
    """Compile all units."""
    units = {unit.path: unit for unit in found.units}
    wanted = {path for unit in found.units for path in unit.searched.interfaces}
    wanted |= {path for path in units if path.endswith(".idl")}
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        folders = {path: Path(made, str(at)) for at, path in enumerate(sorted(wanted))}
        generated = dict(
            zip(folders, pool.map(lambda path: _generate(root, path, folders[path]), folders), strict=True)
        )

        def result(unit: Unit) -> tuple[str, str]:
            also = [str(folders[path]) for path in nearest_first(unit.searched.interfaces, unit.path)]
            if unit.path.endswith(".idl"):
                return generated[unit.path] or _interface(root, unit.path, folders[unit.path], also), ""
            return _unit(root, unit, also, has_hexagon=bool(_fastrpc_headers().intersection(found.vendor_headers)))

        results = dict(zip(units, pool.map(result, found.units), strict=True))
    return Built(
        {path: why for path, (why, _) in results.items() if why},
        {path: macro for path, (_, macro) in results.items() if macro},
    )


def _generate(root: Path, path: str, folder: Path) -> str:
    code, messages = call(root, [*_IDL, f"./{path}", "--lang", "c", "--out", str(folder)])
    return (messages.strip().splitlines() or ["hbrt idl failed"])[-1] if code else ""


def _interface(root: Path, path: str, folder: Path, also: list[str]) -> str:
    """Compile the stub and the skeleton of an interface; of one that declares only types, the header."""
    stem = folder / Path(path).stem
    given = [f"-I{one}" for one in (str(folder), *also)]
    if not Path(f"{stem}_stub.c").is_file():
        return _run(root, _line("arm", ["-xc", *given], f"{stem}.h"))
    kinds = [("arm", "stub"), ("image", "skel"), *([("hexagon", "skel")] if _has_hexagon() else [])]
    return next(filter(None, (_run(root, _line(side, given, f"{stem}_{kind}.c")) for side, kind in kinds)), "")


def _unit(root: Path, unit: Unit, generated: list[str], *, has_hexagon: bool) -> tuple[str, str]:
    """Compile a unit for the side that it seems to belong to, else for another.

    One that does not build is tried with each macro that its build files define under a condition, too: it may be for
    another board than the rest of the tree. An ARM one whose text has __aarch64__ is tried with that, too.

    Returns:
        The first error for the first side, or "", and the macro with which alone it builds, or "".
    """
    texts = [(root / path).read_text(encoding="utf-8", errors="replace") for path in unit.searched.files]
    names = {*unit.searched.others, *unit.searched.files[1:]}
    if unit.path.endswith((".s", ".S")):
        sides = ["hexagon"]
    elif any(_HEXAGON_HEADER.match(name) for name in names) or any(map(_HEXAGON_TEXT.search, texts)):
        sides = ["hexagon", "arm"]
    elif names & _image_headers():
        sides = ["image", "arm"]
    else:
        sides = ["arm", *(["hexagon"] if has_hexagon else [])]
    if not _has_hexagon():
        sides = ["image" if side == "hexagon" else side for side in sides]
    is_checked = not any(map(_ASSEMBLY.search, texts))
    arguments = [*_options(unit), *_folders(unit), *(f"-I{one}" for one in generated), *_packages(unit.searched.others)]
    why = ""
    for side in sides:
        reason = _run(root, _line(side, arguments, f"./{unit.path}", is_checked=is_checked))
        if not reason:
            return "", ""
        why = why or reason
    if not _WITHOUT_MACRO.search(why):
        choices = [macro for given in unit.given for macro in given.choices]
        choices += [_BOARD] if sides[0] == "arm" and any(_BOARD in text for text in texts) else []
        for macro in dict.fromkeys(choices):
            line = _line(sides[0], [f"-D{macro}", *arguments], f"./{unit.path}", is_checked=is_checked)
            if not _run(root, line):
                return "", macro
    return why, ""


def _options(unit: Unit) -> list[str]:
    language = "++" if is_cpp(unit.path) else ""
    standard = next((given.standards[language] for given in unit.given if language in given.standards), "")
    macros = dict.fromkeys(macro for given in unit.given for macro in given.macros)
    return [*([f"-std={standard}"] if standard else []), *(f"-D{macro}" for macro in macros)]


def _folders(unit: Unit) -> list[str]:
    """The tree's folders to search: those that the build files name in their order, then the nearest first.

    Unless a build file names it, a folder with a header of a name that the system or a vendor has is searched behind
    theirs.
    """
    listed = [
        folder
        for given in unit.given
        for folder in given.folders
        if folder in unit.searched.folders or folder.startswith("/")
    ]
    folders = dict.fromkeys([*listed, *nearest_first(unit.searched.folders, unit.path)])
    late = unit.searched.late - set(listed)
    return [
        *(f"-I{one}" for one in folders if one not in late),
        *(f"-idirafter{one}" for one in folders if one in late),
    ]


def _packages(names: set[str]) -> list[str]:
    folders = {flag: None for name in sorted(names) for flag in package_flags(name)}
    return [flag.replace("-I", "-idirafter", 1) for flag in folders]


def _line(side: str, arguments: list[str], source: str, *, is_checked: bool = False) -> list[str]:
    """The command for one source; it only checks what needs no assembler."""
    given = [
        *(["-fsyntax-only"] if is_checked and side == "arm" else ["-c", "-o", os.devnull]),
        "-w",
        *arguments,
        source,
    ]
    if side == "hexagon":
        given = [one for one in given if not one.startswith(_OF_THIS_MACHINE)]
        is_assembly = source.endswith((".s", ".S"))
        compiler = hexagon_assembler(_HEXAGON_VERSION) if is_assembly else hexagon_compiler([source], _HEXAGON_VERSION)
        flags = Flags(*hexagon_flags(_HEXAGON_VERSION))
        return command_line(compiler, flags._replace(compile=()) if is_assembly else flags, given)
    flags = arm_flags() if side == "arm" else Flags(*image_flags([source]))
    return command_line(compiler_of([source]), flags, given)


def _run(root: Path, line: list[str]) -> str:
    """Run a compiler; its first error, "" without one."""
    with tempfile.TemporaryDirectory() as made:  # ziglang's compiler would leave a file named null
        line = [str(Path(made, "out")) if pair == ("-o", os.devnull) else pair[1] for pair in pairwise(["", *line])]
        code, messages = call(root, line)
    if code == 0:
        return ""
    errors = [row for row in messages.splitlines() if "error" in row] or messages.splitlines()
    return errors[0].rpartition("error: ")[2] if errors else f"exit code {code}"


def call(root: Path, line: list[str], timeout_s: float | None = None) -> tuple[int, str]:
    """Run a command in a tree: its exit code, and its messages; after TIMEOUT_S, end it and what it has started."""
    limit = TIMEOUT_S if timeout_s is None else timeout_s
    with subprocess.Popen(
        line,
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        process_group=0,
    ) as process:
        try:
            _, messages = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return 1, f"did not end within {limit:g} s"
    return process.returncode, messages


@cache
def _has_hexagon() -> bool:
    """Whether Hexagon code can be compiled: ziglang is installed, and hbrt-fastrpc, which has the sources for it."""
    try:
        hexagon_compiler(())
        hexagon_sources()
    except (FileNotFoundError, MissingGuestError):
        return False
    return True


@cache
def _fastrpc_headers() -> frozenset[str]:
    return frozenset(path.name for folder in folders_of("fastrpc") for path in folder.glob("*.h"))


@cache
def _image_headers() -> frozenset[str]:
    """Headers of images alone."""
    folder = include_dir("dsp")
    own = {path.relative_to(folder).as_posix() for path in folder.rglob("*.h")}
    return frozenset(own - {name for name in own for one in include_folders() if (one / name).is_file()})
