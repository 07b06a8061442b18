"""libsrcampy of RDK X5, the same as on the other boards; see docs/rdk.md."""

from hobot_vio.libsrcampy import Camera, Decoder, Display, Encoder, bind, unbind

__all__ = ["Camera", "Decoder", "Display", "Encoder", "bind", "unbind"]
