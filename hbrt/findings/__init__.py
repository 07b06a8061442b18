"""Findings: mistakes of programs that a board would hide. One record for all of them, and how it is shown."""
