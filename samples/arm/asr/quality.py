"""The quality loss of uint8: word error rates of float and of uint8 on two sets of unseen speakers."""

from typing import Any

import numpy as np

from arm_client.client import connect
from recognizer import (
    TEST_VOICES,
    Clock,
    DeviceNetwork,
    Figure,
    decode,
    features_of,
    forward,
    load_network,
    show_figures,
    utterances,
    word_error_rate,
)

REPORTS = True
EACH = 50  # utterances per voice, with five words each
SETS = {"quiet": ((9.0, 18.0), "+0.15 (aishell-1)"), "noisy": ((3.0, 12.0), "+0.72 (openslr)")}


def main() -> Any:
    """Returns the word error rates in float, in uint8, and in uint8 with exact scales, by set."""
    network = load_network()
    figures, found = [], {}
    more = 0
    with connect() as board:
        devices = [DeviceNetwork(board, network), DeviceNetwork(board, network, is_exact=True)]
        for name, (snr_db, published) in SETS.items():
            said = utterances(TEST_VOICES, EACH, seed=50, snr_db=snr_db)
            rows = [features_of(network, one) for one in said]
            outputs = [
                [forward(network, one) for one in rows],
                *([device(one).scores for one in rows] for device in devices),
            ]
            words = [one.words for one in said]
            rates = [word_error_rate(words, [decode(network.scores(one)) for one in some]) for some in outputs]
            apart = [
                max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(outputs[0], some, strict=True))
                for some in outputs[1:]
            ]
            found[name] = rates
            more += round((rates[1] - rates[0]) * sum(map(len, words)))
            figures += [
                Figure(f"{name} set: words wrong in float", "", f"{rates[0]:.2%}", Clock.COUNTED),
                Figure("  uint8, in points", published, f"{100 * (rates[1] - rates[0]):+.2f}", Clock.COUNTED),
                Figure(
                    "  uint8 with exact scales, in points", "", f"{100 * (rates[2] - rates[0]):+.2f}", Clock.COUNTED
                ),
                Figure("  largest error of an output", "", f"{apart[0]:.1%}, exact {apart[1]:.1%}", Clock.COUNTED),
            ]
    whole = len(SETS) * 5 * EACH * len(TEST_VOICES)
    figures.append(Figure(f"both, {whole} words: uint8, in points", "", f"{100 * more / whole:+.2f}", Clock.COUNTED))
    show_figures(figures, f"One word is {100 / whole:.2f} points of both sets.")
    return found


if __name__ == "__main__":
    main()
