"""Acoustic features: logarithms of the energies in mel-scale bands, for each 10 ms. Pure."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from recognizer.speech import RATE

BANDS: Final = 40
FRAME: Final = RATE // 100
"""Samples from one frame to the next."""
WINDOW: Final = 256
INPUTS: Final = 128
"""Numbers per row: three frames side by side, zero-padded to a multiple of 128."""

Floats = NDArray[np.float32]


@cache
def mel_bands() -> Floats:
    """(BANDS, WINDOW // 2 + 1): triangles of equal width on the mel scale, from 60 Hz."""

    def mel(hertz: float) -> float:
        return 2595 * float(np.log10(1 + hertz / 700))

    edges = 700 * (10 ** (np.linspace(mel(60), mel(RATE / 2), BANDS + 2) / 2595) - 1)
    bins = np.arange(WINDOW // 2 + 1) * RATE / WINDOW
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(rising, falling)).astype(np.float32)


def filter_banks(samples: NDArray[np.int16]) -> Floats:
    """(frames, BANDS) of a recording, each band normalized over it to mean 0 and standard deviation 1.

    Raises:
        ValueError: the recording is shorter than a window.
    """
    if len(samples) < WINDOW:
        raise ValueError(
            f"{len(samples)} samples are less than a window of {WINDOW}; give at least {1000 * WINDOW // RATE} ms."
        )
    real = samples.astype(np.float32)
    real[1:] -= np.float32(0.97) * real[:-1]
    frames = np.lib.stride_tricks.sliding_window_view(real, WINDOW)[::FRAME]
    power = np.abs(np.fft.rfft(frames * np.hamming(WINDOW).astype(np.float32), axis=1)) ** 2
    logs = np.log(power.astype(np.float32) @ mel_bands().T + np.float32(1))
    found: Floats = (logs - logs.mean(0)) / (logs.std(0) + np.float32(1e-3))
    return found


def rows_of(banks: Floats, context: int) -> Floats:
    """(frames + 2 context, INPUTS): each row has a frame between its neighbors; the ends are repeated.

    Args:
        banks: (frames, BANDS).
        context: Rows that the network removes at each end.
    """
    padded = np.pad(banks, ((context + 1, context + 1), (0, 0)), "edge")
    rows = len(banks) + 2 * context
    found = np.zeros((rows, INPUTS), np.float32)
    for neighbor in range(3):
        found[:, neighbor * BANDS : (neighbor + 1) * BANDS] = padded[neighbor : neighbor + rows]
    return found
