"""Schedules of a program and its ops: their syntax, generation, and shrinking. Pure."""
