"""The default image: all packaged ops, in the form of the vendor's template."""

from __future__ import annotations

from dsp_server import (
    HB_DSP_DRAM0_POOL_SIZE,
    HB_DSP_DRAM1_POOL_SIZE,
    HB_DSP_LOG_WARNING,
    HB_DSP_REGISTER_CV_ALL,
    HB_DSP_REGISTER_NN_ALL,
    hb_dsp_env_init,
    hb_dsp_init_global_tm,
    hb_dsp_set_log_level,
    hb_dsp_start,
)


def main() -> int:
    """Register all packaged ops and serve."""
    hb_dsp_set_log_level(HB_DSP_LOG_WARNING)
    hb_dsp_env_init()
    hb_dsp_init_global_tm(None, HB_DSP_DRAM0_POOL_SIZE, None, HB_DSP_DRAM1_POOL_SIZE)
    HB_DSP_REGISTER_NN_ALL()
    HB_DSP_REGISTER_CV_ALL()
    hb_dsp_start()
    return -1
