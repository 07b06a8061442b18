"""The compiler command for a list of files: which compiler, and the flags of an ARM program. Rules only."""

from __future__ import annotations

import os
import platform
import re
import shlex
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from hbrt.native.elf import machine_of
from hbrt.native.files import guest_libraries, include_dir, include_folders, library, library_folders
from hbrt.native.image_flags import CPP_SUFFIXES, is_cpp

SOURCES = CPP_SUFFIXES | {".c"}
NO_LINK = frozenset({"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"})
SANITIZER = ("-fno-omit-frame-pointer", "-g")
_S_SERIES = "-I/usr/include/hobot"
SUPPRESSIONS = """\
__attribute__((weak)) const char *__lsan_default_suppressions(void) {
  return "leak:libpython\\nleak:site-packages\\nleak:lib-dynload\\nleak:libcrypto\\nleak:hbrt_client_new\\n";
}
__attribute__((weak)) const char *__lsan_default_options(void) { return "print_suppressions=0"; }
"""
"""A source for the compiler's standard input: memory that Python keeps until exit is not a leak of the program."""
_C, _CPLUSPLUS = ("cc", "gcc", "clang"), ("c++", "g++", "clang++")


NOT_OFFERED = {
    "rkllmrt": "hbrt does not offer RKLLM: the format of .rkllm files is not public. Models of rknn_api.h run here.",
}
"""Vendors' libraries that nothing here stands for, by their names, and why."""


class Flags(NamedTuple):
    """Compiler arguments in addition to the user's."""

    compile: tuple[str, ...]
    link: tuple[str, ...]


IS_ARM = platform.machine() in {"aarch64", "arm64"}
_ARM_TYPES = () if IS_ARM else ("-D__fp16=_Float16",)
"""What an ARM compiler defines by itself."""
OF_ARM = () if IS_ARM else ("-march=armv*", "-mcpu=cortex*", "-mtune=cortex*", "-mfpu=*", "-mfloat-abi=*")
"""Options that only a compiler for ARM has, as patterns that a shell knows, too."""


def arm_flags() -> Flags:
    """Return the flags of an ARM program, which then finds its libraries without an environment variable.

    The headers are system headers, so a project's own copies, by ``-I`` or next to a source, take precedence.

    Raises:
        NotBuiltError: hbrt was installed without a C compiler.
    """
    library("libhbrt.so")
    folders, of_guests = library_folders(), [f"-l{file.stem.removeprefix('lib')}" for file in guest_libraries()]
    return Flags(
        (*(f"-isystem{one}" for one in include_folders()), *_ARM_TYPES),
        (
            *(f"{option}{one}" for one in folders for option in ("-L", "-Wl,-rpath,")),
            *(["-Wl,--as-needed", *of_guests, "-Wl,--no-as-needed"] if of_guests else []),
            "-lhbrt",
            "-pthread",
            "-lm",
        ),
    )


def vendor_libraries() -> dict[str, Path]:
    """Return the libraries that programs link, by their names, such as ``rknnrt``.

    Raises:
        NotBuiltError: hbrt was installed without a C compiler.
    """
    library("libhbrt.so")
    files = [file for folder in library_folders() for file in sorted(folder.glob("lib*.so"))]
    return {file.stem.removeprefix("lib"): file for file in files}


def fitted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Fit a board's compiler arguments to this machine: returns them, and a sentence for each that is another now.

    A vendor's library given by its path is replaced by hbrt's, unless the file is a program's own: it is there and for
    this machine. On an ARM host, a shared one is the vendor's. Android has no liblog.a.

    Raises:
        NotBuiltError: hbrt was installed without a C compiler. ValueError: a vendor's library is not offered.
    """
    ours = vendor_libraries()
    given, notes = [], []
    for before, one in zip(("", *arguments), arguments, strict=False):
        linked = re.fullmatch(r"-l(\w+)|(?:(?!-).*/)?lib(?!log\.a)(\w+)\.(?:so|a)[.\d]*", one)
        name = linked and (linked[1] or linked[2])
        own = ours.get(linked[2]) if linked and linked[2] and before != "-o" else None
        if name in NOT_OFFERED:
            raise ValueError(f"Cannot link {one}: {NOT_OFFERED[name]}")
        if any(fnmatchcase(one, pattern) for pattern in OF_ARM):
            notes.append(f"{one} is left out: it is for ARM, and this machine is {platform.machine()}.")
        elif own and Path(one) != own and (not _is_for_here(Path(one), own) or (IS_ARM and one[-2:] != ".a")):
            notes.append(f"{one} is replaced by hbrt's own {own.name}.")
            given.append(str(own))
        else:
            given.append(one)
    return given, notes


def _is_for_here(file: Path, own: Path) -> bool:
    return file.is_file() and machine_of(file) == machine_of(own)


def sources_in(arguments: Iterable[str]) -> list[str]:
    """Return the source files among a compiler's arguments."""
    return [one for one in arguments if not one.startswith("-") and Path(one).suffix in SOURCES]


def compiler_of(sources: Iterable[str], found: Sequence[str] | None = None) -> list[str]:
    """Return the compiler command: $CC or $CXX, else the first one found; C++ if any source is C++.

    Args:
        sources: Source files.
        found: Names of available compilers; None to search.

    Raises:
        FileNotFoundError: none found; names those that would work.
    """
    is_cplusplus = any(map(is_cpp, sources))
    variable, names = ("CXX", _CPLUSPLUS) if is_cplusplus else ("CC", _C)
    if named := os.environ.get(variable):
        return shlex.split(named)
    import shutil

    there = [name for name in names if (shutil.which(name) if found is None else name in found)]
    if not there:
        raise FileNotFoundError(
            f"No {'C++' if is_cplusplus else 'C'} compiler found ({', '.join(names)}): install one (Debian: apt "
            f"install build-essential), or name it in {variable}."
        )
    return there[:1]


def command_line(
    compiler: Sequence[str], flags: Flags, arguments: Sequence[str], sanitize: str = "", suffix: str = ""
) -> list[str]:
    """Return the full command: C sources among C++ ones stay C; the output defaults to the first source's name."""
    sources = sources_in(arguments)
    is_mixed = any(map(is_cpp, sources))
    given: list[str] = []
    series = None if Path(_S_SERIES[2:]).exists() else _S_SERIES  # a program's build names what only its board has
    first = [f"-isystem{include_dir('ucp') / 'hobot'}"] if series in arguments else []
    for one in arguments:
        if is_mixed and one in sources and Path(one).suffix == ".c":
            given += ["-x", "c", one, "-x", "none"]
        elif one != series:
            given.append(one)
    links = not NO_LINK.intersection(arguments)
    has_name = any(one.startswith("-o") for one in arguments)
    name = ["-o", Path(sources[0]).stem + suffix] if links and sources and not has_name else []
    checks = [f"-fsanitize={sanitize}", *SANITIZER] if sanitize else []
    more = ["-x", "c", "-", "-x", "none"] if needs_suppressions(flags, arguments, sanitize) else []
    return [*compiler, "-g", *first, *flags.compile, *checks, *given, *more, *name, *(flags.link if links else ())]


def needs_suppressions(flags: Flags, arguments: Sequence[str], sanitize: str) -> bool:
    """Whether the compiler gets SUPPRESSIONS on its standard input: it builds a program that checks for leaks."""
    is_program = not {*NO_LINK, "-shared"}.intersection((*arguments, *flags.link))
    return is_program and bool({"address", "leak"} & set(sanitize.split(",")))
