"""Synthesised digits, their files and features, with no board."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from recognizer import (
    BANDS,
    RATE,
    TEST_VOICES,
    TRAINING_VOICES,
    filter_banks,
    read_wav,
    rows_of,
    say,
    voice_of,
    write_wav,
)


def test_a_number_gives_the_same_voice_and_utterance_each_time() -> None:
    first, again = (say(("one", "nine"), voice_of(3), 4) for _ in range(2))
    assert_array_equal(first.samples, again.samples)
    assert voice_of(3).pitch != voice_of(4).pitch
    assert not set(TEST_VOICES) & set(TRAINING_VOICES)


def test_the_sounds_of_an_utterance_cover_its_frames() -> None:
    utterance = say(("seven",), voice_of(1), 1)
    banks = filter_banks(utterance.samples)
    assert banks.shape[1] == BANDS
    assert 0 <= len(utterance.sounds) - 1 - len(banks) <= 3
    rows = rows_of(banks, 7)
    assert rows.shape == (len(banks) + 14, 128)
    assert_array_equal(rows[7 + 5, BANDS : 2 * BANDS], banks[5])


def test_a_wav_file_keeps_the_samples_and_another_kind_is_refused(tmp_path: Path) -> None:
    samples = say(("two",), voice_of(0), 0).samples
    write_wav(tmp_path / "two.wav", samples)
    assert_array_equal(read_wav(tmp_path / "two.wav"), samples)
    whole = (tmp_path / "two.wav").read_bytes()
    (tmp_path / "fast.wav").write_bytes(whole[:24] + (2 * RATE).to_bytes(4, "little") + whole[28:])
    with pytest.raises(ValueError, match="at 16000 Hz; the model takes 1 of 16 bits at 8000 Hz"):
        read_wav(tmp_path / "fast.wav")
    for bad in (b"", b"RIFF", whole[:20]):
        (tmp_path / "bad.wav").write_bytes(bad)
        with pytest.raises(ValueError, match="is not a WAV file"):
            read_wav(tmp_path / "bad.wav")


def test_what_cannot_be_said_or_heard_is_refused() -> None:
    with pytest.raises(ValueError, match="Unknown word 'ten'; known are "):
        say(("ten",), voice_of(0), 0)
    with pytest.raises(ValueError, match="are less than a window of 256"):
        filter_banks(np.zeros(255, np.int16))
