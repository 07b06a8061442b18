"""Cores in the process of their program that take turns with it, so that a run can be repeated step by step."""
