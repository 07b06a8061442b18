"""Build the parts in C: the libraries that C programs and images link, and Python's module for the call path.

``python native/build.py`` builds everything older than its sources: the core's into ``hbrt/native/``, with the header
of the intrinsics' names, and each guest's, of ``packages/``, into the folder ``native`` of its package, as the guest's
pyproject.toml declares them. Folders as arguments choose, ``.`` for the core alone. The compiler is $CC, or the first
available of cc, gcc and clang, or the package ziglang, which make and hbrt's installation request if there is no other
compiler. Without any, it prints a message and exits with 1.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

NATIVE = Path(__file__).resolve().parent
CORE = NATIVE.parent
TARGET = CORE / "hbrt" / "native"
WARNINGS = ("-Wall", "-Wextra", "-Werror")
FLAGS = ("-O2", "-g", "-fPIC", "-fvisibility=hidden", "-pthread", f"-I{NATIVE / 'mailbox'}")
MODULE = "hbrt.native._mailbox"
# zig's linker has no such option: built by it, a library brings libhbrt.so behind the C library, unless the program
# links libhbrt.so itself, as 'hbrt cc' has it do.
FILTER = "-Wl,-F,libhbrt.so"
# dlclose() leaves a library in place: Python, threads and pthread_atfork keep addresses of its functions and data.
PINNED = "-Wl,-z,nodelete"
# zig links its unwinder only by request; GCC and clang link theirs by themselves.
UNWIND = "-lunwind"
# From a guest's library to those of the core, as both are installed: its package in site-packages or a folder there; in
# a clone.
TO_CORE = tuple(f"$ORIGIN/{'../' * ups}hbrt/native/lib" for ups in (3, 4, 6))


class Library(NamedTuple):
    """A library for C users.

    Attributes:
        target: Its file.
        sources: Folders of its C sources, or single ones.
        folders: Where its headers are searched.
        flags: What else the compiler gets.
        names: The vendors' names for it that programs link or load, too.
    """

    target: Path
    sources: tuple[Path, ...]
    folders: tuple[Path, ...]
    flags: tuple[str, ...]
    names: tuple[str, ...] = ()


def of_core() -> list[Library]:
    """The libraries of the core: of ARM programs, and of images."""
    arm, dsp, include = NATIVE / "arm", NATIVE / "dsp", NATIVE / "include"
    names = (
        "libdnn.so",
        "libcnn_intf.so",
        "libhbrt_bayes_aarch64.so",
        "libhbrt_bernoulli_aarch64.so",
        "libhbucp.so",
        "libhbvp.so",
    )
    mailbox, lib = NATIVE / "mailbox", TARGET / "lib"
    return [
        Library(lib / "libhbrt.so", (arm, mailbox), (include / "arm", include / "ucp"), ("-DHBRT_CORE", "-ldl"), names),
        Library(lib / "libhbrt_dsp.so", (dsp, mailbox), (include / "dsp",), ("-ldl", UNWIND)),
    ]


def of_guest(folder: Path) -> list[Library]:
    """The libraries of a distribution: the table ``tool.hbrt`` of its pyproject.toml.

    The folder of its sources is the library's side. One of ``arm`` is linked to libhbrt.so and a filter of it: the
    loader then searches libhbrt.so, whose open() and mmap() know a board's devices, before the C library, also for
    programs that link the guest's library alone. One of ``dsp`` is linked to libhbrt_dsp.so.
    """
    declared = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")).get("tool", {}).get("hbrt")
    if declared is None:
        return []
    native = folder / declared["native"]
    headers = (native / "include", *(one for one in sorted(native.glob("include/**/")) if one.name != "include"))
    found = []
    for name, one in declared["libraries"].items():
        side = Path(one["sources"][0]).parts[0]
        of_side = ("-lhbrt", FILTER) if side == "arm" else ("-lhbrt_dsp", "-lm")
        flags = (f"-L{TARGET / 'lib'}", *of_side, *(f"-Wl,-rpath,{place}" for place in TO_CORE))
        sources = tuple(native / source for source in one["sources"])
        of_own_side = (place for place in (native / side / "include",) if place.is_dir())  # before those of both sides
        folders = (NATIVE / side, NATIVE / "include" / side, *of_own_side, *headers)
        found.append(Library(native / "lib" / name, sources, folders, flags, tuple(one.get("names", ()))))
    return found


class BuildError(Exception):
    """Something needed to build the C sources is missing; the message says what, and how to get it."""


def own_compiler() -> list[str]:
    """The command of this machine's C compiler: $CC, or the first of cc, gcc and clang; empty if there is none."""
    if named := os.environ.get("CC"):
        return shlex.split(named)
    return next(([name] for name in ("cc", "gcc", "clang") if shutil.which(name)), [])


