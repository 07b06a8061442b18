"""The image of an accelerator core: one op, which runs the segments of models."""

from __future__ import annotations

from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start
from dsp_server.accelerator.sessions import Accelerator
from hbrt.models.run.accelerator import CMD

NO_LIMIT_US = (1 << 32) - 1  # a model takes as long as it takes; its program can release the task


def main() -> int:
    """Serve."""
    hb_dsp_env_init()
    hb_dsp_register_fn(CMD, Accelerator().model, NO_LIMIT_US)
    hb_dsp_start()
    return -1
