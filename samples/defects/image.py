"""The image of all defects: registers the ops of each program next to it, the wrong ones and the corrected ones."""

from __future__ import annotations

import importlib
from pathlib import Path

from dsp_server import HB_DSP_REGISTER_NN_ALL, hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start
from dsp_server.registry import Op


def main() -> None:
    hb_dsp_env_init()
    HB_DSP_REGISTER_NN_ALL()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if file.name == Path(__file__).name:
            continue
        ops: dict[int, Op] = getattr(importlib.import_module(file.stem), "OPS", {})
        for cmd, op in ops.items():
            hb_dsp_register_fn(cmd, op, 0)
    hb_dsp_start()
