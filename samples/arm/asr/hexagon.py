"""The forward pass as Hexagon code, with HVX and four threads: the same bits as natively, and instruction counts.

QEMU runs it, on a separate board; the image is samples/dsp/tdnnf_hvx.c. QEMU counts instructions and packets of all
threads, not time; the cycles shown next to them are those charged by the native image's op.
"""

import sys
from time import perf_counter
from typing import Any

import numpy as np

from arm_client.client import connect
from fastrpc import empty, from_array
from recognizer import (
    Clock,
    DeviceNetwork,
    Figure,
    features_of,
    held_out,
    interface_board,
    load_network,
    pack,
    quantize,
    show_figures,
    stored_output,
)

REPORTS = True
LARGEST_L = 1 << 16
ROUNDS = 5


def main() -> Any:
    """Returns packets, instructions and vector instructions of a forward pass."""
    network = load_network()
    packed, rows = pack(network), features_of(network, held_out(1)[0])
    features = quantize(rows)
    with connect() as board:
        device = DeviceNetwork(board, network)
        native = [device(rows) for _ in range(ROUNDS)]
        cycles = native[0].tasks[0].cost.cycles
    times_ms = []
    with interface_board(is_hexagon=True) as (_, tdnnf):
        steps, weights, given = map(from_array, (packed.steps, packed.weights, features.values.reshape(-1)))
        output = empty(64 + rows.shape[0] * 256)
        for _ in range(ROUNDS):
            start = perf_counter()
            tdnnf.forward(steps, given, weights, output, features.scale, features.zero_point, *rows.shape, LARGEST_L, 0)
            times_ms.append(1000 * (perf_counter() - start))
        found, counts = stored_output(output), tdnnf.executed()
    expected = native[0].stored
    if expected is None or not np.array_equal(found.values, expected.values) or found[1:] != expected[1:]:
        sys.exit("The forward pass with HVX differs from the native one.")
    packets, instructions, vectors = counts
    native_ms = min(one.tasks[0].duration_ns for one in native) / 1e6
    products = sum(
        network.weights[step.weights].size * (len(rows) - step.stride) for step in network.steps() if step.kind == 0
    )
    figures = [
        Figure("instructions of all threads", "", f"{instructions:,}", Clock.COUNTED),
        Figure("  HVX instructions among them", "", f"{vectors:,}", Clock.COUNTED),
        Figure("  products per HVX instruction", "128 at most", f"{products / vectors:.0f}", Clock.COUNTED),
        Figure("packets of all threads", "", f"{packets:,}", Clock.COUNTED),
        Figure("cycles charged by the native op", "", f"{cycles:,}", Clock.MODELED),
        Figure("  packets per cycle", "", f"{packets / cycles:.2f}", Clock.COUNTED),
        Figure("a forward pass by QEMU, native", "", f"{min(times_ms):.1f}, {native_ms:.1f} ms", Clock.MEASURED),
        Figure("  QEMU is slower by", "", f"{min(times_ms) / native_ms:.0f} times", Clock.MEASURED),
    ]
    show_figures(
        figures,
        "Both give the same bytes. A packet takes a thread one cycle or more; waiting for memory is not counted.",
    )
    return counts


if __name__ == "__main__":
    main()
