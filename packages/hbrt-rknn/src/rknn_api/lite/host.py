"""Make the file system and ``platform`` name a chip to programs that choose their model file by it."""

from __future__ import annotations

import sys

from hbrt import settings
from hbrt.borders import board_files
from rknn_api.errors import RknnError
from rknn_api.platforms import platform_of

_COMPATIBLE = "/proc/device-tree/compatible"


def install() -> None:
    """Report the chip of HBRT_PROFILE if it is a Rockchip one; prints a note on standard error."""
    name = settings.text("HBRT_PROFILE")
    try:
        platform_of(name)
    except RknnError:
        return
    machine = "aarch64" if name.startswith("rk35") or name == "rv1126b" else "armv7l"
    if board_files.show({_COMPATIBLE: f"rockchip,{name}-evb\0rockchip,{name}\0"}, machine=machine):
        sys.stderr.write(
            f"rknnlite: {_COMPATIBLE} names {name}, and platform.machine() {machine}, as set by HBRT_PROFILE.\n"
        )
