"""The campaign's image: its core 0 dies where a test says so."""

from __future__ import annotations

from dsp_server import hb_dsp_core_id, hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start
from tests.faults import ops, tracer


def main() -> int:
    if hb_dsp_core_id() == 0:  # the others are what continues meanwhile
        tracer.install("core")
    hb_dsp_env_init()
    hb_dsp_register_fn(ops.GATED, ops.gated)
    hb_dsp_register_fn(ops.SPIN, ops.spin)
    hb_dsp_register_fn(ops.TOUCH, ops.touch)
    hb_dsp_register_fn(ops.LIMITED, ops.spin, ops.LIMIT_US)
    hb_dsp_start()
    return -1
