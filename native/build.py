"""Build the parts in C: the libraries that C programs and images link, and Python's module for the call path.

``python native/build.py`` builds everything older than its sources, into ``hbrt/native/``, and writes the header with
the intrinsics' names. The compiler is $CC, or the first available of cc, gcc and clang, or the package ziglang, which
make and hbrt's installation request if there is no other compiler. Without any, it prints a message and exits with 1.
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
# Names of the vendors' libraries that programs link or load; each stands for libhbrt.so.
LINKER_NAMES = (
    "libdnn.so",
    "libcnn_intf.so",
    "libhbrt_bayes_aarch64.so",
    "libhbrt_bernoulli_aarch64.so",
    "libhbucp.so",
    "libhbvp.so",
    "librknnrt.so",
    "librknn_api.so",
    "librga.so",
    "libspcdev.so",
    "libadsprpc.so",
    "libcdsprpc.so",
    "libsdsprpc.so",
    "librpcmem.so",
    "liblog.so",
)
MODULE = "hbrt.native._mailbox"


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


def sources(folder: str) -> list[Path]:
    """C sources of a folder, sorted."""
    return sorted((NATIVE / folder).glob("*.c"))


def is_newer(target: Path, *inputs: Path) -> bool:
    """Whether a target exists, and is newer than all its inputs."""
    return target.exists() and target.stat().st_mtime >= max(path.stat().st_mtime for path in inputs)


def inputs() -> Iterator[Path]:
    """Files whose change makes everything out of date."""
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
    others = ("fastrpc", "fastrpc/qurt", "fastrpc/stddef", "rga", "rknn", "sp", "ucp")
    headers_of = [f"-I{NATIVE / folder}" for folder in (headers, *(f"include/{one}" for one in others))]
    command = [*cc, "-std=gnu11", *FLAGS, *WARNINGS, *headers_of, "-shared", f"-Wl,-soname,{name}"]
    subprocess.run([*command, *files, "-o", str(unfinished), *links], check=True)
    unfinished.replace(target)  # processes that have mapped the old one keep it


def link_names() -> None:
    """Create the vendors' names for libhbrt.so; a wheel has copies."""
    for name in LINKER_NAMES:
        link = TARGET / "lib" / name
        if not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to("libhbrt.so")


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
    files = [str(source) for source in sources("mailbox")]
    unfinished = target.with_suffix(f".{os.getpid()}")
    with tempfile.TemporaryDirectory() as folder:
        glue = Path(folder) / "module.c"
        recompiler.make_c_source(ffi, MODULE, '#include "mailbox.h"', str(glue))
        command = [*cc, "-std=gnu11", *FLAGS, *flags, "-Wall", "-Wextra", f"-I{include}", "-shared", str(glue), *files]
        subprocess.run([*command, "-o", str(unfinished)], check=True)
    unfinished.replace(target)


def build() -> None:
    """Build everything that is out of date.

    Raises:
        BuildError: there is no C compiler, or Python's headers are missing. CalledProcessError: the compiler failed.
    """
    runpy.run_path(str(NATIVE / "ivp_names.py"))["write_names"]()
    cc = compiler()
    for name in LIBRARIES:
        build_library(cc, name)
    link_names()
    build_module(cc, module_path())
    runpy.run_path(str(TARGET / "record.py"))["write_record"]()


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["--fallback"]:
            print(*fallback())
        else:
            build()
    except BuildError as error:
        sys.exit(f"hbrt: {error}")
