"""Real numbers as stored integers: the conversion rule for both sides. Pure."""

from hbrt.quantize.numbers import dequantize, quantize, round_half_away

__all__ = ["dequantize", "quantize", "round_half_away"]
