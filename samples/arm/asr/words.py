"""Digits from WAV files: on the CPU, on the DSP in float, and on the DSP in uint8, with the word error rate of each.

python words.py [FILE.wav ...] takes 16-bit files at 8000 Hz; without files, it synthesizes the test set of ten
synthetic speakers into WAV files, and reads those. 'hbrt run asr words' keeps them in the results directory.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from arm_client.client import connect
from recognizer import (
    RATE,
    REJECT,
    DeviceNetwork,
    Per,
    Recognizer,
    Where,
    held_out,
    load_network,
    read_wav,
    word_error_rate,
    write_wav,
)

REPORTS = True


def main(wav_file: str = "", *more: str, output_dir: str = "") -> Any:
    """Returns the word error rate by where the model ran; None for the user's own files."""
    with tempfile.TemporaryDirectory() as gone:
        folder = Path(output_dir or gone, "wav")
        said = [] if wav_file else held_out()
        files = [Path(file) for file in (wav_file, *more) if file]
        for index, utterance in enumerate(said):
            folder.mkdir(exist_ok=True)
            files.append(folder / f"{index:03}_{'_'.join(utterance.words)}.wav")
            write_wav(files[-1], utterance.samples)
        try:
            recordings = [read_wav(file) for file in files]
            words = recognized(recordings, np.inf if said else REJECT)
        except (OSError, ValueError) as error:
            sys.exit(str(error))
    if not said:
        for where, heard in words.items():
            for file, one in zip(files, heard, strict=True):
                print(f"{file}, {where}: {' '.join(one) or '(no words)'}")
        return None
    rates = {}
    if output_dir:
        print(f"The recordings: {folder}")
    for where, heard in words.items():
        rates[where] = word_error_rate([one.words for one in said], heard)
        print(f"{where}: {rates[where]:.1%} of {sum(len(one.words) for one in said)} words are wrong")
    return rates


def recognized(recordings: list[Any], reject: float) -> dict[str, list[tuple[str, ...]]]:
    """The words of each recording, by where the model ran; "?" for sounds farther than ``reject`` from every digit."""
    network = load_network()
    most = max(len(samples) for samples in recordings) * 100 // RATE + 1
    with connect() as board:
        in_float = DeviceNetwork(board, network, is_float=True, most_frames=most)
        recognizers = {
            Where.CPU: Recognizer(network, reject=reject),
            Where.FLOAT: Recognizer.on_dsp(in_float, Per.LAYER, reject),
            Where.UINT8: Recognizer.on_dsp(DeviceNetwork(board, network, most_frames=most), reject=reject),
        }
        return {where: [recognize(samples).words for samples in recordings] for where, recognize in recognizers.items()}


if __name__ == "__main__":
    main(*sys.argv[1:])
