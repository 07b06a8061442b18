"""What other build tools read: hbrt.pc for pkg-config, and hbrtConfig.cmake for CMake's find_package(hbrt)."""

from __future__ import annotations

import sys
from pathlib import Path

from hbrt import __version__
from hbrt.cc.toolchain import arm_flags
from hbrt.native.files import library

_PKG_CONFIG = """\
Name: hbrt
Description: ARM programs for an emulated ARM-DSP board
Version: {version}
Cflags: {compile}
Libs: {link}
"""

_CMAKE = """\
set(hbrt_VERSION {version})
if(NOT TARGET hbrt::hbrt)
  add_library(hbrt::hbrt SHARED IMPORTED)
  set_target_properties(hbrt::hbrt PROPERTIES
    IMPORTED_LOCATION "{library}"
    INTERFACE_INCLUDE_DIRECTORIES "{folders}")
endif()
"""


def write_packages() -> Path:
    """Write both into this environment's ``lib``; returns that folder.

    Raises:
        NotBuiltError: hbrt was installed where no C compiler was. OSError: the environment cannot be written.
    """
    flags = arm_flags()
    folder = Path(sys.prefix) / "lib"
    values = {
        "version": __version__,
        "compile": " ".join(map(_quoted, flags.compile)),
        "link": " ".join(map(_quoted, flags.link)),
        "library": library("libhbrt.so"),
        "folders": ";".join(flag.removeprefix("-isystem") for flag in flags.compile),
    }
    for file, text in (
        (folder / "pkgconfig" / "hbrt.pc", _PKG_CONFIG),
        (folder / "cmake/hbrt/hbrtConfig.cmake", _CMAKE),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.format(**values), encoding="utf-8")
    return folder


def _quoted(flag: str) -> str:
    return flag.replace("\\", "\\\\").replace(" ", "\\ ")
