"""Spoken digits by formant synthesis: a stand-in for recordings, generated from numbers only. Pure.

A voice has a pitch, a vocal tract length, a tempo and formants that differ from the average; an utterance has noise.
Voiced sounds are harmonics of the pitch under an envelope of resonances, the others noise under one. This is far from
real speech: error rates on it compare implementations of one network, but say nothing about recordings.

Source: Peterson and Barney, Control Methods Used in a Study of the Vowels (Journal of the Acoustical Society of America
24, 1952), table II, for the vowels' formants, https://doi.org/10.1121/1.1906875
Emulator: consonants, sound lengths and the ranges of voices.
"""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

RATE: Final = 8000
"""Samples per second."""
STEP: Final = 40
"""Samples per step of the formant and loudness tracks."""
WORDS: Final = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TRAINING_VOICES: Final = range(40)
TEST_VOICES: Final = range(100, 110)
"""Speakers that the network has not heard."""
Floats = NDArray[np.float64]
Samples = NDArray[np.int16]


class Phone(NamedTuple):
    """A sound: formants at both ends in Hz, loudness of voice and of noise, the noise's center in Hz, length."""

    start: tuple[int, int, int]
    end: tuple[int, int, int]
    voice: float
    noise: float
    center: int
    ms: int


def _steady(formants: tuple[int, int, int], voice: float, noise: float, center: int, ms: int) -> Phone:
    return Phone(formants, formants, voice, noise, center, ms)


PHONES: Final = {
    "sil": _steady((500, 1500, 2500), 0.0, 0.0, 2000, 120),
    "iy": _steady((270, 2290, 3010), 0.9, 0.0, 2000, 120),
    "ih": _steady((390, 1990, 2550), 0.9, 0.0, 2000, 80),
    "eh": _steady((530, 1840, 2480), 1.0, 0.0, 2000, 100),
    "ah": _steady((640, 1190, 2390), 1.0, 0.0, 2000, 90),
    "ao": _steady((570, 840, 2410), 1.0, 0.0, 2000, 120),
    "uw": _steady((300, 870, 2240), 0.8, 0.0, 2000, 130),
    "ay": Phone((730, 1090, 2440), (300, 2200, 2900), 1.0, 0.0, 2000, 170),
    "ey": Phone((500, 1900, 2500), (300, 2250, 2900), 1.0, 0.0, 2000, 130),
    "ow": Phone((560, 900, 2400), (330, 800, 2300), 0.9, 0.0, 2000, 140),
    "r": _steady((320, 1100, 1500), 0.6, 0.0, 2000, 70),
    "w": _steady((290, 620, 2150), 0.6, 0.0, 2000, 70),
    "n": _steady((250, 1400, 2300), 0.4, 0.0, 2000, 80),
    "v": _steady((260, 1150, 2300), 0.3, 0.08, 2500, 60),
    "z": _steady((250, 1650, 2500), 0.25, 0.25, 3700, 80),
    "f": _steady((300, 1200, 2300), 0.0, 0.12, 2400, 90),
    "th": _steady((300, 1400, 2500), 0.0, 0.09, 3000, 80),
    "s": _steady((300, 1700, 2500), 0.0, 0.4, 3700, 100),
    "k": _steady((300, 1700, 2300), 0.0, 0.25, 1900, 70),
    "t": _steady((300, 1800, 2600), 0.0, 0.3, 3300, 60),
}
"""Vowels as measured, consonants by ear."""
PHONE_NAMES: Final = tuple(PHONES)
STOPS: Final = ("k", "t")
"""Sounds that begin with a closure: the first half is silent."""
PRONUNCIATIONS: Final = {
    "zero": ("z", "ih", "r", "ow"),
    "one": ("w", "ah", "n"),
    "two": ("t", "uw"),
    "three": ("th", "r", "iy"),
    "four": ("f", "ao", "r"),
    "five": ("f", "ay", "v"),
    "six": ("s", "ih", "k", "s"),
    "seven": ("s", "eh", "v", "ah", "n"),
    "eight": ("ey", "t"),
    "nine": ("n", "ay", "n"),
}


