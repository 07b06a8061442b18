"""An image with all NN ops, and own_softmax.py's in the place of softmax."""

from __future__ import annotations

import runpy
from pathlib import Path

from dsp_server import HB_DSP_REGISTER_NN_ALL, hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

own = runpy.run_path(str(Path(__file__).with_name("own_softmax.py")))


def main() -> None:
    """Register and serve."""
    hb_dsp_env_init()
    HB_DSP_REGISTER_NN_ALL()
    hb_dsp_register_fn(0x400, own["count"], 0)
    hb_dsp_start()
