"""What libhbrt.so, the library of C programs, finds in Python: ``connect``, which it calls at its first call."""

from arm_client.c_library.host import connect

__all__ = ["connect"]
