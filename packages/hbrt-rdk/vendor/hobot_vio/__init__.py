"""Multimedia of RDK boards, emulated by hbrt."""

from hbrt import settings

BOARDS = {"s100": "S100", "x5": "X5", "x3": "X3"}
"""Board names that programs look for, by profile."""


def surroundings() -> None:
    """Let programs find the board's USB camera, window and name if the settings request them: ``hobot_vio.usb``."""
    if settings.text("HBRT_CAMERA") or settings.text("HBRT_DISPLAY") or settings.text("HBRT_PROFILE") in BOARDS:
        from hobot_vio.usb import install

        install()