def compiler() -> list[str]:
    """The command of the C compiler.

    Raises:
        BuildError: no compiler was found.
    """
    command = own_compiler()
    if not command and importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    if not command or shutil.which(command[0]) is None:
        missing = f"no such file: CC is {command[0]!r}" if command else "no cc, gcc, clang or ziglang"
        raise BuildError(
            f"No C compiler found: {missing}. Install one (Debian: apt install gcc; or: pip install ziglang), "
            "or set CC."
        )
    return command


def fallback() -> list[str]:
    """The compiler package that an installation needs: ziglang, pinned; none if there is a compiler."""
    if own_compiler():
        return []
    pins = (NATIVE.parent / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [pin for pin in pins if pin.startswith("ziglang==")]


def is_newer(target: Path, *inputs: Path) -> bool:
    """Whether a target exists, and is newer than all its inputs."""
    return target.exists() and target.stat().st_mtime >= max(path.stat().st_mtime for path in inputs)


def inputs(*places: Path) -> set[Path]:
    """Files whose change makes what is built from some folders and sources out of date."""
    found = {Path(__file__).resolve()}
    for place in (NATIVE / "mailbox", *places):
        found |= {place} if place.suffix else {*place.rglob("*.c"), *place.rglob("*.h")}
    return found


def build_library(cc: list[str], library: Library) -> None:
    """Build one library for C users, and its other names; a wheel has copies of those."""
    target, name = library.target, library.target.name
    files = [
        str(file) for one in library.sources for file in ([one] if one.suffix == ".c" else sorted(one.glob("*.c")))
    ]
    if not is_newer(target, *inputs(*library.folders, *library.sources)):
        target.parent.mkdir(exist_ok=True)
        unfinished = target.with_suffix(f".{os.getpid()}")
        headers = [f"-I{folder}" for folder in library.folders]
        command = [*cc, "-std=gnu11", *FLAGS, *WARNINGS, *headers, "-shared", f"-Wl,-soname,{name}", PINNED]
        flags = [flag for flag in library.flags if flag != (FILTER if "ziglang" in cc else UNWIND)]
        subprocess.run([*command, *files, "-o", str(unfinished), *flags], check=True)
        unfinished.replace(target)  # processes that have mapped the old one keep it
    for link in target.parent.iterdir():
        if link.is_symlink() and link.name not in library.names and link.readlink() == Path(name):
            link.unlink()  # of an earlier build
    for other in library.names:
        link = target.with_name(other)
        if not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(name)


def module_path() -> Path:
    """Where the module through which Python reaches the mailbox is built."""
    suffix = ".abi3.so" if sys.implementation.name == "cpython" else sysconfig.get_config_var("EXT_SUFFIX")
    return TARGET / f"{MODULE.rpartition('.')[2]}{suffix}"


def build_module(cc: list[str], target: Path, *flags: str) -> None:
    """Build the module through which Python reaches the mailbox (cffi's API mode, and Python's stable interface)."""
    if is_newer(target, *inputs()):
        return
    from cffi import FFI, recompiler  # if everything is built, it may be missing

    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").is_file():
        raise BuildError(f"{include} has no Python.h: install Python's headers (Debian: apt install python3-dev).")
    ffi = FFI()
    header = (NATIVE / "mailbox" / "mailbox.h").read_text()
    ffi.cdef("".join(line for line in header.splitlines(keepends=True) if not line.startswith("#")))
    files = map(str, sorted((NATIVE / "mailbox").glob("*.c")))
    unfinished = target.with_suffix(f".{os.getpid()}")
    with tempfile.TemporaryDirectory() as folder:
        glue = Path(folder) / "module.c"
        recompiler.make_c_source(ffi, MODULE, '#include "mailbox.h"', str(glue))
        command = [*cc, "-std=gnu11", *FLAGS, *flags, "-Wall", "-Wextra", f"-I{include}", "-shared", str(glue), *files]
        subprocess.run([*command, "-o", str(unfinished)], check=True)
    unfinished.replace(target)


def distributions() -> list[Path]:
    """The folders of all distributions of this tree."""
    return [CORE, *(one.parent for one in sorted(CORE.glob("packages/*/pyproject.toml")))]


def build(folders: Iterable[Path]) -> None:
    """Build what is out of date in some distributions, and the core's libraries, which those of the others link.

    Raises:
        BuildError: there is no C compiler, or Python's headers are missing. CalledProcessError: the compiler failed.
    """
    folders = [folder.resolve() for folder in folders]
    runpy.run_path(str(NATIVE / "ivp_names.py"))["write_names"]()
    cc = compiler()
    guests = [library for folder in folders if folder != CORE for library in of_guest(folder)]
    for library in (*of_core(), *guests):
        build_library(cc, library)
    if CORE in folders:
        build_module(cc, module_path())
        runpy.run_path(str(TARGET / "record.py"))["write_record"]()


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["--fallback"]:
            print(*fallback())
        else:
            build([Path(one) for one in sys.argv[1:]] or distributions())
    except BuildError as error:
        sys.exit(f"hbrt: {error}")
