"""How a compiler builds an image from C and C++ files: a shared library that finds the runtime by itself. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hbrt.native.files import guest_libraries, image_folders, library

CPP_SUFFIXES: Final = frozenset({".cc", ".cpp", ".cxx", ".C", ".c++", ".hh", ".hpp"})

_COMPILE: Final = (
    "-O2",
    "-fPIC",
    "-ffp-contract=off",  # round products and sums separately on every machine
    "-fno-semantic-interposition",
    "-fno-omit-frame-pointer",
    "-fno-sanitize-recover=all",  # a sanitizer finding ends the op
    "-pthread",
    "-Wno-psabi",  # GCC notes that the vector ABI changed in version 4.6
)
# Board programs store addresses in 32 bits, which is enough there.
_CASTS_IN_C: Final = ("-Wno-pointer-to-int-cast", "-Wno-int-to-pointer-cast")
_CASTS_IN_CPP: Final = ("-fpermissive", "-Wno-int-to-pointer-cast")
# The image's functions take precedence over the process's; the linker reports missing ones.
_LINK: Final = ("-Wl,-Bsymbolic", "-Wl,--no-undefined")


def is_cpp(source: str) -> bool:
    """Whether a file is C++."""
    return Path(source).suffix in CPP_SUFFIXES


def image_flags(sources: Sequence[str], *, is_program: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return flags for the compiler and for the linker; the latter follow the files.

    Args:
        sources: Source files: C++ handles casts that truncate addresses differently from C.
        is_program: Whether to build a standalone program without a core.

    Raises:
        NotBuiltError: the runtime's library is not built.
    """
    path = library("libhbrt_dsp.so")
    casts = _CASTS_IN_CPP if any(map(is_cpp, sources)) else _CASTS_IN_C
    kind = () if is_program else ("-shared",)
    of_guests = guest_libraries(is_image=True)
    found_by = (f"-Wl,-rpath,{one}" for one in dict.fromkeys(file.parent for file in (*of_guests, path)))
    as_needed = ("-Wl,--as-needed", *map(str, of_guests), "-Wl,--no-as-needed") if of_guests else ()
    link = (*kind, *_LINK, *as_needed, str(path), *found_by, "-lm")
    return (*_COMPILE, *casts, *(f"-I{one}" for one in image_folders())), link
