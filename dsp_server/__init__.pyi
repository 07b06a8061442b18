# Every name that an image and an op import, and its module: hbrt/lazy.py loads a name when it is first used.

from dsp_server.errors import (
    ParameterError as ParameterError,
)
from dsp_server.hardware.cycles import (
    XT_RSR_CCOUNT as XT_RSR_CCOUNT,
    cycles_to_ns as cycles_to_ns,
    hb_dsp_charge as hb_dsp_charge,
)
from dsp_server.hardware.frame import (
    TILE_SIZE as TILE_SIZE,
    hb_dsp_ping_pong_frame as hb_dsp_ping_pong_frame,
    ping_pong as ping_pong,
)
from dsp_server.hardware.idma import (
    idma_buffer_status as idma_buffer_status,
    idma_copy_2d_desc as idma_copy_2d_desc,
    idma_copy_desc as idma_copy_desc,
    idma_desc_done as idma_desc_done,
    idma_last_error as idma_last_error,
)
from dsp_server.hardware.tile_manager import (
    XV_MEM_BANK_COLOR_0 as XV_MEM_BANK_COLOR_0,
    XV_MEM_BANK_COLOR_1 as XV_MEM_BANK_COLOR_1,
    XV_MEM_BANK_COLOR_ANY as XV_MEM_BANK_COLOR_ANY,
    XVTM_ERROR as XVTM_ERROR,
    TileManager as TileManager,
    xvAllocateBuffer as xvAllocateBuffer,
    xvFreeBuffer as xvFreeBuffer,
    xvGetErrorInfo as xvGetErrorInfo,
)
from dsp_server.hardware.transfers import IDMA_OK as IDMA_OK
from dsp_server.runtime import (
    DSP_DBG as DSP_DBG,
    DSP_ERR as DSP_ERR,
    DSP_INFO as DSP_INFO,
    DSP_WARN as DSP_WARN,
    HB_DSP_DRAM0_POOL_SIZE as HB_DSP_DRAM0_POOL_SIZE,
    HB_DSP_DRAM1_POOL_SIZE as HB_DSP_DRAM1_POOL_SIZE,
    HB_DSP_LOG_DEBUG as HB_DSP_LOG_DEBUG,
    HB_DSP_LOG_ERROR as HB_DSP_LOG_ERROR,
    HB_DSP_LOG_FATAL as HB_DSP_LOG_FATAL,
    HB_DSP_LOG_INFO as HB_DSP_LOG_INFO,
    HB_DSP_LOG_NONE as HB_DSP_LOG_NONE,
    HB_DSP_LOG_WARNING as HB_DSP_LOG_WARNING,
    HB_DSP_REGISTER_CV_ALL as HB_DSP_REGISTER_CV_ALL,
    HB_DSP_REGISTER_NN_ALL as HB_DSP_REGISTER_NN_ALL,
    MAP_FAILED as MAP_FAILED,
    Mapped as Mapped,
    hb_dsp_core_id as hb_dsp_core_id,
    hb_dsp_env_init as hb_dsp_env_init,
    hb_dsp_init_global_tm as hb_dsp_init_global_tm,
    hb_dsp_log as hb_dsp_log,
    hb_dsp_mem_map as hb_dsp_mem_map,
    hb_dsp_mem_unmap as hb_dsp_mem_unmap,
    hb_dsp_register_fn as hb_dsp_register_fn,
    hb_dsp_set_log_level as hb_dsp_set_log_level,
    hb_dsp_start as hb_dsp_start,
    xos_get_clock_freq as xos_get_clock_freq,
    xos_set_clock_freq as xos_set_clock_freq,
    xos_start_system_timer as xos_start_system_timer,
)
from hbrt.status import (
    HB_DSP_INVALID_ARGUMENT as HB_DSP_INVALID_ARGUMENT,
    HB_DSP_OUT_OF_TCM as HB_DSP_OUT_OF_TCM,
    HB_ERR_MMAP_FAILED as HB_ERR_MMAP_FAILED,
)

__all__: list[str]
