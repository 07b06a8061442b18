"""How much faster recognition is with the DSP: uint8 in C against numpy here, and the whole task as modeled."""

import sys
from functools import partial
from time import thread_time
from timeit import repeat
from typing import Any

from arm_client.client import connect
from recognizer import (
    Clock,
    DeviceNetwork,
    Figure,
    Recognizer,
    features_of,
    forward_uint8,
    held_out,
    load_network,
    quantize,
    quantized_weights,
    random_network,
    show_figures,
)

REPORTS = True


def main() -> Any:
    """Returns the speedup of recognition by network, and the speedup of C over numpy."""
    figures, found = [], {}
    said = held_out(1)[:2]
    with connect() as board:
        profile = board.profile
        ratio = profile.number("cpu.host_ratio")
        for name, network in (("the trained network", load_network()), ("12 layers of 1024", random_network())):
            recognize, device = Recognizer(network), DeviceNetwork(board, network)
            heard = [
                min((recognize(one.samples) for _ in range(3)), key=lambda one: one.seconds["forward"]) for one in said
            ]
            cpu_ms = {stage: 1000 * ratio * sum(one.seconds[stage] for one in heard) for stage in heard[0].seconds}
            rows = [features_of(network, one) for one in said]
            modeled = device.modeled(*map(device, rows))
            dsp_ms = modeled.calls + modeled.operations
            rest_ms = cpu_ms["features"] + cpu_ms["decode"]
            whole = (rest_ms + cpu_ms["forward"]) / (rest_ms + dsp_ms)
            found[name] = whole
            figures += [
                Figure(f"{name}: forward pass on the CPU", "", f"{cpu_ms['forward']:.1f} ms", Clock.MODELED),
                Figure("  on the DSP, with its calls", "", f"{dsp_ms:.1f} ms", Clock.MODELED),
                Figure("  recognition is faster by", "3.89 to 4.42 times", f"{whole:.2f} times", Clock.MODELED),
            ]
            if name.startswith("the"):
                weights, stored = quantized_weights(network), quantize(rows[0])
                times = repeat(partial(forward_uint8, network, weights, stored), number=1, repeat=3, timer=thread_time)
                numpy_ms = 1000 * min(times)
                c_ms = min(device(rows[0]).tasks[0].duration_ns for _ in range(50)) / 1e6
                found["C against numpy"] = numpy_ms / c_ms
                text = f"{numpy_ms:.0f} ms and {c_ms:.1f} ms: {numpy_ms / c_ms:.0f} times"
                figures.append(Figure("  uint8 in numpy, and in C", "", text, Clock.MEASURED))
    show_figures(
        figures,
        f"By profile {profile.name}: the board's CPU is taken to be {ratio:g} times slower than this machine, which is "
        "assumed. The published network is not public.",
    )
    if found["C against numpy"] < 1:
        sys.exit("The op in C is slower than numpy.")
    return found


if __name__ == "__main__":
    main()
