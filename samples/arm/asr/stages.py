"""Where the time goes: stages of recognition, products in the forward pass, calls in the forward pass on the DSP."""

from time import thread_time
from typing import Any

from arm_client.client import connect
from recognizer import (
    Clock,
    DeviceNetwork,
    Figure,
    Kind,
    Recognizer,
    features_of,
    held_out,
    load_network,
    random_network,
    shares,
    show_figures,
    walk,
)

REPORTS = True


def main() -> Any:
    """Returns the shares by name."""
    figures, found = [], {}
    said = held_out(1)
    with connect() as board:
        for name, network in (("the trained network", load_network()), ("one of 12 layers of 1024", random_network())):
            some = said[:10] if name.startswith("the") else said[:2]
            of_stages = shares([Recognizer(network)(one.samples) for one in some])
            rows = features_of(network, said[0])
            seconds = dict.fromkeys(Kind, 0.0)
            start = thread_time()
            for step, _, _ in walk(network, rows):
                now = thread_time()
                seconds[step.kind] += now - start
                start = now
            products = seconds[Kind.PRODUCT] / sum(seconds.values())
            device = DeviceNetwork(board, network)
            modeled = device.modeled(device(rows))
            found[name] = {"forward": of_stages["forward"], "products": products, "call": modeled.share}
            figures += [
                Figure(f"{name}: forward pass of recognition", "87.3%", f"{of_stages['forward']:.1%}", Clock.MEASURED),
                Figure("  products of the forward pass", "95%", f"{products:.1%}", Clock.MEASURED),
                Figure("  a call of the forward pass, mean", "above 1.8 ms", f"{modeled.calls:.1f} ms", Clock.MODELED),
                Figure(
                    "  share of the call in the forward pass",
                    "30%",
                    f"{modeled.share:.0%}",
                    Clock.MODELED,
                ),
            ]
    show_figures(figures, "The weights of the larger network are random: it only shows the effect of its size.")
    return found


if __name__ == "__main__":
    main()
