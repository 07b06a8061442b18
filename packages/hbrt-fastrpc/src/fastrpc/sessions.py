"""The requests of ``remote_session_control`` for process domains, one by one."""

from __future__ import annotations

import ctypes
from typing import Any, Final, cast

from fastrpc.notifications import Notifications
from fastrpc.runtime import FastrpcRuntime
from fastrpc.wire import behavior, types, uri
from fastrpc.wire.aee import Aee, AeeError
from fastrpc.wire.message import DEFAULT_PRIORITY, HIGHEST, LOWEST, task_priority

_ALL_DOMAINS: Final = -1
_STACKS: Final = (16 << 10, 8 << 20)
_INITMEM: Final = (3 << 20, 200 << 20)
_MAX_NAME: Final = 29
_MAX_DOMAINS: Final = uri.SESSIONS * len(uri.DOMAINS)


def _thread_params(here: FastrpcRuntime, asked: types.remote_rpc_thread_params) -> None:
    if asked.prio != -1 and not HIGHEST <= asked.prio <= LOWEST:
        raise AeeError(Aee.AEE_EBADPARM, f"Invalid priority {asked.prio}: must be 1 (the highest) to 255, or -1.")
    if asked.stack_size != -1 and not _STACKS[0] <= asked.stack_size <= _STACKS[1]:
        raise AeeError(Aee.AEE_EBADPARM, f"Invalid stack size {asked.stack_size}: must be 16 KiB to 8 MiB, or -1.")
    for domain in _domains(asked.domain):
        if asked.prio != -1:
            here.domains.of(domain).priority = task_priority(asked.prio)
        here.domains.of(domain).settings["stack_size"] = asked.stack_size
    here.discard_messages()


def _relative_priority(here: FastrpcRuntime, asked: types.remote_rpc_relative_thread_priority) -> None:
    priority = min(max(DEFAULT_PRIORITY + asked.relative_thread_priority, HIGHEST), LOWEST)
    for domain in _domains(asked.domain):
        here.domains.of(domain).priority = task_priority(priority)
    here.discard_messages()


def _unsigned(here: FastrpcRuntime, asked: types.remote_rpc_control_unsigned_module) -> None:
    for domain in _domains(asked.domain):
        if asked.domain != _ALL_DOMAINS and here.domains.of(domain).handles:
            raise AeeError(
                Aee.AEE_EBADSTATE, "The domain has open handles: request unsigned modules before the first open."
            )
        here.domains.of(domain).is_unsigned = bool(asked.enable)


def _initmem(here: FastrpcRuntime, asked: types.remote_rpc_pd_initmem_size) -> None:
    if not _INITMEM[0] <= asked.pd_initmem_size <= _INITMEM[1]:
        raise AeeError(Aee.AEE_EBADPARM, f"Invalid memory size {asked.pd_initmem_size}: must be 3 to 200 MiB.")
    for domain in _domains(asked.domain):
        if here.domains.of(domain).is_unsigned:
            raise AeeError(Aee.AEE_EUNSUPPORTED, "An unsigned process domain has 5 MiB, which cannot be set.")
        here.domains.of(domain).initmem_bytes = asked.pd_initmem_size


def _dump(here: FastrpcRuntime, asked: types.remote_rpc_control_pd_dump) -> None:
    for domain in _domains(asked.domain):
        here.domains.of(domain).settings["pd_dump"] = asked.enable


def _kill(here: FastrpcRuntime, asked: behavior.remote_rpc_domain) -> None:
    Notifications.of(here).expect(asked.domain, types.FASTRPC_USER_PD_FORCE_KILL)
    here.end_domain(asked.domain)


def _exception(here: FastrpcRuntime, asked: behavior.remote_rpc_domain) -> None:
    here.end_domain(asked.domain)


def _close(here: FastrpcRuntime, asked: behavior.remote_rpc_domain) -> None:
    for domain in _domains(asked.domain):
        for handle in list(here.domains.of(domain).handles):
            here.close(handle)
        here.domains.release_session(domain)


def _process_type(here: FastrpcRuntime, asked: types.remote_process_type) -> None:
    here.domains.core_mask(*uri.split_domain(asked.domain))
    is_unsigned = here.domains.of(asked.domain).is_unsigned
    asked.process_type = types.PROCESS_TYPE_UNSIGNED if is_unsigned else types.PROCESS_TYPE_SIGNED


def _register(here: FastrpcRuntime, asked: types.remote_rpc_notif_register) -> None:
    if not asked.notifier_fn:
        raise AeeError(Aee.AEE_EBADPARM, "The notifier is NULL; pass a function.")
    # A separate function: the one in the field is in the structure, which C may reuse.
    fn = behavior.fastrpc_notif_fn(ctypes.cast(asked.notifier_fn, ctypes.c_void_p).value)
    kept, context = asked.notifier_fn, asked.context
    Notifications.of(here).add(asked.domain, lambda *told: (fn(context, *told), kept))


