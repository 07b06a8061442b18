"""A digit recognizer whose acoustic model runs on the DSP: from samples to words, with every step between."""

from __future__ import annotations

from recognizer.decoding import REJECT, decode, word_error_rate, word_errors
from recognizer.device import DeviceNetwork, Pass, Per, pack, stored_output
from recognizer.features import BANDS, filter_banks, rows_of
from recognizer.image import build_image, interface_board
from recognizer.matrix import quantize
from recognizer.network import (
    Kind,
    Network,
    forward,
    forward_uint8,
    load_network,
    quantized_weights,
    random_network,
    ranges_of,
    walk,
)
from recognizer.offload import CallCost, break_even, call_cost, saved
from recognizer.plots import draw
from recognizer.recognizer import Recognizer, Where, features_of, held_out, shares
from recognizer.report import Clock, Figure, show_figures
from recognizer.speech import (
    PHONE_NAMES,
    RATE,
    TEST_VOICES,
    TRAINING_VOICES,
    WORDS,
    read_wav,
    say,
    utterances,
    voice_of,
    write_wav,
)

__all__ = [
    "BANDS",
    "PHONE_NAMES",
    "RATE",
    "REJECT",
    "TEST_VOICES",
    "TRAINING_VOICES",
    "WORDS",
    "CallCost",
    "Clock",
    "DeviceNetwork",
    "Figure",
    "Kind",
    "Network",
    "Pass",
    "Per",
    "Recognizer",
    "Where",
    "break_even",
    "build_image",
    "call_cost",
    "decode",
    "draw",
    "features_of",
    "filter_banks",
    "forward",
    "forward_uint8",
    "held_out",
    "interface_board",
    "load_network",
    "pack",
    "quantize",
    "quantized_weights",
    "random_network",
    "ranges_of",
    "read_wav",
    "rows_of",
    "saved",
    "say",
    "shares",
    "show_figures",
    "stored_output",
    "utterances",
    "voice_of",
    "walk",
    "word_error_rate",
    "word_errors",
    "write_wav",
]
