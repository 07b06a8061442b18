"""Findings: mistakes of programs that a board would hide. One record type for all of them, and its display."""
