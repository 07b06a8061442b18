"""Multimedia of RDK boards, emulated by hbrt."""

from hbrt import settings


def surroundings() -> None:
    """Have programs find the board's USB camera, window and name, where settings ask for them: ``hobot_vio.usb``."""
    if settings.text("HBRT_CAMERA") or settings.text("HBRT_DISPLAY") or settings.text("HBRT_PROFILE") != "j5":
        from hobot_vio.usb import install

        install()
