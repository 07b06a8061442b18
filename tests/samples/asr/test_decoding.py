"""Words out of scores, and errors in words, with no board."""

from __future__ import annotations

import numpy as np

from recognizer import PHONE_NAMES, WORDS, decode, say, voice_of, word_error_rate, word_errors
from tests.each import each


@each("words", [WORDS, ("two", "two", "two"), ("eight",), ("six", "seven", "six")])
def test_scores_that_are_sure_give_the_words(words: tuple[str, ...]) -> None:
    sounds = say(words, voice_of(2), 7).sounds
    scores = np.where(np.arange(len(PHONE_NAMES)) == sounds[:, None], 0.0, -9.0)
    assert decode(scores + np.random.default_rng(0).normal(size=(len(scores), 1)) * 100) == words


def test_silence_has_no_words() -> None:
    assert decode(np.where(np.arange(len(PHONE_NAMES)) == 0, 0.0, -9.0) * np.ones((50, 1))) == ()


@each(
    "heard, errors",
    [
        ("one two three", 0),
        ("one three", 1),
        ("one two two three", 1),
        ("nine two three", 1),
        ("", 3),
        ("three one", 3),
    ],
)
def test_errors_are_the_fewest_that_explain_what_was_heard(heard: str, errors: int) -> None:
    said = ("one", "two", "three")
    assert word_errors(said, heard.split()) == errors
    assert word_error_rate([said, said], [said, heard.split()]) == errors / 6
