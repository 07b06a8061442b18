"""Schedules of a program and its ops: how one is written, drawn, and shrunk. Pure."""
