"""Detectors: they watch an op while it runs, when its program or its board has turned a check on."""
