"""``import libsrcampy``, for programs that put the vendor's folder on the path: docs/rdk.md."""

from hobot_vio.libsrcampy import Camera, Decoder, Display, Encoder, bind, unbind

__all__ = ["Camera", "Decoder", "Display", "Encoder", "bind", "unbind"]
