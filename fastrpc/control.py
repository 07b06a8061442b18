"""``remote_session_control`` and ``remote_handle64_control``: what a program asks of domains."""

from __future__ import annotations

import ctypes
from typing import Any, Final, TypeVar, cast

from fastrpc.calls import returns_code
from fastrpc.notifications import Notifications
from fastrpc.runtime import Runtime, runtime
from hbrt.fastrpc import types, uri
from hbrt.fastrpc.aee import Aee, AeeError

S = TypeVar("S", bound=ctypes.Structure)

_ALL_DOMAINS: Final = -1
_HIGHEST, _LOWEST = 1, 255
_MOST_PRIORITY: Final = 253  # of the board's; those above interrupt
_STACKS: Final = (16 << 10, 8 << 20)
_INITMEM: Final = (3 << 20, 200 << 20)
_POLL, _MOST_POLL_US = 3, 10_000


@returns_code
def remote_session_control(req: int, data: Any, datalen: int) -> None:
    """Ask something of a domain.

    Args:
        req: FASTRPC_THREAD_PARAMS, DSPRPC_CONTROL_UNSIGNED_MODULE, FASTRPC_PD_INITMEM_SIZE (noted; the priority is that
            of the domain's tasks), FASTRPC_REMOTE_PROCESS_KILL, FASTRPC_REMOTE_PROCESS_EXCEPTION (its core starts
            again), FASTRPC_SESSION_CLOSE (closes its handles), FASTRPC_REGISTER_STATUS_NOTIFICATIONS.
        data: The request's structure.
        datalen: Its size.

    Returns:
        0; AEE_EBADPARM: another size or value; AEE_EUNSUPPORTED: another request; AEE_EBADSTATE: the domain is open
        already.

    Source: qualcomm/fastrpc, remote.h, https://github.com/qualcomm/fastrpc
    """
    request = _SESSION.get(req)
    if request is None:
        raise AeeError(Aee.AEE_EUNSUPPORTED, f"There is no session request {req} here; there are {sorted(_SESSION)}.")
    kind, serve = request
    serve(runtime(), _structure(kind, data, datalen))


@returns_code
def remote_handle64_control(handle: Any, req: int, data: Any, datalen: int) -> None:
    """Ask something of a handle.

    Args:
        handle: Of remote_handle64_open.
        req: DSPRPC_CONTROL_LATENCY or DSPRPC_CONTROL_WAKELOCK (noted), DSPRPC_GET_DSP_INFO.
        data: The request's structure.
        datalen: Its size.

    Returns:
        0; AEE_EINVHANDLE; AEE_EBADPARM; AEE_EUNSUPPORTED.
    """
    here = runtime()
    opened = here.opened(handle if type(handle) is int else getattr(handle, "value", -1))
    noted = here.domain(opened.domain).settings
    if req == types.DSPRPC_CONTROL_LATENCY:
        asked = _structure(types.remote_rpc_control_latency, data, datalen)
        if asked.enable > _POLL or (asked.enable == _POLL and asked.latency >= _MOST_POLL_US):
            raise AeeError(
                Aee.AEE_EBADPARM,
                f"The latency is ({asked.enable}, {asked.latency} us); write 0 to 3, and for 3 less than 10000 us.",
            )
        noted["latency"] = asked.latency
    elif req == types.DSPRPC_CONTROL_WAKELOCK:
        noted["wakelock"] = _structure(types.remote_rpc_domain, data, datalen).domain
    elif req == types.DSPRPC_GET_DSP_INFO:
        _tell(here, _structure(types.remote_dsp_capability, data, datalen))
    else:
        raise AeeError(Aee.AEE_EUNSUPPORTED, f"There is no handle request {req} here; there are 1, 2 and 3.")


@returns_code
def remote_handle_control(req: int, data: Any, datalen: int) -> None:
    """As remote_handle64_control, of no handle: DSPRPC_GET_DSP_INFO alone."""
    if req != types.DSPRPC_GET_DSP_INFO:
        raise AeeError(Aee.AEE_EUNSUPPORTED, f"Without a handle there is no request {req} here; there is 2.")
    _tell(runtime(), _structure(types.remote_dsp_capability, data, datalen))


def _structure(kind: type[S], data: Any, datalen: int) -> S:
    if isinstance(data, int) and data:
        data = kind.from_address(data)  # of C
    if not isinstance(data, kind) or datalen != ctypes.sizeof(kind):
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"The data is {type(data).__name__} of {datalen} bytes; pass {kind.__name__} of {ctypes.sizeof(kind)}.",
        )
    return data