def _reserve(here: FastrpcRuntime, asked: types.remote_rpc_reserve_new_session) -> None:
    domain = _domain_of(asked.domain_name, asked.domain_name_len)
    here.domains.core_mask(domain, 0)
    if not asked.session_name or not 0 < asked.session_name_len <= _MAX_NAME:
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"Invalid length of the session's name {asked.session_name_len}: must be 1 to {_MAX_NAME} bytes.",
        )
    asked.session_id = here.domains.reserve_session(domain)
    asked.effective_domain_id = uri.effective_domain(domain, asked.session_id)


def _effective(here: FastrpcRuntime, asked: types.remote_rpc_effective_domain_id) -> None:
    del here
    domain = _domain_of(asked.domain_name, asked.domain_name_len)
    asked.effective_domain_id = uri.effective_domain(domain, asked.session_id)


def _uri(here: FastrpcRuntime, asked: types.remote_rpc_get_uri) -> None:
    del here
    domain = _domain_of(asked.domain_name, asked.domain_name_len)
    if not asked.module_uri or not asked.uri:
        raise AeeError(Aee.AEE_EBADPARM, "The module's URI or the buffer for the URI is NULL; pass both.")
    module = ctypes.string_at(asked.module_uri, asked.module_uri_len)
    whole = module + uri.suffix(domain, asked.session_id).encode() + b"\0"
    if len(whole) > asked.uri_len:
        raise AeeError(Aee.AEE_EBADSIZE, f"The URI takes {len(whole)} bytes, but the buffer has {asked.uri_len}.")
    ctypes.memmove(asked.uri, whole, len(whole))


def _create_context(here: FastrpcRuntime, asked: types.fastrpc_context_create) -> None:
    if not asked.effec_domain_ids or not 0 < asked.num_domain_ids <= _MAX_DOMAINS:
        raise AeeError(
            Aee.AEE_EBADPARM, f"Invalid number of domains {asked.num_domain_ids}: must be 1 to {_MAX_DOMAINS}."
        )
    domains = (ctypes.c_uint32 * asked.num_domain_ids).from_address(asked.effec_domain_ids)
    for domain in domains:
        here.domains.core_mask(*uri.split_domain(domain))
    asked.ctx = here.domains.add_context(tuple(domains))


def _destroy_context(here: FastrpcRuntime, asked: types.fastrpc_context_destroy) -> None:
    if here.domains.contexts.pop(asked.ctx, None) is None:
        raise AeeError(Aee.AEE_EBADPARM, f"Unknown context {asked.ctx}: destroyed, or never created.")


def _domain_of(name: int | None, length: int) -> int:
    """The domain of a name without a terminating NUL."""
    given = ctypes.string_at(name, min(length, 64)).decode(errors="replace") if name else ""
    if given not in uri.DOMAINS:
        raise AeeError(Aee.AEE_EINVALIDDOMAIN, f"Unknown domain {given!r}; write one of {', '.join(uri.DOMAINS)}.")
    return uri.DOMAINS.index(given)


def _domains(given: int) -> list[int]:
    if given == _ALL_DOMAINS:
        return [uri.effective_domain(uri.DEFAULT_DOMAIN, session) for session in range(uri.SESSIONS)]
    uri.split_domain(given)
    return [given]


REQUESTS: Final[dict[int, tuple[type[Any], Any]]] = cast(
    "dict[int, tuple[type[Any], Any]]",
    {
        types.FASTRPC_THREAD_PARAMS: (types.remote_rpc_thread_params, _thread_params),
        types.DSPRPC_CONTROL_UNSIGNED_MODULE: (types.remote_rpc_control_unsigned_module, _unsigned),
        types.FASTRPC_RELATIVE_THREAD_PRIORITY: (types.remote_rpc_relative_thread_priority, _relative_priority),
        types.FASTRPC_REMOTE_PROCESS_KILL: (behavior.remote_rpc_domain, _kill),
        types.FASTRPC_SESSION_CLOSE: (behavior.remote_rpc_domain, _close),
        types.FASTRPC_CONTROL_PD_DUMP: (types.remote_rpc_control_pd_dump, _dump),
        types.FASTRPC_REMOTE_PROCESS_EXCEPTION: (behavior.remote_rpc_domain, _exception),
        types.FASTRPC_REMOTE_PROCESS_TYPE: (types.remote_process_type, _process_type),
        types.FASTRPC_REGISTER_STATUS_NOTIFICATIONS: (types.remote_rpc_notif_register, _register),
        types.FASTRPC_PD_INITMEM_SIZE: (types.remote_rpc_pd_initmem_size, _initmem),
        types.FASTRPC_RESERVE_NEW_SESSION: (types.remote_rpc_reserve_new_session, _reserve),
        types.FASTRPC_GET_EFFECTIVE_DOMAIN_ID: (types.remote_rpc_effective_domain_id, _effective),
        types.FASTRPC_GET_URI: (types.remote_rpc_get_uri, _uri),
        types.FASTRPC_CONTEXT_CREATE: (types.fastrpc_context_create, _create_context),
        types.FASTRPC_CONTEXT_DESTROY: (types.fastrpc_context_destroy, _destroy_context),
    },
)
"""Request -> its structure, and what serves it."""
