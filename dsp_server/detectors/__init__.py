"""Detectors: they watch a running op if its program or board has turned on a check."""