class Voice(NamedTuple):
    """A speaker.

    Attributes:
        pitch: Of the voice, in Hz.
        tract: Factor on all formants: above 1 for a short vocal tract.
        tempo: Factor on all lengths.
        breath: Loudness of noise under the voice.
        accent: (phones, 3) factors on each sound's formants.
    """

    pitch: float
    tract: float
    tempo: float
    breath: float
    accent: Floats


class Utterance(NamedTuple):
    """What was said.

    Attributes:
        samples: int16 at RATE.
        words: In order.
        sounds: Index into PHONE_NAMES for each 10 ms step.
    """

    samples: Samples
    words: tuple[str, ...]
    sounds: NDArray[np.int64]


def voice_of(seed: int) -> Voice:
    """A speaker by number: the same number gives the same speaker."""
    random = np.random.default_rng((1, seed))
    height = random.uniform()  # as in people: a long vocal tract goes with a low pitch
    return Voice(
        pitch=85 * 2 ** (1.6 * height) * random.uniform(0.9, 1.1),
        tract=0.88 + 0.3 * height + random.uniform(-0.04, 0.04),
        tempo=random.uniform(0.75, 1.3),
        breath=random.uniform(0.005, 0.03),
        accent=np.exp(random.normal(0, 0.05, (len(PHONES), 3))),
    )


def say(words: tuple[str, ...], voice: Voice, seed: int, snr_db: float = 12.0) -> Utterance:
    """Speak words.

    Args:
        words: From WORDS.
        voice: Of the speaker.
        seed: For what differs between utterances: lengths, melody, noise.
        snr_db: Signal-to-noise ratio of the speech.

    Raises:
        ValueError: an unknown word.
    """
    if unknown := [word for word in words if word not in PRONUNCIATIONS]:
        raise ValueError(f"Unknown word {unknown[0]!r}; known are {', '.join(WORDS)}.")
    random = np.random.default_rng((2, seed))
    names = ["sil"]
    for word in words:
        names += PRONUNCIATIONS[word]
        if random.uniform() < 0.5:
            names.append("sil")
    names += ["sil"] if names[-1] != "sil" else []
    lengths = [
        max(6, round(PHONES[name].ms * voice.tempo * random.uniform(0.7, 1.4) * RATE / 1000 / STEP)) for name in names
    ]
    ids = np.repeat([PHONE_NAMES.index(name) for name in names], lengths)
    formants, voiced, noisy, center = _tracks(names, lengths, voice)
    samples = _voiced(formants, voiced, voice, random) + _noisy(noisy + voice.breath * voiced, center, random)
    power = np.mean(samples**2)
    hiss = random.normal(size=len(samples))
    hum = np.convolve(random.normal(size=len(samples)), np.exp(-np.arange(40) / 8), "same")
    noise = hiss / hiss.std() + hum / hum.std()
    samples += noise * np.sqrt(power / np.mean(noise**2)) * 10 ** (-snr_db / 20)
    samples *= 9000 / np.abs(samples).max()
    return Utterance(samples.astype(np.int16), words, ids[1::2])


def utterances(
    voices: range, each: int, words_of_each: int = 5, seed: int = 0, snr_db: tuple[float, float] = (6, 18)
) -> list[Utterance]:
    """Some utterances of each of some speakers: random digits in noise 6 to 18 dB below."""
    found = []
    for number in voices:
        voice = voice_of(number)
        for index in range(each):
            own = seed + 1000 * number + index
            random = np.random.default_rng((3, own))
            words = tuple(WORDS[word] for word in random.integers(0, len(WORDS), words_of_each))
            found.append(say(words, voice, own, random.uniform(*snr_db)))
    return found


