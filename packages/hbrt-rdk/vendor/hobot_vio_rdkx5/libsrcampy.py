"""libsrcampy of RDK X5, as of the other boards: docs/rdk.md."""

from hobot_vio.libsrcampy import Camera, Decoder, Display, Encoder, bind, unbind

__all__ = ["Camera", "Decoder", "Display", "Encoder", "bind", "unbind"]
