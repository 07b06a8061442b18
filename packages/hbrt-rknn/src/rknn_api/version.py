"""The results of the version calls."""

from __future__ import annotations

from importlib.metadata import version


def sdk_version() -> str:
    """Versions of this emulator and of its libraries."""
    return f"hbrt {version('hbrt')} (emulator), onnxruntime {version('onnxruntime')}"
