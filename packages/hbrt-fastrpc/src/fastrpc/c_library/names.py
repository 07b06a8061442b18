"""FastRPC's calls as libcdsprpc.so passes them on: addresses are numbers, laid out by the headers' prototypes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import fastrpc
from arm_client.c_library.prototypes import Prototype, by_address, without_body
from arm_client.cabi.last_error import note
from fastrpc import asynchronous
from fastrpc.c_library import queues
from fastrpc.c_library.prepared import invoke, lend
from fastrpc.runtime import runtime
from fastrpc.wire import scalars, types
from fastrpc.wire.aee import Aee, AeeError, name_of
from fastrpc.wire.types import fastrpc_async_descriptor, remote_arg


def _invoke_async(handle: int, desc: int, word: int, pra: int) -> int:
    """Like remote_handle64_invoke_async."""
    if not desc:
        return note(Aee.AEE_EBADPARM, "The descriptor is NULL.")
    given = fastrpc_async_descriptor.from_address(desc)
    arguments = (remote_arg * scalars.count(word)).from_address(pra) if pra else None
    return asynchronous.remote_handle64_invoke_async(handle, given, word, arguments)


def _finish(handle: int, task: int) -> int:
    """Finish an invocation that the library sent and that did not succeed."""
    try:
        here = runtime()
        here.finish(task, here.opened(handle))
    except AeeError as error:
        return note(error.code, error.sentence)
    return 0


_BY_HAND: dict[str, Callable[..., int]] = {
    **dict.fromkeys(("remote_handle_invoke_async", "remote_handle64_invoke_async"), _invoke_async),
    **dict.fromkeys(("remote_handle_invoke", "remote_handle64_invoke"), invoke),
    "hbrt_fastrpc_lend": lend,
    "hbrt_fastrpc_finish": _finish,
}
"""What a function's prototype does not fully express."""
TYPES = vars(types)
_NOT_CODES = frozenset({"rpcmem_alloc", "rpcmem_alloc2", "rpcmem_to_fd", "remote_register_fd", "remote_register_fd2"})
_PENDING = frozenset({Aee.AEE_EBUSY, Aee.AEE_EWOULDBLOCK, Aee.AEE_EEXPIRED})  # answers of repeated calls


def function(name: str, given: Prototype, host: Any) -> Callable[..., int]:
    """Like ``Guest.function`` of arm_client/c_library/host.py."""
    del host
    if name in _BY_HAND:
        return _BY_HAND[name]
    call = getattr(fastrpc, name, None) or getattr(queues, name, None)
    if call is None:
        return without_body(name, partial(note, Aee.AEE_EUNSUPPORTED))
    return by_address(call, given.kinds)


def refusal(name: str, status: int) -> tuple[str, str] | None:
    """Like ``Guest.refusal`` of arm_client/c_library/host.py."""
    return None if name in _NOT_CODES or status in _PENDING else (name, name_of(status))