def _tell(here: Runtime, asked: types.remote_dsp_capability) -> None:
    """Answer a question about a domain, by the board's profile."""
    profile = here.session.profile
    is_there = asked.domain == uri.DEFAULT_DOMAIN
    vectors = profile.whole("vector.bits") // 8 if profile.cores.get("dsp") else 0
    answers = (
        1,  # there is such a domain
        1,  # skeletons that nobody signed
        0,
        2 if vectors == 128 else 0,  # units with vectors of 128 bytes
        0,
        0,
        0x66 if profile.name == "sd865" else 0,
        0,
        0,
        1,  # asynchronous invocations
        1,  # status notifications
        0,
    )
    if not 0 <= asked.attribute_ID < len(answers):
        raise AeeError(Aee.AEE_EBADPARM, f"There is no attribute {asked.attribute_ID}; write 0 to {len(answers) - 1}.")
    asked.capability = answers[asked.attribute_ID] if is_there else 0


def _thread_params(here: Runtime, asked: types.remote_rpc_thread_params) -> None:
    if asked.prio != -1 and not _HIGHEST <= asked.prio <= _LOWEST:
        raise AeeError(Aee.AEE_EBADPARM, f"The priority is {asked.prio}; write 1 (the highest) to 255, or -1.")
    if asked.stack_size != -1 and not _STACKS[0] <= asked.stack_size <= _STACKS[1]:
        raise AeeError(Aee.AEE_EBADPARM, f"The stack is {asked.stack_size} bytes; write 16 KiB to 8 MiB, or -1.")
    for domain in _domains(asked.domain):
        if asked.prio != -1:
            here.domain(domain).priority = min(_LOWEST - asked.prio, _MOST_PRIORITY)
        here.domain(domain).settings["stack_size"] = asked.stack_size


def _unsigned(here: Runtime, asked: types.remote_rpc_control_unsigned_module) -> None:
    for domain in _domains(asked.domain):
        if asked.domain != _ALL_DOMAINS and here.domain(domain).handles:
            raise AeeError(
                Aee.AEE_EBADSTATE, "The domain has open handles: ask for unsigned modules before the first open."
            )
        here.domain(domain).is_unsigned = bool(asked.enable)


def _initmem(here: Runtime, asked: types.remote_rpc_pd_initmem_size) -> None:
    if not _INITMEM[0] <= asked.pd_initmem_size <= _INITMEM[1]:
        raise AeeError(Aee.AEE_EBADPARM, f"The memory is {asked.pd_initmem_size} bytes; write 3 to 200 MiB.")
    for domain in _domains(asked.domain):
        if here.domain(domain).is_unsigned:
            raise AeeError(Aee.AEE_EUNSUPPORTED, "An unsigned process domain has 5 MiB, which cannot be set.")
        here.domain(domain).settings["initmem"] = asked.pd_initmem_size


def _kill(here: Runtime, asked: types.remote_rpc_domain) -> None:
    Notifications.of(here).expect(asked.domain, types.FASTRPC_USER_PD_FORCE_KILL)
    here.end_domain(asked.domain)


def _exception(here: Runtime, asked: types.remote_rpc_domain) -> None:
    here.end_domain(asked.domain)


def _close(here: Runtime, asked: types.remote_rpc_domain) -> None:
    uri.split_domain(asked.domain)
    for handle in list(here.domain(asked.domain).handles):
        here.close(handle)


def _register(here: Runtime, asked: types.remote_rpc_notif_register) -> None:
    if not asked.notifier_fn:
        raise AeeError(Aee.AEE_EBADPARM, "The notifier is NULL; pass a function.")
    fn, context = asked.notifier_fn, asked.context
    Notifications.of(here).add(asked.domain, lambda *told: fn(context, *told))


def _domains(given: int) -> list[int]:
    if given == _ALL_DOMAINS:
        return [uri.effective_domain(uri.DEFAULT_DOMAIN, session) for session in range(uri.SESSIONS)]
    uri.split_domain(given)
    return [given]


_SESSION: Final[dict[int, tuple[type[Any], Any]]] = cast(
    "dict[int, tuple[type[Any], Any]]",
    {
        types.FASTRPC_THREAD_PARAMS: (types.remote_rpc_thread_params, _thread_params),
        types.DSPRPC_CONTROL_UNSIGNED_MODULE: (types.remote_rpc_control_unsigned_module, _unsigned),
        types.FASTRPC_REMOTE_PROCESS_KILL: (types.remote_rpc_domain, _kill),
        types.FASTRPC_SESSION_CLOSE: (types.remote_rpc_domain, _close),
        types.FASTRPC_REMOTE_PROCESS_EXCEPTION: (types.remote_rpc_domain, _exception),
        types.FASTRPC_REGISTER_STATUS_NOTIFICATIONS: (types.remote_rpc_notif_register, _register),
        types.FASTRPC_PD_INITMEM_SIZE: (types.remote_rpc_pd_initmem_size, _initmem),
    },
)
