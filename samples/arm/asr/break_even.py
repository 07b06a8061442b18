"""How much work makes a DSP call worthwhile: forward passes with more and more frames, on both sides.

python break_even.py [DIRECTORY] draws break_even.png into DIRECTORY.
"""

import sys
from time import thread_time
from typing import Any

from arm_client.client import connect
from recognizer import DeviceNetwork, break_even, draw, features_of, forward, held_out, load_network, saved

REPORTS = True
FRAMES = (5, 10, 20, 50, 100, 200, 400)
CALL_MS = 1.8  # from the account


def main(output_dir: str = "") -> Any:
    """Returns the number of frames from which one call pays off; None if it never does."""
    network = load_network()
    found = []
    with connect() as board:
        device = DeviceNetwork(board, network)
        ratio = board.profile.number("cpu.host_ratio")
        banks = features_of(network, *held_out(1)[:4])
        for frames in FRAMES:
            rows = banks[: frames + 2 * network.context]
            times = []
            for _ in range(7):
                start = thread_time()
                forward(network, rows)
                times.append(thread_time() - start)
            found.append((frames, 1000 * ratio * min(times), device.modeled(device(rows)).operations))
    print(f"FRAMES      CPU      DSP  SAVED BY A CALL  BY 10 CALLS  (ms, modeled; a call takes {CALL_MS} ms)")
    for frames, cpu, dsp in found:
        print(
            f"{frames:6} {cpu:8.2f} {dsp:8.2f} {saved(cpu, dsp, 1, CALL_MS):16.2f} {saved(cpu, dsp, 10, CALL_MS):12.2f}"
        )
    frames, cpu, dsp = found[-1]
    least = break_even(cpu / frames, dsp / frames, CALL_MS)
    if least is None:
        print("The DSP is not faster than the CPU: a call never pays off.")
    else:
        print(f"A call pays off from {least:.0f} frames on.")
        print(f"Published: work that takes the CPU less than {CALL_MS} ms stays on the CPU.")
    draw(
        output_dir,
        "break_even",
        "Forward passes on the CPU and on the DSP (modeled)",
        "frames",
        "ms",
        lines={
            "CPU": ([one[0] for one in found], [one[1] for one in found]),
            "DSP, one call": ([one[0] for one in found], [one[2] + CALL_MS for one in found]),
            "DSP, ten calls": ([one[0] for one in found], [one[2] + 10 * CALL_MS for one in found]),
        },
    )
    return least


if __name__ == "__main__":
    main(*sys.argv[1:])
