"""How an image is compiled to Hexagon code: a program for QEMU, including the runtime, by ziglang's compiler."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from collections.abc import Sequence
from typing import Final

from hbrt.lazy import how_to_install
from hbrt.native.files import hexagon_sources, image_folders, source_dir
from hbrt.native.image_flags import is_cpp

VERSION: Final = 67
"""Default code version: supported by the QEMU of Debian 12."""
_VERSIONS: Final = (60, 62, 65, 66, 67, 68, 69, 71, 73, 75, 79, 81)
_QFLOAT_FROM: Final = 68  # floating-point vectors
# The vendor's options for the version and its units; -mcpu is clang's.
_VERSION_WORD: Final = re.compile(r"-m(?:cpu=hexagon)?v(\d+)(?:\+.*)?$")
_UNIT_WORD: Final = re.compile(r"-m(?:hvx|hmx)(?:[-=].*)?$")
QEMU: Final = "qemu-hexagon"
MISSING: Final = (
    f"Compiling Hexagon code needs ziglang; {how_to_install('hexagon')}. The code runs with qemu-hexagon (Debian: apt "
    "install qemu-user)."
)


def qemu() -> str | None:
    """Return the path of the QEMU for Hexagon code, None if missing; Debian's static package also has it."""
    return shutil.which(QEMU) or shutil.which(f"{QEMU}-static")


def version_in(arguments: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """Return the code version requested by a compiler's arguments, and the arguments without it.

    ``-mv73``, ``-mcpu=hexagonv73`` and ``-mhvx`` are understood: an image has its version's HVX with 128 bytes.

    Raises:
        ValueError: the compiler does not support this version.
    """
    found = [match for one in arguments if (match := _VERSION_WORD.match(one))]
    version = int(found[-1][1]) if found else VERSION
    if version not in _VERSIONS:
        known = ", ".join(f"v{one}" for one in _VERSIONS)
        raise ValueError(f"Unknown Hexagon version {found[-1][0]}: must be one of {known}.")
    return version, tuple(one for one in arguments if not (_VERSION_WORD.match(one) or _UNIT_WORD.match(one)))


def hexagon_compiler(sources: Sequence[str], version: int = VERSION) -> list[str]:
    """Return the compiler command, for C++ if any source is C++.

    Raises:
        FileNotFoundError: ziglang is not installed.
    """
    if importlib.util.find_spec("ziglang") is None:
        raise FileNotFoundError(MISSING)
    language = "c++" if any(map(is_cpp, sources)) else "cc"
    return [sys.executable, "-m", "ziglang", language, "-target", "hexagon-linux-musl", f"-mcpu=hexagonv{version}"]


def hexagon_assembler(version: int = VERSION) -> list[str]:
    """Return the command that assembles code with HVX, whose units depend on the processor name.

    Do not link a program with that name: the C library's loops would also become vectors.

    Raises:
        FileNotFoundError: ziglang is not installed.
    """
    *command, processor = hexagon_compiler((), version)
    return [*command, f"{processor}+hvxv{version}+hvx_length128b"]


def hexagon_flags(version: int = VERSION) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return flags for the compiler and for the linker, which include the runtime's sources."""
    runtime = hexagon_sources()
    dsp = runtime.with_name("dsp")
    sources = [str(file) for folder in (runtime, dsp) for file in sorted(folder.glob("*.c"))]
    # Only for the image's own sources, and only for intrinsics: otherwise the C library's loops become vectors, and
    # its strchr() then finds nothing in strings longer than 64 bytes. zreg: also switches off those since v66.
    units = ["hvx", *(f"hvxv{one}" for one in _VERSIONS if one <= version), "hvx-length128b", "zreg"]
    units += ["hvx-qfloat", "hvx-ieee-fp"] if version >= _QFLOAT_FROM else []
    features = [word for one in units for word in ("-Xclang", "-target-feature", "-Xclang", f"+{one}")]
    vectors = (*features, "-fno-vectorize", "-fno-slp-vectorize")
    # In the vendor's C library NULL is 0, which programs assign to numbers.
    warnings = ("-Wno-psabi", "-Wno-error=int-conversion")
    compile_flags = ("-O2", *vectors, "-ffp-contract=off", "-fno-sanitize=all", "-pthread", *warnings)
    found_by = [f"-iquote{one}" for one in (dsp, runtime.with_name("core"), source_dir("dsp"), source_dir("mailbox"))]
    link = ["-static", "-x", "c", *found_by, *sources, "-x", "none", "-lm"]
    over_libc = f"-I{runtime / 'include'}"  # an -isystem folder is searched after the C library's
    return (*compile_flags, over_libc, *(f"-isystem{one}" for one in image_folders())), tuple(link)
