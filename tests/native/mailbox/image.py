"""An op that sleeps."""

import time

from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start


def sleep(input: memoryview, output: memoryview, tm: object) -> int:
    time.sleep(input[0] / 100)
    return 0


def main() -> None:
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1002, sleep, 0)
    hb_dsp_start()
