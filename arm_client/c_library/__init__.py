"""The Python side of libhbrt.so, the library of C programs; the library calls ``connect`` on its first call."""

from arm_client.c_library.host import connect

__all__ = ["connect"]
