"""``remote_handle64_*``: the vendor's names, argument order and codes. No call raises; each returns a code."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, TypeAlias

from arm_client.cabi.arguments import integer, short_repr
from arm_client.cabi.last_error import note
from fastrpc.arguments import number, place, returns_code
from fastrpc.runtime import runtime
from fastrpc.wire import uri
from fastrpc.wire.aee import Aee, AeeError
from fastrpc.wire.types import remote_arg, remote_handle64

Arguments: TypeAlias = "ctypes.Array[remote_arg] | Sequence[remote_arg] | None"


@returns_code
def remote_handle64_open(name: str | bytes | None, handle: Any) -> None:
    """Open an interface on a domain.

    Args:
        name: Its URI, followed by ``&_dom=`` and the name of a domain.
        handle: Out: a remote_handle64.

    Returns:
        0; AEE_EBADPARM: an argument is missing, or the domain is unknown; AEE_ECONNREFUSED: the board has no such
        domain, or is not running; AEE_EUNABLETOLOAD from the DSP side: its image has no such interface.

    Source: qualcomm/fastrpc, remote.h, https://github.com/qualcomm/fastrpc
    """
    target = place("handle", handle)
    target.value = runtime().open(_text(name))


@returns_code
def remote_handle_open(name: str | bytes | None, handle: Any) -> None:
    """Like remote_handle64_open, on cdsp if ``name`` has no domain; ``name`` may be just the interface's name.

    Args:
        name: A URI, or a name.
        handle: Out: a remote_handle.
    """
    target, given = place("handle", handle), _text(name)
    # Stubs of interfaces without handles use another function of the skeleton.
    written = given.replace("_skel_invoke", "_skel_handle_invoke") if "?" in given else uri.of_interface(given)
    target.value = runtime().open(written, uri.DEFAULT_DOMAIN)


def remote_handle_invoke(handle: Any, scalars: int, pra: Arguments) -> int:
    """Like remote_handle64_invoke."""
    return remote_handle64_invoke(handle, scalars, pra)


def remote_handle_close(handle: Any) -> int:
    """Like remote_handle64_close."""
    return remote_handle64_close(handle)


def remote_handle64_invoke(handle: Any, scalars: int, pra: Arguments) -> int:
    """Run a method of an open handle; may be called from several threads at once.

    Args:
        handle: From remote_handle64_open.
        scalars: The scalar word.
        pra: An array of remote_arg: input buffers, then output buffers.

    Returns:
        0; what the method returned; AEE_EINVHANDLE; AEE_EBADPARM: arguments are missing, or one runs past the end of
        registered memory; AEE_ECONNRESET: the domain has ended, and the handle is stale.
    """
    opened = number_of(handle)
    try:
        if type(scalars) is not int:
            scalars = number("scalars", scalars)
        runtime().invoke(opened, scalars, raw_of(pra))
    except AeeError as error:
        return note(error.code, error.sentence)
    return 0


@returns_code
def remote_handle64_close(handle: Any) -> None:
    """Close a handle, even a stale one.

    Returns:
        0; AEE_EINVHANDLE; the code from the interface's own close.
    """
    runtime().close(number_of(handle))


def raw_of(pra: Any) -> bytes:
    """The bytes of an array of arguments.

    Raises:
        AeeError: AEE_EBADPARM: it is not an array.
    """
    if issubclass(type(pra), ctypes.Array) and pra._type_ is remote_arg:
        return bytes(pra)
    given = () if pra is None else pra
    if not issubclass(type(given), Sequence) or not all(issubclass(type(one), remote_arg) for one in given):
        raise AeeError(Aee.AEE_EBADPARM, f"pra is {short_repr(pra)}; pass an array of remote_arg.")
    return b"".join(map(bytes, given))


def _text(name: Any) -> str:
    if not issubclass(type(name), str | bytes) or not name:
        raise AeeError(Aee.AEE_EBADPARM, f"name is {short_repr(name)}; pass the URI of an interface.")
    return name if isinstance(name, str) else name.decode(errors="replace")


def number_of(handle: Any) -> int:
    """The number of a handle or job, given as a number or a ctypes integer; -1 (invalid) for anything else."""
    if type(handle) is int:
        return handle
    found = handle.value if type(handle) is remote_handle64 else integer(handle)
    return -1 if found is None else found
