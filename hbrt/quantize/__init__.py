"""Real numbers as stored integers: the conversion rule for both sides, and arithmetic on uint8 matrices. Pure."""

from hbrt.quantize.numbers import dequantize, quantize, round_half_away

__all__ = ["dequantize", "quantize", "round_half_away"]
