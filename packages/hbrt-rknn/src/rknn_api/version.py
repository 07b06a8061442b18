"""The results of the version calls."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

API: Final = "2.3.2"  # whose names and files these are
DRIVER: Final = "0.9.8"


def sdk_version() -> str:
    """Versions of this emulator and of its libraries."""
    return f"hbrt {version('hbrt')} (emulator), onnxruntime {version('onnxruntime')}"


def version_table(*drivers: str) -> str:
    """Lay versions out as ``get_sdk_version`` does, since programs take them out of its lines.

    Args:
        drivers: What stands behind ``DRV:``, a line each.

    The lines are those of the toolkit's README of npu_device_test, and of public programs that read them.
    """
    rule = "=" * 46
    lines = [f"API: {API} ({sdk_version()})", *(f"DRV: {one}" for one in drivers)]
    return "\n".join([rule, "RKNN VERSION:", *(f"  {line}" for line in lines), rule])
