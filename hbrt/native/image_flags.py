"""How a compiler makes an image of C and C++ files: a shared library that finds the runtime's by itself. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hbrt.native.files import include_dir, library

CPP_SUFFIXES: Final = frozenset({".cc", ".cpp", ".cxx", ".C", ".c++", ".hh", ".hpp"})
SANITIZERS: Final = ("address", "undefined")

_COMPILE: Final = ("-g", "-O2", "-fPIC", "-fno-semantic-interposition", "-fno-omit-frame-pointer", "-pthread")
# Programs for the board keep addresses in 32 bits; an address there has no more.
_CASTS_IN_C: Final = ("-Wno-pointer-to-int-cast", "-Wno-int-to-pointer-cast")
_CASTS_IN_CPP: Final = ("-fpermissive", "-Wno-int-to-pointer-cast")
# The image's functions come before those of the process with the same name; what is missing is said by the linker.
_LINK: Final = ("-shared", "-Wl,-Bsymbolic", "-Wl,--no-undefined", "-Wl,--as-needed")


def is_cpp(source: str) -> bool:
    """Whether a file is C++."""
    return Path(source).suffix in CPP_SUFFIXES


def compile_flags(sources: Sequence[str], sanitizers: Sequence[str] = ()) -> list[str]:
    """Flags for the compiler.

    Args:
        sources: Files: the casts that a board's program may make are allowed in another way in C than in C++.
        sanitizers: Of SANITIZERS: what they find ends the op.
    """
    has_cpp, has_c = any(map(is_cpp, sources)), not all(map(is_cpp, sources)) or not sources
    casts = (*(_CASTS_IN_CPP if has_cpp and not has_c else ()), *(_CASTS_IN_C if has_c and not has_cpp else ()))
    return [*_COMPILE, *casts, f"-I{include_dir('dsp')}", *_sanitize(sanitizers)]


def link_flags(sources: Sequence[str], sanitizers: Sequence[str] = ()) -> list[str]:
    """Flags for the linker, which come behind the files.

    Args:
        sources: Files: one in C++ needs its library.
        sanitizers: As of ``compile_flags``.

    Raises:
        NotBuiltError: the runtime's library is not built.
    """
    path = library("libhbrt_dsp.so")
    cpp = ["-lstdc++"] if any(map(is_cpp, sources)) else []
    return [*_LINK, *_sanitize(sanitizers), str(path), f"-Wl,-rpath,{path.parent}", *cpp, "-lm"]


def _sanitize(sanitizers: Sequence[str]) -> list[str]:
    if not sanitizers:
        return []
    return [f"-fsanitize={','.join(sanitizers)}", "-fno-sanitize-recover=all"]
