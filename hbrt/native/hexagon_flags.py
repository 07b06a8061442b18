"""How an image becomes Hexagon code: a program for QEMU, with the runtime inside, by ziglang's compiler."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from collections.abc import Sequence
from typing import Final

from hbrt.native.files import include_dir, source_dir
from hbrt.native.image_flags import is_cpp

VERSION: Final = 67
"""Of the code when nothing else is asked for: what the QEMU of Debian 12 knows."""
_VERSIONS: Final = (60, 62, 65, 66, 67, 68, 69, 71, 73, 75, 79, 81)
_QFLOAT_FROM: Final = 68  # vectors of floating-point numbers
# The vendor's words for the version and its units; a version by -mcpu is of clang.
_VERSION_WORD: Final = re.compile(r"-m(?:cpu=hexagon)?v(\d+)(?:\+.*)?$")
_UNIT_WORD: Final = re.compile(r"-m(?:hvx|hmx)(?:[-=].*)?$")
_RUNTIME: Final = {
    "hexagon": ("runtime.c", "qprintf.c"),
    "dsp": ("fastrpc.c", "dspqueue.c", "hap.c", "qurt.c", "worker_pool.c"),
}
QEMU: Final = "qemu-hexagon"
MISSING: Final = (
    "Hexagon code is compiled by ziglang, which is not here: install the extra: pip install 'hbrt[hexagon]'. It runs "
    "by qemu-hexagon (Debian: apt install qemu-user)."
)


def qemu() -> str | None:
    """Path of the QEMU that runs Hexagon code, None without one; Debian's package of static ones has it, too."""
    return shutil.which(QEMU) or shutil.which(f"{QEMU}-static")


def version_in(arguments: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """The version of the code that a compiler's arguments ask for, and the arguments without it.

    ``-mv73``, ``-mcpu=hexagonv73`` and ``-mhvx`` are understood: an image has HVX of its version, of 128 bytes.

    Raises:
        ValueError: the compiler knows no such version.
    """
    found = [match for one in arguments if (match := _VERSION_WORD.match(one))]
    version = int(found[-1][1]) if found else VERSION
    if version not in _VERSIONS:
        known = ", ".join(f"v{one}" for one in _VERSIONS)
        raise ValueError(f"Unknown version of Hexagon code {found[-1][0]}: must be one of {known}.")
    return version, tuple(one for one in arguments if not (_VERSION_WORD.match(one) or _UNIT_WORD.match(one)))


def hexagon_compiler(sources: Sequence[str], version: int = VERSION) -> list[str]:
    """The compiler's command, of C++ when one source is.

    Raises:
        FileNotFoundError: ziglang is not installed.
    """
    if importlib.util.find_spec("ziglang") is None:
        raise FileNotFoundError(MISSING)
    language = "c++" if any(map(is_cpp, sources)) else "cc"
    return [sys.executable, "-m", "ziglang", language, "-target", "hexagon-linux-musl", f"-mcpu=hexagonv{version}"]


def hexagon_assembler(version: int = VERSION) -> list[str]:
    """The command that makes an object of assembly code with HVX, which takes its units from the processor's name.

    A program is not linked with that name: the C library's loops would become vectors, too.

    Raises:
        FileNotFoundError: ziglang is not installed.
    """
    *command, processor = hexagon_compiler((), version)
    return [*command, f"{processor}+hvxv{version}+hvx_length128b"]


def hexagon_flags(version: int = VERSION) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Flags for the compiler, and for the linker: the sources of the runtime are among these."""
    sources = [str(source_dir(folder) / name) for folder, names in _RUNTIME.items() for name in names]
    folders = [include_dir("fastrpc"), include_dir("dsp")]
    # Of the image's own sources alone, and only by intrinsics: with them, loops of the C library become vectors, and
    # its strchr() then finds nothing in texts of more than 64 bytes.
    # zreg: those from v66 on are switched off with it.
    units = ["hvx", *(f"hvxv{one}" for one in _VERSIONS if one <= version), "hvx-length128b", "zreg"]
    units += ["hvx-qfloat", "hvx-ieee-fp"] if version >= _QFLOAT_FROM else []
    features = [word for one in units for word in ("-Xclang", "-target-feature", "-Xclang", f"+{one}")]
    vectors = (*features, "-fno-vectorize", "-fno-slp-vectorize")
    compile_flags = ("-O2", *vectors, "-ffp-contract=off", "-fno-sanitize=all", "-pthread", "-Wno-psabi")
    found_by = [f"-iquote{source_dir(one)}" for one in ("dsp", "mailbox")]
    link = ["-static", "-x", "c", *found_by, *sources, "-x", "none", "-lm"]
    over_libc = f"-I{include_dir('hexagon')}"  # a folder of -isystem comes behind those of the C library
    return (*compile_flags, over_libc, *(f"-isystem{one}" for one in folders)), tuple(link)
