"""Requantization with a multiplier and a shift: the precision left by each L from 2^8 to 2^16.

python multiplier.py [DIRECTORY] draws multiplier.png into DIRECTORY.
"""

import sys
from typing import Any

import numpy as np

from arm_client.client import connect
from arm_client.errors import OpFailedError
from recognizer import DeviceNetwork, decode, draw, features_of, forward, held_out, load_network, word_error_rate

REPORTS = True


def main(output_dir: str = "") -> Any:
    """Returns, by the power of L: the smallest multiplier, the largest output error and the word error rate."""
    network, found = load_network(), {}
    said = held_out(3)
    rows = [features_of(network, one) for one in said]
    expected = [forward(network, one) for one in rows]
    with connect() as board:
        print("     L  LEAST L1  LARGEST ERROR  WORDS WRONG  (counted here; published: L is from 2^8 to 2^16)")
        for power in range(8, 17):
            device = DeviceNetwork(board, network, denominator=1 << power, most_frames=600)
            try:
                passes = [device(one) for one in rows]
            except OpFailedError as lost:
                print(f"  2^{power:<2}  {lost.text.strip().rpartition(chr(10))[2]}")
                continue
            least = min(one.least_multiplier for one in passes)
            error = max(
                float(np.abs(one.scores - y).max() / np.abs(y).max()) for one, y in zip(passes, expected, strict=True)
            )
            rate = word_error_rate([one.words for one in said], [decode(network.scores(one.scores)) for one in passes])
            found[power] = {"least_multiplier": least, "error": error, "word_error_rate": rate}
            print(f"  2^{power:<2} {least:9} {error:14.1%} {rate:12.1%}")
    float_rate = word_error_rate([one.words for one in said], [decode(network.scores(one)) for one in expected])
    print(f"In float {float_rate:.1%} are wrong. L1 is truncated to an integer: below 64, scales are off by over 1.5%.")
    draw(
        output_dir,
        "multiplier",
        "Error of the outputs by L",
        "power of L",
        "largest error, share",
        lines={"uint8": (list(found), [one["error"] for one in found.values()])},
    )
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
