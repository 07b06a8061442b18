# Every name of fastrpc, and its module: hbrt/lazy.py loads a name when it is first used.

from arm_client.cabi.last_error import (
    last_error as last_error,
)
from fastrpc.asynchronous import (
    fastrpc_async_get_status as fastrpc_async_get_status,
    fastrpc_release_async_job as fastrpc_release_async_job,
    remote_handle64_invoke_async as remote_handle64_invoke_async,
)
from fastrpc.calls import (
    remote_handle64_close as remote_handle64_close,
    remote_handle64_invoke as remote_handle64_invoke,
    remote_handle64_open as remote_handle64_open,
)
from fastrpc.control import (
    remote_handle64_control as remote_handle64_control,
    remote_handle_control as remote_handle_control,
    remote_session_control as remote_session_control,
)
from fastrpc.counting import (
    Statistics as Statistics,
)
from fastrpc.interface import (
    Interface as Interface,
)
from fastrpc.memory_calls import (
    fastrpc_mmap as fastrpc_mmap,
    fastrpc_munmap as fastrpc_munmap,
    remote_register_buf as remote_register_buf,
    rpcmem_alloc as rpcmem_alloc,
    rpcmem_deinit as rpcmem_deinit,
    rpcmem_free as rpcmem_free,
    rpcmem_init as rpcmem_init,
    rpcmem_to_fd as rpcmem_to_fd,
)
from fastrpc.python import (
    empty as empty,
    from_array as from_array,
    statistics as statistics,
)
from fastrpc.queues import (
    DspQueue as DspQueue,
)
from hbrt.fastrpc.aee import (
    Aee as Aee,
    AeeError as AeeError,
)
from hbrt.fastrpc.types import (
    DSPRPC_CONTROL_LATENCY as DSPRPC_CONTROL_LATENCY,
    DSPRPC_CONTROL_UNSIGNED_MODULE as DSPRPC_CONTROL_UNSIGNED_MODULE,
    DSPRPC_CONTROL_WAKELOCK as DSPRPC_CONTROL_WAKELOCK,
    DSPRPC_GET_DSP_INFO as DSPRPC_GET_DSP_INFO,
    FASTRPC_ASYNC_CALLBACK as FASTRPC_ASYNC_CALLBACK,
    FASTRPC_ASYNC_NO_SYNC as FASTRPC_ASYNC_NO_SYNC,
    FASTRPC_ASYNC_POLL as FASTRPC_ASYNC_POLL,
    FASTRPC_DSP_SSR as FASTRPC_DSP_SSR,
    FASTRPC_MAP_FD as FASTRPC_MAP_FD,
    FASTRPC_MAP_FD_DELAYED as FASTRPC_MAP_FD_DELAYED,
    FASTRPC_MAP_FD_NOMAP as FASTRPC_MAP_FD_NOMAP,
    FASTRPC_MAP_STATIC as FASTRPC_MAP_STATIC,
    FASTRPC_PD_INITMEM_SIZE as FASTRPC_PD_INITMEM_SIZE,
    FASTRPC_REGISTER_STATUS_NOTIFICATIONS as FASTRPC_REGISTER_STATUS_NOTIFICATIONS,
    FASTRPC_REMOTE_PROCESS_EXCEPTION as FASTRPC_REMOTE_PROCESS_EXCEPTION,
    FASTRPC_REMOTE_PROCESS_KILL as FASTRPC_REMOTE_PROCESS_KILL,
    FASTRPC_SESSION_CLOSE as FASTRPC_SESSION_CLOSE,
    FASTRPC_THREAD_PARAMS as FASTRPC_THREAD_PARAMS,
    FASTRPC_USER_PD_EXCEPTION as FASTRPC_USER_PD_EXCEPTION,
    FASTRPC_USER_PD_EXIT as FASTRPC_USER_PD_EXIT,
    FASTRPC_USER_PD_FORCE_KILL as FASTRPC_USER_PD_FORCE_KILL,
    FASTRPC_USER_PD_UP as FASTRPC_USER_PD_UP,
    RPCMEM_DEFAULT_FLAGS as RPCMEM_DEFAULT_FLAGS,
    RPCMEM_HEAP_ID_SYSTEM as RPCMEM_HEAP_ID_SYSTEM,
    RPCMEM_TRY_MAP_STATIC as RPCMEM_TRY_MAP_STATIC,
    fastrpc_async_callback as fastrpc_async_callback,
    fastrpc_async_descriptor as fastrpc_async_descriptor,
    fastrpc_notif_fn as fastrpc_notif_fn,
    remote_arg as remote_arg,
    remote_buf as remote_buf,
    remote_dma_handle as remote_dma_handle,
    remote_dsp_capability as remote_dsp_capability,
    remote_handle64 as remote_handle64,
    remote_rpc_control_latency as remote_rpc_control_latency,
    remote_rpc_control_unsigned_module as remote_rpc_control_unsigned_module,
    remote_rpc_domain as remote_rpc_domain,
    remote_rpc_notif_register as remote_rpc_notif_register,
    remote_rpc_pd_initmem_size as remote_rpc_pd_initmem_size,
    remote_rpc_thread_params as remote_rpc_thread_params,
)
