"""The results of the version calls."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

API: Final = "2.3.2"  # the names and files belong to it
DRIVER: Final = "0.9.8"


def sdk_version() -> str:
    """Versions of this emulator and of its libraries."""
    return f"hbrt {version('hbrt')} (emulator), onnxruntime {version('onnxruntime')}"


def version_table(*drivers: str) -> str:
    """Format versions like ``get_sdk_version``, since programs parse its lines.

    Args:
        drivers: What follows ``DRV:``, one line each.

    The lines are those of the README of the toolkit's npu_device_test, and of public programs that read them.
    """
    rule = "=" * 46
    lines = [f"API: {API} ({sdk_version()})", *(f"DRV: {one}" for one in drivers)]
    return "\n".join([rule, "RKNN VERSION:", *(f"  {line}" for line in lines), rule])
