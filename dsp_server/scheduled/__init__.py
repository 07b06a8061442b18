"""Cores inside their program's process that take turns with it, so that a run can be repeated step by step."""
