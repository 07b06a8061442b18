"""Python names of FastRPC that its headers lack or define differently; types.py has the rest of the headers.

Source: qualcomm/fastrpc, remote.h, rpcmem.h and dspqueue.h, https://github.com/qualcomm/fastrpc
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hbrt.structures import CStructure, int32_t, structure

remote_handle = ctypes.c_uint32
remote_handle64 = ctypes.c_uint64
fastrpc_async_callback: Any = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int)
fastrpc_notif_fn: Any = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int)


class AsyncDescriptor:
    """For fastrpc_async_descriptor: ``fn`` and ``context`` are the fields of ``cb``."""

    _anonymous_: ClassVar[Sequence[str]] = ("cb",)
    if TYPE_CHECKING:
        fn: Any
        context: int | None


@structure
class remote_rpc_domain(CStructure):
    """A domain to act on, for requests without other fields. Emulator: the name; C has one for each of them."""

    domain: int32_t
