"""Real numbers as stored integers: the rule of a number for both sides, and arithmetic on matrices of uint8. Pure."""

from hbrt.quantize.numbers import dequantize, quantize, round_half_away

__all__ = ["dequantize", "quantize", "round_half_away"]
