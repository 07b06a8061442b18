"""How a compiler makes an image of C and C++ files: a shared library that finds the runtime's by itself. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hbrt.native.files import include_dir, library

CPP_SUFFIXES: Final = frozenset({".cc", ".cpp", ".cxx", ".C", ".c++", ".hh", ".hpp"})

_COMPILE: Final = (
    "-O2",
    "-fPIC",
    "-ffp-contract=off",  # a product and a sum round twice, on every machine
    "-fno-semantic-interposition",
    "-fno-omit-frame-pointer",
    "-fno-sanitize-recover=all",  # what a sanitizer finds ends the op
    "-pthread",
    "-Wno-psabi",  # GCC notes that vectors are passed as they are since its version 4.6
)
# Programs for the board keep addresses in 32 bits; an address there has no more.
_CASTS_IN_C: Final = ("-Wno-pointer-to-int-cast", "-Wno-int-to-pointer-cast")
_CASTS_IN_CPP: Final = ("-fpermissive", "-Wno-int-to-pointer-cast")
# The image's functions come before those of the process with the same name; what is missing is said by the linker.
_LINK: Final = ("-Wl,-Bsymbolic", "-Wl,--no-undefined")


def is_cpp(source: str) -> bool:
    """Whether a file is C++."""
    return Path(source).suffix in CPP_SUFFIXES


def image_flags(sources: Sequence[str], *, is_program: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Flags for the compiler, and for the linker; these come behind the files.

    Args:
        sources: Files: C++ allows a cast that loses bits of an address in another way than C.
        is_program: Whether to make its own program, with no core around it.

    Raises:
        NotBuiltError: the runtime's library is not built.
    """
    path = library("libhbrt_dsp.so")
    casts = _CASTS_IN_CPP if any(map(is_cpp, sources)) else _CASTS_IN_C
    kind = () if is_program else ("-shared",)
    link = (*kind, *_LINK, str(path), f"-Wl,-rpath,{path.parent}", "-lm")
    return (*_COMPILE, *casts, f"-I{include_dir('dsp')}", f"-I{include_dir('fastrpc')}"), link
