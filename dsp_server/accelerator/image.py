"""The image of an accelerator core: a single op, which runs the segments of models."""

from __future__ import annotations

from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start
from dsp_server.accelerator.sessions import Accelerator
from hbrt import settings
from hbrt.models.run.accelerator import CMD

MAX_LATENCY_US = (1 << 32) - 1
OP_TIMES = 10  # a model may take as long as this many ops


def main() -> int:
    """Serve."""
    hb_dsp_env_init()
    limit_us = settings.integer("HBRT_WATCHDOG_MS") * 1000 * OP_TIMES
    hb_dsp_register_fn(CMD, Accelerator().model, min(limit_us or MAX_LATENCY_US, MAX_LATENCY_US))
    hb_dsp_start()
    return -1
