"""One call per forward pass, per layer, or per operation: the same bytes, and the cost of the calls.

python calls.py [DIRECTORY] draws calls.png into DIRECTORY.
"""

import sys
from typing import Any

import numpy as np

from arm_client.client import connect
from recognizer import Clock, DeviceNetwork, Figure, Per, draw, features_of, held_out, load_network, show_figures

REPORTS = True


def main(output_dir: str = "") -> Any:
    """Returns, for each way, the number of calls, and the modeled milliseconds of the calls and of the operations."""
    network = load_network()
    with connect() as board:
        device = DeviceNetwork(board, network)
        rows = features_of(network, held_out(1)[0])
        found: dict[str, dict[str, float]] = {}
        figures, scores = [], []
        for per in Per:
            passes = [device(rows, per) for _ in range(5)]
            here_ms = min(sum(task.latency_ns - task.duration_ns for task in one.tasks) / 1e6 for one in passes)
            first = passes[0]
            scores.append(first.scores)
            modeled = device.modeled(first)
            found[per.value] = {"count": len(first.tasks), **modeled._asdict(), "share": modeled.share}
            article = "an" if per is Per.OPERATION else "a"
            figures += [
                Figure(f"a call {article} {per}: calls", "", str(len(first.tasks)), Clock.COUNTED),
                Figure("  their own time", "0.5 to 2 ms each", f"{modeled.calls:.1f} ms", Clock.MODELED),
                Figure("  the same here", "", f"{here_ms:.2f} ms", Clock.MEASURED),
                Figure("  share of the forward pass", "30%", f"{modeled.share:.0%}", Clock.MODELED),
            ]
    is_same = all(np.array_equal(scores[0], one) for one in scores[1:])
    show_figures(figures, "All three give the same bytes." if is_same else "The results DIFFER.")
    draw(
        output_dir,
        "calls",
        "A forward pass by what one call does (modeled)",
        "",
        "ms",
        bars={name: {part: one[part] for part in ("operations", "calls")} for name, one in found.items()},
    )
    if not is_same:
        sys.exit("The results of the three ways differ.")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
