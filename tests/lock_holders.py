"""Programs that keep a board's claim lock."""

from __future__ import annotations

BREAK_ROBUST_LIST = """
import ctypes, platform
number = {"x86_64": 273, "aarch64": 99}[platform.machine()]
assert ctypes.CDLL(None).syscall(number, None, ctypes.c_size_t(24)) == 0  # set_robust_list
"""
"""Has the kernel forget where the thread's robust mutexes are: none is let go when it dies."""
