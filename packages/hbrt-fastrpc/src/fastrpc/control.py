"""``remote_session_control`` and ``remote_handle64_control``: the control requests of a program to its domains."""

from __future__ import annotations

import ctypes
from typing import Any, Final, TypeVar, cast

from fastrpc.arguments import number, returns_code
from fastrpc.calls import number_of
from fastrpc.runtime import FastrpcRuntime, runtime
from fastrpc.sessions import REQUESTS
from fastrpc.wire import types, uri
from fastrpc.wire.aee import Aee, AeeError

S = TypeVar("S", bound=ctypes.Structure)

_POLL, _MAX_POLL_US = 3, 10_000
_MAX_PATH: Final = 4096


@returns_code
def remote_session_control(req: int, data: Any, datalen: int) -> None:
    """Send a request to a domain.

    Args:
        req: FASTRPC_* or DSPRPC_CONTROL_UNSIGNED_MODULE; docs/fastrpc.md describes each.
        data: The request's structure.
        datalen: Its size.

    Returns:
        0; AEE_EBADPARM: invalid size or value; AEE_EUNSUPPORTED: unknown request; AEE_EBADSTATE: the domain is already
        open; AEE_EINVALIDDOMAIN, AEE_ENOSESSION, AEE_ECONNREFUSED: no such domain; AEE_EBADSIZE: no room for the
        answer.

    Source: qualcomm/fastrpc, remote.h, https://github.com/qualcomm/fastrpc
    """
    request = REQUESTS.get(req)
    if request is None:
        raise AeeError(Aee.AEE_EUNSUPPORTED, f"Unknown session request {req}; known are {sorted(map(int, REQUESTS))}.")
    kind, serve = request
    serve(runtime(), _structure(kind, data, datalen))


@returns_code
def remote_handle64_control(handle: Any, req: int, data: Any, datalen: int) -> None:
    """Send a request to a handle.

    Args:
        handle: From remote_handle64_open.
        req: DSPRPC_CONTROL_LATENCY or DSPRPC_CONTROL_WAKELOCK (noted), DSPRPC_GET_DSP_INFO, DSPRPC_GET_DOMAIN,
            DSPRPC_SET_PATH and DSPRPC_GET_PATH (kept, and not used).
        data: The request's structure.
        datalen: Its size.

    Returns:
        0; AEE_EINVHANDLE; AEE_EBADPARM; AEE_EUNSUPPORTED; AEE_ENOSUCH, AEE_EBADSIZE: no such path, or no room for it.
    """
    here = runtime()
    _control(here, here.opened(number_of(handle)).domain, req, data, datalen)


@returns_code
def remote_handle_control(req: int, data: Any, datalen: int) -> None:
    """Like remote_handle64_control, without a handle: for session 0 of cdsp."""
    _control(runtime(), uri.DEFAULT_DOMAIN, req, data, datalen)


def _control(here: FastrpcRuntime, domain: int, req: int, data: Any, datalen: int) -> None:
    noted = here.domains.of(domain).settings
    if req == types.DSPRPC_CONTROL_LATENCY:
        asked = _structure(types.remote_rpc_control_latency, data, datalen)
        if asked.enable > _POLL or (asked.enable == _POLL and asked.latency >= _MAX_POLL_US):
            raise AeeError(
                Aee.AEE_EBADPARM,
                f"Invalid latency ({asked.enable}, {asked.latency} µs): must be 0 to 3, and for 3 less than 10000 µs.",
            )
        noted["latency"] = asked.latency
    elif req == types.DSPRPC_CONTROL_WAKELOCK:
        noted["wakelock"] = _structure(types.remote_rpc_control_wakelock, data, datalen).enable
    elif req == types.DSPRPC_GET_DSP_INFO:
        _tell(here, _structure(types.remote_dsp_capability, data, datalen))
    elif req == types.DSPRPC_GET_DOMAIN:
        _structure(types.remote_rpc_get_domain, data, datalen).domain = domain
    elif req in {types.DSPRPC_SET_PATH, types.DSPRPC_GET_PATH}:
        _path(here, _structure(types.remote_control_custom_path, data, datalen), is_set=req == types.DSPRPC_SET_PATH)
    else:
        raise AeeError(Aee.AEE_EUNSUPPORTED, f"Unknown handle request {req}; known are 1 to 6.")


def _path(here: FastrpcRuntime, asked: types.remote_control_custom_path, *, is_set: bool) -> None:
    if not asked.path or not asked.value or not 0 < asked.value_size <= _MAX_PATH:
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"Key or value is NULL, or the value's size {asked.value_size} is not 1 to {_MAX_PATH}.",
        )
    key = ctypes.string_at(asked.path)
    if is_set:
        here.paths[key] = ctypes.string_at(asked.value, asked.value_size).partition(b"\0")[0]
        return
    found = here.paths.get(key)
    if found is None:
        raise AeeError(Aee.AEE_ENOSUCH, f"No path was set for the key {key.decode(errors='replace')!r}.")
    if len(found) >= asked.value_size:
        raise AeeError(
            Aee.AEE_EBADSIZE, f"The path takes {len(found) + 1} bytes, but the buffer has {asked.value_size}."
        )
    ctypes.memmove(asked.value, found + b"\0", len(found) + 1)


def _structure(kind: type[S], data: Any, datalen: int) -> S:
    if type(data) is int and data:
        data = kind.from_address(number("data", data))  # of C
    is_kind = getattr(type(data), "_fields_", None) == kind._fields_  # C has several names for one structure
    if not is_kind or datalen != ctypes.sizeof(kind):
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"The data is {type(data).__name__} of {datalen} bytes; pass {kind.__name__} of {ctypes.sizeof(kind)}.",
        )
    return cast("S", data)


def _tell(here: FastrpcRuntime, asked: types.remote_dsp_capability) -> None:
    """Answer a query about a domain from the board's profile."""
    profile = here.session.profile
    try:
        domain, _ = uri.split_domain(asked.domain)
    except AeeError as error:
        raise AeeError(Aee.AEE_EBADPARM, error.sentence) from None
    is_there = here.domains.has(domain)
    vectors = profile.whole("vector.bits") // 8 if profile.cores.get("dsp") else 0
    answers = (
        1,  # the domain exists
        1,  # unsigned skeletons
        0,
        2 if vectors == 128 else 0,  # units with 128-byte vectors
        profile.dsp_whole("tcm.vtcm_bytes"),  # bytes per page of vector memory
        1 if vectors else 0,  # number of such pages
        0x66 if profile.name == "sd865" else 0,
        0,
        0,
        1,  # asynchronous invocations
        1,  # status notifications
        0,
    )
    if not 0 <= asked.attribute_ID < len(answers):
        raise AeeError(Aee.AEE_EBADPARM, f"Unknown attribute {asked.attribute_ID}: must be 0 to {len(answers) - 1}.")
    if asked.attribute_ID and not is_there:
        raise AeeError(Aee.AEE_EBADPARM, f"The board has no domain {uri.DOMAINS[domain]}.")
    asked.capability = answers[asked.attribute_ID] if is_there else 0