def write_wav(file: Path, samples: Samples) -> None:
    """Write one channel of int16 at RATE."""
    with wave.open(str(file), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(samples.astype("<i2").tobytes())


def read_wav(file: Path) -> Samples:
    """Samples of a WAV file.

    Raises:
        ValueError: not a mono 16-bit WAV file at RATE.
    """
    try:
        with wave.open(str(file), "rb") as source:
            kind = (source.getnchannels(), source.getsampwidth(), source.getframerate())
            data = source.readframes(source.getnframes())
    except (wave.Error, EOFError) as error:
        raise ValueError(f"{file} is not a WAV file: {str(error) or 'it is truncated'}.") from error
    if kind != (1, 2, RATE):
        raise ValueError(
            f"{file} has {kind[0]} channels of {8 * kind[1]} bits at {kind[2]} Hz; the model takes 1 of 16 bits at "
            f"{RATE} Hz."
        )
    return np.frombuffer(data[: len(data) // 2 * 2], "<i2").astype(np.int16)


def _tracks(names: list[str], lengths: list[int], voice: Voice) -> tuple[Floats, Floats, Floats, Floats]:
    """Formants (steps, 3), loudness of voice and of noise, center of the noise; (steps,) each, smooth at the joints."""
    formants, voiced, noisy, center = [], [], [], []
    for name, steps in zip(names, lengths, strict=True):
        phone = PHONES[name]
        factors = voice.tract * voice.accent[PHONE_NAMES.index(name)]
        part = np.linspace(0, 1, steps)[:, None]
        formants.append(((1 - part) * phone.start + part * phone.end) * factors)
        sounds = np.ones(steps)
        if name in STOPS:
            sounds[: steps // 2] = 0
        voiced.append(phone.voice * sounds)
        noisy.append(phone.noise * sounds)
        center.append(np.full(steps, phone.center * min(voice.tract, 1.05)))
    kernel = np.hanning(9) / np.hanning(9).sum()

    def smooth(track: Floats) -> Floats:
        padded = np.pad(track, (4, 4), "edge")
        return np.convolve(padded, kernel, "valid")

    whole = np.concatenate(formants)
    return (
        np.stack([smooth(whole[:, at]) for at in range(3)], -1),
        smooth(np.concatenate(voiced)),
        smooth(np.concatenate(noisy)),
        smooth(np.concatenate(center)),
    )


def _voiced(formants: Floats, loudness: Floats, voice: Voice, random: np.random.Generator) -> Floats:
    """Harmonics of the pitch under the resonances."""
    steps = len(loudness)
    melody = 1 + 0.08 * np.sin(np.linspace(0, random.uniform(2, 6), steps) + random.uniform(0, 6))
    pitch = voice.pitch * melody * np.linspace(1.08, 0.9, steps) * (1 + random.normal(0, 0.005, steps))
    at = np.arange(steps * STEP) / STEP
    phase = 2 * np.pi * np.cumsum(np.interp(at, np.arange(steps), pitch)) / RATE
    found = np.zeros(steps * STEP)
    for harmonic in range(1, int(0.48 * RATE / pitch.min()) + 1):
        frequency = harmonic * pitch
        level = loudness * _resonance(frequency, formants) / harmonic * (frequency < 0.48 * RATE)
        if level.max() > 1e-4:
            found += np.interp(at, np.arange(steps), level) * np.sin(harmonic * phase)
    return found


def _resonance(frequency: Floats, formants: Floats) -> Floats:
    """Gain at one frequency for each step, from three resonances and a fixed fourth."""
    gain = np.ones(len(frequency))
    for number, width in enumerate((70, 90, 130, 200)):
        center = formants[:, number] if number < 3 else np.full(len(frequency), 3500.0)
        gain *= center**2 / np.sqrt((center**2 - frequency**2) ** 2 + (width * frequency) ** 2)
    return gain


def _noisy(loudness: Floats, center: Floats, random: np.random.Generator) -> Floats:
    """Noise in one band per step, added up over windows that overlap by half."""
    size = 2 * STEP
    spectrum = np.fft.rfft(random.normal(size=(len(loudness), size)), axis=1)
    frequency = np.fft.rfftfreq(size, 1 / RATE)
    spectrum *= np.exp(-(((frequency - center[:, None]) / 900) ** 2)) * loudness[:, None]
    parts = np.fft.irfft(spectrum, size, axis=1) * np.hanning(size)
    found = np.zeros((len(loudness) + 1) * STEP)
    first, second = found[: len(loudness) * STEP].reshape(-1, STEP), found[STEP:].reshape(-1, STEP)
    first += parts[:, :STEP]
    second += parts[:, STEP:]
    return found[: len(loudness) * STEP]
