"""Builds what is in C: the libraries that C programs and images link, and the call path's module for Python.

``python native/build.py`` builds what is older than its sources, into ``hbrt/native/``, and writes the header of the
intrinsics' names. Without a C compiler it builds nothing more, says so, and ends well: hbrt then runs in Python alone.
"""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

NATIVE = Path(__file__).resolve().parent
TARGET = NATIVE.parent / "hbrt" / "native"
WARNINGS = ("-Wall", "-Wextra", "-Werror")
FLAGS = ("-O2", "-g", "-fPIC", "-fvisibility=hidden", "-pthread", f"-I{NATIVE / 'mailbox'}")
# Library: its folders of C sources, the headers that its users include, what else it links.
LIBRARIES: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "libhbrt.so": (("arm", "mailbox"), "include/arm", ("-ldl",)),
    "libhbrt_dsp.so": (("dsp", "mailbox"), "include/dsp", ("-ldl",)),
}
MODULE = "hbrt.native._mailbox"


def compiler() -> list[str] | None:
    """The C compiler's command: $CC, or the first of cc, gcc and clang that is there; None for none."""
    if named := os.environ.get("CC"):
        return shlex.split(named)
    return next(([name] for name in ("cc", "gcc", "clang") if shutil.which(name)), None)


def sources(folder: str) -> list[Path]:
    """C sources of a folder, in order."""
    return sorted((NATIVE / folder).glob("*.c"))


def is_newer(target: Path, *inputs: Path) -> bool:
    """Whether a target is there, and newer than all its inputs."""
    return target.exists() and target.stat().st_mtime >= max(path.stat().st_mtime for path in inputs)


def inputs() -> Iterator[Path]:
    """All that a change of makes everything old."""
    for suffix in ("*.c", "*.h", "*.py"):
        yield from NATIVE.rglob(suffix)


def build_library(cc: list[str], name: str) -> None:
    """Build one library for C users."""
    folders, headers, links = LIBRARIES[name]
    target = TARGET / "lib" / name
    files = [str(source) for folder in folders for source in sources(folder)]
    if is_newer(target, *inputs()):
        return
    target.parent.mkdir(exist_ok=True)
    unfinished = target.with_suffix(f".{os.getpid()}")
    headers_of = [f"-I{NATIVE / folder}" for folder in (headers, "include/fastrpc", "include/rknn")]
    command = [*cc, "-std=gnu11", *FLAGS, *WARNINGS, *headers_of, "-shared", f"-Wl,-soname,{name}"]
    subprocess.run([*command, *files, "-o", str(unfinished), *links], check=True)
    unfinished.replace(target)  # whoever has the old one mapped keeps it


def build_module() -> None:
    """Build the module by which Python reaches the mailbox (cffi's API mode)."""
    suffix = ".abi3.so" if sys.implementation.name == "cpython" else sysconfig.get_config_var("EXT_SUFFIX")
    target = TARGET / f"{MODULE.rpartition('.')[2]}{suffix}"
    if is_newer(target, *inputs()):
        return
    from cffi import FFI  # where there is no compiler, it need not be there

    ffi = FFI()
    header = (NATIVE / "mailbox" / "mailbox.h").read_text()
    ffi.cdef("".join(line for line in header.splitlines(keepends=True) if not line.startswith("#")))
    ffi.set_source(
        MODULE,
        '#include "mailbox.h"',
        sources=[str(source) for source in sources("mailbox")],
        include_dirs=[str(NATIVE / "mailbox")],
        extra_compile_args=["-std=gnu11", "-O2", "-g", "-fvisibility=hidden", "-Wall", "-Wextra"],
        py_limited_api=suffix == ".abi3.so",
    )
    with tempfile.TemporaryDirectory() as folder:
        built = Path(ffi.compile(tmpdir=folder, verbose=False))
        unfinished = target.with_suffix(f".{os.getpid()}")
        shutil.copyfile(built, unfinished)
    unfinished.replace(target)


def build() -> bool:
    """Build everything that is old; False, with a sentence, where there is no C compiler."""
    runpy.run_path(str(NATIVE / "ivp_names.py"))["write_names"]()
    cc = compiler()
    if cc is None or shutil.which(cc[0]) is None:
        print("hbrt: no C compiler is here (cc, gcc or clang): hbrt runs in Python alone, and 'hbrt cc' needs one.")
        return False
    for name in LIBRARIES:
        build_library(cc, name)
    build_module()
    runpy.run_path(str(TARGET / "record.py"))["write_record"]()
    return True


if __name__ == "__main__":
    build()
