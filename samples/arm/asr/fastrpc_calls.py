"""The forward pass over FastRPC, through its own interface; and a call with one buffer of weights against one with 21.

The interface is samples/dsp/tdnnf.idl; 'hbrt idl' writes its stub and skeleton. It runs on a separate board.
"""

import sys
from time import perf_counter
from typing import Any

import numpy as np

from fastrpc import empty, from_array, statistics
from recognizer import (
    CallCost,
    Clock,
    Figure,
    features_of,
    forward_uint8,
    held_out,
    interface_board,
    load_network,
    pack,
    quantize,
    quantized_weights,
    show_figures,
    stored_output,
)

REPORTS = True
ROUNDS, CALLS = 15, 40
LARGEST_L = 1 << 16


def best(call: Any, *arguments: Any) -> float:
    """Microseconds per call: the shortest mean over several rounds."""
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        for _ in range(CALLS):
            call(*arguments)
        times.append((perf_counter() - start) / CALLS)
    return 1e6 * min(times)


def main() -> Any:
    """Returns how many times longer a call with one buffer for each matrix and row takes."""
    network = load_network()
    packed, rows = pack(network), features_of(network, held_out(1)[0])
    features = quantize(rows)
    with interface_board() as (board, tdnnf):
        profile = board.profile
        steps, weights, given = map(from_array, (packed.steps, packed.weights, features.values.reshape(-1)))
        parts = [from_array(part) for part in packed.parts.values()]
        output = empty(64 + rows.shape[0] * 256)
        before = statistics()
        tdnnf.forward(steps, given, weights, output, features.scale, features.zero_point, *rows.shape, LARGEST_L, 0)
        after = statistics()
        copied, shared = after.copied_bytes - before.copied_bytes, after.shared_bytes - before.shared_bytes
        found = stored_output(output)
        one = best(tdnnf.touch, given, weights, output)
        each = best(tdnnf.touch_each, given, *parts, output)
    expected = forward_uint8(network, quantized_weights(network), features)
    if not np.array_equal(found.values, expected.values):
        sys.exit("The forward pass over FastRPC differs from the one in numpy.")
    cost = CallCost(profile.number("rpc.call_us"), profile.number("rpc.buffer_us"))
    many = len(parts)
    figures = [
        Figure("bytes shared and copied by a forward pass", "", f"{shared} and {copied}", Clock.COUNTED),
        Figure("a call with one buffer of weights", "1800 µs", f"{cost.of(4):.0f} µs", Clock.MODELED),
        Figure(f"a call with {many}", "", f"{cost.of(3 + many):.0f} µs", Clock.MODELED),
        Figure("  times", "11.62", f"{cost.of(3 + many) / cost.of(4):.2f}", Clock.MODELED),
        Figure("a call with one buffer of weights", "", f"{one:.1f} µs", Clock.MEASURED),
        Figure(f"a call with {many}", "", f"{each:.1f} µs", Clock.MEASURED),
        Figure("  times", "", f"{each / one:.2f}", Clock.MEASURED),
    ]
    show_figures(figures, "The forward pass over FastRPC has the same bits as the one in numpy.")
    return each / one


if __name__ == "__main__":
    main()
