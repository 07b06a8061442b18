"""Tracing for parts of a program that have no session. See hbrt/trace for the files."""
