"""The image of test_meet.py."""

import time

from dsp_server import hb_dsp_env_init, hb_dsp_init_global_tm, hb_dsp_register_fn, hb_dsp_start

ADD_ONE, FAIL, SLEEP, HOLD = range(0x1000, 0x1004)
RESTING = 2  # a held op computes while its input is 0


def add_one(input: memoryview, output: memoryview, tm: object) -> int:
    output[0] = (input[0] + 1) % 256
    return 0


def fail(input: memoryview, output: memoryview, tm: object) -> int:
    return -42


def sleep(input: memoryview, output: memoryview, tm: object) -> int:
    time.sleep(input[0] / 100)
    return 0


def hold(input: memoryview, output: memoryview, tm: object) -> int:
    while input[0] != 1:
        if input[0] == RESTING:
            time.sleep(0.001)
    return 0


def main() -> None:
    """Serve."""
    hb_dsp_env_init()
    hb_dsp_init_global_tm()
    hb_dsp_register_fn(ADD_ONE, add_one, 0)
    hb_dsp_register_fn(FAIL, fail, 0)
    hb_dsp_register_fn(SLEEP, sleep, 0)
    hb_dsp_register_fn(HOLD, hold, 0)
    hb_dsp_start()
