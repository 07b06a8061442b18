"""Formats a time span for a sentence."""

from __future__ import annotations


def span(seconds: float) -> str:
    """Format a time span briefly: ``3 µs``, ``2 ms``, ``4.2 s``, ``75 s``."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds:.0f} s"
