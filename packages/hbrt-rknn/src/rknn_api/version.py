"""What the calls for a version say."""

from __future__ import annotations

from importlib.metadata import version


def sdk_version() -> str:
    """Versions of this emulator and of what it computes with."""
    return f"hbrt {version('hbrt')} (emulator), onnxruntime {version('onnxruntime')}"
