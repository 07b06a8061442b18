"""Recordings to words: features, the acoustic model on the CPU or on the DSP, and the decoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from time import thread_time
from typing import Final, NamedTuple

import numpy as np

from recognizer.decoding import decode
from recognizer.device import DeviceNetwork, Per
from recognizer.features import filter_banks, rows_of
from recognizer.network import Floats, Network, forward
from recognizer.speech import TEST_VOICES, Samples, Utterance, utterances

TEST_SEED: Final = 5
TEST_SNR_DB: Final = (3.0, 12.0)
"""Noisier than the training data."""


class Where(StrEnum):
    """Where the acoustic model runs, and in which number format."""

    CPU = "CPU, float"
    FLOAT = "DSP, float, a call a layer"
    UINT8 = "DSP, uint8, one call"


class Heard(NamedTuple):
    """Words, and the CPU seconds of each stage in this thread."""

    words: tuple[str, ...]
    seconds: dict[str, float]


class Recognizer:
    """Features, an acoustic model, and the decoder."""

    def __init__(
        self, network: Network, model: Callable[[Floats], Floats] | None = None, reject: float = np.inf
    ) -> None:
        """``model`` maps rows of features to outputs; None computes the network on the CPU. ``reject``: see decode."""
        self.network, self._reject = network, reject
        self._model = model or (lambda rows: forward(network, rows))

    @classmethod
    def on_dsp(cls, device: DeviceNetwork, per: Per = Per.FORWARD, reject: float = np.inf) -> Recognizer:
        """A recognizer whose acoustic model is on the DSP."""
        return cls(device.network, lambda rows: device(rows, per).scores, reject)

    def __call__(self, samples: Samples) -> Heard:
        """The words of a recording; raises ValueError if it is shorter than a window."""
        start = thread_time()
        rows = rows_of(filter_banks(samples), self.network.context)
        has_features = thread_time()
        outputs = self._model(rows)
        has_outputs = thread_time()
        words = decode(self.network.scores(outputs), self._reject)
        ends = thread_time()
        return Heard(
            words,
            {"features": has_features - start, "forward": has_outputs - has_features, "decode": ends - has_outputs},
        )


def held_out(each: int = 10) -> list[Utterance]:
    """Utterances of five digits by ten speakers that the network has not heard, this many per speaker."""
    return utterances(TEST_VOICES, each, seed=TEST_SEED, snr_db=TEST_SNR_DB)


def features_of(network: Network, *said: Utterance) -> Floats:
    """Rows of features for a forward pass over utterances, concatenated."""
    return rows_of(np.concatenate([filter_banks(one.samples) for one in said]), network.context)


def shares(heard: list[Heard]) -> dict[str, float]:
    """Each stage's share of the total time."""
    total: Counter[str] = Counter()
    for one in heard:
        total.update(one.seconds)
    whole = sum(total.values())
    return {name: seconds / whole for name, seconds in total.items()}
