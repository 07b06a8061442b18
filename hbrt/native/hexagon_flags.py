"""How an image becomes Hexagon code: a program for QEMU, with the runtime inside, by ziglang's compiler. Pure."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from typing import Final

from hbrt.native.files import include_dir, source_dir
from hbrt.native.image_flags import is_cpp

CPU: Final = "hexagonv67"
# Of the image's own sources alone, and only by intrinsics: with them, loops of the C library become vectors, and its
# strchr() then finds nothing in texts of more than 64 bytes.
_HVX: Final = ("hvx", "hvxv60", "hvxv62", "hvxv65", "hvxv66", "hvxv67", "hvx-length128b")
_RUNTIME: Final = {"hexagon": ("runtime.c",), "dsp": ("fastrpc.c", "dspqueue.c", "hap.c", "qurt.c")}
MISSING: Final = (
    "Hexagon code is compiled by ziglang, which is not here: install the extra: pip install 'hbrt[hexagon]'. It runs "
    "by qemu-hexagon (Debian: apt install qemu-user)."
)


def hexagon_compiler(sources: Sequence[str]) -> list[str]:
    """The compiler's command, of C++ when one source is.

    Raises:
        FileNotFoundError: ziglang is not installed.
    """
    if importlib.util.find_spec("ziglang") is None:
        raise FileNotFoundError(MISSING)
    language = "c++" if any(map(is_cpp, sources)) else "cc"
    return [sys.executable, "-m", "ziglang", language, "-target", "hexagon-linux-musl", f"-mcpu={CPU}"]


def hexagon_flags() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Flags for the compiler, and for the linker: the sources of the runtime are among these."""
    sources = [str(source_dir(folder) / name) for folder, names in _RUNTIME.items() for name in names]
    folders = [include_dir("fastrpc"), include_dir("dsp")]
    features = [word for one in _HVX for word in ("-Xclang", "-target-feature", "-Xclang", f"+{one}")]
    vectors = (*features, "-fno-vectorize", "-fno-slp-vectorize")
    compile_flags = ("-O2", *vectors, "-ffp-contract=off", "-fno-sanitize=all", "-pthread", "-Wno-psabi")
    link = ["-static", "-x", "c", f"-iquote{source_dir('dsp')}", *sources, "-x", "none", "-lm"]
    return (*compile_flags, *(f"-isystem{one}" for one in folders)), tuple(link)
