# Every name of fastrpc, and its module: hbrt/lazy.py loads a name when it is first used.

from arm_client.cabi.last_error import (
    last_error as last_error,
)
from fastrpc.calls import (
    remote_handle64_close as remote_handle64_close,
    remote_handle64_invoke as remote_handle64_invoke,
    remote_handle64_open as remote_handle64_open,
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
from hbrt.fastrpc.aee import (
    Aee as Aee,
    AeeError as AeeError,
)
from hbrt.fastrpc.types import (
    FASTRPC_MAP_FD as FASTRPC_MAP_FD,
    FASTRPC_MAP_FD_DELAYED as FASTRPC_MAP_FD_DELAYED,
    FASTRPC_MAP_FD_NOMAP as FASTRPC_MAP_FD_NOMAP,
    FASTRPC_MAP_STATIC as FASTRPC_MAP_STATIC,
    RPCMEM_DEFAULT_FLAGS as RPCMEM_DEFAULT_FLAGS,
    RPCMEM_HEAP_ID_SYSTEM as RPCMEM_HEAP_ID_SYSTEM,
    RPCMEM_TRY_MAP_STATIC as RPCMEM_TRY_MAP_STATIC,
    remote_arg as remote_arg,
    remote_buf as remote_buf,
    remote_dma_handle as remote_dma_handle,
    remote_handle64 as remote_handle64,
)
