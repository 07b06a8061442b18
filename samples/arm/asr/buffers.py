"""One buffer per weight matrix against one buffer with offsets for all: the same result, at different call costs."""

import sys
from typing import Any

import numpy as np

from arm_client.client import connect
from recognizer import (
    CallCost,
    Clock,
    DeviceNetwork,
    Figure,
    call_cost,
    features_of,
    held_out,
    load_network,
    show_figures,
)

REPORTS = True
PUBLISHED = "11.62 times"
GUESSES = (64, 100, 200)  # numbers of buffers that the account may have had


def main() -> Any:
    """Returns how many times longer a call with all buffers takes than one with one, by the board's profile."""
    network = load_network()
    with connect() as board:
        one, many = (DeviceNetwork(board, network, is_one_block=is_one) for is_one in (True, False))
        rows = features_of(network, held_out(1)[0])
        passes = {device.buffers: [device(rows) for _ in range(9)] for device in (one, many)}
        profile = board.profile
    first, others = (passes[device.buffers][0] for device in (one, many))
    if not np.array_equal(first.scores, others.scores):
        sys.exit("The results of the two ways differ.")
    weights = many.buffers - one.buffers + 1
    cost = CallCost(profile.number("rpc.call_us") / 1000, profile.number("rpc.buffer_us") / 1000)
    here = {
        count: min(sum(task.latency_ns for task in one.tasks) / 1e6 for one in some) for count, some in passes.items()
    }
    ratio = cost.of(many.buffers) / cost.of(one.buffers)
    figures = [
        Figure("buffers of weights", "not public", f"{weights} or 1", Clock.COUNTED),
        Figure("ranges that a forward pass maps", "", f"{others.maps} or {first.maps}", Clock.COUNTED),
        Figure("a forward pass", "", f"{here[many.buffers]:.2f} or {here[one.buffers]:.2f} ms", Clock.MEASURED),
        Figure("a call", "-, 1.8 ms", f"{cost.of(many.buffers):.1f} or {cost.of(one.buffers):.1f} ms", Clock.MODELED),
        Figure("one buffer makes a call faster by", PUBLISHED, f"{ratio:.2f} times", Clock.MODELED),
    ]
    for guess in GUESSES:
        fitted = call_cost(guess)
        text = f"{fitted.base:.2f} ms and {fitted.buffer:.3f} ms per buffer"
        figures.append(Figure(f"  published figures explained by {guess} buffers", PUBLISHED, text, Clock.MODELED))
    show_figures(figures, "Both give the same bytes. Offsets cost nothing, buffers do.")
    return ratio


if __name__ == "__main__":
    main()
