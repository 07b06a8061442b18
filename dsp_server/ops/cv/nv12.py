"""What the CV ops need to know of NV12's second plane."""

from __future__ import annotations

NEUTRAL_CHROMA = 128
"""Chroma of grey."""

LUMA_PLANE = 0


def border_of(plane: int, value: int) -> tuple[int, ...]:
    """What lies outside a plane with a constant border, a channel each: the value, or grey where there is chroma."""
    return (value if plane == LUMA_PLANE else NEUTRAL_CHROMA,) * 4
