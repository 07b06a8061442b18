"""Digits out of WAV files: on the CPU, on the DSP in float, and on the DSP in uint8, with the word error rate of each.

python words.py [FILE.wav ...] takes files of 8000 Hz with 16 bits; with none it says the test set of ten synthetic
speakers into WAV files, and reads those.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from arm_client.asr import (
    DeviceNetwork,
    Per,
    Recogniser,
    Where,
    held_out,
    load_network,
    read_wav,
    word_error_rate,
    write_wav,
)
from arm_client.client import connect

REPORTS = True


def main(wav_file: str = "", *more: str) -> Any:
    """Returns the word error rate by where the model ran, or the words of each file."""
    network = load_network()
    with connect() as board, tempfile.TemporaryDirectory() as folder:
        recognisers = {
            Where.CPU: Recogniser(network),
            Where.FLOAT: Recogniser.on_dsp(DeviceNetwork(board, network, is_float=True), Per.LAYER),
            Where.UINT8: Recogniser.on_dsp(DeviceNetwork(board, network)),
        }
        if wav_file:
            for file in (wav_file, *more):
                samples = read_wav(Path(file))
                for where, recognise in recognisers.items():
                    print(f"{file}, {where}: {' '.join(recognise(samples).words)}")
            return None
        said = held_out()
        files = [Path(folder) / f"{index:03}.wav" for index in range(len(said))]
        for path, utterance in zip(files, said, strict=True):
            write_wav(path, utterance.samples)
        rates = {}
        for where, recognise in recognisers.items():
            heard = [recognise(read_wav(path)).words for path in files]
            rates[where] = word_error_rate([one.words for one in said], heard)
            print(f"{where}: {rates[where]:.1%} of {sum(len(one.words) for one in said)} words are wrong")
        return rates


if __name__ == "__main__":
    main(*sys.argv[1:])
