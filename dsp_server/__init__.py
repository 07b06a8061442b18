"""The DSP side: what an image and an op import. ``from dsp_server import hb_dsp_register_fn, ...``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsp_server.cycles import XT_RSR_CCOUNT, cycles_to_ns
    from dsp_server.frame import TILE_SIZE, hb_dsp_ping_pong_frame, ping_pong
    from dsp_server.idma import (
        IDMA_OK,
        idma_buffer_status,
        idma_copy_2d_desc,
        idma_copy_desc,
        idma_desc_done,
        idma_last_error,
    )
    from dsp_server.ops.refusal import ParameterError
    from dsp_server.runtime import (
        DSP_DBG,
        DSP_ERR,
        DSP_INFO,
        DSP_WARN,
        HB_DSP_DRAM0_POOL_SIZE,
        HB_DSP_DRAM1_POOL_SIZE,
        HB_DSP_LOG_DEBUG,
        HB_DSP_LOG_ERROR,
        HB_DSP_LOG_FATAL,
        HB_DSP_LOG_INFO,
        HB_DSP_LOG_NONE,
        HB_DSP_LOG_WARNING,
        HB_DSP_REGISTER_CV_ALL,
        HB_DSP_REGISTER_NN_ALL,
        MAP_FAILED,
        Mapped,
        hb_dsp_core_id,
        hb_dsp_env_init,
        hb_dsp_init_global_tm,
        hb_dsp_log,
        hb_dsp_mem_map,
        hb_dsp_mem_unmap,
        hb_dsp_register_fn,
        hb_dsp_set_log_level,
        hb_dsp_start,
        xos_get_clock_freq,
        xos_set_clock_freq,
        xos_start_system_timer,
    )
    from dsp_server.tile_manager import (
        XV_MEM_BANK_COLOR_0,
        XV_MEM_BANK_COLOR_1,
        XV_MEM_BANK_COLOR_ANY,
        XVTM_ERROR,
        TileManager,
        xvAllocateBuffer,
        xvFreeBuffer,
        xvGetErrorInfo,
    )
    from hbrt.status import HB_DSP_INVALID_ARGUMENT, HB_DSP_OUT_OF_TCM, HB_ERR_MMAP_FAILED

__all__ = [
    "DSP_DBG",
    "DSP_ERR",
    "DSP_INFO",
    "DSP_WARN",
    "HB_DSP_DRAM0_POOL_SIZE",
    "HB_DSP_DRAM1_POOL_SIZE",
    "HB_DSP_INVALID_ARGUMENT",
    "HB_DSP_LOG_DEBUG",
    "HB_DSP_LOG_ERROR",
    "HB_DSP_LOG_FATAL",
    "HB_DSP_LOG_INFO",
    "HB_DSP_LOG_NONE",
    "HB_DSP_LOG_WARNING",
    "HB_DSP_OUT_OF_TCM",
    "HB_DSP_REGISTER_CV_ALL",
    "HB_DSP_REGISTER_NN_ALL",
    "HB_ERR_MMAP_FAILED",
    "IDMA_OK",
    "MAP_FAILED",
    "TILE_SIZE",
    "XT_RSR_CCOUNT",
    "XVTM_ERROR",
    "XV_MEM_BANK_COLOR_0",
    "XV_MEM_BANK_COLOR_1",
    "XV_MEM_BANK_COLOR_ANY",
    "Mapped",
    "ParameterError",
    "TileManager",
    "cycles_to_ns",
    "hb_dsp_core_id",
    "hb_dsp_env_init",
    "hb_dsp_init_global_tm",
    "hb_dsp_log",
    "hb_dsp_mem_map",
    "hb_dsp_mem_unmap",
    "hb_dsp_ping_pong_frame",
    "hb_dsp_register_fn",
    "hb_dsp_set_log_level",
    "hb_dsp_start",
    "idma_buffer_status",
    "idma_copy_2d_desc",
    "idma_copy_desc",
    "idma_desc_done",
    "idma_last_error",
    "ping_pong",
    "xos_get_clock_freq",
    "xos_set_clock_freq",
    "xos_start_system_timer",
    "xvAllocateBuffer",
    "xvFreeBuffer",
    "xvGetErrorInfo",
]

# Loaded when one of the names is first asked for: the daemon and the verbs live in this package and need none of them.
_SOURCES = (
    "dsp_server.runtime",
    "dsp_server.tile_manager",
    "dsp_server.idma",
    "dsp_server.cycles",
    "dsp_server.ops.refusal",
    "hbrt.status",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for source in map(import_module, _SOURCES):
            if name in vars(source):
                return vars(source)[name]
    raise AttributeError(f"module 'dsp_server' has no attribute {name!r}")
